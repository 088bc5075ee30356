"""A stage that all replayed reports share; each works in a tenant of its own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from pydantic import SecretStr

from mnemic import MemoryManager, MemorySettings, Scope
from mnemic.embed import open_embedder
from mnemic.embedded import EmbeddedServers
from mnemic.model.embedding import Embedder
from mnemic.service.tools import Tools
from mnemic.settings import EmbeddingSettings
from mnemic.testing import HashingEmbedder, TickingClock, a_scope
from mnemic.wiring import Wiring

# The oracles, the isolation proof and the proxy are modules that importlib mode does not find.
sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "isolation"))
sys.path.append(str(Path(__file__).parents[1] / "working"))
sys.path.append(str(Path(__file__).parent))

from oracles.stage import Stage, standing


@pytest.fixture(scope="session")
async def stage(servers: EmbeddedServers, template: str) -> AsyncIterator[Stage]:
    """The front door on a database of its own, with a quick embedder and a clock that ticks."""
    async with standing(servers, template, "replay") as made:
        yield made


@pytest.fixture
def memory(stage: Stage) -> MemoryManager:
    return stage.memory


@pytest.fixture
def tools(stage: Stage) -> Tools:
    """What the verbs are handed."""
    return stage.tools


@pytest.fixture
def seen(stage: Stage) -> asyncpg.Connection:
    """A connection that sees through every wall."""
    return stage.seen


@pytest.fixture
def clock(stage: Stage) -> TickingClock:
    """The clock of the stage; it only ever goes forward."""
    return stage.clock


@pytest.fixture
def replay_settings(stage: Stage) -> MemorySettings:
    return stage.settings


@pytest.fixture
def own_settings(stage: Stage, database: Any) -> MemorySettings:
    """Settings of a database of the test's own."""
    return stage.settings.model_copy(update={"database_url": SecretStr(database.app_url)})


@pytest.fixture
def opened(stage: Stage) -> Callable[..., Any]:
    """Opens further front doors: on the stage, with its clock, unless others are given."""

    @asynccontextmanager
    async def make(
        settings: MemorySettings | None = None, **given: Any
    ) -> AsyncIterator[MemoryManager]:
        plugged = {"clock": stage.clock, "embedder": HashingEmbedder(), **given}
        async with MemoryManager(Wiring(settings or stage.settings, **plugged)) as memory:
            yield memory

    return make


@pytest.fixture
async def alone(
    opened: Callable[..., Any], own_settings: MemorySettings
) -> AsyncIterator[MemoryManager]:
    """In a database of the test's own, where jobs meet nobody else's work."""
    async with opened(own_settings) as made:
        yield made


@pytest.fixture
def scope() -> Scope:
    """The global scope of a person whom no other test knows."""
    return a_scope()


@pytest.fixture(scope="session")
async def embedder() -> AsyncIterator[Embedder]:
    """The offline model, loaded once."""
    made = open_embedder(EmbeddingSettings())
    yield made
    await made.close()
