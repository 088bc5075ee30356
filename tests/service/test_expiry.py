"""Working memory that has expired leaves PostgreSQL when the worker looks."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from mnemic import MemoryManager, Scope
from mnemic.model.embedding import Embedder
from mnemic.settings import MemorySettings
from mnemic.testing import TickingClock, a_scope
from mnemic.wiring import Wiring

ROWS = "SELECT count(*) FROM mnemic.working_memory WHERE tenant_id = $1"
NOTES = "SELECT count(*) FROM mnemic.working_notes WHERE tenant_id = $1"
HEADS = "SELECT notes, notes_bytes, notes_expire_at FROM mnemic.working_heads WHERE tenant_id = $1"
DUE = "SELECT tenant_id FROM mnemic.tenants_due('expire', 1000000, $1)"


async def _due(seen: asyncpg.Connection, before: datetime) -> set[UUID]:
    return {row["tenant_id"] for row in await seen.fetch(DUE, before)}


async def test_what_has_expired_goes_when_no_outage_can_need_it(
    memory: MemoryManager,
    scope: Scope,
    clock: TickingClock,
    seen: asyncpg.Connection,
    settings: MemorySettings,
) -> None:
    working = memory.at(scope).working
    for number in range(settings.maintenance.batch_max + 3):
        await working.set(f"k{number}", number, ttl_seconds=60, durable=True)
    await working.set("kept", 1, forever=True, durable=True)
    clock.advance(timedelta(minutes=2))
    early = await memory.maintenance.expire()
    stood = await seen.fetchval(ROWS, scope.tenant.id)
    clock.advance(settings.working.tombstone_ttl)

    late = await memory.maintenance.expire()

    assert stood == settings.maintenance.batch_max + 4
    assert await seen.fetchval(ROWS, scope.tenant.id) == 1
    assert await working.get("kept") == 1
    assert (early.job, late.failed) == ("expire", 0)
    assert late.done >= settings.maintenance.batch_max + 3


async def test_notes_that_have_expired_go_and_their_tenant_is_not_due_again(
    settings: MemorySettings,
    embedder: Embedder,
    clock: TickingClock,
    scope: Scope,
    seen: asyncpg.Connection,
) -> None:
    in_postgres = settings.working.model_copy(update={"place": "postgres"})
    wiring = Wiring(
        settings.model_copy(update={"working": in_postgres}), clock=clock, embedder=embedder
    )
    async with MemoryManager(wiring) as memory:
        working = memory.at(scope).working
        for number in range(3):
            await working.append_scratchpad(f"note {number}")
        clock.advance(in_postgres.ttl + in_postgres.tombstone_ttl)
        stood = await seen.fetchval(NOTES, scope.tenant.id)
        due = await _due(seen, clock() - in_postgres.tombstone_ttl)

        await memory.maintenance.expire()

        assert (stood, scope.tenant.id in due) == (3, True)
        assert await seen.fetchval(NOTES, scope.tenant.id) == 0
        assert [tuple(row) for row in await seen.fetch(HEADS, scope.tenant.id)] == [(0, 0, None)]
        assert scope.tenant.id not in await _due(seen, clock())
        await working.append_scratchpad("anew")
        assert await working.get_scratchpad() == ["anew"]


async def test_a_tenant_with_nothing_expired_is_not_looked_at(
    memory: MemoryManager, scope: Scope, clock: TickingClock, seen: asyncpg.Connection
) -> None:
    other = a_scope()
    await memory.at(scope).working.set("kept", 1, forever=True, durable=True)
    await memory.at(other).working.set("k", 1, ttl_seconds=60, durable=True)
    clock.advance(timedelta(days=400))

    due = await _due(seen, clock())

    assert scope.tenant.id not in due
    assert other.tenant.id in due
