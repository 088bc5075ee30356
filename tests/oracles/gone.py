"""*Delete means everywhere* and *no resurrection*: what was retracted stays away on every path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from mnemic.errors import Retracted
from mnemic.manager import MemoryManager
from mnemic.model.episode import Episode, EpisodeCreate
from mnemic.model.fact import FactCreate
from mnemic.model.scope import Scope
from mnemic.model.transcript import StatedFact
from mnemic.testing import a_turn
from mnemic.testing.builders import AT
from oracles.reading import ways_that_show
from oracles.stored import tables_that_hold

__all__ = ["WAYS_BACK", "assert_gone", "come_back"]


async def assert_gone(
    managers: Sequence[MemoryManager],
    seen: asyncpg.Connection,
    scope: Scope,
    word: str,
    *,
    query: str | None = None,
) -> None:
    """No way of reading shows the word, in whichever process, and no row of the tenant holds it.

    Each is asked by the word itself too, as whoever read it before may have asked: an answer that
    was kept would be given again.
    """
    for memory in managers:
        for asked in {word, query or word}:
            ways = await ways_that_show(memory, scope, word, query=asked)
            assert ways == set(), f"still shown: {sorted(ways)}"
    tables = await tables_that_hold(seen, scope, word)
    assert tables == set(), f"still in {sorted(tables)}"


Back = Callable[[MemoryManager, Scope, FactCreate], Awaitable[Any]]


async def _called(memory: MemoryManager, scope: Scope, fact: FactCreate) -> Any:
    return await memory.store_fact(fact, scope=scope)


async def _below(memory: MemoryManager, scope: Scope, fact: FactCreate) -> Any:
    return await memory.store_fact(fact, scope=scope.agent("below"))


async def _ingested(memory: MemoryManager, scope: Scope, fact: FactCreate) -> Any:
    entry = StatedFact(fact=fact, external_id=f"again-{fact.object}", line=1)
    return await memory.transcripts.ingest([entry], scope=scope)


async def _extracted(memory: MemoryManager, scope: Scope, fact: FactCreate) -> Any:
    episode = await _episode_of(memory, scope, fact)
    return await memory.at(scope).semantic.extract_facts_from_episode(episode)


async def _episode_of(memory: MemoryManager, scope: Scope, fact: FactCreate) -> Episode:
    """An experience that states the fact, told without the word that gives it a text of its own."""
    told = EpisodeCreate(task_description=f"{fact.content}", occurred_at=AT, task_type="other")
    return await memory.at(scope).episodic.record_episode(told, lift=True)


async def _carried_up(memory: MemoryManager, scope: Scope, fact: FactCreate) -> Any:
    session = scope.session(f"carrier of {fact.object}")
    await memory.sessions.append([a_turn("Nothing of note.", external_id="m")], scope=session)
    return await memory.sessions.end(scope=session)


async def _by_way_of_another(memory: MemoryManager, scope: Scope, fact: FactCreate) -> Any:
    other = FactCreate(subject=fact.subject, predicate=fact.predicate, object="something else")
    await memory.store_fact(other, scope=scope)
    return await memory.store_fact(fact, scope=scope)


async def _kept_up(memory: MemoryManager, scope: Scope, fact: FactCreate) -> Any:
    await memory.maintenance.embed_missing()
    return await memory.maintenance.count_terms()


WAYS_BACK: dict[str, Back] = {
    "a call": _called,
    "a call from below": _below,
    "a transcript": _ingested,
    "extraction": _extracted,
    "the end of a session": _carried_up,
    "another value": _by_way_of_another,
    "maintenance": _kept_up,
}
"""By name: each tries to make the statement stand in the scope again."""


async def come_back(
    memory: MemoryManager, scope: Scope, fact: FactCreate, ways: Sequence[str] | None = None
) -> dict[str, bool]:
    """Whether the statement is live in the scope after each way; a refusal is no error here."""
    stands = {}
    for name in ways or tuple(WAYS_BACK):
        try:
            await WAYS_BACK[name](memory, scope, fact)
        except Retracted:
            stands[name] = False
            continue
        known = await memory.at(scope).semantic.get_by_entity(fact.object)
        stands[name] = any(one.object == fact.object for one in known)
    return stands
