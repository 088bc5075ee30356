"""Embeddings, partitioned by tenant from the start.

New tables only: nothing that serves reads them. Every table has its DEFAULT partition, which all
tenants share until one is moved to a partition of its own.
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TABLES = {
    "turn_vectors": """
    CREATE TABLE mnemic.turn_vectors (
      tenant_id uuid NOT NULL,
      model_id smallint NOT NULL,
      scope_id uuid NOT NULL,
      memory_id uuid NOT NULL,
      actor_id uuid NOT NULL,
      embedding halfvec NOT NULL,
      CONSTRAINT turn_vectors_pkey PRIMARY KEY (tenant_id, model_id, memory_id),
      CONSTRAINT turn_vectors_model_id_fkey FOREIGN KEY (model_id)
        REFERENCES mnemic.embedding_models (id),
      CONSTRAINT turn_vectors_memory_id_fkey FOREIGN KEY (tenant_id, memory_id)
        REFERENCES mnemic.turns (tenant_id, id) ON DELETE CASCADE
    ) PARTITION BY LIST (tenant_id)
    """,
    "episode_vectors": """
    CREATE TABLE mnemic.episode_vectors (
      tenant_id uuid NOT NULL,
      model_id smallint NOT NULL,
      scope_id uuid NOT NULL,
      memory_id uuid NOT NULL,
      embedding halfvec NOT NULL,
      CONSTRAINT episode_vectors_pkey PRIMARY KEY (tenant_id, model_id, memory_id),
      CONSTRAINT episode_vectors_model_id_fkey FOREIGN KEY (model_id)
        REFERENCES mnemic.embedding_models (id),
      CONSTRAINT episode_vectors_memory_id_fkey FOREIGN KEY (tenant_id, memory_id)
        REFERENCES mnemic.episodes (tenant_id, id) ON DELETE CASCADE
    ) PARTITION BY LIST (tenant_id)
    """,
    "fact_vectors": """
    CREATE TABLE mnemic.fact_vectors (
      tenant_id uuid NOT NULL,
      model_id smallint NOT NULL,
      scope_id uuid NOT NULL,
      memory_id uuid NOT NULL,
      embedding halfvec NOT NULL,
      CONSTRAINT fact_vectors_pkey PRIMARY KEY (tenant_id, model_id, memory_id),
      CONSTRAINT fact_vectors_model_id_fkey FOREIGN KEY (model_id)
        REFERENCES mnemic.embedding_models (id),
      CONSTRAINT fact_vectors_memory_id_fkey FOREIGN KEY (tenant_id, memory_id)
        REFERENCES mnemic.facts (tenant_id, id) ON DELETE CASCADE
    ) PARTITION BY LIST (tenant_id)
    """,
    "procedure_vectors": """
    CREATE TABLE mnemic.procedure_vectors (
      tenant_id uuid NOT NULL,
      model_id smallint NOT NULL,
      scope_id uuid NOT NULL,
      memory_id uuid NOT NULL,
      embedding halfvec NOT NULL,
      CONSTRAINT procedure_vectors_pkey PRIMARY KEY (tenant_id, model_id, memory_id),
      CONSTRAINT procedure_vectors_model_id_fkey FOREIGN KEY (model_id)
        REFERENCES mnemic.embedding_models (id),
      CONSTRAINT procedure_vectors_memory_id_fkey FOREIGN KEY (tenant_id, memory_id)
        REFERENCES mnemic.procedures (tenant_id, id) ON DELETE CASCADE
    ) PARTITION BY LIST (tenant_id)
    """,
}

# PLAIN: never compressed or moved out of line, so an exact scan of a long vector reads no TOAST.
# Partitions inherit the storage of their table. Index-only scans need the visibility map: vacuum
# after 2 % of change, and of mere inserts. The partition's index comes first, under a name that is
# written out; the table's index then takes it as its own.
STORAGE = (
    "ALTER TABLE mnemic.{table} ALTER COLUMN embedding SET STORAGE PLAIN",
    """
    CREATE TABLE mnemic.{table}_default PARTITION OF mnemic.{table} DEFAULT
      WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02)
    """,
    """
    CREATE INDEX {table}_default_exact_idx
      ON mnemic.{table}_default (tenant_id, model_id, scope_id{actor})
      INCLUDE (memory_id, embedding)
    """,
    """
    CREATE INDEX {table}_exact_idx
      ON mnemic.{table} (tenant_id, model_id, scope_id{actor})
      INCLUDE (memory_id, embedding)
    """,
)

PROMOTED_INDEXES = """
    CREATE TABLE mnemic.promoted_indexes (
      tenant_id uuid NOT NULL,
      table_name text NOT NULL,
      model_id smallint NOT NULL,
      index_name text NOT NULL,
      state text NOT NULL,
      valid_since timestamptz,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT promoted_indexes_pkey PRIMARY KEY (tenant_id, table_name, model_id),
      CONSTRAINT promoted_indexes_model_id_fkey FOREIGN KEY (model_id)
        REFERENCES mnemic.embedding_models (id),
      CONSTRAINT promoted_indexes_state_check CHECK (state IN ('building', 'valid', 'dropping')),
      CONSTRAINT promoted_indexes_table_name_bytes_check CHECK (octet_length(table_name) <= 512)
    )
"""


# What had a vector before these tables were dropped gets one again; history has none. There is no
# wall yet, so that the owner's statement reaches the rows.
AGAIN = "UPDATE mnemic.{table} SET needs_vector = true WHERE NOT needs_vector AND {live}"
LIVE = {
    "turns": "true",
    "episodes": "true",
    "facts": "status = 'live'",
    "procedures": "status = 'live'",
}


def upgrade() -> None:
    """The tables exist, behind no wall yet; nobody but their owner has rights on them."""
    for table, statement in TABLES.items():
        op.execute(statement)
        actor = ", actor_id" if table == "turn_vectors" else ""
        for stored in STORAGE:
            op.execute(stored.format(table=table, actor=actor))
    op.execute(PROMOTED_INDEXES)
    for table, live in LIVE.items():
        op.execute(AGAIN.format(table=table, live=live))


def downgrade() -> None:
    """They are gone, and their rows with them."""
    op.execute("DROP TABLE mnemic.promoted_indexes")
    for table in reversed(TABLES):
        op.execute(f"DROP TABLE mnemic.{table}")
