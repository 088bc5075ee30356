"""Find the rows that refer to a memory, and the notes that have expired.

Safe beside a release that serves: indexes that nothing in that release needs. They are built in the
step's transaction, and block the writers of three tables meanwhile: a concurrent build would wait
for a second upgrader, which waits for this one.
"""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


INDEXES = {
    "facts_superseded_by_idx": (
        "mnemic.facts (tenant_id, superseded_by) WHERE superseded_by IS NOT NULL"
    ),
    "sessions_episode_idx": (
        "mnemic.sessions (tenant_id, episode_id) WHERE episode_id IS NOT NULL"
    ),
    "working_heads_notes_expire_idx": (
        "mnemic.working_heads (tenant_id, notes_expire_at) WHERE notes_expire_at IS NOT NULL"
    ),
}


def upgrade() -> None:
    """A reference is found from its other end too, and expired notes by when they expire."""
    for name, where in INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON {where}")


def downgrade() -> None:
    """They are gone."""
    for name in INDEXES:
        op.execute(f"DROP INDEX mnemic.{name}")
