"""Candidates of a recall: the nearest vectors, the best words, and what stands around them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from mnemic.model.embedding import Vector
from mnemic.model.procedure import Standing
from mnemic.model.ranking_values import TURN, Candidate, candidate_of
from mnemic.model.scope import Scope
from mnemic.store.approximate import ApproximateStore
from mnemic.store.arms import ArmStore, FurtherArm
from mnemic.store.candidate_columns import COSINE_AT, OTHER_KINDS, TURN_COLUMNS
from mnemic.store.candidate_statements import (
    NONE_GIVEN,
    PROCEDURES,
    others_statement,
    turns_statement,
    words_statement,
)
from mnemic.store.hits import HitStore

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = [
    "CandidateQuery",
    "Found",
    "RetrievalStore",
    "other_found",
    "turn_found",
    "values_of",
]

_TURN_ENDS = len(TURN_COLUMNS) + 1
_TURN_LEGS = (TURN, "actor")


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateQuery:
    """What the arms look for; without a vector or without words that arm finds nothing.

    `match` is what full text is asked for among all turns. `either` is the same without what common
    words must stand beside, for who looks among fewer; as `match` if it is not given.
    `further` is what other arms found already, `given` the nearest of the legs that went by an
    index, best first; see `approximate`. `worded` are the best by words of the kinds of which they
    were found before, by this very query but for its vector.
    """

    vector: Vector | None
    model: int
    match: str | None
    rank: str | None
    per_arm: int
    around: int
    actor: UUID | None = None
    either: str | None = None
    further: tuple[FurtherArm, ...] = ()
    given: Mapping[str, list[UUID]] = field(default_factory=dict)
    worded: Mapping[str, list[UUID]] = field(default_factory=dict)

    def wider(self, per_arm: int) -> CandidateQuery:
        """The same with as many as `per_arm` from each arm, if it gives fewer.

        What was found before by fewer is not enough then, and is not told.
        """
        if per_arm <= self.per_arm:
            return self
        return replace(self, per_arm=per_arm, further=(), given={}, worded={})


class Found(NamedTuple):
    """A candidate, with its place in the arms (from 1) that found it.

    One that does not pass the filter stands beside others that do, and is read with them.
    """

    candidate: Candidate
    near_place: int | None
    words_place: int | None
    actor_near_place: int | None = None
    actor_words_place: int | None = None
    passes: bool = True


_found = partial(tuple.__new__, Found)  # as `candidate_of`


class RetrievalStore:
    """Finds candidates. Reads only."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def candidates(
        self,
        scope: Scope,
        query: CandidateQuery,
        kinds: Sequence[str],
        *,
        ahead: Callable[[list[Found]], None] | None = None,
    ) -> list[Found]:
        """Memories of `kinds` that the arms found among all visible from `scope`.

        Turns come first, with their neighbours, and are given `ahead` while the store looks for the
        other kinds; if there are none, that is told too, for there may have been some before.
        """
        values = values_of(scope, query)
        rows = await self._turns(query, values) if TURN in kinds else []
        others = tuple(kind for kind in OTHER_KINDS if kind in kinds)
        if not others:
            return [turn_found(row) for row in rows]
        if ahead is None:
            return [*map(turn_found, rows), *await self._others(query, others, values)]
        looking = asyncio.ensure_future(self._others(query, others, values))
        try:
            await asyncio.sleep(0)  # the statement is on its way
            turns = [turn_found(row) for row in rows]
            ahead(turns)
            return [*turns, *await looking]
        except BaseException:
            looking.cancel()
            await asyncio.wait({looking})  # no unit ends while a statement of it is under way
            if not looking.cancelled():
                looking.exception()
            raise

    async def _turns(self, query: CandidateQuery, values: dict[str, Any]) -> list[Any]:
        given = _given(query, _TURN_LEGS)
        statement = turns_statement(with_actor=query.actor is not None, given=given)
        return await self._unit.fetch(statement, **values, actor=query.actor)

    async def _others(
        self, query: CandidateQuery, kinds: tuple[str, ...], values: dict[str, Any]
    ) -> list[Found]:
        rows = await self._unit.fetch(others_statement(kinds, _given(query, kinds)), **values)
        found = [other_found(row) for row in rows]
        return _once(found) if query.further else found

    async def by_words(
        self, scope: Scope, query: CandidateQuery, kinds: Sequence[str]
    ) -> dict[str, list[UUID]]:
        """The best by words of each of `kinds`, best first: what needs no vector."""
        wanted = tuple(kind for kind in (TURN, *OTHER_KINDS) if kind in kinds)
        rows = await self._unit.fetch(words_statement(wanted), **values_of(scope, query))
        return {kind: ids or [] for kind, ids in rows}

    async def procedures(
        self, scope: Scope, query: CandidateQuery
    ) -> list[tuple[Candidate, Standing]]:
        """Procedures that the arms found among all visible from `scope`, with their standing."""
        rows = await self._unit.fetch(PROCEDURES, **values_of(scope, query))
        return [(other_found(row[:-4]).candidate, _standing(row[-4:])) for row in rows]

    @cached_property
    def hits(self) -> HitStore:
        """The memories that the best candidates are."""
        return HitStore(self._unit)

    @cached_property
    def approximate(self) -> ApproximateStore:
        """The nearest of large tenants."""
        return ApproximateStore(self._unit)

    @cached_property
    def arms(self) -> ArmStore:
        """The arms that only some questions need."""
        return ArmStore(self._unit)


def _once(found: Iterable[Found]) -> list[Found]:
    """What further arms found comes twice if others did too; the first has its places."""
    kept: dict[UUID, Found] = {}
    for one in found:
        kept.setdefault(one.candidate.id, one)
    return list(kept.values())


def _standing(row: Any) -> Standing:
    successes, failures, preconditions, avoided = row
    return Standing(successes, failures, tuple(preconditions or ()), tuple(avoided or ()))


def values_of(scope: Scope, query: CandidateQuery) -> dict[str, Any]:
    """What every statement of the arms binds, but for the actor."""
    return {
        **{f"{leg}_near": ids for leg, ids in query.given.items()},
        **{f"{kind}_words": ids for kind, ids in query.worded.items()},
        "scopes": scope.visible_ids,
        "vector": query.vector,
        "model": query.model,
        "near": query.per_arm if query.vector is not None else 0,
        "match": query.match,
        "either": query.either or query.match,
        "rank": query.rank,
        "words": query.per_arm if query.match else 0,
        "around": list(range(-query.around, query.around + 1)),
        "also": list({identity for arm in query.further for identity in arm.ids}),
    }


def _given(query: CandidateQuery, legs: Sequence[str]) -> frozenset[str]:
    """What of the `legs` was found before, by the names that it is bound to."""
    if not query.given and not query.worded:
        return NONE_GIVEN
    near = [f"{leg}_near" for leg in legs if leg in query.given]
    return frozenset((*near, *(f"{leg}_words" for leg in legs if leg in query.worded)))


def turn_found(row: Any) -> Found:
    """A row of what `around` ends with, by places: no name is looked up for hundreds of rows."""
    candidate = candidate_of((*row[:COSINE_AT], TURN, *row[COSINE_AT:_TURN_ENDS], None, None))
    return _found((candidate, *row[_TURN_ENDS:], True))


def other_found(row: Any) -> Found:
    """A row of what `other_columns` tells, and its places in both arms, by places too."""
    *shared, actor, importance, confidence, near_place, words_place = row
    said = ("", False, False, False, False)
    candidate = candidate_of((*shared, None, None, actor, *said, importance, confidence))
    return _found((candidate, near_place, words_place, None, None, True))
