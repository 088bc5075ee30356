"""Candidates of a recall: the nearest vectors, the best words, and what stands around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from mnemic.model.embedding import Vector
from mnemic.model.procedure import Standing
from mnemic.model.ranking_values import TURN, Candidate, candidate_of
from mnemic.model.scope import Scope
from mnemic.store.approximate import ApproximateStore
from mnemic.store.arms import ArmStore, FurtherArm
from mnemic.store.candidate_columns import (
    COSINE_AT,
    OTHER_KINDS,
    READ_OF_KIND,
    TURN_COLUMNS,
    cosine_of,
    other_columns,
    place_in,
)
from mnemic.store.hits import HitStore
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = [
    "CandidateQuery",
    "Found",
    "RetrievalStore",
    "arms_of_kind",
    "around",
    "other_found",
    "turn_found",
    "values_of",
]

# The planner must not guess how many rows the arms give: it would read a whole scope to join thirty
# hits, and on tables that were never analysed compare everything with everything. So each hit and
# each neighbour is looked up by its key (LATERAL … OFFSET 0 is not flattened into a join).
# What a key is compared with must be a column: row-level security takes `coalesce` for something
# that may leak, so that a comparison with it looks at each row of the scope, for every hit. Hence
# the OFFSET 0 behind a `coalesce`, which keeps it in a subquery of its own.
# `+ 0` keeps the planner from an approximate index: exact is the default, and routes are explicit.
_NEAR = """
    SELECT v.memory_id AS id, row_number() OVER (ORDER BY v.distance, v.memory_id) AS place,
           -v.distance AS value
      FROM (SELECT v.memory_id, (v.embedding <#> CAST(:vector AS halfvec)) + 0 AS distance
              FROM mnemic.{noun}_vectors v
             WHERE {{owned:v}} AND v.model_id = :model {narrow}
             ORDER BY 2, 1 LIMIT :near) v
"""

# The nearest as the tenant's own index found them, best first: see `approximate`.
_GIVEN = """
    SELECT g.id, g.place
      FROM unnest(CAST(:{leg}_given AS uuid[])) WITH ORDINALITY AS g(id, place)
"""

_WORDS = """
    SELECT l.id, row_number() OVER (ORDER BY l.rank DESC, l.id) AS place, l.rank AS value
      FROM mnemic.{function}(CAST(CAST(:{match} AS text) AS tsquery),
                             CAST(CAST(:rank AS text) AS tsquery), {scopes},
                             CAST(:words AS int)) AS l(id, rank)
     LIMIT :words
"""

_SCOPES = "CAST(:scopes AS uuid[])"

# What stands around the hits, in their sessions. It ends a statement whose `hit`, `near` and
# `words` are the ids that were found and the places in the two main arms.
_AROUND = """
    place AS (
      SELECT DISTINCT h.session_id, h.seq + d AS seq
        FROM hit
       CROSS JOIN LATERAL (SELECT h.session_id, h.seq FROM mnemic.turns h
                            WHERE {{owned:h}} AND h.id = hit.id OFFSET 0) h
       CROSS JOIN unnest(CAST(:around AS int[])) AS d
    )
    SELECT {told}
      FROM place
     CROSS JOIN LATERAL (SELECT {read} FROM mnemic.turns t
                          WHERE {{owned:t}} AND t.session_id = place.session_id
                            AND t.seq = place.seq AND t.archived_at IS NULL OFFSET 0) t
"""
_NO_PLACE = "CAST(NULL AS int)"
_MAIN_ARMS = ("near", "words")
_ACTOR_ARMS = ("actor_near", "actor_words")


def around(*, with_actor: bool, passes: str | None = None) -> str:
    """The end of a statement about turns; the arms of an actor are there, or they are not.

    With `passes`, a condition on the row `t`, the last column tells whether it holds.
    """
    read = [f"t.{name}" for name in TURN_COLUMNS]
    told = [*read[:COSINE_AT], f"{cosine_of('turn', 't')} AS cosine", *read[COSINE_AT:]]
    told += [place_in(arm, "t") for arm in _MAIN_ARMS]
    told += [place_in(arm, "t") if with_actor else _NO_PLACE for arm in _ACTOR_ARMS]
    if passes is not None:
        read = [*read, f"{passes} AS passes"]
        told.append("t.passes")
    return _AROUND.format(read=", ".join(read), told=", ".join(told))


_TURN_ENDS = len(TURN_COLUMNS) + 1
_NONE_GIVEN: frozenset[str] = frozenset()


def arms_of_kind(
    noun: str, *, with_actor: bool = False, given: frozenset[str] = _NONE_GIVEN
) -> dict[str, str]:
    """The arms that look among the memories of a kind, by name.

    The nearest of the legs in `given` were found before; "actor" is one of them. Common words are
    matched together among all turns alone: what is few seldom has both.
    """
    function, match = ("lexical", "match") if noun == "turn" else (f"lexical_{noun}s", "either")
    arms = {
        "near": _NEAR.format(noun=noun, narrow=""),
        "words": _WORDS.format(function=function, match=match, scopes=_SCOPES),
    }
    if with_actor:
        arms["actor_near"] = _NEAR.format(noun=noun, narrow="AND v.actor_id = :actor")
        arms["actor_words"] = _WORDS.format(
            function="lexical_actor", match="either", scopes=f"{_SCOPES}, CAST(:actor AS uuid)"
        )
    arms |= {
        name: _GIVEN.format(leg=leg)
        for leg, name in ((noun, "near"), ("actor", "actor_near"))
        if leg in given and name in arms
    }
    return arms


@cache
def _turns(*, with_actor: bool, given: frozenset[str]) -> Statement:
    """Hits of the arms with `:around` neighbours on each side, in their sessions."""
    arms = arms_of_kind("turn", with_actor=with_actor, given=given)
    named = ", ".join(f"{name} AS MATERIALIZED ({arm})" for name, arm in arms.items())
    hits = " UNION ".join(f"SELECT id FROM {name}" for name in arms)
    return Statement(f"""
        WITH {named}, hit AS ({hits} UNION SELECT unnest(CAST(:also AS uuid[]))),
        {around(with_actor=with_actor)}
    """)


@cache
def _others(
    kinds: Sequence[str], given: frozenset[str], more: tuple[tuple[str, str], ...] = ()
) -> Statement:
    """Hits of the arms among the memories of `kinds`, and what is made of the columns `more`.

    No row is read as a whole: planning one of thirty columns takes longer, and none is used.
    """

    def of(noun: str) -> str:
        live = OTHER_KINDS[noun].live
        read = ", ".join(f"m.{column}" for column in (*READ_OF_KIND[noun], *dict(more)))
        arms = arms_of_kind(noun, given=given)
        return f"""
            SELECT {other_columns(noun)}, CAST(h.near_place AS int) AS near_place,
                   CAST(h.words_place AS int) AS words_place
                   {"".join(f", {made}" for _, made in more)}
              FROM (SELECT coalesce(n.id, w.id) AS id, n.place AS near_place,
                           w.place AS words_place
                      FROM ({arms["near"]}) n
                      FULL JOIN ({arms["words"]}) w
                        ON w.id = n.id
                    UNION ALL
                    SELECT unnest(CAST(:also AS uuid[])), NULL, NULL OFFSET 0) h
             CROSS JOIN LATERAL (SELECT {read} FROM mnemic.{noun}s m
                                  WHERE {{owned:m}} AND m.id = h.id AND {live} OFFSET 0) m
        """

    return Statement(" UNION ALL ".join(map(of, kinds)))


TURNS = _turns(with_actor=False, given=_NONE_GIVEN)
TURNS_OF_ACTOR = _turns(with_actor=True, given=_NONE_GIVEN)
# A statement for each choice of kinds: planning one for all of them, to leave two out when it runs,
# takes longer than the whole of one that asks for one kind.
OTHERS = {
    kinds: _others(kinds, _NONE_GIVEN)
    for many in range(1, len(OTHER_KINDS) + 1)
    for kinds in combinations(OTHER_KINDS, many)
}
# With what a procedure is weighed by. Most have no conditions: a null spares reading "[]" as JSON.
PROCEDURES = _others(
    ("procedure",),
    _NONE_GIVEN,
    (
        ("success_count", "m.success_count"),
        ("failure_count", "m.failure_count"),
        ("preconditions", "nullif(m.preconditions, '[]')"),
        ("avoid_conditions", "nullif(m.avoid_conditions, '[]')"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateQuery:
    """What the arms look for; without a vector or without words that arm finds nothing.

    `match` is what full text is asked for among all turns. `either` is the same without what common
    words must stand beside, for who looks among fewer; as `match` if it is not given.
    `further` is what other arms found already, `given` the nearest of the legs that went by an
    index, best first; see `approximate`.
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

    async def turns(self, scope: Scope, query: CandidateQuery) -> list[Found]:
        """Turns that the arms found among all that is visible from `scope`, and neighbours."""
        given = frozenset({"turn", "actor"} & query.given.keys())
        statement = _turns(with_actor=query.actor is not None, given=given)
        rows = await self._unit.fetch(statement, **values_of(scope, query), actor=query.actor)
        return [turn_found(row) for row in rows]

    async def others(
        self, scope: Scope, query: CandidateQuery, kinds: tuple[str, ...]
    ) -> list[Found]:
        """Memories of the other `kinds` that the arms found among all visible from `scope`."""
        wanted = tuple(kind for kind in OTHER_KINDS if kind in kinds)
        statement = _others(wanted, frozenset(query.given.keys() & set(wanted)))
        rows = await self._unit.fetch(statement, **values_of(scope, query))
        return list(_once(map(other_found, rows)).values())

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


def _once(found: Iterable[Found]) -> dict[UUID, Found]:
    """What further arms found comes twice if others did too; the first has its places."""
    kept: dict[UUID, Found] = {}
    for one in found:
        kept.setdefault(one.candidate.id, one)
    return kept


def _standing(row: Any) -> Standing:
    successes, failures, preconditions, avoided = row
    return Standing(successes, failures, tuple(preconditions or ()), tuple(avoided or ()))


def values_of(scope: Scope, query: CandidateQuery) -> dict[str, Any]:
    """What every statement of the arms binds, but for the actor."""
    return {
        **{f"{leg}_given": ids for leg, ids in query.given.items()},
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
