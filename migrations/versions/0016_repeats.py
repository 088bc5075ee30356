"""Keep since when each source says that a fact is true.

Safe beside a release that serves: a column without a default, which nothing in that release names
or reads, and an index built without blocking writers. Of what that release writes meanwhile the
fact's own beginning counts. Printed statements build the index at once, and block the ledger's
writers meanwhile.
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
    # An attempt that was cut off may have added the column: it is committed before the index.
    op.execute("ALTER TABLE mnemic.fact_evidence ADD COLUMN IF NOT EXISTS true_since timestamptz")
    context = op.get_context()
    if context.as_sql:
        op.execute(f"CREATE INDEX {INDEX}")
        return
    with context.autocommit_block():
        op.execute("DROP INDEX IF EXISTS mnemic.fact_evidence_since_idx")
        op.execute(f"CREATE INDEX CONCURRENTLY {INDEX}")


def downgrade() -> None:
    """It is gone, and its index with it."""
    op.execute("ALTER TABLE mnemic.fact_evidence DROP COLUMN true_since")
