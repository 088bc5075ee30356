"""Say why a question is not answered with a memory."""

from __future__ import annotations

from uuid import UUID

from mnemic.errors import NotFound
from mnemic.model.explanation import RecallStage, WhyNot
from mnemic.model.recall import RecallQuery
from mnemic.model.scope import Scope
from mnemic.service.parsing import checked_id, checked_scope
from mnemic.service.recall import Searched, explained_of, searched
from mnemic.service.tools import Tools
from mnemic.store.explaining import Located, located, passes
from mnemic.store.unit import Unit

__all__ = ["why_not"]

LIVE, DEPRECATED = "live", "deprecated"


async def why_not(tools: Tools, query: RecallQuery, memory_id: UUID, *, scope: Scope) -> WhyNot:
    """The first stage of a recall that drops the memory; the question is asked for it.

    Raises `InvalidInput`, and `NotFound` for an id that is not visible from `scope`.
    """
    checked_scope(scope)
    identity = checked_id(memory_id, field="memory_id")
    done = await searched(tools, query, scope=scope)

    async def look(unit: Unit) -> tuple[Located | None, bool]:
        found = await located(unit, scope, identity)
        if found is None:
            return None, False
        return found, await passes(unit, scope, query.filters, found.kind, identity)

    memory, fits = await tools.transact(scope.tenant.id, look, read_only=True)
    if memory is None:
        raise NotFound(f"No memory {identity} in this scope.", id=identity)
    stage, detail = _dropped(query, memory, fits=fits)
    if stage is not None:
        return WhyNot(id=identity, stage=stage, detail=detail, kind=memory.kind)
    only = (memory.kind, identity)
    ranks = await explained_of(tools, query, done, scope=scope, only=only)
    return _placed(query, done, identity, memory.kind, ranks.places(identity))


def _dropped(query: RecallQuery, memory: Located, *, fits: bool) -> tuple[RecallStage | None, str]:
    """What keeps the memory from being looked for at all."""
    if memory.status == DEPRECATED:
        return RecallStage.TOMBSTONE, "it was retracted, and its value is refused here"
    if memory.status != LIVE:
        return RecallStage.STATUS, f"it is {memory.status}"
    if memory.archived:
        return RecallStage.STATUS, "it is archived"
    if memory.kind not in query.kinds:
        return (
            RecallStage.TYPE,
            f"only {', '.join(query.kinds)} was asked for, and it is a {memory.kind}",
        )
    if not fits:
        return RecallStage.FILTER, "it does not pass the filter"
    return None, ""


def _placed(
    query: RecallQuery, done: Searched, identity: UUID, kind: str, ranks: dict[str, int]
) -> WhyNot:
    """How far the memory came in the search."""
    places = {one.candidate.id: place for place, one in enumerate(done.ordered, start=1)}
    place = places.get(identity)
    score = None if place is None else done.ordered[place - 1].score
    if place is None or score is None:
        stage = RecallStage.ARMS
        detail = f"no arm found it among its first {done.arms.per_arm}"
    elif score < query.floor:
        stage, detail = (
            RecallStage.FLOOR,
            f"it scores {score:.3f}, below the floor of {query.floor:.3f}",
        )
    elif place > query.limit:
        stage, detail = (
            RecallStage.LIMIT,
            f"it is number {place}, and at most {query.limit} come back",
        )
    else:
        stage, detail = RecallStage.RETURNED, f"it is number {place}"
    return WhyNot(
        id=identity,
        stage=stage,
        detail=detail,
        kind=kind,
        score=score,
        place=place,
        ranks=ranks,
    )
