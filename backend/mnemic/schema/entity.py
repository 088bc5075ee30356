"""The entity index: from any memory to the names in it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from mnemic.schema.columns import bounded, created_at, moment, reference, scoped_table, tenant_table

__all__ = ["entities", "entity_mentions"]

entities = scoped_table(
    "entities",
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("name_key", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False, server_default=sa.text("'name'")),
    sa.Column("aliases", pg.ARRAY(sa.Text), nullable=False, server_default=sa.text("'{}'")),
    created_at(),
    moment("updated_at"),
    bounded("entities", "name_key"),
    sa.UniqueConstraint("tenant_id", "scope_id", "name_key", name="entities_name_key"),
)

entity_mentions = tenant_table(
    "entity_mentions",
    sa.Column("entity_id", sa.Uuid, nullable=False),
    sa.Column("memory_kind", sa.Text, nullable=False),
    sa.Column("memory_id", sa.Uuid, nullable=False),
    created_at(),
    bounded("entity_mentions", "memory_kind"),
    reference("entity_mentions", "entity_id", "entities", ondelete="CASCADE"),
    sa.Index("entity_mentions_memory_idx", "tenant_id", "memory_kind", "memory_id"),
    key=("entity_id", "memory_kind", "memory_id"),
)
