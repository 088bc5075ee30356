"""One database for all of working memory; each test works in tenants of its own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from mnemic.embedded import EmbeddedServers
from mnemic.settings import MemorySettings, WorkingSettings
from mnemic.store import roles
from mnemic.store.unit import Database
from mnemic.store.working.opening import WorkingPlaces, open_working
from mnemic.testing.clock import TickingClock
from mnemic.testing.working_contract import contract_settings, standing_clock

sys.path.insert(0, str(Path(__file__).parent))

from working_proxy import Proxy

NAME = "working"


@pytest.fixture(scope="session")
async def working_url(
    servers: EmbeddedServers, named_database: Callable[[str], Awaitable[str]]
) -> str:
    """A migrated database that the tests of working memory share."""
    await named_database(NAME)
    return servers.postgres_url(roles.APP_ROLE, NAME)


@pytest.fixture(scope="session")
async def working_database(working_url: str) -> AsyncIterator[Database]:
    made = Database(working_url, MemorySettings().database)
    yield made
    await made.close()


@pytest.fixture
def clock() -> TickingClock:
    return standing_clock()


@pytest.fixture
def opened(
    servers: EmbeddedServers, working_database: Database, clock: TickingClock
) -> Callable[..., Any]:
    """Opens places that close themselves; `settings` are those of the contract unless given."""

    @asynccontextmanager
    async def make(
        settings: WorkingSettings | None = None, *, url: str | None = None, **given: Any
    ) -> AsyncIterator[WorkingPlaces]:
        places = await open_working(
            url or servers.redis_url,
            working_database,
            settings or contract_settings(),
            **{"clock": clock, "new_id": uuid4, **given},
        )
        try:
            yield places
        finally:
            await places.close()

    return make


@pytest.fixture
async def places(opened: Callable[..., Any]) -> AsyncIterator[WorkingPlaces]:
    """Valkey and PostgreSQL, as they serve."""
    async with opened() as made:
        yield made


@pytest.fixture
async def proxy_to(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Callable[..., Any]]:
    """Puts a socket in front of a Valkey, for this test to cut."""
    made: list[Proxy] = []

    async def make(url: str) -> Proxy:
        made.append(Proxy(tmp_path_factory.mktemp("p"), url))
        await made[-1].open()
        return made[-1]

    yield make
    for proxy in made:
        await proxy.close()


@pytest.fixture
async def proxy(servers: EmbeddedServers, proxy_to: Callable[..., Any]) -> Proxy:
    """A socket in front of the run's Valkey."""
    made: Proxy = await proxy_to(servers.redis_url)
    return made
