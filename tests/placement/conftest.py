"""A small tenant, and a neighbour a hundred times as large, in one database."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from mnemic.embedded import EmbeddedServers
from mnemic.manager import MemoryManager
from mnemic.model.embedding import Vector
from mnemic.model.scope import Scope
from mnemic.service.tools import Tools
from mnemic.testing import TickingClock
from mnemic.wiring import Wiring

sys.path.insert(0, str(Path(__file__).parent))

from placement_ground import EXACT, LARGE, LARGE_TURNS, SMALL, SMALL_ROWS, Ground, Seeded

NAME = "placement"


@pytest.fixture(scope="session")
async def ground(
    servers: EmbeddedServers, named_database: Callable[[str], Awaitable[str]]
) -> Ground:
    """A small tenant, and one a hundred times as large that is promoted."""
    made = Ground(servers, await named_database(NAME))
    wiring = Wiring(made.settings, clock=TickingClock(), embedder=Seeded())
    async with MemoryManager(wiring) as memory:
        await made.fill(SMALL, {SMALL: SMALL_ROWS})
        await made.fill(LARGE, LARGE_TURNS)
        await memory.maintenance.promote(scope=LARGE)
    connection = await asyncpg.connect(servers.postgres_url("postgres", NAME))
    await connection.execute("VACUUM ANALYZE")
    await connection.close()
    return made


@pytest.fixture
async def wiring(ground: Ground) -> Wiring:
    return Wiring(ground.settings, clock=TickingClock(), embedder=Seeded())


@pytest.fixture
async def memory(wiring: Wiring) -> AsyncIterator[MemoryManager]:
    async with MemoryManager(wiring) as opened:
        yield opened


@pytest.fixture
def tools(memory: MemoryManager) -> Tools:
    return memory._tools


@pytest.fixture
async def seen(ground: Ground) -> AsyncIterator[asyncpg.Connection]:
    """A connection that sees through every wall, to look at what is really there."""
    connection = await asyncpg.connect(ground.servers.postgres_url("postgres", ground.name))
    yield connection
    await connection.close()


@pytest.fixture
def exact(seen: asyncpg.Connection) -> Callable[..., Awaitable[list[UUID]]]:
    """The true nearest of a scope."""

    async def nearest(scope: Scope, vector: Vector, limit: int) -> list[Any]:
        text = "[" + ",".join(map(str, vector)) + "]"
        visible = [UUID(str(one)) for one in scope.visible_ids]
        rows = await seen.fetch(EXACT, scope.tenant.id, visible, text, limit)
        return [row["memory_id"] for row in rows]

    return nearest
