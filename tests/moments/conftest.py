"""A memory whose clock stands still until it is moved, and whose embedder can be away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from mnemic import EmbedderUnavailable
from mnemic.manager import MemoryManager
from mnemic.model.embedding import Vector
from mnemic.settings import MemorySettings
from mnemic.testing import HashingEmbedder, TickingClock
from mnemic.wiring import Wiring


class Leaving(HashingEmbedder):
    """Away while it is told to be."""

    def __init__(self) -> None:
        self.away = False

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if self.away:
            raise EmbedderUnavailable
        return await super().embed(texts)


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock(step=timedelta(0))


@pytest.fixture
def embedder() -> Leaving:
    return Leaving()


@pytest.fixture
async def memory(
    shared_database: Any, clock: TickingClock, embedder: Leaving
) -> AsyncIterator[MemoryManager]:
    settings = MemorySettings(
        database_url=shared_database.app_url,
        redis_url=shared_database.servers.redis_url,
        context={"deadline_ms": 60_000, "candidates_max": 12},
        maintenance={"tenants_max": 10_000},
        database={"require_durable": False},
        working={"timeout_seconds": 10, "connect_timeout_seconds": 10},
    )
    async with MemoryManager(Wiring(settings, clock=clock, embedder=embedder)) as opened:
        yield opened


@pytest.fixture
async def seen(shared_database: Any) -> AsyncIterator[asyncpg.Connection]:
    """A connection that sees through every wall, to look at what is really there."""
    connection = await asyncpg.connect(shared_database.admin_url)
    yield connection
    await connection.close()
