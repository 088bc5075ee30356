"""The isolation proof: its machinery, and a stage for each set of walls."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

import asyncpg
import pytest

from mnemic.embedded import EmbeddedServers
from mnemic.manager import MemoryManager
from mnemic.settings import MemorySettings
from mnemic.store.roles import APP_ROLE
from mnemic.testing import TickingClock
from mnemic.wiring import Wiring

# The machinery is a package of several modules, which importlib mode does not find by itself.
sys.path.insert(0, str(Path(__file__).parent))

from proof.machine import Stage
from proof.walls import DROP_ROLE, MAKE_ROLE
from proof.world import HashingEmbedder


@pytest.fixture(scope="module")
async def bypassing_role(servers: EmbeddedServers) -> AsyncIterator[None]:
    """A role that sees through policies, for as long as it is needed."""
    connection = await asyncpg.connect(servers.postgres_url())
    await connection.execute(MAKE_ROLE)
    yield
    await connection.execute(DROP_ROLE)
    await connection.close()


@pytest.fixture(scope="module")
async def databases(servers: EmbeddedServers, template: str) -> AsyncIterator[tuple[str, str]]:
    """The names of two migrated databases."""
    made = ("isolation_among", "isolation_alone")
    connection = await asyncpg.connect(servers.postgres_url())
    for name in made:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    yield made
    for name in made:
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await connection.close()


@pytest.fixture
def stage_for(
    servers: EmbeddedServers, databases: tuple[str, str], bypassing_role: None
) -> Iterator[Callable[..., Stage]]:
    """Makes a stage of these walls; everything on it runs on one loop."""
    loop = asyncio.new_event_loop()
    yield partial(Stage, servers, *databases, loop)
    loop.close()


@pytest.fixture
async def memory(
    servers: EmbeddedServers, databases: tuple[str, str]
) -> AsyncIterator[MemoryManager]:
    """The front door behind both walls; tests use tenants of their own."""
    settings = MemorySettings.model_validate(
        {
            "database_url": servers.postgres_url(APP_ROLE, databases[0]),
            "redis_url": servers.redis_url,
            "context": {"deadline_ms": 60_000},
            "database": {"require_durable": False},
        }
    )
    async with MemoryManager(
        Wiring(settings, clock=TickingClock(), embedder=HashingEmbedder())
    ) as opened:
        yield opened
