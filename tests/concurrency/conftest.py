"""Many callers at once, on a database of their own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import pytest

from mnemic.embedded import EmbeddedServers
from mnemic.manager import MemoryManager
from mnemic.settings import MemorySettings
from mnemic.store import roles
from mnemic.testing import TickingClock
from mnemic.wiring import Wiring

sys.path.insert(0, str(Path(__file__).parent.parent / "wire"))

from wire_embedder import FixedEmbedder
from wire_rows import RowReader

NAME = "concurrency"
# What is tested is the effect of many calls at once; how soon each is answered, a machine decides.
PATIENT = {"acquire_timeout_seconds": 30, "timeout_seconds": 10, "connect_timeout_seconds": 10}


@pytest.fixture(scope="session")
async def concurrent_database(named_database: Callable[[str], Awaitable[str]]) -> str:
    """The name of a migrated database."""
    return await named_database(NAME)


@pytest.fixture
async def opened_with(
    servers: EmbeddedServers, concurrent_database: str
) -> AsyncIterator[Callable[..., object]]:
    """Opens managers with these settings of the database; they are closed after the test."""
    async with AsyncExitStack() as stack:

        async def make(**database: object) -> MemoryManager:
            settings = MemorySettings(
                database_url=servers.postgres_url(roles.APP_ROLE, concurrent_database),
                redis_url=servers.redis_url,
                database={"require_durable": False, **database},
                working=PATIENT,
            )
            wiring = Wiring(settings, clock=TickingClock(), embedder=FixedEmbedder())
            return await stack.enter_async_context(MemoryManager(wiring))

        yield make


@pytest.fixture
async def memory(opened_with: Callable[..., object]) -> MemoryManager:
    """A manager whose callers wait for a connection as long as it takes."""
    made: MemoryManager = await opened_with(
        acquire_timeout_seconds=60,
        lock_timeout_ms=60_000,
        statement_timeout_ms=60_000,
        timeout_seconds=90,
    )
    return made


@pytest.fixture
async def seen(servers: EmbeddedServers, concurrent_database: str) -> AsyncIterator[RowReader]:
    """What is really there."""
    connection = await asyncpg.connect(servers.postgres_url("postgres", concurrent_database))
    yield await RowReader(connection).open()
    await connection.close()
