"""Sessions, and working memory that outlives its cache.

New tables only: nothing that serves reads them.
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    CREATE TABLE mnemic.sessions (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      name text NOT NULL,
      state text NOT NULL DEFAULT 'active',
      started_at timestamptz NOT NULL,
      last_active_at timestamptz NOT NULL,
      ended_at timestamptz,
      episode_id uuid,
      turn_count integer NOT NULL DEFAULT 0,
      outcome text,
      metadata jsonb NOT NULL DEFAULT '{}',
      lease_epoch bigint NOT NULL DEFAULT 0,
      leased_until timestamptz,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT sessions_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT sessions_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT sessions_ended_check CHECK ((state = 'ended') = (ended_at IS NOT NULL)),
      CONSTRAINT sessions_outcome_check CHECK (outcome IN ('success', 'failure', 'partial')),
      CONSTRAINT sessions_state_check CHECK (state IN ('active', 'paused', 'ended'))
    )
    """,
    """
    CREATE INDEX sessions_open_idx
      ON mnemic.sessions (tenant_id, last_active_at)
      WHERE state <> 'ended'
    """,
    "CREATE INDEX sessions_scope_idx ON mnemic.sessions (tenant_id, scope_id)",
    """
    CREATE TABLE mnemic.working_memory (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      scope_type mnemic.scope_type NOT NULL,
      key text NOT NULL,
      key_digest bytea NOT NULL,
      value jsonb NOT NULL,
      version bigint NOT NULL DEFAULT 1,
      expires_at timestamptz,
      created_at timestamptz NOT NULL DEFAULT now(),
      updated_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT working_memory_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT working_memory_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT working_memory_key UNIQUE (tenant_id, scope_id, key_digest),
      CONSTRAINT working_memory_key_digest_bytes_check CHECK (octet_length(key_digest) <= 64)
    )
    """,
    """
    CREATE INDEX working_memory_expires_idx
      ON mnemic.working_memory (tenant_id, expires_at)
      WHERE expires_at IS NOT NULL
    """,
    """
    CREATE TABLE mnemic.working_checkpoints (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      "values" jsonb NOT NULL,
      reason text NOT NULL DEFAULT 'checkpoint',
      created_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT working_checkpoints_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT working_checkpoints_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id)
    )
    """,
    """
    CREATE INDEX working_checkpoints_scope_idx
      ON mnemic.working_checkpoints (tenant_id, scope_id, created_at)
    """,
)
DOWNGRADE = (
    "DROP TABLE mnemic.working_checkpoints",
    "DROP TABLE mnemic.working_memory",
    "DROP TABLE mnemic.sessions",
)


def upgrade() -> None:
    """The tables exist, behind no wall yet; nobody but their owner has rights on them."""
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """They are gone, and their rows with them."""
    for statement in DOWNGRADE:
        op.execute(statement)
