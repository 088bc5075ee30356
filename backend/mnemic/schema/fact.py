"""Facts, the evidence ledger they stand on, and the registry of predicates."""

from __future__ import annotations

import sqlalchemy as sa

from mnemic.schema.columns import (
    bounded,
    choice,
    created_at,
    memory_table,
    metadata,
    moment,
    reference,
    tenant_table,
    wording_columns,
)

__all__ = ["fact_evidence", "facts", "predicates"]

_LIVE = sa.text("status = 'live'")

# Confidence and its base time are stored; decay is a pure function at read time.
facts = memory_table(
    "facts",
    sa.Column("project_id", sa.Uuid),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("subject_key", sa.Text, nullable=False),
    sa.Column("predicate", sa.Text, nullable=False),
    sa.Column("object", sa.Text, nullable=False),
    sa.Column("object_key", sa.Text, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("category", sa.Text, nullable=False, server_default=sa.text("'general'")),
    sa.Column("single_valued", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("confidence", sa.Double, nullable=False),
    sa.Column("ease", sa.Double, nullable=False, server_default=sa.text("2.5")),
    sa.Column("decay_key", sa.Double, nullable=False, server_default=sa.text("0")),
    moment("first_learned", nullable=False),
    moment("last_reinforced", nullable=False),
    sa.Column("reinforcement_count", sa.Integer, nullable=False, server_default=sa.text("1")),
    moment("valid_from"),
    moment("valid_to"),
    moment("retired_at"),
    sa.Column("superseded_by", sa.Uuid),
    sa.Column("status", sa.Text, nullable=False, server_default=sa.text("'live'")),
    sa.Column("status_reason", sa.Text),
    sa.Column("pinned", sa.Boolean, nullable=False, server_default=sa.false()),
    moment("verified_at"),
    sa.Column("verification", sa.Text),
    moment("archived_at"),
    moment("updated_at", nullable=False, server_default=sa.func.now()),
    *wording_columns("facts"),
    bounded("facts", "subject_key"),
    bounded("facts", "predicate", bytes_max=1500),
    bounded("facts", "object_key"),
    reference("facts", "project_id", "scopes"),
    reference("facts", "superseded_by", "facts"),
    choice("facts", "status", "live", "superseded", "deprecated", "forgotten"),
    sa.CheckConstraint("(status = 'live') = (retired_at IS NULL)", name="facts_retired_check"),
    sa.CheckConstraint("confidence BETWEEN 0 AND 1", name="facts_confidence_check"),
    sa.CheckConstraint("ease >= 1.3", name="facts_ease_check"),
    sa.CheckConstraint("reinforcement_count >= 1", name="facts_reinforcement_count_check"),
    sa.CheckConstraint("valid_from <= valid_to", name="facts_valid_check"),
    sa.Index(
        "facts_live_value_key",
        "tenant_id",
        "scope_id",
        "subject_key",
        "predicate",
        "object_key",
        unique=True,
        postgresql_where=_LIVE,
    ),
    sa.Index(
        "facts_live_single_key",
        "tenant_id",
        "scope_id",
        "subject_key",
        "predicate",
        unique=True,
        postgresql_where=sa.text("status = 'live' AND single_valued"),
    ),
    sa.Index("facts_subject_idx", "tenant_id", "subject_key", "scope_id"),
    sa.Index("facts_object_idx", "tenant_id", "object_key", "scope_id"),
    sa.Index("facts_scope_idx", "tenant_id", "scope_id", "recorded_at", "id"),
    sa.Index(
        "facts_decay_idx", "tenant_id", "scope_id", "ease", "decay_key", postgresql_where=_LIVE
    ),
    sa.Index(
        "facts_superseded_by_idx",
        "tenant_id",
        "superseded_by",
        postgresql_where=sa.text("superseded_by IS NOT NULL"),
    ),
)

# `true_since` is kept of single-valued predicates; without it the fact's own beginning counts.
fact_evidence = tenant_table(
    "fact_evidence",
    sa.Column("fact_id", sa.Uuid, nullable=False),
    sa.Column("source_kind", sa.Text, nullable=False),
    sa.Column("source_id", sa.Uuid, nullable=False),
    sa.Column("session_id", sa.Uuid),
    sa.Column("quality", sa.Double, nullable=False, server_default=sa.text("1")),
    moment("observed_at", nullable=False),
    created_at(),
    moment("true_since"),
    reference("fact_evidence", "fact_id", "facts", ondelete="CASCADE"),
    choice(
        "fact_evidence",
        "source_kind",
        "episode",
        "turn",
        "observation",
        "document",
        "call",
        "import",
    ),
    sa.CheckConstraint("quality BETWEEN 0 AND 1", name="fact_evidence_quality_check"),
    sa.Index("fact_evidence_source_idx", "tenant_id", "source_kind", "source_id"),
    sa.Index(
        "fact_evidence_since_idx",
        "tenant_id",
        "fact_id",
        "true_since",
        postgresql_where=sa.text("true_since IS NOT NULL"),
    ),
    key=("fact_id", "source_kind", "source_id"),
)

predicates = sa.Table(
    "predicates",
    metadata,
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("cardinality", sa.Text, nullable=False),
    sa.Column("category", sa.Text, nullable=False),
    created_at(),
    bounded("predicates", "name", bytes_max=1500),
    sa.PrimaryKeyConstraint("name", name="predicates_pkey"),
    choice("predicates", "cardinality", "single", "multi"),
)
