"""Arms of recall for a few questions: a date in them, a thing with other names, a misspelt word."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from mnemic.model.embedding import Vector
from mnemic.model.scope import Scope
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = [
    "ENTITY",
    "TIME",
    "TIMED",
    "ArmStore",
    "FurtherArm",
    "Similar",
    "TimeQuery",
    "inside_template",
]

ENTITY, TIME = "entity", "time"

SIMILAR_MAX = 20

# A span of `:most` memories or more tells too little, and costs too much: it gives none at all.
_INSIDE = """
    WITH inside AS MATERIALIZED (
      SELECT one.id, min(span.place) AS place
        FROM unnest(CAST(:begins AS timestamptz[]), CAST(:ends AS timestamptz[]))
             WITH ORDINALITY AS span(begins, ends, place)
       CROSS JOIN LATERAL (
         SELECT array_agg(i.id) AS ids
           FROM (SELECT m.id FROM mnemic.{noun}s m
                  WHERE {{owned:m}} AND m.occurred_at >= span.begins
                    AND m.occurred_at < span.ends AND m.archived_at IS NULL {narrow}
                  LIMIT :most) i) few
       CROSS JOIN LATERAL unnest(few.ids) AS one(id)
       WHERE cardinality(few.ids) < :most
       GROUP BY one.id
    )
    SELECT i.id
      FROM inside i
      LEFT JOIN LATERAL (SELECT v.embedding <#> CAST(:vector AS halfvec) AS distance
                           FROM mnemic.{noun}_vectors v
                          WHERE {{keyed:v}} AND v.model_id = :model AND v.memory_id = i.id
                         OFFSET 0) v ON true
     ORDER BY v.distance, i.place, i.id LIMIT :few
"""
TIMED = ("turn", "episode")


def inside_template(noun: str, narrow: str = "") -> str:
    """The statement about `TIMED` memories; `narrow` is one more condition on `m`, AND first."""
    return _INSIDE.format(noun=noun, narrow=narrow)


INSIDE = {noun: Statement(inside_template(noun)) for noun in TIMED}

_NAMING = """
    SELECT l.id
      FROM mnemic.{function}(CAST(CAST(:match AS text) AS tsquery),
                             CAST(CAST(:match AS text) AS tsquery), CAST(:scopes AS uuid[]),
                             CAST(:few AS int)) AS l(id, rank)
     ORDER BY l.rank DESC, l.id
"""
NAMING = {
    noun: Statement(_NAMING.format(function=function))
    for noun, function in (
        ("turn", "lexical"),
        ("episode", "lexical_episodes"),
        ("fact", "lexical_facts"),
        ("procedure", "lexical_procedures"),
    )
}

SIMILAR = Statement("""
    SELECT s.word, s.term, s.documents
      FROM mnemic.similar_terms(CAST(:words AS text[]), CAST(:scopes AS uuid[]),
                                CAST(:most AS int)) AS s
""")


class FurtherArm(NamedTuple):
    """What one of these arms found among the memories of a kind, best first."""

    kind: str
    name: str
    ids: tuple[UUID, ...]


class TimeQuery(NamedTuple):
    """Memories inside any of the spans, the nearest first: at most `few`, of spans below `most`."""

    spans: tuple[tuple[datetime, datetime], ...]
    vector: Vector | None
    model: int
    few: int
    most: int

    def values(self, scope: Scope) -> dict[str, object]:
        """What the statement binds."""
        return {
            "scopes": scope.visible_ids,
            "begins": [begins for begins, _ in self.spans],
            "ends": [ends for _, ends in self.spans],
            "vector": self.vector,
            "model": self.model,
            "few": self.few,
            "most": self.most,
        }


class Similar(NamedTuple):
    """A word of the visible scopes that is spelt like one of the question."""

    word: str
    term: str
    documents: int


class ArmStore:
    """Finds further candidates by their ids. Reads only."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def inside(self, scope: Scope, kind: str, query: TimeQuery) -> list[UUID]:
        """Turns or episodes of the times asked for; none of the other kinds."""
        if kind not in INSIDE:
            return []
        rows = await self._unit.fetch(INSIDE[kind], **query.values(scope))
        return [row["id"] for row in rows]

    async def naming(self, scope: Scope, kind: str, match: str, *, few: int) -> list[UUID]:
        """Memories of a kind with the words of `match`, the best first."""
        rows = await self._unit.fetch(NAMING[kind], scopes=scope.visible_ids, match=match, few=few)
        return [row["id"] for row in rows]

    async def similar(self, scope: Scope, words: Sequence[str]) -> list[Similar]:
        """Counted words that share trigrams with one of `words`, the most alike first."""
        rows = await self._unit.fetch(
            SIMILAR, scopes=scope.visible_ids, words=list(words), most=SIMILAR_MAX
        )
        return [Similar(*row) for row in rows]
