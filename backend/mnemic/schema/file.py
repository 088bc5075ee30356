"""Agent files, their versions, and the edits that wait for a person."""

from __future__ import annotations

import sqlalchemy as sa

from mnemic.schema.columns import (
    bounded,
    choice,
    created_at,
    memory_table,
    moment,
    reference,
    tenant_table,
)

__all__ = ["file_versions", "files", "pending_edits"]

files = memory_table(
    "files",
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("path_digest", sa.LargeBinary, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("file_type", sa.Text, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("version", sa.Integer, nullable=False, server_default=sa.text("1")),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    moment("updated_at", nullable=False, server_default=sa.func.now()),
    bounded("files", "path_digest", bytes_max=64),
    sa.UniqueConstraint("tenant_id", "scope_id", "path_digest", name="files_path_key"),
)

file_versions = tenant_table(
    "file_versions",
    sa.Column("file_id", sa.Uuid, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("changed_by", sa.Text, nullable=False),
    created_at(),
    reference("file_versions", "file_id", "files", ondelete="CASCADE"),
    key=("file_id", "version"),
)

pending_edits = memory_table(
    "pending_edits",
    sa.Column("target_kind", sa.Text, nullable=False),
    sa.Column("target_id", sa.Uuid),
    sa.Column("path", sa.Text),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("proposer", sa.Text, nullable=False),
    sa.Column("base_digest", sa.LargeBinary),
    sa.Column("result_digest", sa.LargeBinary, nullable=False),
    sa.Column("decision", sa.Text),
    sa.Column("decided_by", sa.Text),
    sa.Column("decision_reason", sa.Text),
    moment("decided_at"),
    moment("expires_at"),
    choice("pending_edits", "decision", "approved", "rejected", "expired"),
    sa.CheckConstraint(
        "(decision IS NULL) = (decided_at IS NULL)", name="pending_edits_decided_check"
    ),
    sa.Index(
        "pending_edits_open_idx",
        "tenant_id",
        "scope_id",
        "recorded_at",
        postgresql_where=sa.text("decision IS NULL"),
    ),
)
