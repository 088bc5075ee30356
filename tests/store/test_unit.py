from __future__ import annotations

import asyncio
import pkgutil
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import asyncpg
import pytest

import mnemic.store
from mnemic.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    MnemicError,
    NotFound,
    OutcomeUnknown,
    SchemaMismatch,
    StoreUnavailable,
)
from mnemic.model.moment import Moment
from mnemic.settings import DatabaseSettings
from mnemic.store import kept_plans
from mnemic.store.statement import Statement, every_statement
from mnemic.store.unit import Database, Unit
from mnemic.testing import a_scope

PID = Statement("SELECT pg_backend_pid() AS pid")
COUNT_TENANTS = Statement("SELECT count(*) AS n FROM mnemic.tenants")


@pytest.fixture
async def served(database: Any) -> AsyncIterator[Database]:
    made = database.serve(pool_max=4)
    yield made
    await made.close()


async def _grow(served: Database, *scopes: Any) -> None:
    for scope in scopes:
        async with served.open_unit(scope.tenant.id) as unit:
            await unit.scopes.ensure(scope)


async def test_a_unit_sees_only_its_tenant(served: Database) -> None:
    ours, theirs = a_scope(), a_scope()
    await _grow(served, ours, theirs)

    async with served.open_unit(ours.tenant.id) as unit:
        row = await unit.fetch_one(COUNT_TENANTS)

    assert row is not None
    assert row["n"] == 1


async def test_without_a_tenant_no_row_is_visible(served: Database) -> None:
    await _grow(served, a_scope())

    async with served.open_unit(None) as unit:
        row = await unit.fetch_one(COUNT_TENANTS)

    assert row is not None
    assert row["n"] == 0


async def test_the_tenant_is_gone_from_the_connection_after_the_unit(database: Any) -> None:
    served = database.serve(pool_max=1)
    scope = a_scope()
    await _grow(served, scope)

    pool = await served._pool()
    async with pool.acquire() as connection:
        left = await connection.fetchval("SELECT current_setting('mnemic.tenant_id', true)")
        visible = await connection.fetchval("SELECT count(*) FROM mnemic.tenants")
    await served.close()

    assert (left, visible) == ("", 0)


async def test_a_unit_that_fails_changes_nothing(served: Database) -> None:
    scope = a_scope()

    with pytest.raises(RuntimeError, match="halfway"):
        async with served.open_unit(scope.tenant.id) as unit:
            await unit.scopes.ensure(scope)
            raise RuntimeError("halfway")

    async with served.open_unit(scope.tenant.id) as unit:
        row = await unit.fetch_one(COUNT_TENANTS)
    assert row is not None
    assert row["n"] == 0


async def test_a_read_only_unit_refuses_to_write(served: Database) -> None:
    scope = a_scope()

    with pytest.raises(StoreUnavailable, match="read-only"):
        async with served.open_unit(scope.tenant.id, read_only=True) as unit:
            await unit.scopes.ensure(scope)


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT 1 / 0", InvalidInput),
        ("SELECT * FROM mnemic.no_such_table", SchemaMismatch),
        ("SELECT nothing FROM mnemic.tenants", SchemaMismatch),
        ("TRUNCATE mnemic.tenants", Forbidden),
        ("SET LOCAL statement_timeout = 20; SELECT pg_sleep(5)", StoreUnavailable),
        ("SELECT '\\x00'::bytea::text::int", InvalidInput),
        ("DO $$ BEGIN RAISE unique_violation; END $$", Conflict),
        ("DO $$ BEGIN RAISE foreign_key_violation; END $$", NotFound),
        ("DO $$ BEGIN RAISE too_many_connections; END $$", StoreUnavailable),
        ("DO $$ BEGIN RAISE disk_full; END $$", StoreUnavailable),
        ("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = 'P0001'; END $$", MnemicError),
    ],
)
async def test_faults_of_the_server_leave_in_our_words(
    served: Database, sql: str, error: type[MnemicError]
) -> None:
    with pytest.raises(MnemicError) as raised:
        async with served.open_unit(a_scope().tenant.id) as unit:
            await unit.connection.execute(sql)

    assert type(raised.value) is error
    assert raised.value.__cause__ is not None


async def test_a_server_that_is_away_is_unavailable_and_safe_to_retry() -> None:
    nowhere = Database("postgresql://mnemic_app@/mnemic?host=/nonexistent", DatabaseSettings())

    with pytest.raises(StoreUnavailable) as raised:
        async with nowhere.open_unit(None):
            pass

    assert raised.value.retryable


async def test_a_full_pool_answers_in_under_a_second_and_recovers(database: Any) -> None:
    served = database.serve(pool_max=1, acquire_timeout_seconds=0.2)
    loop = asyncio.get_running_loop()

    async with served.open_unit(None):
        asked = loop.time()
        with pytest.raises(StoreUnavailable, match="pool_max"):
            async with served.open_unit(None):
                pass
        waited = loop.time() - asked

    async with served.open_unit(None) as unit:
        assert await unit.fetch_one(PID)
    await served.close()
    assert waited < 1


async def test_a_deadlock_is_run_again_and_reaches_no_caller(served: Database) -> None:
    one, two = a_scope("one"), a_scope("two")
    await _grow(served, one, two)
    both = asyncio.Barrier(2)
    runs = {"one": 0, "two": 0}

    # Advisory locks in opposite order; the barrier makes the first attempts meet.
    async def crossing(who: str, first: int, second: int) -> None:
        async def work(unit: Unit) -> None:
            runs[who] += 1
            await unit.connection.execute(f"SELECT pg_advisory_xact_lock({first})")
            if runs[who] == 1 and runs["one"] + runs["two"] <= 2:
                await both.wait()
            await unit.connection.execute(f"SELECT pg_advisory_xact_lock({second})")

        await served.transact(one.tenant.id, work)

    async with asyncio.timeout(20):
        await asyncio.gather(crossing("one", 1, 2), crossing("two", 2, 1))

    assert sorted(runs.values()) == [1, 2]


@pytest.mark.parametrize(
    ("state", "error"),
    [("40001", StoreUnavailable), ("40P01", StoreUnavailable), ("23505", Conflict)],
)
async def test_a_transaction_that_keeps_failing_is_given_up_after_a_bound(
    database: Any, state: str, error: type[MnemicError]
) -> None:
    served = database.serve(retry_max=2)
    runs = 0

    async def work(unit: Unit) -> None:
        nonlocal runs
        runs += 1
        await unit.connection.execute(
            f"DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '{state}'; END $$"
        )

    with pytest.raises(error, match=r"many writers|same moment"):
        await served.transact(a_scope().tenant.id, work)
    await served.close()

    assert runs == 3


async def test_other_faults_are_not_run_again(served: Database) -> None:
    runs = 0

    async def work(unit: Unit) -> None:
        nonlocal runs
        runs += 1
        await unit.connection.execute("DO $$ BEGIN RAISE foreign_key_violation; END $$")

    with pytest.raises(NotFound):
        await served.transact(a_scope().tenant.id, work)

    assert runs == 1


async def test_a_connection_lost_in_the_middle_is_unavailable_and_the_pool_recovers(
    served: Database, admin: asyncpg.Connection
) -> None:
    scope = a_scope()

    with pytest.raises(StoreUnavailable):
        async with served.open_unit(scope.tenant.id) as unit:
            row = await unit.fetch_one(PID)
            assert row is not None
            await admin.execute("SELECT pg_terminate_backend($1)", row["pid"])
            await unit.scopes.ensure(scope)

    async with served.open_unit(scope.tenant.id) as unit:
        row = await unit.fetch_one(COUNT_TENANTS)
    assert row is not None
    assert row["n"] == 0


async def _gone(admin: asyncpg.Connection, pid: int) -> None:
    """The backend has ended; the server offers no event for that, so it is asked, for 5 s."""
    async with asyncio.timeout(5):
        while await admin.fetchval("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid):
            await admin.fetchval("SELECT pg_sleep(0.01)")


async def test_a_connection_lost_before_the_commit_is_an_unknown_outcome(
    served: Database, admin: asyncpg.Connection
) -> None:
    scope = a_scope()

    with pytest.raises(OutcomeUnknown, match="idempotency key"):
        async with served.open_unit(scope.tenant.id) as unit:
            await unit.scopes.ensure(scope)
            row = await unit.fetch_one(PID)
            assert row is not None
            await admin.execute("SELECT pg_terminate_backend($1)", row["pid"])
            await _gone(admin, row["pid"])


async def test_a_cancelled_unit_leaves_no_open_transaction(
    served: Database, admin: asyncpg.Connection
) -> None:
    entered = asyncio.Event()

    async def slow() -> None:
        async with served.open_unit(a_scope().tenant.id) as unit:
            entered.set()
            await unit.connection.execute("SELECT pg_sleep(30)")

    task = asyncio.create_task(slow())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    async with served.open_unit(None) as unit:
        assert await unit.fetch_one(PID)
    # A server that did not hear of it looks for its client, twice a second.
    async with asyncio.timeout(5):
        while await admin.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE usename = 'mnemic_app'"
            " AND datname = current_database() AND state <> 'idle'"
        ):
            await admin.fetchval("SELECT pg_sleep(0.01)")


async def test_each_loop_has_a_pool_of_its_own(database: Any) -> None:
    served = database.serve()

    async def login() -> int:
        async with served.open_unit(None) as unit:
            told: int = unit.connection.get_server_pid()
        await served.close()
        return told

    here = await login()
    there = await asyncio.to_thread(asyncio.run, login())

    assert here != there


async def test_behind_a_pooler_the_settings_travel_with_the_transaction(database: Any) -> None:
    served = database.serve(pgbouncer=True, lock_timeout_ms=1234)

    async with served.open_unit(a_scope().tenant.id) as unit:
        inside = await unit.connection.fetchval("SHOW lock_timeout")
        path = await unit.connection.fetchval("SHOW search_path")
        plans = await unit.connection.fetchval("SHOW plan_cache_mode")
    await served.close()

    assert (inside, path, plans) == ("1234ms", "mnemic, public", "force_custom_plan")


@pytest.fixture
def direct(pytestconfig: pytest.Config) -> bool:
    """Whether no pooler stands between: behind one no plan is kept."""
    return not pytestconfig.getoption("--through-pgbouncer")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, ("force_custom_plan", "on")),
        ({"keep_plans": True}, ("force_generic_plan", "off")),
        (
            {"keep_plans": True, "moment": Moment(known_at=datetime(2026, 3, 1, tzinfo=UTC))},
            ("force_custom_plan", "on"),
        ),
    ],
    ids=["anew", "kept", "past"],
)
async def test_a_unit_may_keep_its_plans_and_leaves_none_of_it_to_the_next(
    database: Any, asked: dict[str, Any], told: tuple[str, str], *, direct: bool
) -> None:
    served = database.serve(pool_max=1)
    await _planning(served, keep_plans=True)  # the first looks how large the tables are

    inside = await _planning(served, **asked)
    after = await _planning(served)
    await served.close()

    assert inside == (told if direct else after)
    assert after == ("force_custom_plan", "on")


async def test_behind_a_pooler_no_plan_is_kept(database: Any) -> None:
    served = database.serve(pgbouncer=True, pool_max=1)

    plans = [await _planning(served, keep_plans=True) for _ in range(2)]
    await served.close()

    assert plans == [("force_custom_plan", "on")] * 2


async def test_beside_many_partitions_no_plan_is_kept(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan that is kept locks each tenant's."""
    monkeypatch.setattr(kept_plans, "PARTITIONS_MAX", -1)  # the one of all the others is too many
    served = database.serve(pool_max=1)

    plans = [await _planning(served, keep_plans=True) for _ in range(2)]
    await served.close()

    assert plans == [("force_custom_plan", "on")] * 2


async def test_of_a_tenant_that_is_not_small_no_plan_is_kept(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_plans, "TENANT_MEMORIES_MAX", -1)  # nothing is too much
    served = database.serve(pool_max=1)

    plans = [await _planning(served, keep_plans=True) for _ in range(2)]
    await served.close()

    assert plans == [("force_custom_plan", "on")] * 2


async def test_plans_are_thrown_away_when_the_unit_has_begun_and_not_before(
    database: Any, monkeypatch: pytest.MonkeyPatch, *, direct: bool
) -> None:
    """A unit that is broken off as it begins leaves the plans to the next one to throw away."""
    served = database.serve(pool_max=1)
    plans = served.beginning._plans
    await _planning(served, keep_plans=True)
    monkeypatch.setattr(plans, "renewed", lambda _connection: None)
    await _planning(served, keep_plans=True)
    monkeypatch.undo()

    async with served.open_unit(SOMEBODY, read_only=True, keep_plans=True) as unit:
        assert plans.is_renewed(unit.connection) is direct
    await served.close()


SOMEBODY = a_scope().tenant.id


async def _planning(served: Database, **asked: Any) -> tuple[str, str]:
    async with served.open_unit(SOMEBODY, read_only=True, **asked) as unit:
        ask = unit.connection.fetchval
        return await ask("SHOW plan_cache_mode"), await ask("SHOW enable_seqscan")


@pytest.fixture(scope="module")
def statements() -> tuple[Statement, ...]:
    """Those of all modules, whichever were imported before."""
    for module in pkgutil.walk_packages(mnemic.store.__path__, "mnemic.store."):
        import_module(module.name)
    return every_statement()


async def test_every_statement_fits_the_schema(
    served: Database, statements: tuple[Statement, ...]
) -> None:
    async with served.open_unit(None) as unit:
        for statement in statements:
            await unit.connection.prepare(statement.sql)

    assert len(statements) > 200


def test_a_statement_binds_each_name_once_and_never_formats_a_value() -> None:
    made = Statement("SELECT :a::int, x FROM t WHERE {owned:t} AND y = :a AND z = :b")

    assert made.names == ("a", "tenant", "scopes", "b")
    assert made.sql == (
        "SELECT $1::int, x FROM t WHERE t.tenant_id = $2"
        " AND t.scope_id = ANY(CAST($3 AS uuid[])) AND y = $1 AND z = $4"
    )
    assert made.arguments({"a": 1, "b": "'; --", "tenant": 2, "scopes": []}) == [1, 2, [], "'; --"]
    with pytest.raises(KeyError):
        made.arguments({"a": 1})


def test_every_statement_on_a_tenants_table_carries_the_first_wall(
    statements: tuple[Statement, ...],
) -> None:
    tenantless = (
        "embedding_models",
        "predicates",
        "tenants_due",
        "pg_",
        "lexical",
        "similar_terms",
        "tenants_beyond",
        "vectors_due",
    )

    bare = [
        statement.template
        for statement in statements
        if " mnemic." in statement.template
        and "{owned:" not in statement.template
        and "{keyed:" not in statement.template
        and "{tenant:" not in statement.template
        and ":tenant" not in statement.template
        and not any(word in statement.template for word in tenantless)
    ]

    assert bare == [COUNT_TENANTS.template]


def test_rows_that_are_named_by_their_keys_are_not_searched_for_by_scope(
    statements: tuple[Statement, ...],
) -> None:
    """`{owned:t}` lets the planner go through the whole scope for each key (0034)."""
    by_key = re.compile(
        r"\{owned:(\w+)\} AND (?:\1\.model_id = :model AND )?\1\.(?:id|memory_id|session_id)\b"
    )

    searched = [one.template for one in statements if by_key.search(one.template)]

    assert searched == []
    assert by_key.search("{owned:v} AND v.model_id = :model AND v.memory_id = m.id")
    assert len([one for one in statements if "{keyed:" in one.template]) > 20
