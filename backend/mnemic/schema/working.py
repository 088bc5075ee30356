"""Working memory that must outlive its cache: durable values and checkpoints."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from mnemic.schema.columns import bounded, created_at, moment, reference, scoped_table, tenant_table
from mnemic.schema.scope import scope_type

__all__ = ["working_checkpoints", "working_heads", "working_memory", "working_notes"]

# `key` is the caller's, `\0` for NUL and `\\` for a backslash; it is empty for the task state.
# `expiry`: 0 never, 1 by default, 2 as the caller said. A deleted row is kept for its version.
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
    sa.Column("expiry", sa.SmallInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("bytes", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("deleted", sa.Boolean, nullable=False, server_default=sa.false()),
    bounded("working_memory", "key_digest", bytes_max=64),
    sa.UniqueConstraint("tenant_id", "scope_id", "key_digest", name="working_memory_key"),
    sa.Index(
        "working_memory_expires_idx",
        "tenant_id",
        "expires_at",
        postgresql_where=sa.text("expires_at IS NOT NULL"),
    ),
)

# Locked by whoever writes in the scope. `floor` is a version below all that will come, `fence` and
# `restored` are the stamps of the restores that were given up and of the last that took place.
working_heads = tenant_table(
    "working_heads",
    sa.Column("scope_id", sa.Uuid, nullable=False),
    sa.Column("keys", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("bytes", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("notes", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("notes_bytes", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    moment("notes_expire_at"),
    sa.Column("floor", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("fence", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("restored", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    reference("working_heads", "scope_id", "scopes"),
    sa.Index(
        "working_heads_notes_expire_idx",
        "tenant_id",
        "notes_expire_at",
        postgresql_where=sa.text("notes_expire_at IS NOT NULL"),
    ),
    key=("scope_id",),
)

working_notes = tenant_table(
    "working_notes",
    sa.Column("scope_id", sa.Uuid, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    created_at(),
    reference("working_notes", "scope_id", "scopes"),
    key=("scope_id", "seq"),
)

working_checkpoints = scoped_table(
    "working_checkpoints",
    sa.Column("values", pg.JSONB, nullable=False),
    sa.Column("reason", sa.Text, nullable=False, server_default=sa.text("'checkpoint'")),
    created_at("created_at"),
    sa.Index("working_checkpoints_scope_idx", "tenant_id", "scope_id", "created_at"),
)
