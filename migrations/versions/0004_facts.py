"""Facts with their evidence, and the names in memories.

New tables only: nothing that serves reads them.
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    CREATE TABLE mnemic.facts (
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
      subject text NOT NULL,
      subject_key text NOT NULL,
      predicate text NOT NULL,
      object text NOT NULL,
      object_key text NOT NULL,
      content text NOT NULL,
      category text NOT NULL DEFAULT 'general',
      single_valued boolean NOT NULL DEFAULT false,
      confidence double precision NOT NULL,
      ease double precision NOT NULL DEFAULT 2.5,
      decay_key double precision NOT NULL DEFAULT 0,
      first_learned timestamptz NOT NULL,
      last_reinforced timestamptz NOT NULL,
      reinforcement_count integer NOT NULL DEFAULT 1,
      valid_from timestamptz,
      valid_to timestamptz,
      retired_at timestamptz,
      superseded_by uuid,
      status text NOT NULL DEFAULT 'live',
      status_reason text,
      pinned boolean NOT NULL DEFAULT false,
      verified_at timestamptz,
      verification text,
      archived_at timestamptz,
      updated_at timestamptz NOT NULL DEFAULT now(),
      stems text NOT NULL DEFAULT '',
      stem_count integer NOT NULL DEFAULT 0,
      word_count integer NOT NULL DEFAULT 0,
      tsv tsvector NOT NULL DEFAULT ''::tsvector,
      needs_vector boolean NOT NULL DEFAULT true,
      stats_counted boolean NOT NULL DEFAULT false,
      CONSTRAINT facts_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT facts_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT facts_project_id_fkey FOREIGN KEY (tenant_id, project_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT facts_superseded_by_fkey FOREIGN KEY (tenant_id, superseded_by)
        REFERENCES mnemic.facts (tenant_id, id),
      CONSTRAINT facts_confidence_check CHECK (confidence BETWEEN 0 AND 1),
      CONSTRAINT facts_ease_check CHECK (ease >= 1.3),
      CONSTRAINT facts_object_key_bytes_check CHECK (octet_length(object_key) <= 512),
      CONSTRAINT facts_person_id_bytes_check CHECK (octet_length(person_id) <= 2000),
      CONSTRAINT facts_predicate_bytes_check CHECK (octet_length(predicate) <= 1500),
      CONSTRAINT facts_reinforcement_count_check CHECK (reinforcement_count >= 1),
      CONSTRAINT facts_retired_check CHECK ((status = 'live') = (retired_at IS NULL)),
      CONSTRAINT facts_status_check
        CHECK (status IN ('live', 'superseded', 'deprecated', 'forgotten')),
      CONSTRAINT facts_subject_key_bytes_check CHECK (octet_length(subject_key) <= 512),
      CONSTRAINT facts_trust_check CHECK (trust BETWEEN 0 AND 5),
      CONSTRAINT facts_valid_check CHECK (valid_from <= valid_to)
    )
    """,
    """
    CREATE INDEX facts_decay_idx
      ON mnemic.facts (tenant_id, scope_id, ease, decay_key)
      WHERE status = 'live'
    """,
    """
    CREATE UNIQUE INDEX facts_live_single_key
      ON mnemic.facts (tenant_id, scope_id, subject_key, predicate)
      WHERE status = 'live' AND single_valued
    """,
    """
    CREATE UNIQUE INDEX facts_live_value_key
      ON mnemic.facts (tenant_id, scope_id, subject_key, predicate, object_key)
      WHERE status = 'live'
    """,
    """
    CREATE INDEX facts_needs_vector_idx
      ON mnemic.facts (tenant_id, recorded_at)
      WHERE needs_vector
    """,
    "CREATE INDEX facts_object_idx ON mnemic.facts (tenant_id, object_key, scope_id)",
    """
    CREATE INDEX facts_person_idx
      ON mnemic.facts (tenant_id, person_id)
      WHERE person_id IS NOT NULL
    """,
    "CREATE INDEX facts_scope_idx ON mnemic.facts (tenant_id, scope_id, recorded_at, id)",
    "CREATE INDEX facts_subject_idx ON mnemic.facts (tenant_id, subject_key, scope_id)",
    "CREATE INDEX facts_tsv_idx ON mnemic.facts USING gin (tenant_id, tsv)",
    """
    CREATE INDEX facts_uncounted_idx
      ON mnemic.facts (tenant_id, scope_id)
      WHERE NOT stats_counted
    """,
    """
    CREATE TABLE mnemic.fact_evidence (
      tenant_id uuid NOT NULL,
      fact_id uuid NOT NULL,
      source_kind text NOT NULL,
      source_id uuid NOT NULL,
      session_id uuid,
      quality double precision NOT NULL DEFAULT 1,
      observed_at timestamptz NOT NULL,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT fact_evidence_pkey PRIMARY KEY (tenant_id, fact_id, source_kind, source_id),
      CONSTRAINT fact_evidence_fact_id_fkey FOREIGN KEY (tenant_id, fact_id)
        REFERENCES mnemic.facts (tenant_id, id) ON DELETE CASCADE,
      CONSTRAINT fact_evidence_quality_check CHECK (quality BETWEEN 0 AND 1),
      CONSTRAINT fact_evidence_source_kind_check
        CHECK (source_kind IN ('episode', 'turn', 'observation', 'document', 'call', 'import'))
    )
    """,
    """
    CREATE TABLE mnemic.entities (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      name text NOT NULL,
      name_key text NOT NULL,
      kind text NOT NULL DEFAULT 'name',
      aliases text[] NOT NULL DEFAULT '{}',
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT entities_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT entities_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT entities_name_key UNIQUE (tenant_id, scope_id, name_key),
      CONSTRAINT entities_name_key_bytes_check CHECK (octet_length(name_key) <= 512)
    )
    """,
    """
    CREATE TABLE mnemic.entity_mentions (
      tenant_id uuid NOT NULL,
      entity_id uuid NOT NULL,
      memory_kind text NOT NULL,
      memory_id uuid NOT NULL,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT entity_mentions_pkey PRIMARY KEY (tenant_id, entity_id, memory_kind, memory_id),
      CONSTRAINT entity_mentions_entity_id_fkey FOREIGN KEY (tenant_id, entity_id)
        REFERENCES mnemic.entities (tenant_id, id) ON DELETE CASCADE,
      CONSTRAINT entity_mentions_memory_kind_bytes_check CHECK (octet_length(memory_kind) <= 512)
    )
    """,
    """
    CREATE INDEX entity_mentions_memory_idx
      ON mnemic.entity_mentions (tenant_id, memory_kind, memory_id)
    """,
)
DOWNGRADE = (
    "DROP TABLE mnemic.entity_mentions",
    "DROP TABLE mnemic.entities",
    "DROP TABLE mnemic.fact_evidence",
    "DROP TABLE mnemic.facts",
)


def upgrade() -> None:
    """The tables exist, behind no wall yet; nobody but their owner has rights on them."""
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    """They are gone, and their rows with them."""
    for statement in DOWNGRADE:
        op.execute(statement)
