"""The front door on real servers: one database for all, each test in tenants of its own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncpg
import pytest

from mnemic.embed import open_embedder
from mnemic.embedded import EmbeddedServers
from mnemic.errors import EmbedderUnavailable
from mnemic.manager import MemoryManager
from mnemic.model.embedding import Embedder, Vector
from mnemic.model.scope import Scope
from mnemic.service.tools import Tools
from mnemic.settings import EmbeddingSettings, MemorySettings
from mnemic.store import roles
from mnemic.testing import TickingClock, a_scope
from mnemic.wiring import Wiring

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1]))  # for the oracles

NAME = "verbs"


class OnceOpen:
    """An embedder that survives the closing of those who use it."""

    def __init__(self, inner: Embedder) -> None:
        self.inner = inner
        self.signature = inner.signature
        self.in_process = inner.in_process

    async def embed(self, texts: list[str]) -> list[Vector]:
        return await self.inner.embed(texts)

    async def close(self) -> None:
        """The session closes the model."""


@pytest.fixture(scope="session")
async def embedder() -> AsyncIterator[OnceOpen]:
    """The offline model, loaded once."""
    made = open_embedder(EmbeddingSettings())
    yield OnceOpen(made)
    await made.close()


@pytest.fixture(scope="session")
async def settings(
    servers: EmbeddedServers, named_database: Callable[[str], Awaitable[str]]
) -> MemorySettings:
    """Settings of a migrated database that the verbs share."""
    await named_database(NAME)
    return MemorySettings(
        database_url=servers.postgres_url(roles.APP_ROLE, NAME),
        redis_url=servers.redis_url,
        context={"deadline_ms": 60_000},
        # A run looks at every tenant of the database, those of other tests among them.
        maintenance={"tenants_max": 10_000},
        database={"require_durable": False, "acquire_timeout_seconds": 20},
        # What a verb does is tested, not how soon: a busy machine answers later.
        working={"timeout_seconds": 10, "connect_timeout_seconds": 10},
    )


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
async def wiring(settings: MemorySettings, embedder: OnceOpen, clock: TickingClock) -> Wiring:
    return Wiring(settings, clock=clock, embedder=embedder)


@pytest.fixture
async def memory(wiring: Wiring) -> AsyncIterator[MemoryManager]:
    """The front door, on real servers."""
    async with MemoryManager(wiring) as opened:
        yield opened


class Away:
    """An embedder whose service is away."""

    def __init__(self, embedder: Embedder) -> None:
        self.signature = embedder.signature

    async def embed(self, texts: list[str]) -> list[Vector]:
        raise EmbedderUnavailable(count=len(texts))

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
async def wordless(
    settings: MemorySettings, memory: MemoryManager, embedder: OnceOpen
) -> AsyncIterator[MemoryManager]:
    """The front door while the embedder is away, beside one that had it: words are all it has."""
    assert memory is not None
    wiring = Wiring(settings, clock=TickingClock(), embedder=Away(embedder))
    async with MemoryManager(wiring) as opened:
        yield opened


@pytest.fixture
async def tools(wiring: Wiring) -> AsyncIterator[Tools]:
    """What the verbs are handed."""
    yield await wiring.open()
    await wiring.close()


@pytest.fixture
def scope() -> Scope:
    return a_scope()


@pytest.fixture
async def seen(
    servers: EmbeddedServers, settings: MemorySettings
) -> AsyncIterator[asyncpg.Connection]:
    """A connection that sees through every wall, to look at what is really there."""
    connection = await asyncpg.connect(servers.postgres_url("postgres", NAME))
    yield connection
    await connection.close()
