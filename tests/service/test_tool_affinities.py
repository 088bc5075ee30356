from __future__ import annotations

from typing import Any

import pytest

from mnemic import FactCreate, InvalidInput, MemoryManager, Scope, Trust
from mnemic.settings import MemorySettings
from mnemic.wiring import Wiring


async def tell(memory: MemoryManager, scope: Scope, tool: str, sure: float, **given: Any) -> None:
    values = {"subject": "User", "predicate": "prefers_tool", "object": tool, "confidence": sure}
    await memory.store_fact(FactCreate(**values | given), scope=scope)


async def test_what_is_known_of_tools_is_told_by_their_names(
    memory: MemoryManager, scope: Scope
) -> None:
    project = scope.project("p")
    await tell(memory, scope, "grep", 0.8)
    await tell(memory, project, "curl", 0.9, predicate="avoids_tool")
    await tell(memory, project, "fd", 0.6, predicate="suits", category="tool_affinity")
    await tell(memory, project, "tea", 0.7, predicate="likes")
    await tell(memory, scope.project("other"), "make", 0.5)

    assert await memory.tool_affinities(project) == {"curl": -0.9, "grep": 0.8, "fd": 0.6}
    assert await memory.tool_affinities(scope) == {"grep": 0.8}


async def test_what_came_from_outside_chooses_no_tools(memory: MemoryManager, scope: Scope) -> None:
    for trust in Trust:
        await tell(memory, scope, trust.name, 0.5, trust=trust)

    found = await memory.tool_affinities(scope)

    assert set(found) == {"OPERATOR", "APPROVED", "USER", "INFERRED"}


async def test_a_fact_that_is_retracted_counts_no_more(memory: MemoryManager, scope: Scope) -> None:
    await tell(memory, scope, "grep", 0.8)
    [fact] = await memory.at(scope).semantic.get_by_entity("grep")

    await memory.at(scope).semantic.deprecate_fact(fact.id, "Outdated.")

    assert await memory.tool_affinities(scope) == {}


async def test_only_the_surest_are_read(
    settings: MemorySettings, embedder: Any, scope: Scope
) -> None:
    few = settings.context.model_copy(update={"tool_affinities_max": 2})
    own = settings.model_copy(update={"context": few})

    async with MemoryManager(Wiring(own, embedder=embedder)) as memory:
        for place in range(5):
            await tell(memory, scope, f"tool {place}", 0.1 + place / 10)
        found = await memory.tool_affinities(scope)

    assert found == {"tool 4": 0.5, "tool 3": 0.4}


async def test_whose_memory_must_be_told(memory: MemoryManager) -> None:
    nobody: Any = "u-17"

    with pytest.raises(InvalidInput, match="scope"):
        await memory.tool_affinities(nobody)


async def test_without_memory_nothing_is_known(scope: Scope) -> None:
    assert await MemoryManager.null().tool_affinities(scope) == {}
