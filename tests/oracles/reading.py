"""Every way to read a scope: what a property about "nowhere" and "everywhere" has to ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mnemic.manager import MemoryManager
from mnemic.model.episode import Outcome
from mnemic.model.recall import KINDS_BY_TYPE
from mnemic.model.scope import Scope

__all__ = ["WAYS", "shown", "ways_that_show"]

LIMIT = 100
Way = Callable[[MemoryManager, Scope, str], Awaitable[Any]]


def _recall(memory_type: str) -> Way:
    async def read(memory: MemoryManager, scope: Scope, query: str) -> Any:
        found = await memory.recall(
            query, scope=scope, limit=LIMIT, memory_types=[memory_type], floor=0.0
        )
        return found.hits

    return read


async def _context(memory: MemoryManager, scope: Scope, query: str) -> Any:
    made = await memory.context(query, scope=scope, budget=100_000)
    return made.text, made.items, made.omitted


def _outcome(outcome: Outcome) -> Way:
    return lambda memory, scope, _query: memory.at(scope).episodic.get_by_outcome(outcome, LIMIT)


async def _summary(memory: MemoryManager, scope: Scope, query: str) -> Any:
    episodes = memory.at(scope).episodic
    ids = [one.id for one in await episodes.get_recent(LIMIT)]
    return await episodes.summarize_episodes(ids) if ids else ""


async def _checkpoints(memory: MemoryManager, scope: Scope, query: str) -> Any:
    return await memory.at(scope).working.checkpoints()


WAYS: dict[str, Way] = {
    **{f"recall {name}": _recall(name) for name in KINDS_BY_TYPE},
    **{f"outcome {one.value}": _outcome(one) for one in Outcome},
    "context": _context,
    "tools": lambda memory, scope, _query: memory.tool_affinities(scope),
    "recent": lambda memory, scope, _query: memory.at(scope).episodic.get_recent(LIMIT),
    "similar": lambda memory, scope, query: memory.at(scope).episodic.search_similar(query, LIMIT),
    "task type": lambda memory, scope, _query: memory.at(scope).episodic.get_by_task_type(
        "note", LIMIT
    ),
    "summary": _summary,
    "facts": lambda memory, scope, query: memory.at(scope).semantic.search_facts(query, LIMIT),
    "entity": lambda memory, scope, _query: memory.at(scope).semantic.get_by_entity("User", LIMIT),
    "object": lambda memory, scope, query: memory.at(scope).semantic.get_by_entity(query, LIMIT),
    "matching": lambda memory, scope, query: memory.at(scope).procedural.find_matching(
        query, LIMIT
    ),
    "best": lambda memory, scope, _query: memory.at(scope).procedural.get_best_procedure("general"),
    "working": lambda memory, scope, _query: memory.at(scope).working.record(),
    "checkpoints": _checkpoints,
}
"""By name; each is asked with a scope and a question."""


async def shown(memory: MemoryManager, scope: Scope, query: str) -> dict[str, str]:
    """What each way shows, as text."""
    return {name: repr(await way(memory, scope, query)) for name, way in WAYS.items()}


async def ways_that_show(
    memory: MemoryManager, scope: Scope, word: str, *, query: str | None = None
) -> set[str]:
    """The ways in whose answer the word stands, in whatever case."""
    answers = await shown(memory, scope, query or word)
    return {name for name, text in answers.items() if word.casefold() in text.casefold()}
