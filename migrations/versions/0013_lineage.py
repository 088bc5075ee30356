"""Find the facts that rest on a source.

Safe beside a release that serves: an index that nothing in that release asks for. It is built in
the step's transaction, and blocks the ledger's writers meanwhile: a concurrent build would wait for
a second upgrader, which waits for this one.
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
    op.execute(f"CREATE INDEX {INDEX}")


def downgrade() -> None:
    """It is gone."""
    op.execute("DROP INDEX mnemic.fact_evidence_source_idx")
