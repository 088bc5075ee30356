"""Rows that make writes safe to repeat and retractions final."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from mnemic.schema.columns import bounded, created_at, moment, reference, tenant_table

__all__ = ["answered_memories", "idempotency_keys", "tombstones"]

idempotency_keys = tenant_table(
    "idempotency_keys",
    sa.Column("key_digest", sa.LargeBinary, nullable=False),
    sa.Column("operation", sa.Text, nullable=False),
    sa.Column("request_digest", sa.LargeBinary, nullable=False),
    sa.Column("answer", pg.JSONB, nullable=False),
    created_at(),
    bounded("idempotency_keys", "key_digest", bytes_max=64),
    sa.Index("idempotency_keys_recorded_idx", "tenant_id", "recorded_at"),
    key=("key_digest",),
)

# Which answers quote a memory, so that no others are looked at when it is forgotten.
answered_memories = tenant_table(
    "answered_memories",
    sa.Column("key_digest", sa.LargeBinary, nullable=False),
    sa.Column("memory_id", sa.Uuid, nullable=False),
    bounded("answered_memories", "key_digest", bytes_max=64),
    reference(
        "answered_memories",
        "key_digest",
        "idempotency_keys",
        target_column="key_digest",
        ondelete="CASCADE",
    ),
    sa.Index("answered_memories_memory_idx", "tenant_id", "memory_id"),
    key=("key_digest", "memory_id"),
)

tombstones = tenant_table(
    "tombstones",
    sa.Column("scope_id", sa.Uuid, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    created_at(),
    moment("lifted_at"),
    bounded("tombstones", "digest", bytes_max=64),
    reference("tombstones", "scope_id", "scopes"),
    key=("scope_id", "digest"),
)
