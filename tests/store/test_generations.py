"""The count of a tenant's writes is part of each of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from mnemic.model.scope import Scope
from mnemic.store.unit import Database
from mnemic.testing import a_scope


@pytest.fixture
async def served(database: Any) -> AsyncIterator[Database]:
    made = database.serve(pool_max=4)
    yield made
    await made.close()


async def _generation(served: Database, scope: Scope) -> int:
    async with served.open_unit(scope.tenant.id, read_only=True) as unit:
        return await unit.generations.read()


async def test_a_unit_that_wrote_is_counted_and_no_other(served: Database) -> None:
    scope, other = a_scope(), a_scope()
    counted = [await _generation(served, scope)]

    async with served.open_unit(scope.tenant.id) as unit:
        await unit.scopes.ensure(scope)
        counted.append(await _generation(served, scope))  # not committed yet
    counted.append(await _generation(served, scope))
    async with served.open_unit(scope.tenant.id) as unit:
        await unit.sessions.idle(before=datetime(2026, 1, 1, tzinfo=UTC), limit=1)
    counted.append(await _generation(served, scope))
    with pytest.raises(RuntimeError):
        async with served.open_unit(scope.tenant.id) as unit:
            await unit.scopes.ensure(scope.project("p"))
            raise RuntimeError
    counted.append(await _generation(served, scope))

    assert counted == [0, 0, 1, 1, 1]
    assert await _generation(served, other) == 0


async def test_writers_at_once_are_all_counted(served: Database) -> None:
    scope = a_scope()
    async with served.open_unit(scope.tenant.id) as unit:
        await unit.scopes.ensure(scope)

    async def write(number: int) -> None:
        async with served.open_unit(scope.tenant.id) as unit:
            await unit.scopes.ensure(scope.project(f"p-{number}"))

    await asyncio.gather(*(write(number) for number in range(40)))

    assert await _generation(served, scope) == 41
