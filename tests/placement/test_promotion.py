"""A large tenant gets an index of its own, online, and loses it again, whatever breaks off."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

import asyncpg
import pytest
from placement_ground import BOUND, Ground, Seeded, until

from mnemic import ConfigurationError, MemoryManager, Scope
from mnemic.model.route import Plan
from mnemic.service.doctor import Patient, Verdict, examine
from mnemic.store.catalogue import violations
from mnemic.store.inspection import invalid_indexes
from mnemic.testing import a_scope
from mnemic.wiring import Wiring

REGISTER = "SELECT table_name, index_name, state FROM mnemic.promoted_indexes WHERE tenant_id = $1"
BUILT = """
    SELECT c.relname::text, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
     WHERE pg_get_expr(i.indpred, i.indrelid) LIKE '%' || $1 || '%'
"""
NOBODY_AT_IT = """
    SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'mnemic-placement'
"""
PROMOTER = """
import asyncio, sys
from datetime import UTC, datetime
from uuid import UUID
from mnemic.service.promote import owning, promote
from mnemic.settings import MaintenanceSettings

async def main(url, tenant, rows):
    async with owning(url, MaintenanceSettings()) as owner:
        await promote(owner, UUID(tenant), rows_max=int(rows), at=datetime.now(UTC))

asyncio.run(main(*sys.argv[1:]))
"""


async def _grown(ground: Ground, rows: int = BOUND + 200) -> Scope:
    scope = a_scope()
    await ground.fill(scope, {scope: rows})
    return scope


async def _built(seen: asyncpg.Connection, scope: Scope) -> dict[str, bool]:
    return {row[0]: row[1] for row in await seen.fetch(BUILT, str(scope.tenant.id))}


async def _registered(seen: asyncpg.Connection, scope: Scope) -> list[tuple[str, str, str]]:
    return [tuple(row) for row in await seen.fetch(REGISTER, scope.tenant.id)]


async def _route(memory: MemoryManager, scope: Scope) -> Plan:
    found = await memory.recall("question", scope=scope, floor=0.0)
    assert found.returned == 10
    return {leg.name: leg.plan for leg in found.route}["turn"]


async def test_a_tenant_beyond_the_bound_is_promoted_and_one_within_it_is_not(
    ground: Ground, memory: MemoryManager, seen: asyncpg.Connection
) -> None:
    grown, small = await _grown(ground), await _grown(ground, rows=BOUND)
    before = await _route(memory, grown)

    report = await memory.maintenance.promote_vectors()

    [(name, is_valid)] = (await _built(seen, grown)).items()
    assert is_valid
    assert await _registered(seen, grown) == [("turn_vectors", name, "valid")]
    assert await _built(seen, small) == {}
    assert (before, await _route(memory, grown)) == (Plan.EXACT, Plan.HNSW)
    assert (report.done, report.failed) == (1, 0)
    assert (await memory.maintenance.promote_vectors()).done == 0


async def test_a_tenant_that_shrinks_keeps_its_index_until_it_has_half_of_the_bound(
    ground: Ground, memory: MemoryManager, seen: asyncpg.Connection
) -> None:
    grown = await _grown(ground)
    await memory.maintenance.promote(scope=grown)
    shrink = """
        DELETE FROM mnemic.turns WHERE tenant_id = $1 AND id IN (
          SELECT id FROM mnemic.turns WHERE tenant_id = $1 LIMIT $2)
    """

    await seen.execute(shrink, grown.tenant.id, 300)
    at_ninety_percent = await memory.maintenance.promote(scope=grown)
    await seen.execute(shrink, grown.tenant.id, 500)
    at_forty_percent = await memory.maintenance.promote(scope=grown)

    assert at_ninety_percent == []
    assert [(one.kind, one.what) for one in at_forty_percent] == [("turn", "demoted")]
    assert await _built(seen, grown) == {}
    assert await _registered(seen, grown) == []


async def test_a_demoted_tenant_is_searched_exactly_and_may_be_promoted_again(
    ground: Ground, memory: MemoryManager, seen: asyncpg.Connection
) -> None:
    grown = await _grown(ground)
    await memory.maintenance.promote(scope=grown)

    demoted = await memory.maintenance.demote(scope=grown)

    assert [(one.kind, one.what) for one in demoted] == [("turn", "demoted")]
    assert (await _built(seen, grown), await _registered(seen, grown)) == ({}, [])
    assert await _route(memory, grown) == Plan.EXACT
    assert len(await memory.maintenance.promote(scope=grown)) == 1


async def test_an_index_that_somebody_dropped_is_not_asked_and_is_built_again(
    ground: Ground, memory: MemoryManager, seen: asyncpg.Connection
) -> None:
    grown = await _grown(ground)
    await memory.maintenance.promote(scope=grown)
    [name] = await _built(seen, grown)
    await seen.execute(f"DROP INDEX mnemic.{name}")

    meanwhile = await _route(memory, grown)
    changes = await memory.maintenance.promote(scope=grown)

    assert meanwhile == Plan.EXACT
    assert len(changes) == 1
    assert await _route(memory, grown) == Plan.HNSW


async def test_an_index_whose_demotion_broke_off_is_not_asked(
    ground: Ground, memory: MemoryManager, seen: asyncpg.Connection
) -> None:
    grown = await _grown(ground)
    await memory.maintenance.promote(scope=grown)
    await seen.execute(
        "UPDATE mnemic.promoted_indexes SET state = 'dropping' WHERE tenant_id = $1",
        grown.tenant.id,
    )

    meanwhile = await _route(memory, grown)
    await memory.maintenance.promote(scope=grown)

    assert meanwhile == Plan.EXACT
    assert await _route(memory, grown) == Plan.HNSW


async def test_two_promoters_at_once_build_one_index(
    ground: Ground, memory: MemoryManager, seen: asyncpg.Connection
) -> None:
    grown = await _grown(ground)

    changes = await asyncio.gather(*(memory.maintenance.promote(scope=grown) for _ in range(2)))

    assert sorted(map(len, changes)) == [0, 1]
    assert list((await _built(seen, grown)).values()) == [True]


async def test_without_the_owners_url_the_setting_is_named(ground: Ground) -> None:
    settings = ground.settings.model_copy(update={"database_owner_url": None})
    async with MemoryManager(Wiring(settings, embedder=Seeded())) as memory:
        with pytest.raises(ConfigurationError, match="MEM_DATABASE_OWNER_URL"):
            await memory.maintenance.promote_vectors()


async def test_a_promoter_that_is_killed_while_it_builds_leaves_what_the_next_one_repairs(
    ground: Ground, memory: MemoryManager, seen: asyncpg.Connection
) -> None:
    grown = await _grown(ground)
    # A build waits for whoever writes already: it is in the middle for as long as we write.
    writer = await asyncpg.connect(ground.servers.postgres_url("postgres", ground.name))
    writing = writer.transaction()
    await writing.start()
    await writer.execute("LOCK TABLE mnemic.turn_vectors_default IN ROW EXCLUSIVE MODE")
    promoter = await _promoter(ground, grown)
    await until(lambda: _built(seen, grown))
    during = await _findings(ground)

    promoter.send_signal(signal.SIGKILL)
    await promoter.wait()
    await until(lambda: seen.fetchval(NOBODY_AT_IT))
    left, told = await _built(seen, grown), await _findings(ground)
    route = await _route(memory, grown)
    await writing.rollback()
    await writer.close()
    changes = await memory.maintenance.promote_vectors()

    assert list(left.values()) == [False]
    assert route == Plan.EXACT
    assert (during.verdict, told.verdict) == (Verdict.OK, Verdict.WARN)
    assert "being built" in during.detail
    assert str(grown.tenant.id) in told.detail
    assert told.remedy is not None
    assert "mnemic db promote" in told.remedy
    assert await violations(seen) == []
    assert await invalid_indexes(seen) == ()
    assert changes.done == 1
    assert list((await _built(seen, grown)).values()) == [True]
    assert await _route(memory, grown) == Plan.HNSW


async def _promoter(ground: Ground, scope: Scope) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROMOTER, ground.owner_url, str(scope.tenant.id), str(BOUND))
    )


async def _findings(ground: Ground) -> Any:
    patient = Patient(
        database_url=ground.servers.postgres_url("mnemic_app", ground.name),
        redis_url=None,
        data_dir=None,
        embeds_database=False,
        database=ground.settings.database,
        open_embedder=Seeded,
    )
    return next(one for one in await examine(patient) if one.check == "promoted")
