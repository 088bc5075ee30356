"""What tables share: the PostgreSQL schema, the tenant's key, and the columns of every memory."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.schema import SchemaItem

__all__ = [
    "SCHEMA",
    "bounded",
    "choice",
    "created_at",
    "enum",
    "memory_table",
    "metadata",
    "moment",
    "reference",
    "scoped_table",
    "tenant_table",
    "wording_columns",
]

SCHEMA = "mnemic"
metadata = sa.MetaData(schema=SCHEMA)


def enum(name: str, *values: str) -> sa.Enum:
    """A PostgreSQL enumeration of the `mnemic` schema; the plan names these columns ENUM."""
    return sa.Enum(*values, name=name, schema=SCHEMA, metadata=metadata)


def moment(name: str, *, nullable: bool = True, **extra: Any) -> sa.Column[Any]:
    """A point in time, with its zone."""
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable, **extra)


def created_at(name: str = "recorded_at") -> sa.Column[Any]:
    """When the row came to be known; the application's clock, else the server's."""
    return moment(name, nullable=False, server_default=sa.func.now())


def choice(table: str, column: str, *values: str) -> sa.CheckConstraint:
    """`column` holds one of `values`."""
    listed = ", ".join(f"'{value}'" for value in values)
    return sa.CheckConstraint(f"{column} IN ({listed})", name=f"{table}_{column}_check")


def bounded(table: str, column: str, *, bytes_max: int = 512) -> sa.CheckConstraint:
    """`column` stays short enough for the B-trees it stands in, whose tuples hold 2,704 bytes."""
    return sa.CheckConstraint(
        f"octet_length({column}) <= {bytes_max}", name=f"{table}_{column}_bytes_check"
    )


def reference(
    table: str, column: str, target: str, *, target_column: str = "id", ondelete: str | None = None
) -> sa.ForeignKeyConstraint:
    """A foreign key that carries the tenant, so a foreign id fails as a missing one does."""
    return sa.ForeignKeyConstraint(
        ["tenant_id", column],
        [f"{SCHEMA}.{target}.tenant_id", f"{SCHEMA}.{target}.{target_column}"],
        name=f"{table}_{column}_fkey",
        ondelete=ondelete,
    )


def tenant_table(
    name: str, *items: SchemaItem, key: tuple[str, ...] = ("id",), **options: Any
) -> sa.Table:
    """A table whose rows belong to a tenant; its primary key starts with the tenant."""
    columns: list[SchemaItem] = [sa.Column("tenant_id", sa.Uuid, nullable=False)]
    if key == ("id",):
        columns.append(sa.Column("id", sa.Uuid, nullable=False))
    return sa.Table(
        name,
        metadata,
        *columns,
        *items,
        sa.PrimaryKeyConstraint("tenant_id", *key, name=f"{name}_pkey"),
        **options,
    )


def scoped_table(name: str, *items: SchemaItem, **options: Any) -> sa.Table:
    """A tenant's table whose rows stand in a scope."""
    return tenant_table(
        name,
        sa.Column("scope_id", sa.Uuid, nullable=False),
        *items,
        reference(name, "scope_id", "scopes"),
        **options,
    )


def memory_table(name: str, *items: SchemaItem, **options: Any) -> sa.Table:
    """A scoped table of memories: metadata, tags, person, trust, source and recording time."""
    return scoped_table(
        name,
        sa.Column("metadata", pg.JSONB, nullable=False, server_default=sa.text("'{}'")),
        sa.Column("tags", pg.ARRAY(sa.Text), nullable=False, server_default=sa.text("'{}'")),
        sa.Column("person_id", sa.Text),
        sa.Column("trust", sa.SmallInteger, nullable=False, server_default=sa.text("2")),
        sa.Column("source", sa.Text, nullable=False, server_default=sa.text("'caller'")),
        created_at(),
        sa.CheckConstraint("trust BETWEEN 0 AND 5", name=f"{name}_trust_check"),
        bounded(name, "person_id", bytes_max=2_000),
        sa.Index(
            f"{name}_person_idx",
            "tenant_id",
            "person_id",
            postgresql_where=sa.text("person_id IS NOT NULL"),
        ),
        *items,
        **options,
    )


def wording_columns(name: str) -> tuple[SchemaItem, ...]:
    """What the lexical arm and the score read; written by the application with the text.

    `stems` are the content stems in order, space-joined; `tsv` holds them with positions.
    `needs_vector` is true until the row has a vector of the live model. `embedded_at` is when it
    first had one, if that was after the row was recorded.
    """
    return (
        sa.Column("stems", sa.Text, nullable=False, server_default=sa.text("''")),
        sa.Column("stem_count", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("word_count", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("tsv", pg.TSVECTOR, nullable=False, server_default=sa.text("''::tsvector")),
        sa.Column("needs_vector", sa.Boolean, nullable=False, server_default=sa.true()),
        moment("embedded_at"),
        sa.Column("stats_counted", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Index(f"{name}_tsv_idx", "tenant_id", "tsv", postgresql_using="gin"),
        sa.Index(
            f"{name}_needs_vector_idx",
            "tenant_id",
            "recorded_at",
            postgresql_where=sa.text("needs_vector"),
        ),
        sa.Index(
            f"{name}_uncounted_idx",
            "tenant_id",
            "scope_id",
            postgresql_where=sa.text("NOT stats_counted"),
        ),
    )
