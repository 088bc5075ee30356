"""Episodes: finished sessions and tasks, with their outcome."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from mnemic.schema.columns import bounded, enum, memory_table, moment, reference, wording_columns

__all__ = ["episodes", "outcome"]

outcome = enum("outcome", "success", "failure", "partial")


def _texts(name: str) -> sa.Column[list[str]]:
    return sa.Column(name, pg.ARRAY(sa.Text), nullable=False, server_default=sa.text("'{}'"))


def _json_list(name: str) -> sa.Column[list[object]]:
    return sa.Column(name, pg.JSONB, nullable=False, server_default=sa.text("'[]'"))


# project_id, agent_type_id and agent_instance_id are the scopes of those levels in the chain.
episodes = memory_table(
    "episodes",
    sa.Column("project_id", sa.Uuid),
    sa.Column("agent_type_id", sa.Uuid),
    sa.Column("agent_instance_id", sa.Uuid),
    sa.Column("session_id", sa.Uuid),
    sa.Column("task_type", sa.Text, nullable=False),
    sa.Column("task_description", sa.Text, nullable=False),
    _json_list("actions"),
    sa.Column("context_summary", sa.Text),
    sa.Column("outcome", outcome, nullable=False),
    sa.Column("outcome_details", sa.Text),
    sa.Column("duration_seconds", sa.Double),
    sa.Column("tokens_used", sa.BigInteger),
    _json_list("lessons_learned"),
    sa.Column("importance_score", sa.Double, nullable=False),
    moment("occurred_at", nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("summary", sa.Text, nullable=False),
    _texts("key_topics"),
    _texts("user_intents"),
    _texts("tools_used"),
    _texts("agents_used"),
    sa.Column("message_count", sa.Integer, nullable=False, server_default=sa.text("0")),
    moment("started_at"),
    moment("ended_at"),
    sa.Column("content_digest", sa.LargeBinary, nullable=False),
    moment("archived_at"),
    sa.Column("consolidated_run", sa.Uuid),
    moment("updated_at", nullable=False, server_default=sa.func.now()),
    *wording_columns("episodes"),
    bounded("episodes", "task_type", bytes_max=2000),
    reference("episodes", "project_id", "scopes"),
    reference("episodes", "agent_type_id", "scopes"),
    reference("episodes", "agent_instance_id", "scopes"),
    reference("episodes", "session_id", "sessions"),
    sa.CheckConstraint("importance_score BETWEEN 0 AND 1", name="episodes_importance_score_check"),
    sa.CheckConstraint("duration_seconds >= 0", name="episodes_duration_seconds_check"),
    sa.CheckConstraint("tokens_used >= 0", name="episodes_tokens_used_check"),
    sa.Index("episodes_scope_idx", "tenant_id", "scope_id", "occurred_at", "id"),
    sa.Index("episodes_outcome_idx", "tenant_id", "scope_id", "outcome", "occurred_at"),
    sa.Index("episodes_task_type_idx", "tenant_id", "scope_id", "task_type", "occurred_at"),
    sa.Index(
        "episodes_session_key",
        "tenant_id",
        "session_id",
        unique=True,
        postgresql_where=sa.text("source = 'session_end'"),
    ),
    sa.Index(
        "episodes_unconsolidated_idx",
        "tenant_id",
        "recorded_at",
        postgresql_where=sa.text("consolidated_run IS NULL"),
    ),
)
