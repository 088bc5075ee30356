"""What callers see when units lose their connection, wherever they are."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import asyncpg

from mnemic.errors import Unavailable
from mnemic.store.statement import Statement
from mnemic.store.unit import Unit
from mnemic.testing import a_scope

WAIT = Statement("SELECT pg_sleep(0.002)")
ROUNDS = 15


async def test_whoever_loses_his_connection_is_told_in_our_words(
    database: Any, admin: asyncpg.Connection
) -> None:
    served = database.serve(pool_max=8, acquire_timeout_seconds=30)
    tenant = a_scope().tenant.id
    ended: Counter[type[BaseException]] = Counter()
    over = asyncio.Event()

    async def work(unit: Unit) -> None:
        await unit.fetch(WAIT)

    async def caller() -> None:
        while not over.is_set():
            try:
                await served.transact(tenant, work)
            except Exception as fault:  # noqa: BLE001 - which ones there are is what is asked
                ended[type(fault)] += 1

    callers = [asyncio.ensure_future(caller()) for _ in range(12)]
    for _ in range(ROUNDS):
        await admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND usename = 'mnemic_app'"
        )
        await asyncio.sleep(0.05)
    over.set()
    await asyncio.gather(*callers)
    await served.close()

    assert ended
    assert [kind for kind in ended if not issubclass(kind, Unavailable)] == []
