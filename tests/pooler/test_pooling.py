"""A PgBouncer between the service and the server: what works, and what is refused by name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from configparser import ConfigParser
from pathlib import Path
from textwrap import dedent
from typing import Any

import asyncpg
import pytest
from pooling import PgBouncer, pgbouncer_program

from mnemic.errors import ConfigurationError, StoreUnavailable
from mnemic.settings import DatabaseSettings
from mnemic.store import roles
from mnemic.store.pooling import Pooling, pooling_of
from mnemic.store.readiness import refuse_unfit
from mnemic.store.unit import Database, Unit
from mnemic.store.upgrade import upgrade
from mnemic.testing import a_scope

SETTINGS = (
    "search_path, plan_cache_mode, statement_timeout, lock_timeout, jit,"
    " idle_in_transaction_session_timeout, client_connection_check_interval"
)
WHO = (
    "SELECT pg_backend_pid() AS pid, current_setting('mnemic.tenant_id') AS tenant,"
    " (SELECT count(*) FROM mnemic.tenants) AS seen, pg_sleep(0.001)"
)
BUSY = (
    "SELECT count(*) FROM pg_stat_activity WHERE usename = 'mnemic_app'"
    " AND datname = current_database() AND state <> 'idle'"
)
CLIENTS = 12
CALLS = 10

pytestmark = pytest.mark.skipif(
    pgbouncer_program() is None, reason="PgBouncer IS NOT INSTALLED: nothing is shown behind it"
)


@pytest.fixture
def pooler(database: Any) -> Iterator[Callable[..., PgBouncer]]:
    """Starts poolers before the roles of the database."""
    started = []

    def start(**options: str) -> PgBouncer:
        made = PgBouncer(
            getattr(database.servers, "direct", database.servers),
            roles=(roles.APP_ROLE, roles.OWNER_ROLE, "postgres"),
            **options,
        )
        started.append(made)
        return made

    yield start
    for one in started:
        one.stop()


@pytest.fixture
async def pooled(
    database: Any, pooler: Callable[..., PgBouncer]
) -> AsyncIterator[Callable[..., Database]]:
    """Opens the database through a pooler of three servers."""
    opened = []
    before = pooler(default_pool_size="3")

    def serve(**settings: Any) -> Database:
        chosen = {"pgbouncer": True, "acquire_timeout_seconds": 20, **settings}
        url = before.url(roles.APP_ROLE, database.name)
        opened.append(Database(url, DatabaseSettings(**chosen)))
        return opened[-1]

    yield serve
    for one in opened:
        await one.close()


async def test_many_clients_share_few_servers_and_no_tenant(
    pooled: Callable[..., Database],
) -> None:
    services = [pooled(pool_max=4) for _ in range(3)]
    scopes = [a_scope(f"u-{n}") for n in range(CLIENTS)]
    for scope in scopes:
        async with services[0].open_unit(scope.tenant.id) as unit:
            await unit.scopes.ensure(scope)

    async def calls(number: int) -> list[asyncpg.Record]:
        served, scope = services[number % len(services)], scopes[number]
        rows = []
        for _ in range(CALLS):
            async with served.open_unit(scope.tenant.id) as unit:
                rows += await unit.connection.fetch(WHO)
        return rows

    seen = await asyncio.gather(*map(calls, range(CLIENTS)))

    assert len({row["pid"] for rows in seen for row in rows}) <= 3
    for scope, rows in zip(scopes, seen, strict=True):
        assert [(row["tenant"], row["seen"]) for row in rows] == [(str(scope.tenant.id), 1)] * CALLS


async def test_nothing_of_a_unit_stays_on_the_server(
    pooled: Callable[..., Database], admin: asyncpg.Connection, database: Any
) -> None:
    served = pooled(pool_max=3, lock_timeout_ms=1_234)
    async with served.open_unit(a_scope().tenant.id) as unit:
        within = await unit.connection.fetchval("SHOW lock_timeout")
    left = """
        SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS locks,
               (SELECT count(*) FROM pg_stat_activity WHERE usename = 'mnemic_app'
                   AND datname = current_database() AND state LIKE 'idle in%') AS idle
    """

    async with served.open_unit(None) as unit:
        pool_connection = unit.connection
        named = await pool_connection.fetchval("SELECT count(*) FROM pg_prepared_statements")
        listening = await pool_connection.fetchval("SELECT count(*) FROM pg_listening_channels()")
        settings = await pool_connection.fetch(
            "SELECT name FROM pg_settings WHERE source = 'session' AND name = ANY($1)",
            ["search_path", "plan_cache_mode", "statement_timeout", "TimeZone"],
        )
    outside = await asyncpg.connect(served._url, statement_cache_size=0)
    kept = await outside.fetchval("SHOW lock_timeout")
    tenant = await outside.fetchval("SELECT current_setting('mnemic.tenant_id', true)")
    await outside.close()

    assert within == "1234ms"
    assert (kept, tenant or "") == ("0", "")
    assert (named, listening) == (0, 0)
    assert {row["name"] for row in settings} == {
        "search_path",
        "plan_cache_mode",
        "statement_timeout",
        "TimeZone",
    }
    row = await admin.fetchrow(left)
    assert row is not None
    assert tuple(row) == (0, 0)


async def test_named_statements_would_break_it(
    database: Any, pooler: Callable[..., PgBouncer]
) -> None:
    """The positive control: this is what unnamed statements are for."""
    url = pooler(default_pool_size="2").url(roles.APP_ROLE, database.name)
    one, other = [await asyncpg.connect(url) for _ in range(2)]
    await one.fetchval("SELECT $1::int", 1)
    await other.execute("BEGIN")  # gets the server that was used last

    with pytest.raises(asyncpg.InvalidSQLStatementNameError, match="does not exist"):
        await one.fetchval("SELECT $1::int", 1)

    one.terminate()
    other.terminate()


async def test_twelve_cancelled_calls_leave_no_server_behind(
    pooled: Callable[..., Database], admin: asyncpg.Connection
) -> None:
    served = pooled(pool_max=3)
    entered = asyncio.Semaphore(0)

    async def slow(unit: Unit) -> None:
        entered.release()
        await unit.connection.execute("SELECT pg_sleep(30)")

    for _ in range(12):
        task = asyncio.ensure_future(served.transact(a_scope().tenant.id, slow))
        await entered.acquire()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async with asyncio.timeout(5):
        async with served.open_unit(None) as unit:
            assert await unit.connection.fetchrow(WHO)
        while await admin.fetchval(BUSY):  # the server offers no event for that
            await admin.fetchval("SELECT pg_sleep(0.01)")


@pytest.mark.parametrize("ignored", ["", SETTINGS], ids=["refused", "dropped"])
async def test_a_pooler_that_is_not_expected_is_refused_by_name(
    database: Any, pooler: Callable[..., PgBouncer], ignored: str
) -> None:
    """Refused as well where the pooler would drop the settings of a session in silence."""
    served = Database(
        pooler(ignore_startup_parameters=ignored).url(roles.APP_ROLE, database.name),
        DatabaseSettings(),
    )

    with pytest.raises(ConfigurationError, match="MEM_DATABASE__PGBOUNCER=true"):
        await refuse_unfit(served, require_durable=False)

    await served.close()


async def test_behind_an_expected_pooler_the_service_starts(
    pooled: Callable[..., Database],
) -> None:
    served = pooled()

    await refuse_unfit(served, require_durable=False)

    assert served.expects_pooler


@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
@pytest.mark.parametrize("size", ["1", "4"])
async def test_the_mode_of_a_pooler_is_told(
    database: Any, pooler: Callable[..., PgBouncer], mode: str, size: str
) -> None:
    url = pooler(pool_mode=mode, default_pool_size=size).url(roles.APP_ROLE, database.name)

    told = await pooling_of(url, setting="MEM_DATABASE_URL")

    # In session mode one server serves one client, and the second waits for good.
    assert told == (Pooling.UNKNOWN if (mode, size) == ("session", "1") else Pooling(mode))


async def test_the_documented_configuration_serves(
    database: Any, pooler: Callable[..., PgBouncer]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "deploying.md").read_text(encoding="utf-8")
    block = page.partition("```ini\n")[2].partition("```")[0]
    shown = ConfigParser()
    shown.read_string(dedent(block))
    before = pooler(**dict(shown["pgbouncer"]))
    served = Database(before.url(roles.APP_ROLE, database.name), DatabaseSettings(pgbouncer=True))

    await refuse_unfit(served, require_durable=False)
    told = await pooling_of(before.url(roles.APP_ROLE, database.name), setting="MEM_DATABASE_URL")
    await served.close()

    assert told is Pooling.TRANSACTION
    assert shown["databases"]["mnemic"].endswith("dbname=mnemic")


async def test_no_pooler_is_seen_where_there_is_none(database: Any) -> None:
    told = await pooling_of(database.direct_app_url, setting="MEM_DATABASE_URL")

    assert told is Pooling.NONE


async def test_setting_up_and_upgrading_refuse_a_pooler(
    database: Any, pooler: Callable[..., PgBouncer]
) -> None:
    before = pooler(ignore_startup_parameters=SETTINGS)

    with pytest.raises(ConfigurationError, match="--admin-url leads to a pooler"):
        await roles.init(before.url("postgres", "postgres"), database=database.name)
    with pytest.raises(ConfigurationError, match="MEM_DATABASE_OWNER_URL leads to a pooler"):
        await asyncio.to_thread(upgrade, before.url(roles.OWNER_ROLE, database.name))
    with pytest.raises(ConfigurationError, match="MEM_DATABASE_OWNER_URL leads to a pooler"):
        await asyncio.to_thread(upgrade, pooler().url(roles.OWNER_ROLE, database.name))


async def test_a_pooler_that_is_away_is_unavailable(
    database: Any, pooler: Callable[..., PgBouncer]
) -> None:
    before = pooler()
    served = Database(before.url(roles.APP_ROLE, database.name), DatabaseSettings(pgbouncer=True))
    async with served.open_unit(None) as unit:
        await unit.connection.fetchrow(WHO)
    before.stop()

    with pytest.raises(StoreUnavailable):
        async with served.open_unit(None):
            pass

    await served.close()
