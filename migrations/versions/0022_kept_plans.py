"""Let the full-text functions follow how the session plans, so that it may keep their plans too.

Safe beside a release that serves: its sessions plan each call anew, and so do the functions then.
"""

from __future__ import annotations

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

FUNCTIONS = (
    "lexical(tsquery, tsquery, uuid[], int)",
    "lexical_actor(tsquery, tsquery, uuid[], uuid, int)",
    "lexical_episodes(tsquery, tsquery, uuid[], int)",
    "lexical_facts(tsquery, tsquery, uuid[], int)",
    "lexical_procedures(tsquery, tsquery, uuid[], int)",
)


def upgrade() -> None:
    """The session says how they are planned."""
    _of_functions("RESET plan_cache_mode")


def downgrade() -> None:
    """They are planned anew for each call, whatever the session says."""
    _of_functions("SET plan_cache_mode = force_custom_plan")


def _of_functions(change: str) -> None:
    op.execute("SET LOCAL ROLE mnemic_lookup")
    for signature in FUNCTIONS:
        op.execute(f"ALTER FUNCTION mnemic.{signature} {change}")
    # Not RESET: a superuser migrates as the owner, and would make the rest as himself.
    op.execute("SET LOCAL ROLE mnemic_owner")
