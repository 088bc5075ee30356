"""The hot tier (preferences) and the warm tier (blocks, goals)."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from mnemic.schema.columns import bounded, choice, memory_table, moment

__all__ = ["blocks", "goals", "preferences"]

preferences = memory_table(
    "preferences",
    sa.Column("person_key", sa.Text, nullable=False, server_default=sa.text("''")),
    sa.Column("response_style", sa.Text),
    sa.Column("response_format", sa.Text),
    sa.Column("verbosity", sa.Text),
    sa.Column("code_language", sa.Text),
    sa.Column("recent_projects", pg.JSONB, nullable=False, server_default=sa.text("'[]'")),
    sa.Column("learned_patterns", pg.JSONB, nullable=False, server_default=sa.text("'[]'")),
    sa.Column("version", sa.Integer, nullable=False, server_default=sa.text("1")),
    moment("updated_at", nullable=False, server_default=sa.func.now()),
    bounded("preferences", "person_key"),
    sa.UniqueConstraint("tenant_id", "scope_id", "person_key", name="preferences_person_key"),
)

blocks = memory_table(
    "blocks",
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("label_key", sa.Text, nullable=False),
    sa.Column("description", sa.Text),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("size_limit", sa.Integer, nullable=False),
    sa.Column("version", sa.Integer, nullable=False, server_default=sa.text("1")),
    moment("updated_at", nullable=False, server_default=sa.func.now()),
    bounded("blocks", "label_key"),
    sa.CheckConstraint("char_length(value) <= size_limit", name="blocks_size_check"),
    sa.UniqueConstraint("tenant_id", "scope_id", "label_key", name="blocks_label_key"),
)

goals = memory_table(
    "goals",
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False, server_default=sa.text("'open'")),
    sa.Column("next_step", sa.Text),
    sa.Column("blockers", pg.JSONB, nullable=False, server_default=sa.text("'[]'")),
    sa.Column("version", sa.Integer, nullable=False, server_default=sa.text("1")),
    moment("due_at"),
    moment("closed_at"),
    moment("updated_at", nullable=False, server_default=sa.func.now()),
    choice("goals", "status", "open", "in_progress", "blocked", "done", "dropped"),
    sa.Index("goals_status_idx", "tenant_id", "scope_id", "status"),
)
