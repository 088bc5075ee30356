"""Answer a question that was asked before, while nothing was written since."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import cast
from uuid import UUID

from mnemic.model.fact import Fact
from mnemic.model.normalise import digest
from mnemic.model.recall import Hit, MemoryItem, Recall, RecallQuery
from mnemic.model.scope import Scope
from mnemic.service.answer import Searched, answer_of
from mnemic.service.caches import Outlines
from mnemic.service.foresight import foreseen
from mnemic.service.parsing import checked_scope
from mnemic.service.recall import Known, finished, read_or_searched, recall
from mnemic.service.tools import Tools
from mnemic.store.unit import Unit

__all__ = ["recall_again", "surest_facts"]

_NO_MEMORY = cast("MemoryItem", None)


@dataclass(frozen=True, slots=True)
class _Outline:
    """An answer without its memories: which they are, and why."""

    answer: Recall
    hits: tuple[tuple[UUID, Hit], ...]


async def recall_again(
    tools: Tools,
    query: RecallQuery,
    *,
    scope: Scope,
    notes: tuple[str, ...] = (),
    explain: bool = False,
) -> Recall:
    """As `recall`; what was answered before is not searched for again.

    It is the same answer, but for how recent each memory is: that is as of the first time, at most
    `cache.seconds` ago. The rows of the hits are read anew. Answers that are degraded, explained,
    of a past moment, or that do not last (`Recall.lasts`), are not kept.
    """
    checked_scope(scope)
    cache = cast("Outlines[_Outline]", tools.caches.recalls)
    if not cache.entries_max or tools.moment is not None or explain:
        return await recall(tools, query, scope=scope, notes=notes, explain=explain)
    key, now, started = _key(scope, repr(query)), tools.now(), time.perf_counter()

    held = cache.holds(key, now=now)

    # An answer that is known is looked up where else the statistics are read, or before them: in
    # no case does it cost a transaction.
    async def first(unit: Unit) -> Recall | Searched | Known:
        if held:
            generation = await unit.generations.read()
            if outline := cache.get(key, generation=generation, now=now):
                return await _filled(unit, scope, outline, started=started)
        return await read_or_searched(unit, tools, query, scope, ahead)

    async with foreseen(tools, "" if held else query.text, scope) as ahead:
        read = await tools.transact(scope.tenant.id, first, read_only=True, keep_plans=True)
        if isinstance(read, Recall):
            return replace(read, notes=(*notes, *read.notes))
        done = await finished(tools, query, scope, read, ahead)
    found = answer_of(tools, query, done, started=started)
    if found.lasts and not found.degraded:
        # Counted in the snapshot of the statistics, before the candidates: a write between the two
        # ends this answer, and none that the answer has not seen lets it stand.
        generation = done.statistics.generation
        cache.put(key, _outlined(found), generation=generation, now=now)
    return replace(found, notes=(*notes, *found.notes))


async def _filled(unit: Unit, scope: Scope, outline: _Outline, *, started: float) -> Recall:
    """The answer of the outline with the rows of its hits as they are now."""
    wanted = [(hit.kind, identity) for identity, hit in outline.hits]
    memories = await unit.retrieval.hits.by_ids(scope, wanted)
    hits = tuple(
        replace(hit, memory=memories[identity])
        for identity, hit in outline.hits
        if identity in memories
    )
    took = timedelta(seconds=time.perf_counter() - started)
    return replace(outline.answer, hits=hits, took=took)


def _outlined(found: Recall) -> _Outline:
    hits = tuple((hit.id, replace(hit, memory=_NO_MEMORY)) for hit in found.hits)
    return _Outline(replace(found, hits=()), hits)


async def surest_facts(tools: Tools, *, scope: Scope, limit: int) -> list[Fact]:
    """The most confident and most reinforced facts visible from `scope`; sorted out once."""
    cache = cast("Outlines[tuple[UUID, ...]]", tools.caches.facts)
    key = _key(scope, f"surest;{limit}")
    now = tools.now()

    async def known(unit: Unit) -> list[Fact]:
        if not cache.entries_max or tools.moment is not None:
            return await unit.facts.best(scope, limit=limit)
        generation = await unit.generations.read()
        ids = cache.get(key, generation=generation, now=now)
        if ids is None:
            found = await unit.facts.best(scope, limit=limit)
            order = tuple(fact.id for fact in found)
            cache.put(key, order, generation=generation, now=now)
            return found
        by_id: dict[UUID, Fact] = {fact.id: fact for fact in await unit.facts.by_ids(scope, ids)}
        return [by_id[one] for one in ids if one in by_id]

    return await tools.transact(scope.tenant.id, known, read_only=True)


def _key(scope: Scope, asked: str) -> Hashable:
    """Whose memory, seen from where, and what is asked: rights to read follow from the scope."""
    return (scope.tenant.id, tuple(scope.visible_ids), digest(asked))
