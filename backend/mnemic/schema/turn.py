"""Turns and documents: what was said, and the archive it lies in."""

from __future__ import annotations

import sqlalchemy as sa

from mnemic.model.turn_vector import RECIPE, SHORT_WORDS_MAX
from mnemic.schema.columns import bounded, choice, memory_table, moment, reference, wording_columns

__all__ = ["documents", "turns"]

documents = memory_table(
    "documents",
    sa.Column("session_id", sa.Uuid),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("content_digest", sa.LargeBinary, nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    moment("occurred_at", nullable=False),
    bounded("documents", "content_digest", bytes_max=64),
    reference("documents", "session_id", "sessions"),
    choice("documents", "kind", "transcript", "document"),
    sa.UniqueConstraint("tenant_id", "scope_id", "content_digest", name="documents_content_key"),
    sa.Index("documents_session_idx", "tenant_id", "session_id"),
)

turns = memory_table(
    "turns",
    sa.Column("session_id", sa.Uuid, nullable=False),
    sa.Column("document_id", sa.Uuid),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("actor_id", sa.Uuid, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("caption", sa.Text),
    sa.Column("external_digest", sa.LargeBinary),
    sa.Column("content_digest", sa.LargeBinary, nullable=False),
    moment("occurred_at", nullable=False),
    sa.Column("ends_with_question", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("first_person", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("has_name", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("has_time_expr", sa.Boolean, nullable=False, server_default=sa.false()),
    moment("archived_at"),
    *wording_columns("turns"),
    # How its vector was made; nothing if an earlier release made it, or if there is none.
    sa.Column("vector_recipe", sa.SmallInteger),
    bounded("turns", "external_digest", bytes_max=64),
    reference("turns", "session_id", "sessions"),
    reference("turns", "document_id", "documents"),
    choice("turns", "role", "user", "assistant", "system", "tool"),
    sa.CheckConstraint("seq >= 0", name="turns_seq_check"),
    sa.UniqueConstraint("tenant_id", "session_id", "seq", name="turns_seq_key"),
    sa.Index(
        "turns_external_key",
        "tenant_id",
        "session_id",
        "external_digest",
        unique=True,
        postgresql_where=sa.text("external_digest IS NOT NULL"),
    ),
    sa.Index("turns_scope_idx", "tenant_id", "scope_id", "occurred_at", "id"),
    sa.Index(
        "turns_stale_idx",
        "tenant_id",
        "recorded_at",
        postgresql_where=sa.text(
            f"NOT needs_vector AND word_count <= {SHORT_WORDS_MAX} AND seq > 0"
            f" AND vector_recipe IS DISTINCT FROM {RECIPE}"
        ),
    ),
    sa.Index("turns_actor_idx", "tenant_id", "scope_id", "actor_id"),
    sa.Index(
        "turns_document_idx",
        "tenant_id",
        "document_id",
        postgresql_where=sa.text("document_id IS NOT NULL"),
    ),
)
