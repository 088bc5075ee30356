"""The life of sessions."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from mnemic.schema.columns import choice, created_at, moment, scoped_table

__all__ = ["sessions"]

# `moved_at` is when what it held came to stand above, which an end told for later is not.
# `turn_count` hands out positions: one row lock per appended batch gives a gapless order.
sessions = scoped_table(
    "sessions",
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False, server_default=sa.text("'active'")),
    moment("started_at", nullable=False),
    moment("last_active_at", nullable=False),
    moment("ended_at"),
    moment("moved_at"),
    sa.Column("episode_id", sa.Uuid),
    sa.Column("turn_count", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("outcome", sa.Text),
    sa.Column("metadata", pg.JSONB, nullable=False, server_default=sa.text("'{}'")),
    sa.Column("lease_epoch", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    moment("leased_until"),
    created_at(),
    choice("sessions", "state", "active", "paused", "ended"),
    choice("sessions", "outcome", "success", "failure", "partial"),
    sa.CheckConstraint("(state = 'ended') = (ended_at IS NOT NULL)", name="sessions_ended_check"),
    sa.ForeignKeyConstraint(
        ["tenant_id", "episode_id"],
        ["mnemic.episodes.tenant_id", "mnemic.episodes.id"],
        name="sessions_episode_id_fkey",
        use_alter=True,
    ),
    sa.Index(
        "sessions_open_idx",
        "tenant_id",
        "last_active_at",
        postgresql_where=sa.text("state <> 'ended'"),
    ),
    sa.Index("sessions_scope_idx", "tenant_id", "scope_id"),
    sa.Index(
        "sessions_episode_idx",
        "tenant_id",
        "episode_id",
        postgresql_where=sa.text("episode_id IS NOT NULL"),
    ),
)
