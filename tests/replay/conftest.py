"""A stage that all replayed reports share; each works in a tenant of its own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from mnemic import MemoryManager, Scope
from mnemic.embed import open_embedder
from mnemic.embedded import EmbeddedServers
from mnemic.model.embedding import Embedder
from mnemic.service.tools import Tools
from mnemic.settings import EmbeddingSettings
from mnemic.testing import a_scope

sys.path.append(str(Path(__file__).parents[1]))

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
def scope() -> Scope:
    """The global scope of a person whom no other test knows."""
    return a_scope()


@pytest.fixture(scope="session")
async def embedder() -> AsyncIterator[Embedder]:
    """The offline model, loaded once."""
    made = open_embedder(EmbeddingSettings())
    yield made
    await made.close()
