"""Find tenants whose working memory has expired, so that the worker takes it away.

Safe beside a release that serves: the function takes the same arguments, answers the jobs that it
knew as before, and is replaced in one statement.
"""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

READERS = {
    "working_heads": "tenant_id, notes_expire_at",
    "working_memory": "tenant_id, expires_at",
}
_READER = "CREATE POLICY lookup_reader ON mnemic.{table} FOR SELECT TO mnemic_lookup USING (true)"

# Tenants that have such a row. One scan finds each: it begins behind the tenant before and ends at
# the first such row, so that no other row of a tenant that has one is read, but whatever lies
# between in the index is, as are the rows of tenants that have none.
_TENANTS_WITH = """
    SELECT a.tenant_id FROM (
      WITH RECURSIVE found (tenant_id) AS (
        (SELECT w.tenant_id FROM mnemic.{table} w WHERE {pending}
          ORDER BY w.tenant_id LIMIT 1)
        UNION ALL
        SELECT (SELECT w.tenant_id FROM mnemic.{table} w
                 WHERE w.tenant_id > f.tenant_id AND {pending}
                 ORDER BY w.tenant_id LIMIT 1)
          FROM found f WHERE f.tenant_id IS NOT NULL)
      SELECT f.tenant_id FROM found f WHERE f.tenant_id IS NOT NULL) a
     WHERE tenants_due.job = '{job}'
"""
# In another order each time, so that no tenant stands behind the same ones for ever.
_DUE = """
    CREATE OR REPLACE FUNCTION mnemic.tenants_due(job text, "limit" int, due_before timestamptz)
    RETURNS TABLE (tenant_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, mnemic, pg_temp
    SET plan_cache_mode = force_custom_plan
    BEGIN ATOMIC
      SELECT d.tenant_id FROM (SELECT DISTINCT u.tenant_id FROM ({arms}) u) d
       ORDER BY hashtextextended(d.tenant_id::text,
                                 (extract(epoch FROM statement_timestamp()) * 1000)::bigint)
       LIMIT tenants_due."limit";
    END
"""
_KINDS = ("turns", "episodes", "facts", "procedures")
_IDLE = "w.state = 'active' AND w.last_active_at < tenants_due.due_before"
BEFORE = (
    ("end_idle_sessions", "sessions", _IDLE),
    *(("embed_missing", kind, "w.needs_vector") for kind in _KINDS),
    *(("count_terms", kind, "NOT w.stats_counted") for kind in _KINDS),
)
AFTER = (
    *BEFORE,
    ("expire", "working_memory", "w.expires_at < tenants_due.due_before"),
    ("expire", "working_heads", "w.notes_expire_at < tenants_due.due_before"),
)


def upgrade() -> None:
    """What has expired is due."""
    for table, columns in READERS.items():
        op.execute(f"GRANT SELECT ({columns}) ON mnemic.{table} TO mnemic_lookup")
        op.execute(_READER.format(table=table))
    _replace(AFTER)


def downgrade() -> None:
    """It is not."""
    _replace(BEFORE)
    for table in READERS:
        op.execute(f"DROP POLICY lookup_reader ON mnemic.{table}")
        op.execute(f"REVOKE ALL ON mnemic.{table} FROM mnemic_lookup")


def _replace(due: tuple[tuple[str, str, str], ...]) -> None:
    arms = (_TENANTS_WITH.format(job=job, table=table, pending=row) for job, table, row in due)
    # Its owner alone may replace a function, and needs CREATE for the moment.
    op.execute("GRANT CREATE ON SCHEMA mnemic TO mnemic_lookup")
    op.execute("SET LOCAL ROLE mnemic_lookup")
    op.execute(_DUE.format(arms=" UNION ALL ".join(arms)))
    # Not RESET: a superuser migrates as the owner, and would make the rest as himself.
    op.execute("SET LOCAL ROLE mnemic_owner")
    op.execute("REVOKE CREATE ON SCHEMA mnemic FROM mnemic_lookup")
