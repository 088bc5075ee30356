"""Find tenants that have grown beyond what is compared one by one.

Safe beside a release that serves: a new function, which nothing in that release calls, and an index
of one row a scope. The index is built in the step's transaction, and blocks the counting of words
meanwhile, which waits for nobody and is done again.
"""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

# Without the counts in it, so that counting does not write the index too.
INDEX = "term_stats_total_idx ON mnemic.term_stats (tenant_id) WHERE kind = 'total'"
SIGNATURE = "tenants_beyond(bigint, int)"
BEYOND = """
    CREATE FUNCTION mnemic.tenants_beyond("rows" bigint, "limit" int)
    RETURNS TABLE (tenant_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, mnemic, pg_temp
    SET plan_cache_mode = force_custom_plan
    BEGIN ATOMIC
      SELECT s.tenant_id FROM mnemic.term_stats s
       WHERE s.kind = 'total' GROUP BY s.tenant_id
      HAVING sum(s.documents) > tenants_beyond."rows"
       ORDER BY sum(s.documents) DESC LIMIT tenants_beyond."limit";
    END
"""


def upgrade() -> None:
    """The owner, who sees no tenant's rows, may ask which of them are large."""
    op.execute(f"CREATE INDEX {INDEX}")
    # A function's new owner needs CREATE for the moment in which it becomes the owner. What this
    # one reads, that role may read since 0018.
    op.execute("GRANT CREATE ON SCHEMA mnemic TO mnemic_lookup")
    op.execute(BEYOND)
    op.execute(f"REVOKE ALL ON FUNCTION mnemic.{SIGNATURE} FROM PUBLIC")
    op.execute(f"ALTER FUNCTION mnemic.{SIGNATURE} OWNER TO mnemic_lookup")
    # What its maker was granted before would have gone to the new owner.
    op.execute("SET LOCAL ROLE mnemic_lookup")
    op.execute(f"GRANT EXECUTE ON FUNCTION mnemic.{SIGNATURE} TO mnemic_app, mnemic_owner")
    # Not RESET: a superuser migrates as the owner, and would make the rest as himself.
    op.execute("SET LOCAL ROLE mnemic_owner")
    op.execute("REVOKE CREATE ON SCHEMA mnemic FROM mnemic_lookup")


def downgrade() -> None:
    """Nobody may. Indexes that tenants have of their own stay, and answer nothing there."""
    op.execute(f"DROP FUNCTION mnemic.{SIGNATURE}")
    op.execute("DROP INDEX mnemic.term_stats_total_idx")
