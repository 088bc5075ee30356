"""Row-level security is forced on the owner too, so a migration that needs rows must say so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from mnemic.store.catalogue import violations
from mnemic.store.migrating import without_force

KEY = """
    ALTER TABLE mnemic.goals ADD CONSTRAINT goals_scope_id_fkey
      FOREIGN KEY (tenant_id, scope_id) REFERENCES mnemic.scopes (tenant_id, id)
"""
FILL = "UPDATE mnemic.goals SET next_step = 'filled'"


@pytest.fixture
async def orphaned(database: Any, admin: asyncpg.Connection) -> AsyncIterator[AsyncConnection]:
    """The owner's transaction on a database where a goal stands in a scope that there is not."""
    tenant, orphan = uuid4(), uuid4()
    await admin.execute("ALTER TABLE mnemic.goals DROP CONSTRAINT goals_scope_id_fkey")
    await admin.execute(
        "INSERT INTO mnemic.tenants (tenant_id, kind, external_id) VALUES ($1, 'person', 'x')",
        tenant,
    )
    await admin.execute(
        "INSERT INTO mnemic.scopes (tenant_id, id, scope_type, path_digest)"
        " VALUES ($1, $1, 'global', '')",
        tenant,
    )
    for goal, scope in ((uuid4(), tenant), (orphan, uuid4())):
        await admin.execute(
            "INSERT INTO mnemic.goals (tenant_id, id, scope_id, title) VALUES ($1, $2, $3, 'x')",
            tenant,
            goal,
            scope,
        )
    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(database.owner_url)
    )
    async with engine.connect() as connection:
        yield connection
    await engine.dispose()


def _migration(step: Callable[[Operations], None]) -> Callable[[sa.Connection], None]:
    def run(connection: sa.Connection) -> None:
        step(Operations(MigrationContext.configure(connection)))

    return run


async def test_under_force_an_orphan_is_not_seen_and_the_key_is_taken_for_valid(
    orphaned: AsyncConnection, admin: asyncpg.Connection
) -> None:
    await orphaned.run_sync(_migration(lambda op: op.execute(KEY)))
    await orphaned.commit()

    assert await admin.fetchval(
        "SELECT convalidated FROM pg_constraint WHERE conname = 'goals_scope_id_fkey'"
    )


async def test_a_planted_orphan_is_refused_without_force(
    orphaned: AsyncConnection, admin: asyncpg.Connection
) -> None:
    def step(op: Operations) -> None:
        with without_force(op, "goals", "scopes"):
            op.execute(KEY)

    with pytest.raises(IntegrityError, match="goals_scope_id_fkey"):
        await orphaned.run_sync(_migration(step))
    await orphaned.rollback()

    assert await violations(admin) == []


async def test_without_an_orphan_the_key_is_taken_and_the_walls_stand_again(
    orphaned: AsyncConnection, admin: asyncpg.Connection
) -> None:
    await admin.execute("DELETE FROM mnemic.goals WHERE scope_id <> tenant_id")

    def step(op: Operations) -> None:
        with without_force(op, "goals", "scopes"):
            op.execute(KEY)

    await orphaned.run_sync(_migration(step))
    await orphaned.commit()

    assert await violations(admin) == []
    assert await admin.fetchval(
        "SELECT count(*) FROM pg_constraint WHERE conname = 'goals_scope_id_fkey'"
    )


async def test_rows_are_filled_without_force_and_not_under_it(
    orphaned: AsyncConnection, admin: asyncpg.Connection
) -> None:
    filled = "SELECT count(*) FROM mnemic.goals WHERE next_step = 'filled'"
    await orphaned.run_sync(_migration(lambda op: op.execute(FILL)))
    await orphaned.commit()
    under_force = await admin.fetchval(filled)

    def step(op: Operations) -> None:
        with without_force(op, "goals"):
            op.execute(FILL)

    await orphaned.run_sync(_migration(step))
    await orphaned.commit()

    assert (under_force, await admin.fetchval(filled)) == (0, 2)
    assert await violations(admin) == []
