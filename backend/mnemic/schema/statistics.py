"""Counts that are kept beside the rows they count, never inside a writer's transaction."""

from __future__ import annotations

import sqlalchemy as sa

from mnemic.schema.columns import bounded, choice, moment, reference, tenant_table

__all__ = ["memory_usage", "tenant_generations", "term_stats"]

# Kind `total` (empty term) holds how many memories and stems a scope has; `actor` and `role` how
# many of its turns each of them spoke.
term_stats = tenant_table(
    "term_stats",
    sa.Column("scope_id", sa.Uuid, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("term", sa.Text, nullable=False),
    sa.Column("documents", sa.BigInteger, nullable=False),
    sa.Column("occurrences", sa.BigInteger, nullable=False),
    bounded("term_stats", "term", bytes_max=2000),
    reference("term_stats", "scope_id", "scopes", ondelete="CASCADE"),
    sa.CheckConstraint("documents >= 0 AND occurrences >= 0", name="term_stats_counts_check"),
    choice("term_stats", "kind", "total", "term", "actor", "role"),
    # Whatever spells nearly alike; see `similar_terms`.
    sa.Index(
        "term_stats_spelling_idx",
        "tenant_id",
        "term",
        postgresql_using="gin",
        postgresql_ops={"term": "gin_trgm_ops"},
        postgresql_where=sa.text("kind = 'term'"),
    ),
    # How large each tenant is. Without the counts, so that counting does not write it too.
    sa.Index("term_stats_total_idx", "tenant_id", postgresql_where=sa.text("kind = 'total'")),
    key=("scope_id", "kind", "term"),
)

memory_usage = tenant_table(
    "memory_usage",
    sa.Column("memory_kind", sa.Text, nullable=False),
    sa.Column("memory_id", sa.Uuid, nullable=False),
    sa.Column("hits", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    moment("last_used_at", nullable=False),
    bounded("memory_usage", "memory_kind"),
    key=("memory_kind", "memory_id"),
)

# How often the tenant was written to, in several rows, so that its writers do not meet.
tenant_generations = tenant_table(
    "tenant_generations",
    sa.Column("slot", sa.SmallInteger, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    key=("slot",),
)
