"""What makes writes repeatable and visible: guards, runs, audit, principals, counts.

New tables: nothing that serves reads them. What was counted before they were dropped is counted
again: there is no wall yet, so that the owner's statement reaches the rows.
"""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    CREATE TYPE mnemic.consolidation_type AS ENUM ('session_end', 'observations_to_facts',
      'episodes_to_facts', 'episodes_to_procedures', 'retention')
    """,
    """
    CREATE TYPE mnemic.consolidation_status AS ENUM ('pending', 'running', 'completed',
      'failed')
    """,
    """
    CREATE TABLE mnemic.idempotency_keys (
      tenant_id uuid NOT NULL,
      key_digest bytea NOT NULL,
      operation text NOT NULL,
      request_digest bytea NOT NULL,
      answer jsonb NOT NULL,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant_id, key_digest),
      CONSTRAINT idempotency_keys_key_digest_bytes_check CHECK (octet_length(key_digest) <= 64)
    )
    """,
    """
    CREATE INDEX idempotency_keys_recorded_idx
      ON mnemic.idempotency_keys (tenant_id, recorded_at)
    """,
    """
    CREATE TABLE mnemic.tombstones (
      tenant_id uuid NOT NULL,
      scope_id uuid NOT NULL,
      digest bytea NOT NULL,
      kind text NOT NULL,
      reason text,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      lifted_at timestamptz,
      CONSTRAINT tombstones_pkey PRIMARY KEY (tenant_id, scope_id, digest),
      CONSTRAINT tombstones_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT tombstones_digest_bytes_check CHECK (octet_length(digest) <= 64)
    )
    """,
    """
    CREATE TABLE mnemic.memory_consolidation_log (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      consolidation_type mnemic.consolidation_type NOT NULL,
      period text NOT NULL,
      source_count integer NOT NULL DEFAULT 0,
      result_count integer NOT NULL DEFAULT 0,
      started_at timestamptz NOT NULL,
      completed_at timestamptz,
      status mnemic.consolidation_status NOT NULL,
      error text,
      lease_epoch bigint NOT NULL DEFAULT 0,
      change_set jsonb NOT NULL DEFAULT '{}',
      undone_at timestamptz,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT memory_consolidation_log_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT memory_consolidation_log_period_key UNIQUE (tenant_id, consolidation_type, period),
      CONSTRAINT memory_consolidation_log_period_bytes_check CHECK (octet_length(period) <= 512)
    )
    """,
    """
    CREATE INDEX memory_consolidation_log_started_idx
      ON mnemic.memory_consolidation_log (tenant_id, started_at)
    """,
    """
    CREATE TABLE mnemic.audit_log (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid,
      action text NOT NULL,
      subject_kind text NOT NULL,
      subject_id uuid,
      actor text NOT NULL,
      reason text,
      content_digest bytea,
      detail jsonb NOT NULL DEFAULT '{}',
      transaction_id bigint NOT NULL DEFAULT (pg_current_xact_id()::text)::bigint,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT audit_log_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT audit_log_subject_kind_bytes_check CHECK (octet_length(subject_kind) <= 512)
    )
    """,
    "CREATE INDEX audit_log_order_idx ON mnemic.audit_log (tenant_id, transaction_id, id)",
    """
    CREATE INDEX audit_log_subject_idx
      ON mnemic.audit_log (tenant_id, subject_kind, subject_id)
    """,
    """
    CREATE TABLE mnemic.audit_seals (
      tenant_id uuid NOT NULL,
      seq bigint NOT NULL,
      up_to_transaction bigint NOT NULL,
      row_count bigint NOT NULL,
      previous_hash bytea NOT NULL,
      hash bytea NOT NULL,
      sealed_at timestamptz NOT NULL,
      CONSTRAINT audit_seals_pkey PRIMARY KEY (tenant_id, seq)
    )
    """,
    """
    CREATE TABLE mnemic.api_keys (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      name text NOT NULL,
      key_digest bytea NOT NULL,
      rights text[] NOT NULL,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      expires_at timestamptz,
      revoked_at timestamptz,
      CONSTRAINT api_keys_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT api_keys_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT api_keys_key_digest_check CHECK (octet_length(key_digest) = 32)
    )
    """,
    "CREATE INDEX api_keys_digest_idx ON mnemic.api_keys (key_digest)",
    """
    CREATE TABLE mnemic.grants (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      scope_id uuid NOT NULL,
      principal text NOT NULL,
      principal_key text NOT NULL,
      rights text[] NOT NULL,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      revoked_at timestamptz,
      CONSTRAINT grants_pkey PRIMARY KEY (tenant_id, id),
      CONSTRAINT grants_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id),
      CONSTRAINT grants_principal_key UNIQUE (tenant_id, scope_id, principal_key),
      CONSTRAINT grants_principal_key_bytes_check CHECK (octet_length(principal_key) <= 512)
    )
    """,
    """
    CREATE TABLE mnemic.term_stats (
      tenant_id uuid NOT NULL,
      scope_id uuid NOT NULL,
      kind text NOT NULL,
      term text NOT NULL,
      documents bigint NOT NULL,
      occurrences bigint NOT NULL,
      CONSTRAINT term_stats_pkey PRIMARY KEY (tenant_id, scope_id, kind, term),
      CONSTRAINT term_stats_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id) ON DELETE CASCADE,
      CONSTRAINT term_stats_counts_check CHECK (documents >= 0 AND occurrences >= 0),
      CONSTRAINT term_stats_kind_check CHECK (kind IN ('total', 'term', 'actor', 'role')),
      CONSTRAINT term_stats_term_bytes_check CHECK (octet_length(term) <= 2000)
    )
    """,
    """
    CREATE TABLE mnemic.memory_usage (
      tenant_id uuid NOT NULL,
      memory_kind text NOT NULL,
      memory_id uuid NOT NULL,
      hits bigint NOT NULL DEFAULT 0,
      last_used_at timestamptz NOT NULL,
      CONSTRAINT memory_usage_pkey PRIMARY KEY (tenant_id, memory_kind, memory_id),
      CONSTRAINT memory_usage_memory_kind_bytes_check CHECK (octet_length(memory_kind) <= 512)
    )
    """,
)
# What was counted before the table of counts was dropped is to be counted again.
RECOUNT = "UPDATE mnemic.{table} SET stats_counted = false WHERE stats_counted"
COUNTED = ("turns", "episodes", "facts", "procedures")
DOWNGRADE = (
    "DROP TABLE mnemic.memory_usage",
    "DROP TABLE mnemic.term_stats",
    "DROP TABLE mnemic.grants",
    "DROP TABLE mnemic.api_keys",
    "DROP TABLE mnemic.audit_seals",
    "DROP TABLE mnemic.audit_log",
    "DROP TABLE mnemic.memory_consolidation_log",
    "DROP TABLE mnemic.tombstones",
    "DROP TABLE mnemic.idempotency_keys",
    "DROP TYPE mnemic.consolidation_status",
    "DROP TYPE mnemic.consolidation_type",
)


def upgrade() -> None:
    """The tables exist, behind no wall yet; nobody but their owner has rights on them."""
    for statement in UPGRADE:
        op.execute(statement)
    for table in COUNTED:
        op.execute(RECOUNT.format(table=table))


def downgrade() -> None:
    """They are gone, and their rows with them."""
    for statement in DOWNGRADE:
        op.execute(statement)
