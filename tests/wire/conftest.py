"""Managers that reach their servers through a proxy that breaks what it is told to."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg
import pytest

from mnemic.embedded import EmbeddedServers
from mnemic.embedded.plan import POSTGRES_SOCKET
from mnemic.manager import MemoryManager
from mnemic.settings import MemorySettings
from mnemic.store import roles
from mnemic.testing import TickingClock
from mnemic.wiring import Wiring

sys.path.insert(0, str(Path(__file__).parent))

from wire_embedder import FixedEmbedder
from wire_lanes import Lane
from wire_proxy import POSTGRES, VALKEY, WireProxy
from wire_rows import RowReader
from wire_working import WorkingLane

NAME = "wire"
LANES = 12
WORKING_LANES = 4
# Short, so that whoever is stalled is told soon; long beside what the server takes.
DATABASE = {
    "require_durable": False,
    "pool_max": 2,
    "acquire_timeout_seconds": 5,
    "statement_timeout_ms": 700,
    "lock_timeout_ms": 500,
    "timeout_seconds": 0.8,
    "connect_timeout_seconds": 0.8,
}


@pytest.fixture(scope="session")
async def wire_database(named_database: Callable[[str], Awaitable[str]]) -> str:
    """The name of a migrated database."""
    return await named_database(NAME)


# Whoever is stalled is told soon, and looks again soon.
WORKING = {
    "timeout_seconds": 0.3,
    "connect_timeout_seconds": 0.3,
    "retry_after_seconds": 0.02,
    "durable_lease_seconds": 0.05,
}


@pytest.fixture(params=["degrade", "refuse"])
async def working_lanes(
    servers: EmbeddedServers, wire_database: str, request: pytest.FixtureRequest
) -> AsyncIterator[list[WorkingLane]]:
    """Managers, each with one proxy in front of Valkey, and each with one that has none."""
    database_url = servers.postgres_url(roles.APP_ROLE, wire_database)
    target = unquote(urlsplit(servers.redis_url).path)

    def settings(redis_url: str) -> MemorySettings:
        return MemorySettings(
            database_url=database_url,
            redis_url=redis_url,
            database={"require_durable": False, "acquire_timeout_seconds": 5},
            working={**WORKING, "on_outage": request.param},
        )

    async with AsyncExitStack() as stack:
        made = []
        for _ in range(WORKING_LANES):
            proxy = WireProxy(target, VALKEY)
            await proxy.open()
            stack.push_async_callback(proxy.close)
            memories = [
                await stack.enter_async_context(
                    MemoryManager(Wiring(settings(url), embedder=FixedEmbedder()))
                )
                for url in (f"redis://127.0.0.1:{proxy.port}/0", servers.redis_url)
            ]
            made.append(WorkingLane(memories[0], memories[1], proxy))
        yield made


@pytest.fixture
async def lanes(servers: EmbeddedServers, wire_database: str) -> AsyncIterator[list[Lane]]:
    """Managers, each with one proxy in front of PostgreSQL."""
    admin_url = servers.postgres_url("postgres", wire_database)
    [folder] = parse_qs(urlsplit(admin_url).query)["host"]
    async with AsyncExitStack() as stack:
        made = []
        for _ in range(LANES):
            proxy = WireProxy(f"{folder}/{POSTGRES_SOCKET}", POSTGRES)
            await proxy.open()
            stack.push_async_callback(proxy.close)
            settings = MemorySettings(
                database_url=f"postgresql://{roles.APP_ROLE}@127.0.0.1:{proxy.port}/{NAME}"
                "?sslmode=disable",
                redis_url=servers.redis_url,
                database=DATABASE,
            )
            wiring = Wiring(settings, clock=TickingClock(), embedder=FixedEmbedder())
            memory = await stack.enter_async_context(MemoryManager(wiring))
            admin = await asyncpg.connect(admin_url)
            stack.push_async_callback(admin.close)
            made.append(Lane(memory, proxy, await RowReader(admin).open()))
        yield made
