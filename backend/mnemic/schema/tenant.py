"""Tenants: a person or an organisation."""

from __future__ import annotations

import sqlalchemy as sa

from mnemic.schema.columns import choice, created_at, metadata, moment

__all__ = ["tenants"]

tenants = sa.Table(
    "tenants",
    metadata,
    sa.Column("tenant_id", sa.Uuid, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("external_id", sa.Text, nullable=False),
    sa.Column("isolation", sa.Text, nullable=False, server_default=sa.text("'shared'")),
    sa.Column("opt_out", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("observation_retention_days", sa.Integer),
    sa.Column("episode_retention_days", sa.Integer),
    moment("auto_approve_until"),
    created_at(),
    moment("erased_at"),
    sa.PrimaryKeyConstraint("tenant_id", name="tenants_pkey"),
    choice("tenants", "kind", "person", "organisation"),
    choice("tenants", "isolation", "shared", "dedicated"),
    sa.CheckConstraint(
        "observation_retention_days > 0 AND episode_retention_days > 0",
        name="tenants_retention_check",
    ),
)
