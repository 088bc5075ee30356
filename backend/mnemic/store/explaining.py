"""What each arm of a recall found, and where in it a memory stands; asked for, never on the way.

The arms are those of the candidates, word for word; here they are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from mnemic.model.explanation import Arm, ArmHit, Explanation, KindSearch
from mnemic.model.filters import Filter
from mnemic.model.scope import Scope
from mnemic.store.candidate_statements import arms_of_kind
from mnemic.store.filtered import FEW_ROWS_MAX, filtered_arms
from mnemic.store.filters import FALSE, TRUE, Conditions
from mnemic.store.retrieval import CandidateQuery, values_of
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["Located", "explained", "located", "passes"]

RANKED_MAX = 1_000_000
KINDS = ("turn", "episode", "fact", "procedure")

_ARM = """
    SELECT '{name}' AS arm, a.id, CAST(a.place AS bigint) AS place,
           CAST(a.value AS double precision) AS value
      FROM ({arm}) a WHERE CAST(:only AS uuid) IS NULL OR a.id = CAST(:only AS uuid)
"""
_ROWS = """
    SELECT 'rows', NULL, count(*), NULL FROM mnemic.{noun}_vectors v
     WHERE {{owned:v}} AND v.model_id = :model
"""
_PASSING_ROWS = "SELECT 'rows', NULL, count(*), NULL FROM passing p"


def _read(arms: dict[str, str], rows: str) -> str:
    return " UNION ALL ".join([*(_ARM.format(name=name, arm=arms[name]) for name in arms), rows])


PLAIN = {
    (noun, with_actor): Statement(
        _read(arms_of_kind(noun, with_actor=with_actor), _ROWS.format(noun=noun))
    )
    for noun in KINDS
    for with_actor in ((False, True) if noun == "turn" else (False,))
}

LOCATE = Statement("""
    SELECT 'turn' AS kind, 'live' AS status, m.archived_at IS NOT NULL AS archived
      FROM mnemic.turns m WHERE {keyed:m} AND m.id = :id
    UNION ALL
    SELECT 'episode', 'live', m.archived_at IS NOT NULL
      FROM mnemic.episodes m WHERE {keyed:m} AND m.id = :id
    UNION ALL
    SELECT 'fact', m.status, m.archived_at IS NOT NULL
      FROM mnemic.facts m WHERE {keyed:m} AND m.id = :id
    UNION ALL
    SELECT 'procedure', m.status, m.archived_at IS NOT NULL
      FROM mnemic.procedures m WHERE {keyed:m} AND m.id = :id
""")


class Located(NamedTuple):
    """What a memory is, whether or not it can be found."""

    kind: str
    status: str
    archived: bool


async def located(unit: Unit, scope: Scope, identity: UUID) -> Located | None:
    """The memory, if it is visible from `scope`."""
    row = await unit.fetch_one(LOCATE, scopes=scope.visible_ids, id=identity)
    return None if row is None else Located(*row)


async def passes(
    unit: Unit, scope: Scope, filters: Filter | None, kind: str, identity: UUID
) -> bool:
    """Whether a memory that is visible from `scope` passes the filter."""
    made = Conditions()
    condition = made.of(filters, kind, "m")
    if condition in {TRUE, FALSE}:
        return condition == TRUE
    statement = Statement(
        f"SELECT {condition} AS passes FROM mnemic.{kind}s m WHERE {{keyed:m}} AND m.id = :id",
        kept=False,
    )
    row = await unit.fetch_one(statement, scopes=scope.visible_ids, id=identity, **made.values)
    return row is not None and bool(row["passes"])


async def explained(
    unit: Unit,
    scope: Scope,
    query: CandidateQuery,
    filters: Filter | None,
    kinds: Sequence[str],
    *,
    plain: Sequence[str],
    only: UUID | None = None,
) -> Explanation:
    """How the memories of the `kinds` were searched, and what each arm found.

    Of the `plain` kinds no filter is asked. With `only`, where that memory stands in each arm.
    """
    asked = query if only is None else replace(query, per_arm=RANKED_MAX)
    searches, arms = [], []
    for noun in kinds:
        with_actor = noun == "turn" and query.actor is not None
        made = Conditions()
        if noun in plain:
            plan = "hnsw" if noun in query.given else "exact"
            statement = PLAIN[noun, with_actor]
        elif (condition := made.of(filters, noun, "m")) != FALSE:
            head, named = filtered_arms(noun, condition, with_actor=with_actor)
            read = _read({name: f"SELECT * FROM {name}" for name in named}, _PASSING_ROWS)
            plan, statement = "filtered", Statement(f"{head} {read}", kept=False)
        else:
            searches.append(KindSearch(kind=noun, plan="none", rows=0))
            continue
        rows = await unit.fetch(
            statement,
            **values_of(scope, asked),
            **made.values,
            actor=query.actor,
            newest=asked.per_arm,
            wanted=query.per_arm,
            few=FEW_ROWS_MAX,
            only=only,
        )
        counted = next(row["place"] for row in rows if row["arm"] == "rows")
        searches.append(KindSearch(kind=noun, plan=plan, rows=counted))
        arms += _arms_of(noun, rows)
        arms += _further_of(noun, query, only)
    return Explanation(searches=tuple(searches), arms=tuple(arms))


def _further_of(noun: str, query: CandidateQuery, only: UUID | None) -> Iterator[Arm]:
    """What the arms of a date and of another name found, which were asked before."""
    for arm in query.further:
        hits = tuple(
            ArmHit(id=identity, place=place, value=None)
            for place, identity in enumerate(arm.ids, start=1)
            if only is None or identity == only
        )
        if arm.kind == noun and hits:
            yield Arm(kind=noun, name=arm.name, hits=hits)


def _arms_of(noun: str, rows: Iterable[Any]) -> list[Arm]:
    found: dict[str, list[ArmHit]] = {}
    for arm, identity, place, value in rows:
        if arm != "rows":
            hit = ArmHit(id=identity, place=place, value=value)
            found.setdefault(arm, []).append(hit)
    return [
        Arm(kind=noun, name=name, hits=tuple(sorted(hits, key=lambda hit: hit.place)))
        for name, hits in found.items()
    ]
