"""The nearest vectors of a large tenant, by an index of its own.

A route is taken by name, never by cost: the planner would take such an index for a few hundred
rows, where comparing them all is twenty times as fast. So the exact statements order by a distance
`+ 0`, which no index serves, and the ones here by the bare operator, with sorting made so dear
that nothing but the index can give the order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from uuid import UUID

from mnemic.model.route import Leg, Plan
from mnemic.model.scope import Scope
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.retrieval import CandidateQuery
    from mnemic.store.unit import Unit

__all__ = ["ACTOR", "ApproximateStore", "Near", "Routing", "nearest_statement"]

ACTOR = "actor"
"""The leg of the turns that the actor named in the question spoke."""

OVERFETCH = 4
"""How many times as many as wanted are taken from the index, to be compared exactly."""

EF_MAX = 1_000  # what pgvector takes

# What the index needs for this transaction is set where a tenant has one, and nowhere else. The
# index itself is looked at: somebody may have dropped it, or broken off while he built it again.
PROMOTED = Statement("""
    SELECT p.table_name, set_config('enable_sort', 'off', true),
           set_config('hnsw.iterative_scan', 'relaxed_order', true),
           set_config('hnsw.ef_search', CAST(:ef AS text), true)
      FROM mnemic.promoted_indexes p
      JOIN pg_catalog.pg_class c ON c.relname = p.index_name
       AND c.relnamespace = to_regnamespace('mnemic')
      JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid AND i.indisvalid
     WHERE {tenant:p} AND p.model_id = :model AND p.state = 'valid'
""")

SORTING = Statement("SELECT set_config('enable_sort', 'on', true)")

# The planner takes a partial index only when it sees the tenant and the model, as in the plans
# that are made anew for each call (`plan_cache_mode`). The cast is the index's own.
_NEAREST = """
    SELECT n.memory_id
      FROM (SELECT v.memory_id, (v.embedding <#> CAST(:vector AS halfvec)) + 0 AS distance
              FROM mnemic.{noun}_vectors v
             WHERE {{owned:v}} AND v.model_id = :model {narrow}
             ORDER BY CAST(v.embedding AS halfvec({dimensions})) <#> CAST(:vector AS halfvec)
             LIMIT :fetch) n
     ORDER BY n.distance, n.memory_id LIMIT :near
"""


@cache
def nearest_statement(leg: str, dimensions: int) -> Statement:
    """The nearest of a leg by the tenant's own index, best first."""
    of_actor = leg == ACTOR
    return Statement(
        _NEAREST.format(
            noun="turn" if of_actor else leg,
            dimensions=int(dimensions),
            narrow="AND v.actor_id = :actor" if of_actor else "",
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """What decides a route: about how many rows each leg sees, and up to how many all are compared.

    `ef_search` is how far the index looks around.
    """

    rows: Mapping[str, int]
    exact_rows_max: int
    ef_search: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """The nearest of the legs that went by an index, best first; the others are searched exactly.

    `legs` says which way each went, and why.
    """

    ids: Mapping[str, list[UUID]]
    legs: tuple[Leg, ...]


class ApproximateStore:
    """Asks the indexes of large tenants. Reads only."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def nearest(self, scope: Scope, query: CandidateQuery, routing: Routing) -> Near:
        """What the indexes give for the legs beyond the bound; a tenant within it costs nothing.

        An index that gives fewer than wanted is not believed, and holds nothing of the past: such
        a leg is searched exactly.
        """
        if query.vector is None:
            return Near(ids={}, legs=())
        large = {name for name, rows in routing.rows.items() if rows > routing.exact_rows_max}
        if self._unit.moment is not None and large:
            return Near(ids={}, legs=tuple(_past_leg(*one) for one in routing.rows.items()))
        tables = await self._promoted(query, routing) if large else frozenset()
        ids: dict[str, list[UUID]] = {}
        legs = []
        for name, rows in routing.rows.items():
            plan, why = Plan.EXACT, "few enough to compare all"
            if name in large:
                why = "no valid index of the tenant's own"
                if _table(name) in tables:
                    found = await self._ask(name, scope, query)
                    if len(found) == query.per_arm:
                        ids[name] = found
                        plan, why = Plan.HNSW, "more than are compared one by one"
                    else:
                        why = f"the index gave {len(found)} of {query.per_arm}"
            legs.append(Leg(name=name, plan=plan, rows=rows, why=why))
        if tables:
            await self._unit.fetch_one(SORTING)
        return Near(ids=ids, legs=tuple(legs))

    async def _promoted(self, query: CandidateQuery, routing: Routing) -> frozenset[str]:
        """The tables whose vectors of the model have a valid index of the tenant's own."""
        ef = min(EF_MAX, max(routing.ef_search, query.per_arm * OVERFETCH))
        rows = await self._unit.fetch(PROMOTED, model=query.model, ef=str(ef))
        return frozenset(row["table_name"] for row in rows)

    async def _ask(self, name: str, scope: Scope, query: CandidateQuery) -> list[UUID]:
        assert query.vector is not None  # noqa: S101 - looked at by `nearest`
        rows = await self._unit.fetch(
            nearest_statement(name, len(query.vector)),
            scopes=scope.visible_ids,
            model=query.model,
            vector=query.vector,
            actor=query.actor,
            fetch=query.per_arm * OVERFETCH,
            near=query.per_arm,
        )
        return [row["memory_id"] for row in rows]


def _past_leg(name: str, rows: int) -> Leg:
    return Leg(name=name, plan=Plan.EXACT, rows=rows, why="an index holds no past")


def _table(leg: str) -> str:
    return f"{'turn' if leg == ACTOR else leg}_vectors"
