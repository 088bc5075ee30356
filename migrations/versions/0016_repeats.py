"""Keep since when each source says that a fact is true.

Safe beside a release that serves: a column without a default, which nothing in that release names
or reads, and an index. Of what that release writes meanwhile the fact's own beginning counts. The
index is built in the step's transaction, and blocks the ledger's writers meanwhile: a concurrent
build would wait for a second upgrader, which waits for this one.
"""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


INDEX = (
    "fact_evidence_since_idx ON mnemic.fact_evidence (tenant_id, fact_id, true_since)"
    " WHERE true_since IS NOT NULL"
)


def upgrade() -> None:
    """A value that is told again may be said to be true since later."""
    op.execute("ALTER TABLE mnemic.fact_evidence ADD COLUMN true_since timestamptz")
    op.execute(f"CREATE INDEX {INDEX}")


def downgrade() -> None:
    """It is gone, and its index with it."""
    op.execute("ALTER TABLE mnemic.fact_evidence DROP COLUMN true_since")
