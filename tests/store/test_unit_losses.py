"""What callers see when units lose their connection, wherever they are."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from typing import Any

import asyncpg
import pytest

from mnemic.errors import NotFound, OutcomeUnknown, StoreUnavailable, Unavailable
from mnemic.settings import DatabaseSettings
from mnemic.store.statement import Statement
from mnemic.store.unit import Database, Unit
from mnemic.testing import a_scope
from mnemic.testing.builders import AT

WAIT = Statement("SELECT pg_sleep(0.002)")
SLEEP = Statement("SELECT pg_sleep(60)")
ROUNDS = 15
BETWEEN_KILLS = 30
PATIENCE_SECONDS = 60


async def test_whoever_loses_his_connection_is_told_in_our_words(
    database: Any, admin: asyncpg.Connection
) -> None:
    served = database.serve(pool_max=8, acquire_timeout_seconds=30)
    tenant = a_scope().tenant.id
    ended: Counter[type[BaseException]] = Counter()
    over, one_more = asyncio.Event(), asyncio.Event()
    acknowledged = 0

    async def work(unit: Unit) -> None:
        await unit.fetch(WAIT)

    async def caller() -> None:
        nonlocal acknowledged
        while not over.is_set():
            try:
                await served.transact(tenant, work)
                acknowledged += 1
                one_more.set()
            except Exception as fault:  # noqa: BLE001 - which ones there are is what is asked
                ended[type(fault)] += 1

    callers = [asyncio.ensure_future(caller()) for _ in range(12)]
    async with asyncio.timeout(PATIENCE_SECONDS):
        for _ in range(ROUNDS):
            await admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND usename = 'mnemic_app'"
            )
            enough = acknowledged + BETWEEN_KILLS
            while acknowledged < enough:
                one_more.clear()
                await one_more.wait()
    over.set()
    await asyncio.gather(*callers)
    await served.close()

    assert ended
    assert [kind for kind in ended if not issubclass(kind, Unavailable)] == []


async def test_a_unit_under_way_ends_well_while_its_database_is_closed(database: Any) -> None:
    served = database.serve()
    pool = await served._pool()
    closing: list[asyncio.Future[None]] = []

    async def work(unit: Unit) -> list[bool]:
        closing.append(asyncio.ensure_future(served.close()))
        waits = []
        for _ in range(50):
            await unit.fetch(WAIT)
            waits.append(not closing[0].done())
        return waits

    waits = await served.transact(a_scope().tenant.id, work)
    await closing[0]

    assert waits == [True] * 50
    assert pool.get_size() == 0


async def test_a_write_whose_outcome_is_unknown_is_not_run_again(
    database: Any, admin: asyncpg.Connection
) -> None:
    served = Database(database.app_url, DatabaseSettings())
    runs = []

    async def work(unit: Unit) -> None:
        runs.append(await unit.connection.fetchval("SELECT pg_backend_pid()"))
        await admin.execute("SELECT pg_terminate_backend($1, 5000)", runs[-1])

    with pytest.raises(OutcomeUnknown, match="idempotency key"):
        await served.transact(a_scope().tenant.id, work)

    await served.close()
    assert len(runs) == 1


async def test_a_statement_keeps_tenants_apart_by_itself(admin: asyncpg.Connection) -> None:
    """The superuser sees through every policy, so what is left is the first wall."""
    ours, theirs = a_scope().session("s"), a_scope().session("s")
    units = [Unit(admin, scope.tenant.id, seconds=30) for scope in (ours, theirs)]
    await units[1].scopes.ensure(theirs)
    await units[1].sessions.start(theirs, at=AT, now=AT)

    with pytest.raises(NotFound):
        await units[0].sessions.get(theirs)

    assert (await units[1].sessions.get(theirs)).name == "s"


async def test_a_server_that_says_nothing_is_given_up_in_time(database: Any) -> None:
    served = database.serve(timeout_seconds=0.2, statement_timeout_ms=100, pool_max=1)
    loop = asyncio.get_running_loop()
    began = loop.time()

    with pytest.raises(Unavailable, match=r"within database\.timeout_seconds"):
        async with served.open_unit(None) as unit:
            await unit.connection.execute("SET LOCAL statement_timeout = 0")
            await unit.fetch(SLEEP)

    async with served.open_unit(None) as unit:
        await unit.fetch(WAIT)
    await served.close()
    assert loop.time() - began < 20


async def test_a_server_that_opens_no_connection_is_told_apart_from_a_full_pool() -> None:
    """The kernel takes the call of whoever connects to a socket that listens; nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        served = Database(
            f"postgresql://mnemic_app@127.0.0.1:{port}/mnemic",
            DatabaseSettings(acquire_timeout_seconds=0.1, pool_max=2),
        )

        with pytest.raises(StoreUnavailable, match="could be opened in time") as raised:
            async with served.open_unit(None):
                pass

        await served.close()
    assert "MEM_DATABASE_URL" in str(raised.value)
    assert "pool_max" not in str(raised.value)
