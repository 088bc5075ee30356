"""What Alembic runs for each command: one transaction, and one upgrader at a time.

`mnemic.store.upgrade` passes the database in the configuration's attributes; the plain `alembic`
command reads it from the settings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo

from mnemic.schema import SCHEMA, metadata
from mnemic.settings import MemorySettings
from mnemic.store import migrating
from mnemic.store.revisions import known_revisions, refuse_unknown

config = context.config


def _configure(connection: sa.Connection | None = None) -> None:
    context.configure(
        connection=connection,
        dialect_name=None if connection is not None else "postgresql",
        # Else the operator % is printed twice, as for a driver that formats.
        dialect_opts={} if connection is not None else {"paramstyle": "named"},
        literal_binds=connection is None,
        target_metadata=metadata,
        version_table_schema=SCHEMA,
        include_schemas=True,
        include_name=migrating.is_ours(connection),
        compare_type=True,
        compare_server_default=True,
        autogenerate_plugins=["alembic.autogenerate.*", "alembic.ext.checkconstraint_byname"],
        transaction_per_migration=False,
        on_version_apply=_applied,
    )


def _applied(
    ctx: MigrationContext, step: MigrationInfo, heads: Collection[Any], run_args: Mapping[str, Any]
) -> None:
    del heads, run_args
    report = config.attributes.get("report")
    if report is not None and not ctx.as_sql:
        report(step)


def _run_offline() -> None:
    _configure()
    with context.begin_transaction():
        for statement in migrating.OFFLINE_PREAMBLE:
            context.execute(statement)
        context.run_migrations()


def _run(connection: sa.Connection) -> None:
    _configure(connection)
    with context.begin_transaction():
        heads = context.get_context().get_current_heads()
        refuse_unknown(heads, known_revisions())
        context.run_migrations()


async def _run_online() -> None:
    url = config.attributes.get("url") or MemorySettings().database_owner_url
    reads_only = config.attributes.get("reads_only", False)
    async with migrating.connection_for(url, reads_only=reads_only) as connection:
        await connection.run_sync(_run)


if context.is_offline_mode():
    _run_offline()
else:
    asyncio.run(_run_online())
