"""Find the rows that refer to a memory, and the notes that have expired.

Safe beside a release that serves: indexes that nothing in that release needs, built without
blocking writers. Printed statements are for a host's own transaction, where that cannot be: there
they are built at once, and block the writers of three tables meanwhile.
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
    context = op.get_context()
    if context.as_sql:
        for name, where in INDEXES.items():
            op.execute(f"CREATE INDEX {name} ON {where}")
        return
    with context.autocommit_block():
        for name, where in INDEXES.items():
            # What an attempt that was cut off has left is no index, and its name is in the way.
            op.execute(f"DROP INDEX IF EXISTS mnemic.{name}")
            op.execute(f"CREATE INDEX CONCURRENTLY {name} ON {where}")


def downgrade() -> None:
    """They are gone."""
    for name in INDEXES:
        op.execute(f"DROP INDEX mnemic.{name}")
