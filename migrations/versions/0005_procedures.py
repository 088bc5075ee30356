"""Procedures, their versions and their outcomes.

New tables only: nothing that serves reads them.
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    CREATE TABLE mnemic.procedures (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      metadata jsonb NOT NULL DEFAULT '{}',
      tags text[] NOT NULL DEFAULT '{}',
      person_id text,
      trust smallint NOT NULL DEFAULT 2,
      source text NOT NULL DEFAULT 'caller',
      recorded_at timestamptz NOT NULL DEFAULT now(),
      project_id uuid,
      agent_type_id uuid,
      name text NOT NULL,
      name_key text NOT NULL,
      task_type text NOT NULL,
      trigger_pattern text,
      steps jsonb NOT NULL,
      version integer NOT NULL DEFAULT 1,
      preconditions jsonb NOT NULL DEFAULT '[]',
      avoid_conditions jsonb NOT NULL DEFAULT '[]',
      success_count bigint NOT NULL DEFAULT 0,
      failure_count bigint NOT NULL DEFAULT 0,
      last_used timestamptz,
      status text NOT NULL DEFAULT 'live',
      retired_at timestamptz,
      archived_at timestamptz,
      updated_at timestamptz NOT NULL DEFAULT now(),
      stems text NOT NULL DEFAULT '',
      stem_count integer NOT NULL DEFAULT 0,
      word_count integer NOT NULL DEFAULT 0,
      tsv tsvector NOT NULL DEFAULT ''::tsvector,
      needs_vector boolean NOT NULL DEFAULT true,
      stats_counted boolean NOT NULL DEFAULT false,
      CONSTRAINT procedures_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT procedures_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT procedures_project_id_fkey FOREIGN KEY (tenant_id, project_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT procedures_agent_type_id_fkey FOREIGN KEY (tenant_id, agent_type_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT procedures_counts_check CHECK (success_count >= 0 AND failure_count >= 0),
      CONSTRAINT procedures_name_key_bytes_check CHECK (octet_length(name_key) <= 512),
      CONSTRAINT procedures_person_id_bytes_check CHECK (octet_length(person_id) <= 2000),
      CONSTRAINT procedures_retired_check CHECK ((status = 'live') = (retired_at IS NULL)),
      CONSTRAINT procedures_status_check CHECK (status IN ('live', 'retired', 'forgotten')),
      CONSTRAINT procedures_task_type_bytes_check CHECK (octet_length(task_type) <= 2000),
      CONSTRAINT procedures_trust_check CHECK (trust BETWEEN 0 AND 5)
    )
    """,
    """
    CREATE UNIQUE INDEX procedures_live_name_key
      ON mnemic.procedures (tenant_id, scope_id, name_key)
      WHERE status = 'live'
    """,
    """
    CREATE INDEX procedures_needs_vector_idx
      ON mnemic.procedures (tenant_id, recorded_at)
      WHERE needs_vector
    """,
    """
    CREATE INDEX procedures_person_idx
      ON mnemic.procedures (tenant_id, person_id)
      WHERE person_id IS NOT NULL
    """,
    """
    CREATE INDEX procedures_scope_idx
      ON mnemic.procedures (tenant_id, scope_id, recorded_at, id)
    """,
    """
    CREATE INDEX procedures_task_type_idx
      ON mnemic.procedures (tenant_id, scope_id, task_type)
    """,
    "CREATE INDEX procedures_tsv_idx ON mnemic.procedures USING gin (tenant_id, tsv)",
    """
    CREATE INDEX procedures_uncounted_idx
      ON mnemic.procedures (tenant_id, scope_id)
      WHERE NOT stats_counted
    """,
    """
    CREATE TABLE mnemic.procedure_versions (
      tenant_id uuid NOT NULL,
      procedure_id uuid NOT NULL,
      version integer NOT NULL,
      steps jsonb NOT NULL,
      reason text,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT procedure_versions_pkey PRIMARY KEY (tenant_id, procedure_id, version),
      CONSTRAINT procedure_versions_procedure_id_fkey FOREIGN KEY (tenant_id, procedure_id)
        REFERENCES mnemic.procedures (tenant_id, id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE mnemic.procedure_outcomes (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      procedure_id uuid NOT NULL,
      version integer NOT NULL,
      success boolean NOT NULL,
      session_id uuid,
      note text,
      occurred_at timestamptz NOT NULL,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT procedure_outcomes_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT procedure_outcomes_procedure_id_fkey FOREIGN KEY (tenant_id, procedure_id)
        REFERENCES mnemic.procedures (tenant_id, id) ON DELETE CASCADE
    )
    """,
    """
    CREATE INDEX procedure_outcomes_procedure_idx
      ON mnemic.procedure_outcomes (tenant_id, procedure_id, occurred_at)
    """,
)
DOWNGRADE = (
    "DROP TABLE mnemic.procedure_outcomes",
    "DROP TABLE mnemic.procedure_versions",
    "DROP TABLE mnemic.procedures",
)


def upgrade() -> None:
    """The tables exist, behind no wall yet; nobody but their owner has rights on them."""
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """They are gone, and their rows with them."""
    for statement in DOWNGRADE:
        op.execute(statement)
