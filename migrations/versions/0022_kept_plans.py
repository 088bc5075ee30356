"""Let a plan be kept: it is made as for a large tenant, whichever tenant comes first.

Safe beside a release that serves: it tells the planner something, and leaves to each session
whether the full-text functions plan anew; sessions of that release do.

A plan that is kept does not know the tenant. By the statistics alone it would be made for the
average one, which has five rows where the largest has thousands, and would look through all rows of
a tenant for each that it wants. So the planner is told that a tenant has a twentieth of each table.
Plans that see the tenant suppose that too of one that is not among the most common. A partition
that a tenant has alone is told nothing: all of it is his.
"""

from __future__ import annotations

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

KINDS = ("turn", "episode", "fact", "procedure")
TABLES = (
    *(table for kind in KINDS for table in (f"{kind}s", f"{kind}_vectors_default")),
    "term_stats",
    "entities",
)
TENANTS_SUPPOSED = 20
FUNCTIONS = (
    "lexical(tsquery, tsquery, uuid[], int)",
    "lexical_actor(tsquery, tsquery, uuid[], uuid, int)",
    *(f"lexical_{kind}s(tsquery, tsquery, uuid[], int)" for kind in KINDS[1:]),
)


def upgrade() -> None:
    """The planner knows, as soon as the tables are analysed: here, and by autovacuum."""
    for table in TABLES:
        op.execute(
            f"ALTER TABLE mnemic.{table} ALTER tenant_id SET (n_distinct = {TENANTS_SUPPOSED})"
        )
        op.execute(f"ANALYZE mnemic.{table} (tenant_id)")
    _of_functions("RESET plan_cache_mode")


def downgrade() -> None:
    """Statistics tell the average again, and the functions plan anew for each call."""
    _of_functions("SET plan_cache_mode = force_custom_plan")
    for table in TABLES:
        op.execute(f"ALTER TABLE mnemic.{table} ALTER tenant_id RESET (n_distinct)")
        op.execute(f"ANALYZE mnemic.{table} (tenant_id)")


def _of_functions(change: str) -> None:
    op.execute("SET LOCAL ROLE mnemic_lookup")
    for signature in FUNCTIONS:
        op.execute(f"ALTER FUNCTION mnemic.{signature} {change}")
    # Not RESET: a superuser migrates as the owner, and would make the rest as himself.
    op.execute("SET LOCAL ROLE mnemic_owner")
