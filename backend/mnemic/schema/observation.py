"""Observations: append-only events that consolidation turns into facts."""

from __future__ import annotations

import sqlalchemy as sa

from mnemic.schema.columns import memory_table, moment, reference

__all__ = ["observations"]

observations = memory_table(
    "observations",
    sa.Column("session_id", sa.Uuid),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    moment("occurred_at", nullable=False),
    sa.Column("consolidated_run", sa.Uuid),
    sa.Column("attempts", sa.SmallInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("set_aside_reason", sa.Text),
    reference("observations", "session_id", "sessions"),
    sa.Index(
        "observations_unclaimed_idx",
        "tenant_id",
        "recorded_at",
        postgresql_where=sa.text("consolidated_run IS NULL AND set_aside_reason IS NULL"),
    ),
    sa.Index("observations_scope_idx", "tenant_id", "scope_id", "occurred_at", "id"),
    sa.Index("observations_run_idx", "tenant_id", "consolidated_run"),
)
