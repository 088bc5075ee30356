"""Counts that are kept beside the rows they count, never inside a writer's transaction."""

from __future__ import annotations

import sqlalchemy as sa

from mnemic.schema.columns import moment, reference, tenant_table

__all__ = ["memory_usage", "term_stats"]

# The empty term holds the scope's own totals: how many turns, how many stems.
term_stats = tenant_table(
    "term_stats",
    sa.Column("scope_id", sa.Uuid, nullable=False),
    sa.Column("term", sa.Text, nullable=False),
    sa.Column("documents", sa.BigInteger, nullable=False),
    sa.Column("occurrences", sa.BigInteger, nullable=False),
    reference("term_stats", "scope_id", "scopes", ondelete="CASCADE"),
    sa.CheckConstraint("documents >= 0 AND occurrences >= 0", name="term_stats_counts_check"),
    key=("scope_id", "term"),
)

memory_usage = tenant_table(
    "memory_usage",
    sa.Column("memory_kind", sa.Text, nullable=False),
    sa.Column("memory_id", sa.Uuid, nullable=False),
    sa.Column("hits", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    moment("last_used_at", nullable=False),
    key=("memory_kind", "memory_id"),
)
