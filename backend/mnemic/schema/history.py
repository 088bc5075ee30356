"""What memories were before they changed, so that a past moment can be asked."""

from __future__ import annotations

import sqlalchemy as sa
from pgvector.sqlalchemy import HALFVEC
from sqlalchemy.dialects import postgresql as pg

from mnemic.schema.columns import SCHEMA, moment, reference, tenant_table

__all__ = ["memory_history", "past_vectors"]

# `before` holds the former values of the columns that changed at `known_until`. The `place` orders
# the changes of one memory. A trigger writes these rows, and deletes them with their memory.
memory_history = tenant_table(
    "memory_history",
    sa.Column("memory_id", sa.Uuid, nullable=False),
    sa.Column("place", sa.Integer, nullable=False),
    moment("known_until", nullable=False),
    sa.Column("before", pg.JSONB, nullable=False),
    sa.Index("memory_history_place_key", "tenant_id", "memory_id", "place", unique=True),
    sa.Index("memory_history_until_idx", "tenant_id", "known_until", "memory_id"),
)

# The vector that a memory had until then, under which models.
past_vectors = tenant_table(
    "past_vectors",
    sa.Column("change_id", sa.Uuid, nullable=False),
    sa.Column("model_id", sa.SmallInteger, nullable=False),
    sa.Column("embedding", HALFVEC, nullable=False),
    reference("past_vectors", "change_id", "memory_history", ondelete="CASCADE"),
    sa.ForeignKeyConstraint(
        ["model_id"], [f"{SCHEMA}.embedding_models.id"], name="past_vectors_model_id_fkey"
    ),
    key=("change_id", "model_id"),
)
