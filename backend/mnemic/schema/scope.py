"""The scope tree of a tenant."""

from __future__ import annotations

import sqlalchemy as sa

from mnemic.schema.columns import bounded, created_at, enum, reference, tenant_table

__all__ = ["scope_type", "scopes"]

scope_type = enum("scope_type", "global", "project", "agent_type", "agent_instance", "session")

# Names may be 10 kB long, more than a B-tree tuple holds, so the path is unique by its digest.
scopes = tenant_table(
    "scopes",
    sa.Column("scope_type", scope_type, nullable=False),
    sa.Column("parent_id", sa.Uuid),
    sa.Column("project", sa.Text),
    sa.Column("agent_type", sa.Text),
    sa.Column("agent_instance", sa.Text),
    sa.Column("session", sa.Text),
    sa.Column("path_digest", sa.LargeBinary, nullable=False),
    created_at(),
    bounded("scopes", "path_digest", bytes_max=64),
    sa.ForeignKeyConstraint(
        ["tenant_id"], ["mnemic.tenants.tenant_id"], name="scopes_tenant_id_fkey"
    ),
    reference("scopes", "parent_id", "scopes"),
    sa.CheckConstraint(
        "(scope_type = 'global') = (parent_id IS NULL)", name="scopes_parent_id_check"
    ),
    sa.UniqueConstraint("tenant_id", "path_digest", name="scopes_path_key"),
    sa.Index("scopes_parent_idx", "tenant_id", "parent_id"),
)
