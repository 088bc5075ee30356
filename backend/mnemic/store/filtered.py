"""Candidates of a question that only some memories may answer.

A filter acts before the arms, so that each of them gives as many as it would give of a scope that
held nothing else. The statement is made for the question: the memories that pass are found first,
under both walls, by one look at the rows of the scope; the arms look among them. None of the
functions that see past the policies is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.model.filters import Filter
from mnemic.model.scope import Scope
from mnemic.store.arms import TIMED, TimeQuery, inside_template
from mnemic.store.candidate_columns import (
    OTHER_KINDS,
    READ_OF_KIND,
    other_columns,
    place_in,
)
from mnemic.store.candidate_statements import around
from mnemic.store.filters import FALSE, TRUE, Conditions
from mnemic.store.retrieval import (
    CandidateQuery,
    Found,
    other_found,
    turn_found,
    values_of,
)
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = [
    "FEW_ROWS_MAX",
    "FilteredStore",
    "filtered_arms",
    "filtered_others",
    "filtered_turns",
    "parted",
]

FEW_ROWS_MAX = 2_000

_WHEN = {"turn": "m.occurred_at", **{noun: other.at for noun, other in OTHER_KINDS.items()}}
_LIVE = {
    "turn": "m.archived_at IS NULL",
    **{noun: other.live for noun, other in OTHER_KINDS.items()},
}

# Of a few that pass, vectors and words are looked up by their keys; of many, all vectors are read
# in one go, and words are those that the index would look for: to rank each row is dear. Which it
# is, is known only when they are counted, so both are there, and one of them has nothing to do.
# `IS TRUE` keeps the planner from a join, of which it would have to guess how many pass.
_PASSING = """
    passing AS MATERIALIZED (
      SELECT m.id, {when} AS at, {actor} AS actor_id,
             CASE WHEN m.tsv @@ CAST(CAST(:either AS text) AS tsquery)
                  THEN ts_rank(m.tsv, CAST(CAST(:rank AS text) AS tsquery)) END AS rank
        FROM mnemic.{noun}s m
       WHERE {{owned:m}} AND {live} AND {condition}
    ),
    size AS MATERIALIZED (SELECT count(*) <= CAST(:few AS bigint) AS few FROM passing),
    apart AS (
      SELECT p.id, p.actor_id, (v.embedding <#> CAST(:vector AS halfvec)) + 0 AS distance
        FROM passing p
       CROSS JOIN LATERAL (SELECT v.embedding FROM mnemic.{noun}_vectors v
                            WHERE {{keyed:v}} AND v.model_id = :model AND v.memory_id = p.id
                           OFFSET 0) v
       WHERE (SELECT s.few FROM size s)
      UNION ALL
      SELECT v.memory_id, {vector_actor}, (v.embedding <#> CAST(:vector AS halfvec)) + 0
        FROM mnemic.{noun}_vectors v
       WHERE NOT (SELECT s.few FROM size s)
         AND {{owned:v}} AND v.model_id = :model
         AND (v.memory_id IN (SELECT p.id FROM passing p)) IS TRUE
    ),
    worded AS (
      SELECT p.id, p.actor_id, m.rank
        FROM passing p
       CROSS JOIN LATERAL (SELECT ts_rank(m.tsv, CAST(CAST(:rank AS text) AS tsquery)) AS rank
                             FROM mnemic.{noun}s m
                            WHERE {{tenant:m}} AND m.id = p.id
                              AND m.tsv @@ CAST(CAST(:rank AS text) AS tsquery) OFFSET 0) m
       WHERE (SELECT s.few FROM size s)
      UNION ALL
      SELECT p.id, p.actor_id, p.rank FROM passing p
       WHERE NOT (SELECT s.few FROM size s) AND p.rank IS NOT NULL
    )
"""
_NEAR = """
    SELECT a.id, row_number() OVER (ORDER BY a.distance, a.id) AS place, -a.distance AS value
      FROM (SELECT a.id, a.distance FROM apart a
             WHERE CAST(:vector AS halfvec) IS NOT NULL AND {narrow}
             ORDER BY a.distance, a.id LIMIT :near) a
"""
_WORDS = """
    SELECT w.id, row_number() OVER (ORDER BY w.rank DESC, w.id) AS place, w.rank AS value
      FROM (SELECT w.id, w.rank FROM worded w WHERE {narrow}
             ORDER BY w.rank DESC, w.id LIMIT :words) w
"""
# Where the vectors give too few, for there are none of the question or of what passes, the newest
# that pass fill up: so as many come back as were asked for, if so many pass.
_NEWEST = """
    SELECT p.id, row_number() OVER (ORDER BY p.at DESC, p.id) AS place,
           CAST(NULL AS double precision) AS value
      FROM (SELECT p.id, p.at FROM passing p
             WHERE (SELECT count(*) FROM near) < CAST(:wanted AS bigint)
             ORDER BY p.at DESC, p.id LIMIT :newest) p
"""


def filtered_arms(
    noun: str, condition: str, *, with_actor: bool = False
) -> tuple[str, tuple[str, ...]]:
    """The arms of a kind of memory, each among those that pass, as named parts of a statement.

    With them `passing`, those that they look among; their names stand beside.
    """
    of_turns = noun == "turn"
    passing = _PASSING.format(
        noun=noun,
        when=_WHEN[noun],
        live=_LIVE[noun],
        condition=condition,
        actor="m.actor_id" if of_turns else "m.id",
        vector_actor="v.actor_id" if of_turns else "v.memory_id",
    )
    arms = {
        "near": _NEAR.format(narrow="true"),
        "words": _WORDS.format(narrow="true"),
        "newest": _NEWEST,
    }
    if with_actor:
        arms["actor_near"] = _NEAR.format(narrow="a.actor_id = :actor")
        arms["actor_words"] = _WORDS.format(narrow="w.actor_id = :actor")
    named = ", ".join(f"{name} AS MATERIALIZED ({arm})" for name, arm in arms.items())
    return f"WITH {passing}, {named}", tuple(arms)


# What has the words of another name, by one look at the rows of the scope too.
_NAMING = """
    SELECT m.id FROM mnemic.{noun}s m
     WHERE {{owned:m}} AND {live} AND m.tsv @@ CAST(CAST(:match AS text) AS tsquery)
       AND {condition}
     ORDER BY ts_rank(m.tsv, CAST(CAST(:match AS text) AS tsquery)) DESC, m.id LIMIT :few
"""


def _hits(arms: Sequence[str]) -> str:
    """What the arms found, and what others found of those that pass before."""
    found = " UNION ".join(f"SELECT id FROM {name}" for name in arms)
    return f"hit AS ({found} UNION SELECT unnest(CAST(:also AS uuid[])))"


def filtered_turns(
    filters: Filter, *, with_actor: bool
) -> tuple[Statement, dict[str, object]] | None:
    """The statement, with what the filter binds: turns that pass and what stands around them.

    Nothing if no turn can pass.
    """
    made = Conditions()
    condition = made.of(filters, "turn", "m")
    if condition == FALSE:
        return None
    passes = made.of(filters, "turn", "t")
    head, arms = filtered_arms("turn", condition, with_actor=with_actor)
    ending = around(with_actor=with_actor, passes=passes)
    return Statement(f"{head}, {_hits(arms)}, {ending}", kept=False), made.values


def filtered_others(
    filters: Filter, kinds: Sequence[str]
) -> tuple[Statement, dict[str, object]] | None:
    """The statement, with what the filter binds: memories of the `kinds` that pass.

    Nothing if none can.
    """
    made = Conditions()
    conditions = {noun: made.of(filters, noun, "m") for noun in kinds}

    def of(noun: str) -> str:
        read = ", ".join(f"m.{column}" for column in READ_OF_KIND[noun])
        head, arms = filtered_arms(noun, conditions[noun])
        return f"""(
            {head}, {_hits(arms)}
            SELECT {other_columns(noun)}, {place_in("near", "m")} AS near_place,
                   {place_in("words", "m")} AS words_place
              FROM hit
             CROSS JOIN LATERAL (SELECT {read} FROM mnemic.{noun}s m
                                  WHERE {{keyed:m}} AND m.id = hit.id OFFSET 0) m)
        """

    able = [noun for noun in kinds if conditions[noun] != FALSE]
    if not able:
        return None
    return Statement(" UNION ALL ".join(map(of, able)), kept=False), made.values


def parted(filters: Filter | None, kinds: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kinds of which every memory passes, and those of which some may."""
    conditions = {kind: Conditions().of(filters, kind, "m") for kind in kinds}
    return (
        tuple(kind for kind in kinds if conditions[kind] == TRUE),
        tuple(kind for kind in kinds if conditions[kind] not in {TRUE, FALSE}),
    )


class FilteredStore:
    """Finds candidates that pass a filter. Reads only."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def search(
        self, scope: Scope, query: CandidateQuery, filters: Filter, kinds: Sequence[str]
    ) -> list[Found]:
        """Memories of the `kinds` that pass, and the turns around those that are turns.

        A neighbour that does not pass says so. As many pass as `query.per_arm`, if so many do.
        """
        found: list[Found] = []
        values = {
            **values_of(scope, query),
            "actor": query.actor,
            "newest": query.per_arm,
            "wanted": query.per_arm,
            "few": FEW_ROWS_MAX,
        }
        if "turn" in kinds:
            made = filtered_turns(filters, with_actor=query.actor is not None)
            if made is not None:
                rows = await self._unit.fetch(made[0], **values, **made[1])
                found += [_turn(row) for row in rows]
        others = tuple(kind for kind in OTHER_KINDS if kind in kinds)
        if others and (made := filtered_others(filters, others)) is not None:
            rows = await self._unit.fetch(made[0], **values, **made[1])
            found += [other_found(row) for row in rows]
        return found

    async def inside(
        self, scope: Scope, kind: str, query: TimeQuery, filters: Filter
    ) -> list[UUID]:
        """As `ArmStore.inside`, of turns or episodes that pass: they alone count for `most`."""
        if kind not in TIMED:
            return []
        made = Conditions()
        narrow = f"AND {made.of(filters, kind, 'm')}"
        statement = Statement(inside_template(kind, narrow), kept=False)
        rows = await self._unit.fetch(statement, **query.values(scope), **made.values)
        return [row["id"] for row in rows]

    async def naming(
        self, scope: Scope, kind: str, match: str, filters: Filter, *, few: int
    ) -> list[UUID]:
        """As `ArmStore.naming`, of memories that pass."""
        made = Conditions()
        condition = made.of(filters, kind, "m")
        text = _NAMING.format(noun=kind, live=_LIVE[kind], condition=condition)
        rows = await self._unit.fetch(
            Statement(text, kept=False),
            scopes=scope.visible_ids,
            match=match,
            few=few,
            **made.values,
        )
        return [row["id"] for row in rows]


def _turn(row: Any) -> Found:
    """Whether it passes stands behind all that a turn has."""
    return turn_found(row[:-1])._replace(passes=row[-1])
