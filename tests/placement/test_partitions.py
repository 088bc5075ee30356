"""A tenant moves to partitions of its own, and back, while it is read and written."""

from __future__ import annotations

import asyncio
import signal
import sys
from itertools import count
from typing import Any

import asyncpg
import pytest
from placement_ground import BOUND, Ground, Seeded, until

from mnemic import InvalidInput, MemoryManager, Scope, StoreUnavailable
from mnemic.model.route import Plan
from mnemic.service.doctor import Patient, Verdict, examine
from mnemic.service.isolate import isolate
from mnemic.service.promote import owning
from mnemic.store.catalogue import violations
from mnemic.store.promoting import TABLES, own_partition
from mnemic.store.statement import Statement
from mnemic.store.unit import Unit
from mnemic.store.upgrade import check
from mnemic.testing import a_fact, a_scope, a_turn

HELD = Statement("""
    SELECT count(*) AS n, count(DISTINCT v.memory_id) AS different
      FROM mnemic.turn_vectors v WHERE {tenant:v}
""")
PLACES = """
    SELECT tableoid::regclass::text AS place, count(*) AS n FROM mnemic.{table}
     WHERE tenant_id = $1 GROUP BY 1
"""
MOVER = """
import asyncio, sys
from mnemic import Scope
from mnemic.service.isolate import isolate
from mnemic.service.promote import owning
from mnemic.settings import MaintenanceSettings

async def main(url, name, isolation):
    async with owning(url, MaintenanceSettings()) as owner:
        await isolate(owner, Scope.user(name).tenant, isolation, lock_seconds=30)

asyncio.run(main(*sys.argv[1:]))
"""


async def _places(seen: asyncpg.Connection, scope: Scope, kind: str = "turn") -> dict[str, int]:
    rows = await seen.fetch(PLACES.format(table=TABLES[kind]), scope.tenant.id)
    return {row["place"].removeprefix("mnemic."): row["n"] for row in rows}


def _own(scope: Scope, kind: str = "turn") -> str:
    return own_partition(TABLES[kind], scope.tenant.id)


async def _spoken(memory: MemoryManager, scope: Scope, turns: int = 20) -> Scope:
    session = scope.session("s")
    await memory.sessions.append([a_turn(f"said {n}") for n in range(turns)], scope=session)
    await memory.store_fact(a_fact(), scope=scope)
    return session


async def test_a_tenant_moves_to_its_own_partitions_and_back_and_is_found_all_along(
    memory: MemoryManager, seen: asyncpg.Connection, ground: Ground
) -> None:
    scope = a_scope()
    session = await _spoken(memory, scope)
    before = await memory.recall("said 7", scope=session, floor=0.0)

    moved = await memory.maintenance.isolate(scope=scope, isolation="dedicated")
    apart = (await _places(seen, scope), await _places(seen, scope, "fact"))
    while_apart = await memory.recall("said 7", scope=session, floor=0.0)
    broken, differences = await violations(seen), check(ground.owner_url).differences
    again = await memory.maintenance.isolate(scope=scope, isolation="dedicated")
    back = await memory.maintenance.isolate(scope=scope, isolation="shared")

    assert (moved, again, back) == (4, 0, 4)
    assert apart == ({_own(scope): 20}, {_own(scope, "fact"): 1})
    assert (broken, differences) == ([], ())
    assert await _places(seen, scope) == {"turn_vectors_default": 20}
    after = await memory.recall("said 7", scope=session, floor=0.0)
    assert [hit.id for hit in before.hits] == [hit.id for hit in while_apart.hits]
    assert [hit.id for hit in before.hits] == [hit.id for hit in after.hits]
    assert await seen.fetchval("SELECT to_regclass($1)", f"mnemic.{_own(scope)}") is None


async def test_the_role_that_serves_has_no_right_on_a_tenants_own_partition(
    memory: MemoryManager, ground: Ground
) -> None:
    scope = a_scope()
    await _spoken(memory, scope)
    await memory.maintenance.isolate(scope=scope, isolation="dedicated")

    app = await asyncpg.connect(ground.servers.postgres_url("mnemic_app", ground.name))
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await app.fetch(f"SELECT * FROM mnemic.{_own(scope)}")
    visible = await app.fetchval("SELECT count(*) FROM mnemic.turn_vectors")
    await app.close()
    owner = await asyncpg.connect(ground.owner_url)
    seen_by_owner = await owner.fetchval(f"SELECT count(*) FROM mnemic.{_own(scope)}")
    await owner.close()

    assert (visible, seen_by_owner) == (0, 0)


@pytest.mark.parametrize("isolation", ["dedicated", "shared"])
async def test_while_a_tenant_moves_nothing_is_lost_and_nothing_seen_twice(
    memory: MemoryManager, seen: asyncpg.Connection, isolation: str
) -> None:
    scope = a_scope()
    session = await _spoken(memory, scope, turns=60)
    if isolation == "shared":
        await memory.maintenance.isolate(scope=scope, isolation="dedicated")
    numbers, stop = count(60), asyncio.Event()
    acknowledged = 60
    reads = 0

    async def write() -> None:
        nonlocal acknowledged
        while not stop.is_set():
            await memory.sessions.append([a_turn(f"said {next(numbers)}")], scope=session)
            acknowledged += 1

    async def read() -> None:
        nonlocal reads
        while not stop.is_set():
            known = acknowledged
            row = await memory._tools.transact(scope.tenant.id, _held, read_only=True)
            assert row["n"] == row["different"]
            assert row["n"] >= known
            found = await memory.recall("said", scope=session, floor=0.0)
            assert found.returned == 10
            reads += 1

    async def move() -> int:
        try:
            return await memory.maintenance.isolate(scope=scope, isolation=isolation)
        finally:
            stop.set()

    _, _, _, _, moved = await asyncio.gather(write(), write(), read(), read(), move())

    assert moved == 4
    assert reads > 2
    assert acknowledged > 60
    place = _own(scope) if isolation == "dedicated" else "turn_vectors_default"
    assert await _places(seen, scope) == {place: acknowledged}


async def _held(unit: Unit) -> Any:
    return await unit.fetch_one(HELD)


async def test_what_is_forgotten_while_a_tenant_moves_stays_forgotten(
    memory: MemoryManager, seen: asyncpg.Connection, ground: Ground
) -> None:
    """A copy of the rows exists already when one of them goes, and another one changes."""
    scope = a_scope()
    session = await _spoken(memory, scope)
    [gone] = await memory.sessions.append([a_turn("a secret")], scope=session)
    # Whoever reads keeps the move from its last step.
    reader = await asyncpg.connect(ground.servers.postgres_url("postgres", ground.name))
    reading = reader.transaction()
    await reading.start()
    await reader.execute("LOCK TABLE mnemic.turn_vectors IN ACCESS SHARE MODE")
    moving = asyncio.create_task(memory.maintenance.isolate(scope=scope, isolation="dedicated"))
    copied = f"SELECT count(*) = 21 FROM mnemic.{_own(scope)}"
    await until(lambda: _told(seen, copied))

    await memory.forget([gone.id], scope=session)
    [late] = await memory.sessions.append([a_turn("said late")], scope=session)
    await reading.rollback()
    await reader.close()
    await moving

    kept = await seen.fetch(f"SELECT memory_id FROM mnemic.{_own(scope)}")
    assert len(kept) == 21
    assert gone.id not in {row["memory_id"] for row in kept}
    assert late.id in {row["memory_id"] for row in kept}


async def _told(seen: asyncpg.Connection, question: str) -> bool:
    try:
        return bool(await seen.fetchval(question))
    except asyncpg.UndefinedTableError:
        return False


@pytest.mark.parametrize("isolation", ["dedicated", "shared"])
async def test_a_move_that_is_killed_is_finished_by_the_worker(
    memory: MemoryManager, seen: asyncpg.Connection, ground: Ground, isolation: str
) -> None:
    scope = a_scope()
    session = await _spoken(memory, scope)
    if isolation == "shared":
        await memory.maintenance.isolate(scope=scope, isolation="dedicated")
    # Somebody who reads the second table stops the move behind the first.
    reader = await asyncpg.connect(ground.servers.postgres_url("postgres", ground.name))
    reading = reader.transaction()
    await reading.start()
    await reader.execute("LOCK TABLE mnemic.episode_vectors IN ACCESS SHARE MODE")
    mover = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", MOVER, ground.owner_url, scope.tenant.external_id, isolation)
    )
    first = _own(scope) if isolation == "dedicated" else "turn_vectors_default"
    await until(lambda: _is_at(seen, scope, first))
    await until(lambda: _told(seen, WAITS))

    mover.send_signal(signal.SIGKILL)
    await mover.wait()
    await until(lambda: _told(seen, NOBODY_AT_IT))
    told = await _finding(ground)
    meanwhile = await memory.recall("said 7", scope=session, floor=0.0)
    broken = await violations(seen)
    await reading.rollback()
    await reader.close()
    report = await memory.maintenance.promote_vectors()

    assert told.verdict is Verdict.WARN
    assert str(scope.tenant.id) in told.detail
    assert "mnemic db promote" in (told.remedy or "")
    assert meanwhile.returned == 10
    assert broken == []
    assert report.failed == 0
    assert await _places(seen, scope) == {first: 20}
    assert (await _finding(ground)).verdict is Verdict.OK
    assert await memory.maintenance.isolate(scope=scope, isolation=isolation) == 0


WAITS = """
    SELECT count(*) > 0 FROM pg_stat_activity
     WHERE application_name = 'mnemic-placement' AND query LIKE '%episode_vectors IN ACCESS%'
"""
NOBODY_AT_IT = """
    SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'mnemic-placement'
"""


async def _is_at(seen: asyncpg.Connection, scope: Scope, place: str) -> bool:
    return set(await _places(seen, scope)) == {place}


async def _finding(ground: Ground) -> Any:
    patient = Patient(
        database_url=ground.servers.postgres_url("mnemic_app", ground.name),
        redis_url=None,
        data_dir=None,
        embeds_database=False,
        database=ground.settings.database,
        open_embedder=Seeded,
    )
    return next(one for one in await examine(patient) if one.check == "partitions")


async def test_a_promoted_tenant_is_asked_by_its_index_in_either_place(
    memory: MemoryManager, ground: Ground
) -> None:
    scope = a_scope()
    await ground.fill(scope, {scope: BOUND + 100})
    await memory.maintenance.promote(scope=scope)

    await memory.maintenance.isolate(scope=scope, isolation="dedicated")
    apart = await memory.recall("question", scope=scope, floor=0.0)
    await memory.maintenance.isolate(scope=scope, isolation="shared")
    back = await memory.recall("question", scope=scope, floor=0.0)
    await memory.maintenance.promote(scope=scope)
    again = await memory.recall("question", scope=scope, floor=0.0)

    plans = [one.route[0].plan for one in (apart, back, again)]
    assert plans == [Plan.HNSW, Plan.EXACT, Plan.HNSW]
    assert [one.returned for one in (apart, back, again)] == [10, 10, 10]


async def test_a_move_that_would_hold_a_table_for_too_long_changes_nothing(
    memory: MemoryManager, seen: asyncpg.Connection, ground: Ground
) -> None:
    scope = a_scope()
    session = await _spoken(memory, scope)

    async with owning(ground.owner_url, ground.settings.maintenance) as owner:
        with pytest.raises(StoreUnavailable, match="--lock-seconds"):
            await isolate(owner, scope.tenant, "dedicated", lock_seconds=0.000_001)

    assert await _places(seen, scope) == {"turn_vectors_default": 20}
    found = await memory.recall("said 7", scope=session, floor=0.0)
    assert found.returned == 10
    assert await memory.maintenance.isolate(scope=scope, isolation="shared") == 0
    assert await seen.fetchval("SELECT to_regclass($1)", f"mnemic.{_own(scope)}") is None


async def test_a_tenant_is_kept_apart_before_it_says_anything(
    memory: MemoryManager, seen: asyncpg.Connection
) -> None:
    scope = a_scope()

    await memory.maintenance.isolate(scope=scope, isolation="dedicated")
    await _spoken(memory, scope)

    assert await _places(seen, scope) == {_own(scope): 20}


async def test_another_word_for_isolation_is_refused(memory: MemoryManager) -> None:
    with pytest.raises(InvalidInput, match="shared, dedicated"):
        await memory.maintenance.isolate(scope=a_scope(), isolation="alone")
