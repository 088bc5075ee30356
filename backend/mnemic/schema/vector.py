"""Embeddings, apart from the memories they stand for, one table a kind.

Partitioned by tenant from the first migration, so that a tenant can move to a partition of its own
without a rewrite. The covering index makes an exact scan of a scope read nothing but the index.
"""

from __future__ import annotations

import sqlalchemy as sa
from pgvector.sqlalchemy import HALFVEC

from mnemic.schema.columns import (
    SCHEMA,
    bounded,
    choice,
    created_at,
    metadata,
    moment,
    tenant_table,
)

__all__ = [
    "embedding_models",
    "episode_vectors",
    "fact_vectors",
    "procedure_vectors",
    "promoted_indexes",
    "turn_vectors",
]

embedding_models = sa.Table(
    "embedding_models",
    metadata,
    sa.Column("id", sa.SmallInteger, sa.Identity(always=True), nullable=False),
    sa.Column("signature", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("dimensions", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("cosine_mean", sa.Double),
    sa.Column("cosine_deviation", sa.Double),
    created_at(),
    bounded("embedding_models", "signature", bytes_max=2000),
    sa.PrimaryKeyConstraint("id", name="embedding_models_pkey"),
    sa.UniqueConstraint("signature", name="embedding_models_signature_key"),
    choice("embedding_models", "state", "moving", "live", "retired"),
    sa.CheckConstraint("dimensions BETWEEN 1 AND 4000", name="embedding_models_dimensions_check"),
    # One model answers at a time, whatever two processes register at once.
    sa.Index(
        "embedding_models_live_key",
        sa.text("(state = 'live')"),
        unique=True,
        postgresql_where=sa.text("state = 'live'"),
    ),
)


def _vectors(noun: str, *extra: sa.Column[object], actor: bool = False) -> sa.Table:
    name = f"{noun}_vectors"
    keys = ["tenant_id", "model_id", "scope_id", *(["actor_id"] if actor else [])]
    return tenant_table(
        name,
        sa.Column("model_id", sa.SmallInteger, nullable=False),
        sa.Column("scope_id", sa.Uuid, nullable=False),
        sa.Column("memory_id", sa.Uuid, nullable=False),
        *extra,
        sa.Column("embedding", HALFVEC, nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "memory_id"],
            [f"{SCHEMA}.{noun}s.tenant_id", f"{SCHEMA}.{noun}s.id"],
            name=f"{name}_memory_id_fkey",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["model_id"], [f"{SCHEMA}.embedding_models.id"], name=f"{name}_model_id_fkey"
        ),
        sa.Index(f"{name}_exact_idx", *keys, postgresql_include=["memory_id", "embedding"]),
        key=("model_id", "memory_id"),
        postgresql_partition_by="LIST (tenant_id)",
    )


turn_vectors = _vectors("turn", sa.Column("actor_id", sa.Uuid, nullable=False), actor=True)
episode_vectors = _vectors("episode")
fact_vectors = _vectors("fact")
procedure_vectors = _vectors("procedure")

promoted_indexes = tenant_table(
    "promoted_indexes",
    sa.Column("table_name", sa.Text, nullable=False),
    sa.Column("model_id", sa.SmallInteger, nullable=False),
    sa.Column("index_name", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    moment("valid_since"),
    created_at(),
    bounded("promoted_indexes", "table_name"),
    sa.ForeignKeyConstraint(
        ["model_id"],
        [f"{SCHEMA}.embedding_models.id"],
        name="promoted_indexes_model_id_fkey",
    ),
    choice("promoted_indexes", "state", "building", "valid", "dropping"),
    key=("table_name", "model_id"),
)
