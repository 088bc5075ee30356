"""Which way the nearest are found, and that each way finds them, whatever a neighbour holds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from placement_ground import (
    BOUND,
    DIMENSIONS,
    FEW,
    LARGE,
    LARGE_TURNS,
    MOST,
    QUARTER,
    SMALL,
    SMALL_ROWS,
    Ground,
    Seeded,
    direction,
)

from mnemic import MemoryManager, Scope
from mnemic.model.route import Plan
from mnemic.service.tools import Tools
from mnemic.store import candidate_statements, roles
from mnemic.store.approximate import (
    ACTOR,
    OVERFETCH,
    PROMOTED,
    Near,
    Routing,
    nearest_statement,
)
from mnemic.store.embedding_models import RegisteredModel
from mnemic.store.retrieval import CandidateQuery
from mnemic.store.statement import Statement
from mnemic.store.turns import actor_id
from mnemic.store.unit import Unit
from mnemic.testing import a_fact, a_scope
from mnemic.wiring import Wiring

QUESTIONS = [f"question {number}" for number in range(30)]
DIGITS = LARGE.tenant.id.hex[:8]
TYPES = {
    "tenant": "uuid",
    "scopes": "uuid[]",
    "vector": "halfvec",
    "model": "smallint",
    "actor": "uuid",
    "fetch": "bigint",
    "near": "bigint",
    "words": "bigint",
    "match": "text",
    "either": "text",
    "rank": "text",
    "around": "int[]",
    "also": "uuid[]",
}

Exact = Callable[[Scope, Any, int], Awaitable[list[UUID]]]


async def _near(
    tools: Tools, scope: Scope, text: str, *, rows: int, per_arm: int = 10, legs: str = "turn"
) -> tuple[Near, list[UUID]]:
    """Which way was taken for a scope of `rows`, and the nearest that a recall would then see."""
    model = await tools.live_model()
    query = CandidateQuery(
        vector=direction(text),
        model=model.id,
        match=None,
        rank=None,
        per_arm=per_arm,
        around=0,
        actor=actor_id(scope.tenant.id, "User") if ACTOR in legs else None,
    )
    routing = Routing(rows=dict.fromkeys(legs.split(), rows), exact_rows_max=BOUND, ef_search=200)

    async def search(unit: Unit) -> tuple[Near, list[UUID]]:
        near = await unit.retrieval.approximate.nearest(scope, query, routing)
        found = await unit.retrieval.candidates(scope, replace(query, given=near.ids), ("turn",))
        placed = [one for one in found if one.near_place is not None]
        placed.sort(key=lambda one: one.near_place or 0)
        return near, [one.candidate.id for one in placed]

    return await tools.transact(scope.tenant.id, search, read_only=True)


async def _share_found(tools: Tools, exact: Exact, scope: Scope, *, rows: int, plan: Plan) -> float:
    """How many of the ten true nearest are found, over all questions."""
    shares = []
    for text in QUESTIONS:
        near, found = await _near(tools, scope, text, rows=rows)
        assert [leg.plan for leg in near.legs] == [plan]
        true = await exact(scope, direction(text), 10)
        assert len(found) == len(true) == 10
        shares.append(len(set(found) & set(true)) / 10)
    return sum(shares) / len(shares)


async def test_a_small_tenant_finds_its_nearest_beside_a_neighbour_a_hundred_times_as_large(
    tools: Tools, exact: Exact
) -> None:
    found = await _share_found(tools, exact, SMALL, rows=SMALL_ROWS, plan=Plan.EXACT)

    assert found >= 0.99


@pytest.mark.parametrize("scope", [QUARTER, MOST], ids=["a_quarter_of_it", "most_of_it"])
async def test_a_promoted_tenant_finds_nearly_all_of_its_nearest(
    tools: Tools, exact: Exact, scope: Scope
) -> None:
    found = await _share_found(tools, exact, scope, rows=BOUND + 1, plan=Plan.HNSW)

    assert found >= 0.95


async def test_the_exact_route_of_a_promoted_tenant_finds_all(tools: Tools, exact: Exact) -> None:
    found = await _share_found(tools, exact, MOST, rows=BOUND, plan=Plan.EXACT)

    assert found >= 0.99


async def test_the_index_of_a_tenant_gives_no_row_of_another(
    tools: Tools, seen: asyncpg.Connection
) -> None:
    for text in QUESTIONS[:10]:
        near, found = await _near(tools, MOST, text, rows=BOUND + 1, legs=f"turn {ACTOR}")
        given = {one for ids in near.ids.values() for one in ids} | set(found)
        owners = await seen.fetch(
            "SELECT DISTINCT tenant_id FROM mnemic.turns WHERE id = ANY($1::uuid[])", list(given)
        )
        actors = await seen.fetch(
            "SELECT DISTINCT actor FROM mnemic.turns WHERE id = ANY($1::uuid[])", near.ids[ACTOR]
        )

        assert {leg.plan for leg in near.legs} == {Plan.HNSW}
        assert [row["tenant_id"] for row in owners] == [LARGE.tenant.id]
        assert [row["actor"] for row in actors] == ["User"]


async def test_a_large_tenant_without_an_index_is_searched_exactly(
    tools: Tools, exact: Exact
) -> None:
    near, found = await _near(tools, SMALL, "question", rows=BOUND + 1)

    assert [leg.plan for leg in near.legs] == [Plan.EXACT]
    assert near.legs[0].why == "no valid index of the tenant's own"
    assert found == await exact(SMALL, direction("question"), 10)


async def test_an_index_that_gives_too_few_is_not_believed(
    ground: Ground, seen: asyncpg.Connection, exact: Exact
) -> None:
    """In a scope that holds few of the tenant's rows it gives up before it meets enough of them."""
    place = f"ROLE mnemic_app IN DATABASE {ground.name}"
    await seen.execute(f"ALTER {place} SET hnsw.max_scan_tuples = 1")
    async with MemoryManager(Wiring(ground.settings, embedder=Seeded())) as memory:
        near, found = await _near(memory._tools, FEW, "question", rows=BOUND + 1)
    await seen.execute(f"ALTER {place} RESET hnsw.max_scan_tuples")

    assert [leg.plan for leg in near.legs] == [Plan.EXACT]
    assert near.legs[0].why.startswith("the index gave ")
    assert found == await exact(FEW, direction("question"), 10)


@pytest.mark.parametrize("limit", [1, 10, 60, 100])
@pytest.mark.parametrize("scope", [SMALL, QUARTER, MOST], ids=["small", "quarter", "most"])
async def test_as_many_come_back_as_are_asked_for(
    memory: MemoryManager, scope: Scope, limit: int
) -> None:
    found = await memory.recall("question", scope=scope, limit=limit, floor=0.0)

    assert found.returned == limit
    assert len({hit.id for hit in found.hits}) == limit
    plan = Plan.EXACT if scope == SMALL else Plan.HNSW
    assert [leg.plan for leg in found.route if leg.name == "turn"] == [plan]


async def test_where_few_are_there_all_of_them_come_back(memory: MemoryManager) -> None:
    found = await memory.recall("question", scope=FEW, limit=100, floor=0.0)

    assert found.returned == LARGE_TURNS[FEW]


async def test_more_facts_come_back_than_an_arm_finds_when_more_are_asked_for(
    memory: MemoryManager,
) -> None:
    scope = a_scope("many-facts")
    await asyncio.gather(
        *(memory.store_fact(a_fact(object=f"tool {n}"), scope=scope) for n in range(45))
    )

    found = await memory.recall("something else", scope=scope, limit=40, floor=0.0)

    assert found.returned == 40


@pytest.mark.parametrize("leg", ["turn", ACTOR])
async def test_the_route_by_index_reads_the_tenants_index_and_sorts_what_it_gave_alone(
    ground: Ground, tools: Tools, leg: str
) -> None:
    nodes = await _nodes(ground, nearest_statement(leg, DIMENSIONS), await tools.live_model())

    [index] = [node for node in nodes if "Index Name" in node]
    assert index["Index Name"].startswith(f"turn_vectors_default_{DIGITS}")
    assert "Order By" in index
    [sort] = [node for node in nodes if node["Node Type"] == "Sort"]
    assert sort["Plans"][0]["Actual Rows"] == 30 * OVERFETCH


async def test_the_route_is_no_matter_of_cost(ground: Ground, tools: Tools) -> None:
    """Of a scope with few rows the planner would compare all, if it were asked."""
    statement = nearest_statement("turn", DIMENSIONS)

    nodes = await _nodes(ground, statement, await tools.live_model(), scope=FEW)

    [index] = [node for node in nodes if "Index Name" in node]
    assert index["Index Name"].startswith(f"turn_vectors_default_{DIGITS}")


async def test_the_exact_route_of_a_promoted_tenant_never_takes_its_index(
    ground: Ground, tools: Tools
) -> None:
    nodes = await _nodes(ground, candidate_statements.TURNS, await tools.live_model())

    scans = {node["Index Name"] for node in nodes if "Index Name" in node}
    assert "turns_seq_key" in scans
    assert not [name for name in scans if name.startswith(f"turn_vectors_default_{DIGITS}")]


async def _nodes(
    ground: Ground, statement: Statement, model: RegisteredModel, *, scope: Scope = MOST
) -> list[Any]:
    """The plan of the seventh execution, as the role that serves and in the unit's own way."""
    vector = "'[" + ",".join(map(str, direction("question"))) + "]'::halfvec"
    given = {
        "tenant": f"'{LARGE.tenant.id}'",
        "scopes": f"ARRAY['{scope.id}', '{LARGE.id}']::uuid[]",
        "vector": vector,
        "model": str(model.id),
        "actor": f"'{actor_id(LARGE.tenant.id, 'User')}'",
        "fetch": str(30 * OVERFETCH),
        "near": "30",
        "words": "0",
        "match": "NULL",
        "either": "NULL",
        "rank": "NULL",
        "around": "ARRAY[0]",
        "also": "'{}'",
    }
    connection = await asyncpg.connect(ground.servers.postgres_url(roles.APP_ROLE, ground.name))
    await connection.set_type_codec("json", schema="pg_catalog", encoder=str, decoder=json.loads)
    await connection.execute(
        "SET plan_cache_mode = force_custom_plan; SET jit = off; BEGIN;"
        f"SELECT set_config('mnemic.tenant_id', '{LARGE.tenant.id}', true)"
    )
    if statement is not candidate_statements.TURNS:
        tuned = await connection.fetch(
            PROMOTED.sql,
            *PROMOTED.arguments({"ef": "200", "tenant": LARGE.tenant.id, "model": model.id}),
        )
        assert len(tuned) == 1
    types = ", ".join(TYPES[name] for name in statement.names)
    call = f"hot({', '.join(given[name] for name in statement.names)})"
    await connection.execute(f"PREPARE hot({types}) AS {statement.sql}")
    for _ in range(6):
        await connection.execute(f"EXECUTE {call}")
    [row] = await connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE {call}")
    await connection.close()

    def below(node: dict[str, Any]) -> list[dict[str, Any]]:
        return [node, *(one for child in node.get("Plans", []) for one in below(child))]

    return below(row[0][0]["Plan"])
