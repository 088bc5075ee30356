"""Find the facts that rest on a source.

Safe beside a release that serves: an index that nothing in that release asks for, built without
blocking writers. Printed statements are for a host's own transaction, where that cannot be: there
it is built at once, and blocks the ledger's writers meanwhile.
"""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


INDEX = "fact_evidence_source_idx ON mnemic.fact_evidence (tenant_id, source_kind, source_id)"


def upgrade() -> None:
    """The ledger is found from its other end too."""
    context = op.get_context()
    if context.as_sql:
        op.execute(f"CREATE INDEX {INDEX}")
        return
    with context.autocommit_block():
        # What an attempt that was cut off has left is no index, and its name is in the way.
        op.execute("DROP INDEX IF EXISTS mnemic.fact_evidence_source_idx")
        op.execute(f"CREATE INDEX CONCURRENTLY {INDEX}")


def downgrade() -> None:
    """It is gone."""
    op.execute("DROP INDEX mnemic.fact_evidence_source_idx")
