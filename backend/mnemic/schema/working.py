"""Working memory that must outlive its cache: durable values and checkpoints."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from mnemic.schema.columns import bounded, created_at, moment, scoped_table
from mnemic.schema.scope import scope_type

__all__ = ["working_checkpoints", "working_memory"]

working_memory = scoped_table(
    "working_memory",
    sa.Column("scope_type", scope_type, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("key_digest", sa.LargeBinary, nullable=False),
    sa.Column("value", pg.JSONB, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False, server_default=sa.text("1")),
    moment("expires_at"),
    created_at("created_at"),
    created_at("updated_at"),
    bounded("working_memory", "key_digest", bytes_max=64),
    sa.UniqueConstraint("tenant_id", "scope_id", "key_digest", name="working_memory_key"),
    sa.Index(
        "working_memory_expires_idx",
        "tenant_id",
        "expires_at",
        postgresql_where=sa.text("expires_at IS NOT NULL"),
    ),
)

working_checkpoints = scoped_table(
    "working_checkpoints",
    sa.Column("values", pg.JSONB, nullable=False),
    sa.Column("reason", sa.Text, nullable=False, server_default=sa.text("'checkpoint'")),
    created_at("created_at"),
    sa.Index("working_checkpoints_scope_idx", "tenant_id", "scope_id", "created_at"),
)
