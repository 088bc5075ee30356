"""The hot and the warm tier, agent files and pending edits.

New tables only: nothing that serves reads them.
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    CREATE TABLE mnemic.preferences (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      metadata jsonb NOT NULL DEFAULT '{}',
      tags text[] NOT NULL DEFAULT '{}',
      person_id text,
      trust smallint NOT NULL DEFAULT 2,
      source text NOT NULL DEFAULT 'caller',
      recorded_at timestamptz NOT NULL DEFAULT now(),
      person_key text NOT NULL DEFAULT '',
      response_style text,
      response_format text,
      verbosity text,
      code_language text,
      recent_projects jsonb NOT NULL DEFAULT '[]',
      learned_patterns jsonb NOT NULL DEFAULT '[]',
      version integer NOT NULL DEFAULT 1,
      updated_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT preferences_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT preferences_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT preferences_person_key UNIQUE (tenant_id, scope_id, person_key),
      CONSTRAINT preferences_person_id_bytes_check CHECK (octet_length(person_id) <= 2000),
      CONSTRAINT preferences_person_key_bytes_check CHECK (octet_length(person_key) <= 512),
      CONSTRAINT preferences_trust_check CHECK (trust BETWEEN 0 AND 5)
    )
    """,
    """
    CREATE INDEX preferences_person_idx
      ON mnemic.preferences (tenant_id, person_id)
      WHERE person_id IS NOT NULL
    """,
    """
    CREATE TABLE mnemic.blocks (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      metadata jsonb NOT NULL DEFAULT '{}',
      tags text[] NOT NULL DEFAULT '{}',
      person_id text,
      trust smallint NOT NULL DEFAULT 2,
      source text NOT NULL DEFAULT 'caller',
      recorded_at timestamptz NOT NULL DEFAULT now(),
      label text NOT NULL,
      label_key text NOT NULL,
      description text,
      value text NOT NULL,
      size_limit integer NOT NULL,
      version integer NOT NULL DEFAULT 1,
      updated_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT blocks_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT blocks_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT blocks_label_key UNIQUE (tenant_id, scope_id, label_key),
      CONSTRAINT blocks_label_key_bytes_check CHECK (octet_length(label_key) <= 512),
      CONSTRAINT blocks_person_id_bytes_check CHECK (octet_length(person_id) <= 2000),
      CONSTRAINT blocks_size_check CHECK (char_length(value) <= size_limit),
      CONSTRAINT blocks_trust_check CHECK (trust BETWEEN 0 AND 5)
    )
    """,
    """
    CREATE INDEX blocks_person_idx
      ON mnemic.blocks (tenant_id, person_id)
      WHERE person_id IS NOT NULL
    """,
    """
    CREATE TABLE mnemic.goals (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      metadata jsonb NOT NULL DEFAULT '{}',
      tags text[] NOT NULL DEFAULT '{}',
      person_id text,
      trust smallint NOT NULL DEFAULT 2,
      source text NOT NULL DEFAULT 'caller',
      recorded_at timestamptz NOT NULL DEFAULT now(),
      title text NOT NULL,
      status text NOT NULL DEFAULT 'open',
      next_step text,
      blockers jsonb NOT NULL DEFAULT '[]',
      version integer NOT NULL DEFAULT 1,
      due_at timestamptz,
      closed_at timestamptz,
      updated_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT goals_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT goals_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT goals_person_id_bytes_check CHECK (octet_length(person_id) <= 2000),
      CONSTRAINT goals_status_check
        CHECK (status IN ('open', 'in_progress', 'blocked', 'done', 'dropped')),
      CONSTRAINT goals_trust_check CHECK (trust BETWEEN 0 AND 5)
    )
    """,
    """
    CREATE INDEX goals_person_idx
      ON mnemic.goals (tenant_id, person_id)
      WHERE person_id IS NOT NULL
    """,
    "CREATE INDEX goals_status_idx ON mnemic.goals (tenant_id, scope_id, status)",
    """
    CREATE TABLE mnemic.files (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      metadata jsonb NOT NULL DEFAULT '{}',
      tags text[] NOT NULL DEFAULT '{}',
      person_id text,
      trust smallint NOT NULL DEFAULT 2,
      source text NOT NULL DEFAULT 'caller',
      recorded_at timestamptz NOT NULL DEFAULT now(),
      path text NOT NULL,
      path_digest bytea NOT NULL,
      content text NOT NULL,
      file_type text NOT NULL,
      enabled boolean NOT NULL DEFAULT true,
      version integer NOT NULL DEFAULT 1,
      digest bytea NOT NULL,
      updated_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT files_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT files_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT files_path_key UNIQUE (tenant_id, scope_id, path_digest),
      CONSTRAINT files_path_digest_bytes_check CHECK (octet_length(path_digest) <= 64),
      CONSTRAINT files_person_id_bytes_check CHECK (octet_length(person_id) <= 2000),
      CONSTRAINT files_trust_check CHECK (trust BETWEEN 0 AND 5)
    )
    """,
    """
    CREATE INDEX files_person_idx
      ON mnemic.files (tenant_id, person_id)
      WHERE person_id IS NOT NULL
    """,
    """
    CREATE TABLE mnemic.file_versions (
      tenant_id uuid NOT NULL,
      file_id uuid NOT NULL,
      version integer NOT NULL,
      content text NOT NULL,
      digest bytea NOT NULL,
      changed_by text NOT NULL,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT file_versions_pkey PRIMARY KEY (tenant_id, file_id, version),
      CONSTRAINT file_versions_file_id_fkey FOREIGN KEY (tenant_id, file_id)
        REFERENCES mnemic.files (tenant_id, id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE mnemic.pending_edits (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      metadata jsonb NOT NULL DEFAULT '{}',
      tags text[] NOT NULL DEFAULT '{}',
      person_id text,
      trust smallint NOT NULL DEFAULT 2,
      source text NOT NULL DEFAULT 'caller',
      recorded_at timestamptz NOT NULL DEFAULT now(),
      target_kind text NOT NULL,
      target_id uuid,
      path text,
      content text NOT NULL,
      proposer text NOT NULL,
      base_digest bytea,
      result_digest bytea NOT NULL,
      decision text,
      decided_by text,
      decision_reason text,
      decided_at timestamptz,
      expires_at timestamptz,
      CONSTRAINT pending_edits_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT pending_edits_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT pending_edits_decided_check CHECK ((decision IS NULL) = (decided_at IS NULL)),
      CONSTRAINT pending_edits_decision_check
        CHECK (decision IN ('approved', 'rejected', 'expired')),
      CONSTRAINT pending_edits_person_id_bytes_check CHECK (octet_length(person_id) <= 2000),
      CONSTRAINT pending_edits_trust_check CHECK (trust BETWEEN 0 AND 5)
    )
    """,
    """
    CREATE INDEX pending_edits_open_idx
      ON mnemic.pending_edits (tenant_id, scope_id, recorded_at)
      WHERE decision IS NULL
    """,
    """
    CREATE INDEX pending_edits_person_idx
      ON mnemic.pending_edits (tenant_id, person_id)
      WHERE person_id IS NOT NULL
    """,
)
DOWNGRADE = (
    "DROP TABLE mnemic.pending_edits",
    "DROP TABLE mnemic.file_versions",
    "DROP TABLE mnemic.files",
    "DROP TABLE mnemic.goals",
    "DROP TABLE mnemic.blocks",
    "DROP TABLE mnemic.preferences",
)


def upgrade() -> None:
    """The tables exist, behind no wall yet; nobody but their owner has rights on them."""
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """They are gone, and their rows with them."""
    for statement in DOWNGRADE:
        op.execute(statement)
