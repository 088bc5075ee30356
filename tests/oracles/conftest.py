"""A stage that the tests of the oracles share; each works in a tenant of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from mnemic import MemoryManager, Scope
from mnemic.embedded import EmbeddedServers
from mnemic.testing import a_scope

# importlib mode does not find the modules beside the tests, nor those of the isolation proof.
sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "isolation")]

from oracles.stage import Stage, standing


@pytest.fixture(scope="session")
async def stage(servers: EmbeddedServers, template: str) -> AsyncIterator[Stage]:
    async with standing(servers, template, "oracles") as made:
        yield made


@pytest.fixture
def memory(stage: Stage) -> MemoryManager:
    return stage.memory


@pytest.fixture
def seen(stage: Stage) -> asyncpg.Connection:
    """A connection that sees through every wall."""
    return stage.seen


@pytest.fixture
def scope() -> Scope:
    return a_scope()


@pytest.fixture(scope="session")
async def loop() -> asyncio.AbstractEventLoop:
    """The loop on which the stage lives."""
    return asyncio.get_running_loop()


@pytest.fixture(scope="session")
def run_here(loop: asyncio.AbstractEventLoop) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine on that loop, in the middle of a test that is none."""
    return loop.run_until_complete
