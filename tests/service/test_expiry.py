"""Working memory that has expired leaves PostgreSQL when the worker looks."""

from __future__ import annotations

from datetime import timedelta

import asyncpg

from mnemic import MemoryManager, Scope
from mnemic.settings import MemorySettings
from mnemic.testing import TickingClock

ROWS = "SELECT count(*) FROM mnemic.working_memory WHERE tenant_id = $1"
NOTES = "SELECT count(*) FROM mnemic.working_notes WHERE tenant_id = $1"


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


async def test_a_tenant_with_nothing_expired_is_not_looked_at(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    clock.advance(timedelta(days=400))
    await memory.maintenance.expire()
    await memory.at(scope).working.set("kept", 1, forever=True, durable=True)

    report = await memory.maintenance.expire()

    assert (report.tenants, report.done) == (0, 0)
