"""A stage that all hostile input meets; each method works in a tenant of its own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mnemic import MemoryManager, Scope
from mnemic.embedded import EmbeddedServers
from mnemic.testing import a_scope

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

from oracles.stage import Stage, standing


@pytest.fixture(scope="session")
async def stage(servers: EmbeddedServers, template: str) -> AsyncIterator[Stage]:
    async with standing(servers, template, "inputs") as made:
        yield made


@pytest.fixture
def memory(stage: Stage) -> MemoryManager:
    return stage.memory


@pytest.fixture
def scope() -> Scope:
    return a_scope()
