"""Procedures, their versions, and the ledger of their outcomes."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from mnemic.schema.columns import (
    bounded,
    choice,
    created_at,
    memory_table,
    moment,
    reference,
    tenant_table,
    wording_columns,
)

__all__ = ["procedure_outcomes", "procedure_versions", "procedures"]

procedures = memory_table(
    "procedures",
    sa.Column("project_id", sa.Uuid),
    sa.Column("agent_type_id", sa.Uuid),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("name_key", sa.Text, nullable=False),
    sa.Column("task_type", sa.Text, nullable=False),
    sa.Column("trigger_pattern", sa.Text),
    sa.Column("steps", pg.JSONB, nullable=False),
    sa.Column("version", sa.Integer, nullable=False, server_default=sa.text("1")),
    sa.Column("preconditions", pg.JSONB, nullable=False, server_default=sa.text("'[]'")),
    sa.Column("avoid_conditions", pg.JSONB, nullable=False, server_default=sa.text("'[]'")),
    sa.Column("success_count", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("failure_count", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    moment("last_used"),
    sa.Column("status", sa.Text, nullable=False, server_default=sa.text("'live'")),
    moment("retired_at"),
    moment("archived_at"),
    moment("updated_at", nullable=False, server_default=sa.func.now()),
    *wording_columns("procedures"),
    bounded("procedures", "name_key"),
    bounded("procedures", "task_type", bytes_max=2000),
    reference("procedures", "project_id", "scopes"),
    reference("procedures", "agent_type_id", "scopes"),
    choice("procedures", "status", "live", "retired", "forgotten"),
    sa.CheckConstraint("(status = 'live') = (retired_at IS NULL)", name="procedures_retired_check"),
    sa.CheckConstraint("success_count >= 0 AND failure_count >= 0", name="procedures_counts_check"),
    sa.Index(
        "procedures_live_name_key",
        "tenant_id",
        "scope_id",
        "name_key",
        unique=True,
        postgresql_where=sa.text("status = 'live'"),
    ),
    sa.Index("procedures_task_type_idx", "tenant_id", "scope_id", "task_type"),
    sa.Index("procedures_scope_idx", "tenant_id", "scope_id", "recorded_at", "id"),
)

procedure_versions = tenant_table(
    "procedure_versions",
    sa.Column("procedure_id", sa.Uuid, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("steps", pg.JSONB, nullable=False),
    sa.Column("reason", sa.Text),
    created_at(),
    reference("procedure_versions", "procedure_id", "procedures", ondelete="CASCADE"),
    key=("procedure_id", "version"),
)

procedure_outcomes = tenant_table(
    "procedure_outcomes",
    sa.Column("procedure_id", sa.Uuid, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("success", sa.Boolean, nullable=False),
    sa.Column("session_id", sa.Uuid),
    sa.Column("note", sa.Text),
    moment("occurred_at", nullable=False),
    created_at(),
    reference("procedure_outcomes", "procedure_id", "procedures", ondelete="CASCADE"),
    sa.Index("procedure_outcomes_procedure_idx", "tenant_id", "procedure_id", "occurred_at"),
)
