"""Runs of maintenance: what was claimed, what it changed."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from mnemic.schema.columns import bounded, created_at, enum, metadata, moment, tenant_table

__all__ = ["consolidation_status", "consolidation_type", "job_runs", "memory_consolidation_log"]

consolidation_type = enum(
    "consolidation_type",
    "session_end",
    "observations_to_facts",
    "episodes_to_facts",
    "episodes_to_procedures",
    "retention",
)
consolidation_status = enum("consolidation_status", "pending", "running", "completed", "failed")

memory_consolidation_log = tenant_table(
    "memory_consolidation_log",
    sa.Column("consolidation_type", consolidation_type, nullable=False),
    sa.Column("period", sa.Text, nullable=False),
    sa.Column("source_count", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("result_count", sa.Integer, nullable=False, server_default=sa.text("0")),
    moment("started_at", nullable=False),
    moment("completed_at"),
    sa.Column("status", consolidation_status, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("lease_epoch", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("change_set", pg.JSONB, nullable=False, server_default=sa.text("'{}'")),
    moment("undone_at"),
    created_at(),
    bounded("memory_consolidation_log", "period"),
    sa.UniqueConstraint(
        "tenant_id", "consolidation_type", "period", name="memory_consolidation_log_period_key"
    ),
    sa.Index("memory_consolidation_log_started_idx", "tenant_id", "started_at"),
)

# The claim of one tick of one job, over all tenants; holds no tenant's data.
job_runs = sa.Table(
    "job_runs",
    metadata,
    sa.Column("job", sa.Text, nullable=False),
    sa.Column("period", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False, server_default=sa.text("1")),
    sa.Column("lease_epoch", sa.BigInteger, nullable=False, server_default=sa.text("1")),
    moment("lease_until", nullable=False),
    moment("started_at", nullable=False),
    moment("finished_at"),
    sa.Column("result", pg.JSONB),
    bounded("job_runs", "job"),
    bounded("job_runs", "period"),
    sa.PrimaryKeyConstraint("job", "period", name="job_runs_pkey"),
    sa.Index("job_runs_started_idx", "started_at"),
)
