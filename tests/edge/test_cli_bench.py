"""`mnemic bench`: its documents, its refusals, and that it sees what it is there to see."""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from redis.asyncio import Redis

from mnemic.edge.cli.bench_ground import QUESTIONS, Ground, fill_scope
from mnemic.edge.cli.bench_latency import (
    BESIDE,
    COMPARED_BESIDE,
    OPERATIONS,
    SCOPE,
    Latency,
    Size,
    measure,
)
from mnemic.edge.cli.bench_soak import COUNT_GROWTH_MAX, growth_of, soak
from mnemic.embed import open_embedder
from mnemic.errors import MnemicError
from mnemic.service.procedures import match_procedures
from mnemic.service.recall import parse_query, recall
from mnemic.settings import EmbeddingSettings, MemorySettings
from mnemic.store.measuring.bare import Recorder
from mnemic.store.measuring.filling import fill
from mnemic.store.statement import Statement
from mnemic.wiring import Wiring

SMALL = ("--rows", "400", "--tenants", "20", "--memories", "32", "--rounds", "2", "--calls", "4")
COUNTS = {"descriptors", "postgres", "valkey"}


@pytest.fixture
async def ground(servers: Any, database: Any) -> AsyncIterator[Ground]:
    """A database of the test's own, on the servers of the run."""
    settings = MemorySettings(
        database_url=database.app_url,
        redis_url=servers.redis_url,
        database={"require_durable": False},
    )
    wiring = Wiring(settings, embedder=open_embedder(EmbeddingSettings()))
    tools = await wiring.open()
    yield Ground(tools, database.app_url, database.admin_url, servers.redis_url)
    await wiring.close()


def not_counted(_count: int) -> None:
    """Nobody watches."""


@pytest.mark.story
def test_latency_tells_a_ratio_for_each_operation(bare: Any, tmp_path: Path) -> None:
    ended = bare("bench", "latency", *SMALL, "--json")

    document = ended.document
    assert ended.code == 0, ended.err
    assert tuple(document["ratios"]) == OPERATIONS
    assert all(math.isfinite(one) and one > 0 for one in document["ratios"].values())
    assert {name: document[name] for name in ("rows", "tenants", "memories", "rounds")} == {
        "rows": 432,
        "tenants": 21,
        "memories": 32,
        "rounds": 2,
    }
    told = {one["name"]: one for one in document["operations"]}
    assert tuple(told) == (*OPERATIONS, *BESIDE)
    assert all(0 < one["ours_ms"]["p50"] <= one["ours_ms"]["p95"] for one in told.values())
    assert "bare_ms" in told["recall"]
    assert not [name for name in BESIDE if name not in COMPARED_BESIDE and "bare_ms" in told[name]]
    assert not (tmp_path / "data").exists(), "it used the data folder that is set"


@pytest.mark.parametrize(
    ("arguments", "field", "words"),
    [
        (("--rows", "3"), None, "'--rows': Input should be greater than or equal to 4"),
        (("--rounds", "0"), None, "'--rounds': Input should be greater than or equal to 1"),
        (("--rows", "79", "--tenants", "20"), "rows", "must be at least 80, 4 for each of"),
    ],
)
def test_a_size_that_cannot_be_is_refused_before_a_server_starts(
    bare: Any, arguments: tuple[str, ...], field: str | None, words: str
) -> None:
    ended = bare("bench", "latency", *arguments, "--json")

    assert ended.code == 2
    assert words in ended.document["error"]["message"]
    assert ended.document["error"].get("field") == field


async def test_the_database_is_filled_with_rows_that_the_product_reads(ground: Ground) -> None:
    model = await ground.tools.live_model()

    await fill(
        ground.admin_url,
        rows=400,
        tenants=20,
        model=model.id,
        dimensions=384,
        progress=not_counted,
    )

    connection = await asyncpg.connect(ground.admin_url)
    kinds = ("turn", "episode", "fact", "procedure")
    rows = [await connection.fetchval(f"SELECT count(*) FROM mnemic.{one}s") for one in kinds]
    joined = [
        await connection.fetchval(
            f"SELECT count(*) FROM mnemic.{one}s m JOIN mnemic.{one}_vectors v"
            "  ON v.tenant_id = m.tenant_id AND v.scope_id = m.scope_id AND v.memory_id = m.id"
            "  JOIN mnemic.scopes s ON s.tenant_id = m.tenant_id AND s.id = m.scope_id"
            "  JOIN mnemic.tenants t ON t.tenant_id = m.tenant_id"
        )
        for one in kinds
    ]
    different = await connection.fetchval(
        "SELECT count(DISTINCT embedding) FROM mnemic.turn_vectors"
    )
    pending = await connection.fetchval(
        "SELECT count(*) FROM mnemic.tenants_due($1, 9, now())", "count_terms"
    )
    await connection.close()
    assert rows == joined == [100] * 4
    assert different >= 95
    assert pending == 0


async def test_bare_sends_what_ours_sends(ground: Ground) -> None:
    recorder = Recorder(ground.tools.database)
    statement = Statement("SELECT CAST(:number AS int) AS number, CAST(:tenant AS uuid) AS tenant")

    row = await recorder.transact(
        SCOPE.tenant.id, lambda unit: unit.fetch_one(statement, number=7), read_only=True
    )

    [sent] = recorder.transactions
    assert row is not None
    assert sent.begin.startswith("BEGIN READ ONLY; SELECT set_config('mnemic.tenant_id', '")
    assert str(SCOPE.tenant.id) in sent.begin
    assert sent.statements == ((statement.sql, [7, SCOPE.tenant.id]),)
    assert tuple(row) == (7, SCOPE.tenant.id)


async def test_asking_takes_as_few_transactions_as_can_be_and_reads_whole_only_what_is_answered(
    ground: Ground,
) -> None:
    await fill_scope(ground.tools, SCOPE, 80)
    recorder = Recorder(ground.tools.database)
    tools = replace(ground.tools, database=recorder)

    matched = await match_procedures(tools, QUESTIONS[0], scope=SCOPE, limit=2)
    matching, recorder.transactions = recorder.transactions, []
    query, _ = parse_query(tools, QUESTIONS[0], limit=None, memory_types=None, floor=0.0)
    recalled = await recall(tools, query, scope=SCOPE)

    assert [len(one.statements) for one in matching] == [2, 2]
    assert all("READ ONLY" in one.begin for one in (*matching, *recorder.transactions))
    assert [one.id for one in matched] == matching[-1].statements[-1][1][-1]
    # The vector is known by now, from the matching: what is known, turns, other kinds, and rows.
    assert [len(one.statements) for one in recorder.transactions] == [4]
    assert len({hit.kind for hit in recalled.hits}) > 1


async def test_recall_with_embedding_asks_what_no_cache_knows(ground: Ground) -> None:
    await fill_scope(ground.tools, SCOPE, 16)
    size = Size(rows=0, tenants=0, memories=16, rounds=2, calls=3)
    asked: list[str] = []
    inner = ground.tools.embedder

    class Listening:
        signature = inner.signature

        async def embed(self, texts: list[str]) -> Any:
            asked.extend(texts)
            return await inner.embed(texts)

        async def close(self) -> None:
            """Nothing is open."""

    listening = replace(ground, tools=replace(ground.tools, embedder=Listening()))
    timed = {one.name: one for one in await measure(listening, size, progress=not_counted)}

    new = [text for text in asked if "meet" in text and text not in QUESTIONS]
    calls = len(QUESTIONS) + size.rounds * size.calls  # it is warmed up first
    assert len(new) == len(set(new)) == 2 * calls
    assert [len(timed[name].ours) for name in BESIDE] == [size.rounds] * len(BESIDE)


async def test_a_bare_driver_that_sees_something_else_is_refused(
    ground: Ground, shared_database: Any
) -> None:
    await fill_scope(ground.tools, SCOPE, 16)
    elsewhere = replace(ground, database_url=shared_database.app_url)
    size = Size(rows=0, tenants=0, memories=16, rounds=1, calls=2)

    with pytest.raises(MnemicError, match="does not see what episodic_search sees"):
        await measure(elsewhere, size, progress=not_counted)


def test_a_ratio_is_the_median_over_the_rounds_of_p95_by_p95() -> None:
    rounds = Latency(
        name="any",
        ours=((2.0,) * 20, (9.0,) * 20, (3.0,) * 20),
        bare=((1.0,) * 20, (1.0,) * 20, (1.0,) * 20),
    )

    assert rounds.ratios == (2.0, 9.0, 3.0)
    assert rounds.ratio == 3.0


async def test_a_soak_of_what_leaks_nothing_keeps_its_descriptors_and_connections(
    ground: Ground,
) -> None:
    done = await soak(ground, operations=1_000, recalls=60, progress=not_counted)

    assert {name for name in COUNTS if not done.growths[name].is_flat} == set()
    assert all(one.rss > 0 and one.postgres > 1 and one.valkey > 1 for one in done.samples)
    assert len(done.samples) == 100


async def test_a_soak_finds_a_descriptor_that_leaks(ground: Ground) -> None:
    leaked: list[int] = []

    async def leak() -> None:
        leaked.append(os.open(os.devnull, os.O_RDONLY))

    done = await soak(ground, operations=100, recalls=0, progress=not_counted, beside=leak)
    for one in leaked:
        os.close(one)

    assert not done.is_flat
    assert {name for name in COUNTS if not done.growths[name].is_flat} == {"descriptors"}


async def test_a_soak_finds_connections_that_leak(ground: Ground) -> None:
    async with AsyncExitStack() as leaked:

        async def leak() -> None:
            if len(done) % 5 == 0:
                postgres = await asyncpg.connect(ground.database_url)
                leaked.push_async_callback(postgres.close)
                valkey = Redis.from_url(ground.redis_url, single_connection_client=True)
                await leaked.enter_async_context(valkey)
            done.append(None)

        done: list[None] = []
        found = await soak(ground, operations=100, recalls=0, progress=not_counted, beside=leak)

    assert {name for name in COUNTS if not found.growths[name].is_flat} == COUNTS


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([9] * 100, "flat"),
        ([5, 9, 12, 14, *[15] * 96], "flat"),  # warming up
        ([15, 16] * 50, "flat"),  # one comes and goes
        ([15] * 98 + [16] * 2, "flat"),
        ([15 + place // 50 for place in range(100)], "grown"),  # one more in the second half
        ([100 - place for place in range(100)], "flat"),
    ],
)
def test_growth_is_what_a_line_gains_after_warming_up(values: list[int], verdict: str) -> None:
    growth = growth_of(values, limit=COUNT_GROWTH_MAX)

    assert ("flat" if growth.is_flat else "grown") == verdict


def test_soak_is_told_as_one_document(bare: Any) -> None:
    ended = bare("bench", "soak", "--operations", "300", "--recalls", "0", "--json")

    document = ended.document
    assert ended.code == (0 if document["flat"] else 1), ended.err
    assert set(document["growth"]) == {"rss", *COUNTS}
    assert len(document["samples"]) == 100
