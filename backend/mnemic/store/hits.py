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

__all__ = ["BY_IDS", "HitStore"]


class _Kind(NamedTuple):
    """What is read of a kind, its id first, of which of its rows, and what is made of it."""

    columns: Sequence[str]
    live: str
    made: Callable[[Any], MemoryItem]


_LIVE = "m.status = 'live'"
_KINDS = {
    "turn": _Kind(turns.COLUMNS, "true", turns.turn_of),
    "episode": _Kind(episodes.COLUMNS, "true", episodes.episode_of),
    "fact": _Kind(facts.COLUMNS, _LIVE, facts.fact_of),
    "procedure": _Kind(procedures.COLUMNS, _LIVE, procedures.procedure_of),
}


def _by_ids(nouns: Sequence[str]) -> Statement:
    """The columns of one kind after those of another; in each row all but its own kind's are null.

    A kind is looked at for its own ids alone: what is said of `hit.kind` is tested before its table
    is touched. And each by its key, as in `retrieval`: of all ids at once a kept plan, which takes
    the scope for small, would go through the scope instead.
    """

    def of(noun: str) -> str:
        kind = _KINDS[noun]
        read = ", ".join(f"m.{name}" for name in kind.columns)
        return f"""
            LEFT JOIN LATERAL (SELECT {read} FROM mnemic.{noun}s m
                                WHERE {{keyed:m}} AND m.id = hit.id AND {kind.live}
                                  AND hit.kind = '{noun}' OFFSET 0) {noun} ON true"""

    return Statement(f"""
        SELECT {", ".join(f"{noun}.*" for noun in nouns)}
          FROM unnest(CAST(:kinds AS text[]), CAST(:ids AS uuid[])) AS hit(kind, id)
         {"".join(map(of, nouns))}
    """)


# A statement for each choice of kinds, as planning one for all takes longer than one that asks for
# few.
BY_IDS = {
    nouns: _by_ids(nouns)
    for many in range(1, len(_KINDS) + 1)
    for nouns in combinations(_KINDS, many)
}


class HitStore:
    """Reads the memories that hits tell of."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def by_ids(
        self, scope: Scope, hits: Iterable[tuple[str, UUID]]
    ) -> dict[UUID, MemoryItem]:
        """The memories of these kinds and ids, by id.

        What is not visible from `scope`, was deleted, or is a fact or a procedure that is not live
        any more, is missing.
        """
        wanted = [hit for hit in hits if hit[0] in _KINDS]
        kinds = [kind for kind, _ in wanted]
        nouns = tuple(noun for noun in _KINDS if noun in kinds)
        if not nouns:
            return {}
        rows = await self._unit.fetch(
            BY_IDS[nouns],
            scopes=scope.visible_ids,
            kinds=kinds,
            ids=[identity for _, identity in wanted],
        )
        found: dict[UUID, MemoryItem] = {}
        begins = 0
        for noun in nouns:
            columns, _, made = _KINDS[noun]
            place = slice(begins, begins + len(columns))
            begins = place.stop
            for row in rows:
                if row[place.start] is not None:  # its id, so the row is of this kind
                    memory = made(dict(zip(columns, row[place], strict=True)))
                    found[memory.id] = memory
        return found
