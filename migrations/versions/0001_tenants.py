"""Tenants, the scope tree, and the registries that hold no tenant's data.

New tables only: nothing that serves reads them.
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

UPGRADE = (
    """
    CREATE TYPE mnemic.scope_type AS ENUM ('global', 'project', 'agent_type', 'agent_instance',
      'session')
    """,
    """
    CREATE TABLE mnemic.tenants (
      tenant_id uuid NOT NULL,
      kind text NOT NULL,
      external_id text NOT NULL,
      isolation text NOT NULL DEFAULT 'shared',
      opt_out boolean NOT NULL DEFAULT false,
      observation_retention_days integer,
      episode_retention_days integer,
      auto_approve_until timestamptz,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      erased_at timestamptz,
      CONSTRAINT tenants_pkey PRIMARY KEY (tenant_id),
      CONSTRAINT tenants_isolation_check CHECK (isolation IN ('shared', 'dedicated')),
      CONSTRAINT tenants_kind_check CHECK (kind IN ('person', 'organisation')),
      CONSTRAINT tenants_retention_check
        CHECK (observation_retention_days > 0 AND episode_retention_days > 0)
    )
    """,
    """
    CREATE TABLE mnemic.scopes (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_type mnemic.scope_type NOT NULL,
      parent_id uuid,
      project text,
      agent_type text,
      agent_instance text,
      session text,
      path_digest bytea NOT NULL,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT scopes_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT scopes_tenant_id_fkey FOREIGN KEY (tenant_id)
        REFERENCES mnemic.tenants (tenant_id),
      CONSTRAINT scopes_parent_id_fkey FOREIGN KEY (tenant_id, parent_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT scopes_path_key UNIQUE (tenant_id, path_digest),
      CONSTRAINT scopes_parent_id_check CHECK ((scope_type = 'global') = (parent_id IS NULL)),
      CONSTRAINT scopes_path_digest_bytes_check CHECK (octet_length(path_digest) <= 64)
    )
    """,
    "CREATE INDEX scopes_parent_idx ON mnemic.scopes (tenant_id, parent_id)",
    """
    CREATE TABLE mnemic.embedding_models (
      id smallint GENERATED ALWAYS AS IDENTITY,
      signature text NOT NULL,
      name text NOT NULL,
      dimensions integer NOT NULL,
      state text NOT NULL,
      cosine_mean double precision,
      cosine_deviation double precision,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT embedding_models_pkey PRIMARY KEY (id),
      CONSTRAINT embedding_models_signature_key UNIQUE (signature),
      CONSTRAINT embedding_models_dimensions_check CHECK (dimensions BETWEEN 1 AND 4000),
      CONSTRAINT embedding_models_signature_bytes_check CHECK (octet_length(signature) <= 2000),
      CONSTRAINT embedding_models_state_check CHECK (state IN ('moving', 'live', 'retired'))
    )
    """,
    """
    CREATE UNIQUE INDEX embedding_models_live_key
      ON mnemic.embedding_models ((state = 'live'))
      WHERE state = 'live'
    """,
    """
    CREATE TABLE mnemic.predicates (
      name text NOT NULL,
      cardinality text NOT NULL,
      category text NOT NULL,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT predicates_pkey PRIMARY KEY (name),
      CONSTRAINT predicates_cardinality_check CHECK (cardinality IN ('single', 'multi')),
      CONSTRAINT predicates_name_bytes_check CHECK (octet_length(name) <= 1500)
    )
    """,
    """
    CREATE TABLE mnemic.job_runs (
      job text NOT NULL,
      period text NOT NULL,
      attempt integer NOT NULL DEFAULT 1,
      lease_epoch bigint NOT NULL DEFAULT 1,
      lease_until timestamptz NOT NULL,
      started_at timestamptz NOT NULL,
      finished_at timestamptz,
      result jsonb,
      CONSTRAINT job_runs_pkey PRIMARY KEY (job, period),
      CONSTRAINT job_runs_job_bytes_check CHECK (octet_length(job) <= 512),
      CONSTRAINT job_runs_period_bytes_check CHECK (octet_length(period) <= 512)
    )
    """,
    "CREATE INDEX job_runs_started_idx ON mnemic.job_runs (started_at)",
)
DOWNGRADE = (
    "DROP TABLE mnemic.job_runs",
    "DROP TABLE mnemic.predicates",
    "DROP TABLE mnemic.embedding_models",
    "DROP TABLE mnemic.scopes",
    "DROP TABLE mnemic.tenants",
    "DROP TYPE mnemic.scope_type",
)


def upgrade() -> None:
    """The tables exist, behind no wall yet; nobody but their owner has rights on them."""
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """They are gone, and their rows with them."""
    for statement in DOWNGRADE:
        op.execute(statement)
