"""Episodes, the archive, the turns in it, and observations.

New tables only: nothing that serves reads them.
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

UPGRADE = (
    "CREATE TYPE mnemic.outcome AS ENUM ('success', 'failure', 'partial')",
    """
    CREATE TABLE mnemic.episodes (
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
      agent_instance_id uuid,
      session_id uuid,
      task_type text NOT NULL,
      task_description text NOT NULL,
      actions jsonb NOT NULL DEFAULT '[]',
      context_summary text,
      outcome mnemic.outcome NOT NULL,
      outcome_details text,
      duration_seconds double precision,
      tokens_used bigint,
      lessons_learned jsonb NOT NULL DEFAULT '[]',
      importance_score double precision NOT NULL,
      occurred_at timestamptz NOT NULL,
      title text NOT NULL,
      summary text NOT NULL,
      key_topics text[] NOT NULL DEFAULT '{}',
      user_intents text[] NOT NULL DEFAULT '{}',
      tools_used text[] NOT NULL DEFAULT '{}',
      agents_used text[] NOT NULL DEFAULT '{}',
      message_count integer NOT NULL DEFAULT 0,
      started_at timestamptz,
      ended_at timestamptz,
      content_digest bytea NOT NULL,
      archived_at timestamptz,
      consolidated_run uuid,
      updated_at timestamptz NOT NULL DEFAULT now(),
      stems text NOT NULL DEFAULT '',
      stem_count integer NOT NULL DEFAULT 0,
      word_count integer NOT NULL DEFAULT 0,
      tsv tsvector NOT NULL DEFAULT ''::tsvector,
      needs_vector boolean NOT NULL DEFAULT true,
      stats_counted boolean NOT NULL DEFAULT false,
      CONSTRAINT episodes_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT episodes_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT episodes_project_id_fkey FOREIGN KEY (tenant_id, project_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT episodes_agent_type_id_fkey FOREIGN KEY (tenant_id, agent_type_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT episodes_agent_instance_id_fkey FOREIGN KEY (tenant_id, agent_instance_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT episodes_session_id_fkey FOREIGN KEY (tenant_id, session_id)
        REFERENCES mnemic.sessions (tenant_id, id),
      CONSTRAINT episodes_duration_seconds_check CHECK (duration_seconds >= 0),
      CONSTRAINT episodes_importance_score_check CHECK (importance_score BETWEEN 0 AND 1),
      CONSTRAINT episodes_person_id_bytes_check CHECK (octet_length(person_id) <= 2000),
      CONSTRAINT episodes_task_type_bytes_check CHECK (octet_length(task_type) <= 2000),
      CONSTRAINT episodes_tokens_used_check CHECK (tokens_used >= 0),
      CONSTRAINT episodes_trust_check CHECK (trust BETWEEN 0 AND 5)
    )
    """,
    """
    CREATE INDEX episodes_needs_vector_idx
      ON mnemic.episodes (tenant_id, recorded_at)
      WHERE needs_vector
    """,
    """
    CREATE INDEX episodes_outcome_idx
      ON mnemic.episodes (tenant_id, scope_id, outcome, occurred_at)
    """,
    """
    CREATE INDEX episodes_person_idx
      ON mnemic.episodes (tenant_id, person_id)
      WHERE person_id IS NOT NULL
    """,
    """
    CREATE INDEX episodes_scope_idx
      ON mnemic.episodes (tenant_id, scope_id, occurred_at, id)
    """,
    """
    CREATE UNIQUE INDEX episodes_session_key
      ON mnemic.episodes (tenant_id, session_id)
      WHERE source = 'session_end'
    """,
    """
    CREATE INDEX episodes_task_type_idx
      ON mnemic.episodes (tenant_id, scope_id, task_type, occurred_at)
    """,
    "CREATE INDEX episodes_tsv_idx ON mnemic.episodes USING gin (tenant_id, tsv)",
    """
    CREATE INDEX episodes_unconsolidated_idx
      ON mnemic.episodes (tenant_id, recorded_at)
      WHERE consolidated_run IS NULL
    """,
    """
    CREATE INDEX episodes_uncounted_idx
      ON mnemic.episodes (tenant_id, scope_id)
      WHERE NOT stats_counted
    """,
    """
    CREATE TABLE mnemic.documents (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      metadata jsonb NOT NULL DEFAULT '{}',
      tags text[] NOT NULL DEFAULT '{}',
      person_id text,
      trust smallint NOT NULL DEFAULT 2,
      source text NOT NULL DEFAULT 'caller',
      recorded_at timestamptz NOT NULL DEFAULT now(),
      session_id uuid,
      kind text NOT NULL,
      title text NOT NULL,
      content text NOT NULL,
      content_digest bytea NOT NULL,
      size_bytes bigint NOT NULL,
      occurred_at timestamptz NOT NULL,
      CONSTRAINT documents_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT documents_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT documents_session_id_fkey FOREIGN KEY (tenant_id, session_id)
        REFERENCES mnemic.sessions (tenant_id, id),
      CONSTRAINT documents_content_key UNIQUE (tenant_id, scope_id, content_digest),
      CONSTRAINT documents_content_digest_bytes_check CHECK (octet_length(content_digest) <= 64),
      CONSTRAINT documents_kind_check CHECK (kind IN ('transcript', 'document')),
      CONSTRAINT documents_person_id_bytes_check CHECK (octet_length(person_id) <= 2000),
      CONSTRAINT documents_trust_check CHECK (trust BETWEEN 0 AND 5)
    )
    """,
    """
    CREATE INDEX documents_person_idx
      ON mnemic.documents (tenant_id, person_id)
      WHERE person_id IS NOT NULL
    """,
    "CREATE INDEX documents_session_idx ON mnemic.documents (tenant_id, session_id)",
    """
    CREATE TABLE mnemic.turns (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      metadata jsonb NOT NULL DEFAULT '{}',
      tags text[] NOT NULL DEFAULT '{}',
      person_id text,
      trust smallint NOT NULL DEFAULT 2,
      source text NOT NULL DEFAULT 'caller',
      recorded_at timestamptz NOT NULL DEFAULT now(),
      session_id uuid NOT NULL,
      document_id uuid,
      seq integer NOT NULL,
      role text NOT NULL,
      actor text NOT NULL,
      actor_id uuid NOT NULL,
      text text NOT NULL,
      caption text,
      external_digest bytea,
      content_digest bytea NOT NULL,
      occurred_at timestamptz NOT NULL,
      ends_with_question boolean NOT NULL DEFAULT false,
      first_person boolean NOT NULL DEFAULT false,
      has_name boolean NOT NULL DEFAULT false,
      has_time_expr boolean NOT NULL DEFAULT false,
      archived_at timestamptz,
      stems text NOT NULL DEFAULT '',
      stem_count integer NOT NULL DEFAULT 0,
      word_count integer NOT NULL DEFAULT 0,
      tsv tsvector NOT NULL DEFAULT ''::tsvector,
      needs_vector boolean NOT NULL DEFAULT true,
      stats_counted boolean NOT NULL DEFAULT false,
      CONSTRAINT turns_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT turns_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT turns_session_id_fkey FOREIGN KEY (tenant_id, session_id)
        REFERENCES mnemic.sessions (tenant_id, id),
      CONSTRAINT turns_document_id_fkey FOREIGN KEY (tenant_id, document_id)
        REFERENCES mnemic.documents (tenant_id, id),
      CONSTRAINT turns_seq_key UNIQUE (tenant_id, session_id, seq),
      CONSTRAINT turns_external_digest_bytes_check CHECK (octet_length(external_digest) <= 64),
      CONSTRAINT turns_person_id_bytes_check CHECK (octet_length(person_id) <= 2000),
      CONSTRAINT turns_role_check CHECK (role IN ('user', 'assistant', 'system', 'tool')),
      CONSTRAINT turns_seq_check CHECK (seq >= 0),
      CONSTRAINT turns_trust_check CHECK (trust BETWEEN 0 AND 5)
    )
    """,
    "CREATE INDEX turns_actor_idx ON mnemic.turns (tenant_id, scope_id, actor_id)",
    """
    CREATE INDEX turns_document_idx
      ON mnemic.turns (tenant_id, document_id)
      WHERE document_id IS NOT NULL
    """,
    """
    CREATE UNIQUE INDEX turns_external_key
      ON mnemic.turns (tenant_id, session_id, external_digest)
      WHERE external_digest IS NOT NULL
    """,
    """
    CREATE INDEX turns_needs_vector_idx
      ON mnemic.turns (tenant_id, recorded_at)
      WHERE needs_vector
    """,
    """
    CREATE INDEX turns_person_idx
      ON mnemic.turns (tenant_id, person_id)
      WHERE person_id IS NOT NULL
    """,
    "CREATE INDEX turns_scope_idx ON mnemic.turns (tenant_id, scope_id, occurred_at, id)",
    "CREATE INDEX turns_tsv_idx ON mnemic.turns USING gin (tenant_id, tsv)",
    """
    CREATE INDEX turns_uncounted_idx
      ON mnemic.turns (tenant_id, scope_id)
      WHERE NOT stats_counted
    """,
    """
    CREATE TABLE mnemic.observations (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      metadata jsonb NOT NULL DEFAULT '{}',
      tags text[] NOT NULL DEFAULT '{}',
      person_id text,
      trust smallint NOT NULL DEFAULT 2,
      source text NOT NULL DEFAULT 'caller',
      recorded_at timestamptz NOT NULL DEFAULT now(),
      session_id uuid,
      type text NOT NULL,
      content text NOT NULL,
      occurred_at timestamptz NOT NULL,
      consolidated_run uuid,
      attempts smallint NOT NULL DEFAULT 0,
      set_aside_reason text,
      CONSTRAINT observations_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT observations_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT observations_session_id_fkey FOREIGN KEY (tenant_id, session_id)
        REFERENCES mnemic.sessions (tenant_id, id),
      CONSTRAINT observations_person_id_bytes_check CHECK (octet_length(person_id) <= 2000),
      CONSTRAINT observations_trust_check CHECK (trust BETWEEN 0 AND 5)
    )
    """,
    """
    CREATE INDEX observations_person_idx
      ON mnemic.observations (tenant_id, person_id)
      WHERE person_id IS NOT NULL
    """,
    "CREATE INDEX observations_run_idx ON mnemic.observations (tenant_id, consolidated_run)",
    """
    CREATE INDEX observations_scope_idx
      ON mnemic.observations (tenant_id, scope_id, occurred_at, id)
    """,
    """
    CREATE INDEX observations_unclaimed_idx
      ON mnemic.observations (tenant_id, recorded_at)
      WHERE consolidated_run IS NULL AND set_aside_reason IS NULL
    """,
    # Sessions and their episodes point at each other.
    """
    ALTER TABLE mnemic.sessions
      ADD CONSTRAINT sessions_episode_id_fkey FOREIGN KEY (tenant_id, episode_id)
        REFERENCES mnemic.episodes (tenant_id, id)
    """,
    # lz4 where the server was built with it: transcripts unpack several times faster.
    """
    DO $lz4$
    BEGIN
      IF (SELECT 'lz4' = ANY (enumvals) FROM pg_settings
           WHERE name = 'default_toast_compression') THEN
        ALTER TABLE mnemic.documents ALTER COLUMN content SET COMPRESSION lz4;
      END IF;
    END $lz4$
    """,
)
DOWNGRADE = (
    "ALTER TABLE mnemic.sessions DROP CONSTRAINT sessions_episode_id_fkey",
    "DROP TABLE mnemic.observations",
    "DROP TABLE mnemic.turns",
    "DROP TABLE mnemic.documents",
    "DROP TABLE mnemic.episodes",
    "DROP TYPE mnemic.outcome",
)


def upgrade() -> None:
    """The tables exist, behind no wall yet; nobody but their owner has rights on them."""
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """They are gone, and their rows with them."""
    for statement in DOWNGRADE:
        op.execute(statement)
