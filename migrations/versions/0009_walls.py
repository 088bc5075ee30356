"""Row-level security on every tenant's table, and the rights of the serving role.

Safe beside a release that serves: until here nobody but the owner had any right on these tables.
Partitions do not inherit the security of their table, so they have it themselves; the serving role
has no right on them at all. `FORCE` holds the owner to the policies too.
"""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_ALL = "SELECT, INSERT, UPDATE, DELETE"
_KEPT = "SELECT, INSERT, UPDATE"
_LEDGER = "SELECT, INSERT, DELETE"
_APPEND_ONLY = "SELECT, INSERT"

# Ledgers and versions are never edited; erasure may delete them. Audit rows nobody may take back.
TENANT_TABLES = {
    "api_keys": _ALL,
    "audit_log": _APPEND_ONLY,
    "audit_seals": _APPEND_ONLY,
    "blocks": _ALL,
    "documents": _ALL,
    "entities": _ALL,
    "entity_mentions": _LEDGER,
    "episode_vectors": _ALL,
    "episodes": _ALL,
    "fact_evidence": _LEDGER,
    "fact_vectors": _ALL,
    "facts": _ALL,
    "file_versions": _LEDGER,
    "files": _ALL,
    "goals": _ALL,
    "grants": _ALL,
    "idempotency_keys": _ALL,
    "memory_consolidation_log": _ALL,
    "memory_usage": _ALL,
    "observations": _ALL,
    "pending_edits": _ALL,
    "preferences": _ALL,
    "procedure_outcomes": _LEDGER,
    "procedure_vectors": _ALL,
    "procedure_versions": _LEDGER,
    "procedures": _ALL,
    "promoted_indexes": "SELECT",
    "scopes": _LEDGER,
    "sessions": _ALL,
    "tenants": _KEPT,
    "term_stats": _ALL,
    "tombstones": _KEPT,
    "turn_vectors": _ALL,
    "turns": _ALL,
    "working_checkpoints": _LEDGER,
    "working_memory": _ALL,
}

# A model's signature and dimensions are what its vectors were made with: they never change.
TENANTLESS_TABLES = {
    "alembic_version": "SELECT",
    "embedding_models": "SELECT, INSERT, UPDATE (state, cosine_mean, cosine_deviation)",
    "job_runs": _ALL,
    "predicates": "SELECT",
}

PARTITIONS = (
    "episode_vectors_default",
    "fact_vectors_default",
    "procedure_vectors_default",
    "turn_vectors_default",
)

# Inside a sub-select the setting is read once a statement, not once a row. After a commit it is
# an empty text, not null; either way no row is anybody's.
WALL = (
    "ALTER TABLE mnemic.{table} ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE mnemic.{table} FORCE ROW LEVEL SECURITY",
    """
    CREATE POLICY tenant_isolation ON mnemic.{table}
      USING (tenant_id = (SELECT nullif(current_setting('mnemic.tenant_id', true), '')::uuid))
      WITH CHECK (tenant_id = (SELECT nullif(current_setting('mnemic.tenant_id', true), '')::uuid))
    """,
)
NO_WALL = (
    "DROP POLICY tenant_isolation ON mnemic.{table}",
    "ALTER TABLE mnemic.{table} NO FORCE ROW LEVEL SECURITY",
    "ALTER TABLE mnemic.{table} DISABLE ROW LEVEL SECURITY",
)

TYPES = ("consolidation_status", "consolidation_type", "outcome", "scope_type")


def upgrade() -> None:
    """Without a tenant no row is visible, with one its own; the owner is no exception."""
    for table in (*TENANT_TABLES, *PARTITIONS):
        for statement in WALL:
            op.execute(statement.format(table=table))
    for table, rights in (TENANT_TABLES | TENANTLESS_TABLES).items():
        op.execute(f"GRANT {rights} ON mnemic.{table} TO mnemic_app")
    for name in TYPES:
        op.execute(f"REVOKE ALL ON TYPE mnemic.{name} FROM PUBLIC")


def downgrade() -> None:
    """The tables are their owner's alone again."""
    for name in TYPES:
        op.execute(f"GRANT USAGE ON TYPE mnemic.{name} TO PUBLIC")
    for table in TENANT_TABLES | TENANTLESS_TABLES:
        op.execute(f"REVOKE ALL ON mnemic.{table} FROM mnemic_app")
    for table in (*TENANT_TABLES, *PARTITIONS):
        for statement in NO_WALL:
            op.execute(statement.format(table=table))
