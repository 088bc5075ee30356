"""${message}.

Safe to run while the previous release is serving: say why.
"""

from __future__ import annotations

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    """What is true afterwards."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """What is true afterwards."""
    ${downgrades if downgrades else "pass"}
