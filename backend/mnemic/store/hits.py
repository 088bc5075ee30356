"""Memories of several kinds by their ids, in one round trip."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from mnemic.model.recall import MemoryItem
from mnemic.model.scope import Scope
from mnemic.store import episodes, facts, procedures, turns
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["BY_IDS", "memories_by_ids"]


class _Kind(NamedTuple):
    """What is read of a kind, of which of its rows, and what is made of it."""

    columns: Sequence[str]
    live: str
    made: Callable[[Any], MemoryItem]


_LIVE = "m.status = 'live'"
KINDS = {
    "turn": _Kind(turns.COLUMNS, "true", turns.turn_of),
    "episode": _Kind(episodes.COLUMNS, "true", episodes.episode_of),
    "fact": _Kind(facts.COLUMNS, _LIVE, facts.fact_of),
    "procedure": _Kind(procedures.COLUMNS, _LIVE, procedures.procedure_of),
}


def _by_ids(nouns: Sequence[str]) -> Statement:
    """The columns of one kind after those of another; all but its own are null in each row.

    A kind is looked at for its own ids alone: the condition on `hit.kind` is tested once for each,
    before its table is touched.
    """

    def of(noun: str) -> str:
        kind = KINDS[noun]
        read = ", ".join(f"m.{name}" for name in kind.columns)
        return f"""
            LEFT JOIN LATERAL (SELECT {read} FROM mnemic.{noun}s m
                                WHERE {{owned:m}} AND m.id = hit.id AND {kind.live}
                                  AND hit.kind = '{noun}' OFFSET 0) {noun} ON true"""

    return Statement(f"""
        SELECT hit.kind, {", ".join(f"{noun}.*" for noun in nouns)}
          FROM unnest(CAST(:kinds AS text[]), CAST(:ids AS uuid[])) AS hit(kind, id)
         {"".join(map(of, nouns))}
    """)


# A statement for each choice of kinds, as planning one for all takes longer than one that asks for
# few.
BY_IDS = {
    nouns: _by_ids(nouns)
    for many in range(1, len(KINDS) + 1)
    for nouns in combinations(KINDS, many)
}


async def memories_by_ids(
    unit: Unit, scope: Scope, hits: Iterable[tuple[str, UUID]]
) -> dict[UUID, MemoryItem]:
    """The memories of these kinds and ids that are visible from `scope`, and live, by id."""
    wanted = list(hits)
    kinds = {kind for kind, _ in wanted}
    nouns = tuple(noun for noun in KINDS if noun in kinds)
    if not nouns:
        return {}
    places: dict[str, tuple[int, int]] = {}
    begin = 1  # behind the kind
    for noun in nouns:
        places[noun] = (begin, begin + len(KINDS[noun].columns))
        begin = places[noun][1]
    rows = await unit.fetch(
        BY_IDS[nouns],
        scopes=scope.visible_ids,
        kinds=[kind for kind, _ in wanted],
        ids=[identity for _, identity in wanted],
    )
    found: dict[UUID, MemoryItem] = {}
    for row in rows:
        noun = row[0]
        first, end = places[noun]
        values = row[first:end]
        if values[0] is not None:  # it is there
            memory = KINDS[noun].made(dict(zip(KINDS[noun].columns, values, strict=True)))
            found[memory.id] = memory
    return found
