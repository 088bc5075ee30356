"""What one call costs, what a server must be like, and whatever else a process may do to us."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import threading
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from redis import exceptions as faults
from redis.asyncio import Redis
from working_proxy import Proxy
from working_valkey import Valkey

from mnemic.embedded import EmbeddedServers
from mnemic.errors import ConfigurationError, MnemicError, StoreUnavailable, Unavailable
from mnemic.model.scope import Scope
from mnemic.settings import MemorySettings, WorkingSettings
from mnemic.store.unit import Database
from mnemic.store.valkey import SERVED
from mnemic.store.working.client import ValkeyClient
from mnemic.store.working.faults import Away, translated
from mnemic.store.working.opening import WorkingPlaces, open_working, purge_expired
from mnemic.testing.builders import a_scope
from mnemic.testing.clock import TickingClock
from mnemic.testing.working_contract import contract_settings
from mnemic.tier.working import WorkingMemory


@pytest.fixture
def scope() -> Scope:
    return a_scope().session("s")


@pytest.fixture
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Valkey]:
    """A Valkey of the test's own."""
    made = Valkey(tmp_path_factory.mktemp("v"))
    await made.start()
    yield made
    await made.kill()


@pytest.fixture
async def watched(server: Valkey) -> AsyncIterator[Redis]:
    """A connection to look at the server with."""
    made = Redis.from_url(server.url)
    yield made
    await made.aclose()


async def _until(watched: Redis, figure: str, number: int) -> None:
    """The server says so of its clients."""
    async with asyncio.timeout(10):
        while (await watched.info("clients"))[figure] != number:  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)


async def calls_of(watched: Redis) -> dict[str, int]:
    """How often clients sent each command, those of scripts and of this look left out."""
    sent = await watched.info("commandstats")
    return {
        name.removeprefix("cmdstat_"): told["calls"]
        for name, told in sent.items()
        if name in {"cmdstat_evalsha", "cmdstat_eval", "cmdstat_hmget", "cmdstat_get"}
    }


async def test_a_get_and_a_set_are_one_round_trip_each(
    server: Valkey, watched: Redis, opened: Callable[..., Any], scope: Scope
) -> None:
    async with opened(url=server.url) as places:
        memory = WorkingMemory(places, scope)
        await memory.set("k", 1)
        await memory.get("k")
        before = await calls_of(watched)
        packets = (await watched.info("stats"))["total_reads_processed"]

        for number in range(10):
            await memory.set("k", number)
            await memory.get("k")
            await memory.get("missing")

        after = await calls_of(watched)
        read = (await watched.info("stats"))["total_reads_processed"] - packets
        assert {name: after[name] - before.get(name, 0) for name in after} == {
            "evalsha": 10,
            "hmget": 20,
            "eval": 0,
            "get": 0,
        }
        assert read == 30 + 2  # and the two looks


async def test_nothing_is_looked_for_by_a_pattern(
    server: Valkey, watched: Redis, opened: Callable[..., Any]
) -> None:
    async with opened(url=server.url) as places:
        for number in range(3):
            memory = WorkingMemory(places, Scope.user("*").session(f"s{number}?"))
            await memory.set("[k]*", 1)
            await memory.list_keys("*")
            await memory.get_all()
            saved = await memory.create_checkpoint()
            await memory.restore_checkpoint(saved)
            await memory.clear()

    used = await watched.info("commandstats")
    assert not {"cmdstat_keys", "cmdstat_scan", "cmdstat_hscan"} & set(used)


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
async def test_a_server_that_drops_any_key_is_refused_with_the_remedy(
    server: Valkey, watched: Redis, opened: Callable[..., Any], policy: str
) -> None:
    await watched.config_set("maxmemory-policy", policy)

    with pytest.raises(ConfigurationError, match=f"{policy}.*noeviction"):
        async with opened(url=server.url):
            pass


async def test_a_server_that_drops_what_expires_is_given_nothing_that_does(
    server: Valkey, watched: Redis, opened: Callable[..., Any], scope: Scope
) -> None:
    await watched.config_set("maxmemory-policy", "volatile-lru")
    await watched.config_set("maxmemory", "100mb")

    async with opened(url=server.url) as places:
        memory = WorkingMemory(places, scope)
        await memory.set("k", 1, ttl_seconds=60)
        await memory.append_scratchpad("note")
        lives = [await watched.ttl(key) for key in await watched.keys()]

    assert set(lives) == {-1}


async def test_whole_scopes_expire_with_the_last_of_what_they_hold(
    server: Valkey, watched: Redis, opened: Callable[..., Any], scope: Scope
) -> None:
    async with opened(url=server.url) as places:
        memory = WorkingMemory(places, scope)
        await memory.set("k", 1, ttl_seconds=600)
        await memory.set("l", 1, ttl_seconds=60)
        await memory.append_scratchpad("note")
        lives = {key[-1:]: await watched.ttl(key) for key in await watched.keys("*:?")}
        await memory.set("m", 1, forever=True)
        kept = {key[-1:]: await watched.ttl(key) for key in await watched.keys("*:?")}

    day, hour = 86_400, 3_600
    assert 590 <= lives[b"v"] <= 600
    assert hour - 10 <= lives[b"n"] <= hour
    assert hour + day - 10 <= lives[b"h"] <= hour + day
    assert (kept[b"v"], kept[b"h"]) == (-1, -1)


async def test_a_field_goes_from_the_server_when_it_has_expired(
    server: Valkey, watched: Redis, opened: Callable[..., Any], scope: Scope
) -> None:
    async with opened(url=server.url) as places:
        memory = WorkingMemory(places, scope)
        await memory.set("short", 1, ttl_seconds=0.05)
        await memory.set("long", 1)
        [values] = await watched.keys("*:v")
        async with asyncio.timeout(10):
            while b"kshort" in await watched.hgetall(values):  # noqa: ASYNC110 - the server's own
                await asyncio.sleep(0.01)

        assert await watched.hgetall(values) != {}
        assert await memory.list_keys("long") == ["long"]


async def test_a_full_server_refuses_writes_precisely_and_drops_nothing(
    server: Valkey, watched: Redis, opened: Callable[..., Any], scope: Scope
) -> None:
    async with opened(contract_settings(on_outage="degrade"), url=server.url) as places:
        memory = WorkingMemory(places, scope)
        await memory.set("k", 1)
        await memory.set("gone", 1)
        await memory.append_scratchpad("note")
        await watched.config_set("maxmemory", "1")

        for call in (memory.set("more", 1), memory.append_scratchpad("more")):
            with pytest.raises(StoreUnavailable, match="memory is full"):
                await call

        assert await memory.get("k") == 1
        assert await memory.get_scratchpad() == ["note"]
        assert await memory.delete("gone") is True
        await memory.set("durable", 2, durable=True)
        assert await memory.get("durable") == 2
        assert await memory.clear() == 2
        assert (await memory.status()).degraded is False


async def test_a_server_that_came_back_empty_is_told_of(
    server: Valkey, watched: Redis, opened: Callable[..., Any], scope: Scope, proxy_to: Any
) -> None:
    proxy = await proxy_to(server.url)
    settings = contract_settings(on_outage="degrade", retry_after_seconds=0.05)
    async with opened(settings, url=proxy.url) as places:
        memory = WorkingMemory(places, scope)
        await memory.set("k", 1)
        before = await memory.status()
        await proxy.cut()
        await memory.set("held", 1)
        await watched.flushall()
        await proxy.open()
        async with asyncio.timeout(10):
            while (await memory.status()).degraded:  # noqa: ASYNC110 - all a caller can see
                await asyncio.sleep(0.01)

        assert before.resets == 0
        assert (await memory.status()).resets == 1
        assert await memory.get_all() == {"held": 1}


async def test_deployments_with_names_that_begin_alike_share_nothing(
    opened: Callable[..., Any], scope: Scope
) -> None:
    async with (
        opened(contract_settings(namespace="prod")) as one,
        opened(contract_settings(namespace="prod2")) as other,
    ):
        await WorkingMemory(one, scope).set("k", "prod")

        assert await WorkingMemory(other, scope).get("k", "absent") == "absent"
        assert await WorkingMemory(other, scope).clear() == 0
        assert await WorkingMemory(one, scope).get("k") == "prod"


async def test_a_wrong_password_is_a_matter_of_settings(
    server: Valkey, watched: Redis, opened: Callable[..., Any]
) -> None:
    await watched.config_set("requirepass", "secret")

    with pytest.raises(ConfigurationError, match="MEM_REDIS_URL"):
        async with opened(url=server.url):
            pass


@pytest.mark.parametrize("cancelled_after", [0.0, 0.0002, 0.0005, 0.001, 0.002])
async def test_a_cancelled_call_leaves_no_answer_for_the_next_one(
    opened: Callable[..., Any], scope: Scope, cancelled_after: float
) -> None:
    chance = random.Random(7)
    async with opened(contract_settings(connections_max=2)) as places:
        memory = WorkingMemory(places, scope)
        await asyncio.gather(*(memory.set(f"k{n}", n) for n in range(8)))
        for round_ in range(25):
            calls: list[asyncio.Future[Any]] = [
                asyncio.ensure_future(call)
                for n in range(4)
                for call in (memory.get(f"k{n}"), memory.set(f"k{n + 4}", round_), memory.get_all())
            ]
            await asyncio.sleep(cancelled_after * chance.random())
            for call in chance.sample(calls, 6):
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

            assert [await memory.get(f"k{n}") for n in range(4)] == [0, 1, 2, 3]
        assert (await memory.status()).epoch == 0


async def test_a_cancelled_restore_is_whole_or_did_not_happen(
    opened: Callable[..., Any], scope: Scope
) -> None:
    async with opened() as places:
        memory = WorkingMemory(places, scope)
        names = [f"k{n}" for n in range(6)]
        for name in names:
            await memory.set(name, "old", durable=name == "k0")
        saved = await memory.create_checkpoint()
        for pause in (0, 0.001, 0.003, 0.005, 0.01, 0.02):
            for name in names:
                await memory.set(name, "new")
            restore = asyncio.ensure_future(memory.restore_checkpoint(saved))
            await asyncio.sleep(pause)
            restore.cancel()
            await asyncio.gather(restore, return_exceptions=True)
            await places.place._restoring.close()

            assert set((await memory.get_all()).values()) in ({"old"}, {"new"})


async def test_more_callers_than_connections_all_get_their_turn(
    opened: Callable[..., Any], scope: Scope
) -> None:
    async with opened(contract_settings(connections_max=2, acquire_timeout_seconds=20)) as places:
        memory = WorkingMemory(places, scope)

        await asyncio.gather(*(memory.set(f"k{n % 8}", n) for n in range(200)))

        assert sorted((await memory.get_all()).values()) == list(range(192, 200))


async def test_no_free_connection_is_said_to_be_that(
    opened: Callable[..., Any], scope: Scope, proxy: Proxy
) -> None:
    settings = contract_settings(connections_max=1, timeout_seconds=10, acquire_timeout_seconds=0.2)
    async with opened(settings, url=proxy.url) as places:
        memory = WorkingMemory(places, scope)
        await memory.get("k")
        pool = places.place._valkey.client._pool()
        await pool.free.acquire()

        asked = asyncio.get_running_loop().time()
        with pytest.raises(StoreUnavailable, match="connections_max"):
            await memory.set("k", 1)
        waited = asyncio.get_running_loop().time() - asked

        pool.free.release()
        await memory.set("k", 1)
    assert 0.2 <= waited < 5
    assert WorkingSettings().acquire_timeout_seconds < 1


async def test_a_call_under_way_has_its_answer_and_leaves_nothing_open_when_its_client_is_closed(
    server: Valkey, watched: Redis
) -> None:
    client = ValkeyClient(server.url, contract_settings(timeout_seconds=10))
    await client.features()
    asked = asyncio.ensure_future(client.call("BLPOP", "a list", 10))
    await _until(watched, "blocked_clients", 1)

    await client.close()
    await watched.rpush("a list", "an item")
    answer = await asked

    await _until(watched, "connected_clients", 1)  # the one that looks
    assert answer == [b"a list", b"an item"]


def test_each_loop_has_connections_of_its_own(
    servers: EmbeddedServers, working_url: str, scope: Scope
) -> None:
    async def once(number: int) -> Any:
        database = Database(working_url, MemorySettings().database)
        places = await open_working(
            servers.redis_url, database, contract_settings(), clock=TickingClock(), new_id=uuid4
        )
        memory = WorkingMemory(places, scope)
        await memory.set(f"k{number}", number, durable=number == 1)
        everything = await memory.get_all()
        await places.close()
        await database.close()
        return everything

    answers = []
    thread = threading.Thread(target=lambda: answers.extend(asyncio.run(once(n)) for n in range(3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        thread.start()
        thread.join()
        gc.collect()

    assert answers[-1] == {"k0": 0, "k1": 1, "k2": 2}


def test_one_opening_serves_loops_that_come_after_each_other(
    servers: EmbeddedServers, working_url: str, scope: Scope
) -> None:
    database = Database(working_url, MemorySettings().database)
    answers = []

    async def begin() -> WorkingPlaces:
        places = await open_working(
            servers.redis_url, database, contract_settings(), clock=TickingClock(), new_id=uuid4
        )
        await WorkingMemory(places, scope).set("k", 1, durable=True)
        await places.close()
        await database.close()
        return places

    async def go_on(places: WorkingPlaces) -> None:
        memory = WorkingMemory(places, scope)
        await memory.set("l", 2)
        answers.append(await memory.get_all())
        await places.close()
        await database.close()

    def run() -> None:
        places = asyncio.run(begin())
        asyncio.run(go_on(places))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert answers == [{"k": 1, "l": 2}]


def test_a_forked_child_speaks_over_connections_of_its_own(
    servers: EmbeddedServers, working_url: str, scope: Scope, tmp_path: Path
) -> None:
    told = tmp_path / "told"

    async def write(places: WorkingPlaces, first: int) -> None:
        memory = WorkingMemory(places, scope)
        for number in range(first, first + 5):
            await memory.set(f"k{number}", number)
            assert await memory.get(f"k{number}") == number

    async def parent(database: Database) -> None:
        places = await open_working(
            servers.redis_url, database, contract_settings(), clock=TickingClock(), new_id=uuid4
        )
        await write(places, 0)
        process = places.now().process
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads
            child = os.fork()
        if child == 0:
            status = 1
            try:
                asyncio.events._set_running_loop(None)
                asyncio.run(write(places, 5))
                told.write_text(str(places.now().process != process))
                status = 0
            finally:
                os._exit(status)
        await write(places, 0)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert status == 0
        everything = await WorkingMemory(places, scope).get_all()
        assert sorted(everything.values()) == list(range(10))
        await places.close()
        await database.close()

    database = Database(working_url, MemorySettings().database)
    thread_faults: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(parent(database))
        except BaseException as fault:  # noqa: BLE001 - told to the test's own thread
            thread_faults.append(fault)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert thread_faults == []
    assert told.read_text() == "True"


async def test_what_has_expired_is_purged_when_no_outage_can_bring_it_back(
    opened: Callable[..., Any], working_database: Database, scope: Scope, clock: TickingClock
) -> None:
    settings = contract_settings(tombstone_ttl=timedelta(hours=1))
    given = (working_database, scope.tenant.id, settings)
    async with opened(settings) as places:
        memory = WorkingMemory(places, scope)
        await memory.set("expired", 1, ttl_seconds=60, durable=True)
        await memory.set("deleted", 1, durable=True)
        await memory.set("kept", 1, forever=True, durable=True)
        await memory.delete("deleted")
        clock.advance(timedelta(minutes=30))
        early = await purge_expired(*given, now=clock(), limit=10)
        clock.advance(timedelta(hours=2))

        late = await purge_expired(*given, now=clock(), limit=10)

        assert (early, late) == (0, 2)
        assert await memory.get_all() == {"kept": 1}


async def test_a_session_that_has_ended_leaves_nothing(
    opened: Callable[..., Any], working_database: Database, scope: Scope
) -> None:
    async with opened() as places:
        memory, neighbour = WorkingMemory(places, scope), WorkingMemory(places, a_scope())
        for one in (memory, neighbour):
            await one.set("k", 1)
            await one.set("d", 1, durable=True)
            await one.append_scratchpad("note")
            await one.create_checkpoint()
        kept = await memory.record()

        async with working_database.open_unit(scope.tenant.id) as unit:
            await places.drop_rows(unit, scope)
        await places.drop_rest(scope)

        assert kept.scratchpad == ("note",)
        assert (await memory.record()).is_empty
        assert await memory.checkpoints() == []
        assert len(await neighbour.get_all()) == 2
        assert len(await neighbour.checkpoints()) == 1


async def test_the_rows_of_a_session_stay_when_its_end_is_rolled_back(
    opened: Callable[..., Any], working_database: Database, scope: Scope
) -> None:
    async with opened() as places:
        memory = WorkingMemory(places, scope)
        await memory.set("d", 1, durable=True)

        with pytest.raises(RuntimeError, match="too late"):
            async with working_database.open_unit(scope.tenant.id) as unit:
                await places.drop_rows(unit, scope)
                raise RuntimeError("too late")

        assert await memory.get("d") == 1


@pytest.mark.parametrize(
    "given",
    [
        {"ttl": timedelta(0)},
        {"ttl": timedelta(days=400)},
        {"keys_max": 0},
        {"value_bytes_max": 2_000_000, "bytes_max": 1_000_000},
        {"on_outage": "forget"},
        {"place": "elsewhere"},
        {"namespace": ""},
        {"tombstone_ttl": timedelta(0)},
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        WorkingSettings(**given)


def test_the_section_is_set_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEM_WORKING__ON_OUTAGE", "refuse")
    monkeypatch.setenv("MEM_WORKING__KEYS_MAX", "7")

    settings = MemorySettings()

    assert (settings.working.on_outage, settings.working.keys_max) == ("refuse", 7)


async def test_what_a_place_lacks_is_said_when_it_is_opened(working_database: Database) -> None:
    given = {"clock": TickingClock(), "new_id": uuid4}

    with pytest.raises(ConfigurationError, match="MEM_REDIS_URL"):
        await open_working(None, working_database, WorkingSettings(), **given)
    with pytest.raises(ConfigurationError, match="MEM_DATABASE_URL"):
        await open_working("unix:///nowhere", None, WorkingSettings(), **given)
    with pytest.raises(ConfigurationError, match="MEM_REDIS_URL"):
        await open_working("http://x", working_database, WorkingSettings(), **given)


async def test_the_local_place_needs_no_server(scope: Scope) -> None:
    places = await open_working(
        None, None, WorkingSettings(place="local"), clock=TickingClock(), new_id=uuid4
    )
    memory = WorkingMemory(places, scope)
    await memory.set("k", 1)
    await places.drop_rest(scope)

    assert await memory.get_all() == {}
    assert (await memory.status()).place == "local"
    await places.close()


async def test_with_postgresql_away_what_valkey_has_is_served_and_nothing_is_called_absent(
    servers: EmbeddedServers, scope: Scope, clock: TickingClock, tmp_path: Path
) -> None:
    nobody = Database(f"postgresql://mnemic_app@/none?host={tmp_path}", MemorySettings().database)
    places = await open_working(
        servers.redis_url, nobody, contract_settings(), clock=clock, new_id=uuid4
    )
    memory = WorkingMemory(places, scope)

    await memory.set("k", 1)
    await memory.append_scratchpad("note")

    assert await memory.get("k") == 1
    assert await memory.get_scratchpad() == ["note"]
    assert await memory.delete("k") is True
    calls = [
        *(memory.get("missing"), memory.delete("missing"), memory.list_keys(), memory.get_all()),
        *(memory.clear(), memory.create_checkpoint(), memory.set("d", 1, durable=True)),
    ]
    for call in calls:
        with pytest.raises(StoreUnavailable):
            await call
    for number in range(12):
        await memory.set(f"k{number}", 1)  # what was reserved for the durable key is free again
    await places.close()
    await nobody.close()


@pytest.mark.parametrize("version", ["6.2.14", "5.0.0"])
async def test_a_server_that_is_too_old_is_refused(
    opened: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory, version: str
) -> None:
    path = tmp_path_factory.mktemp("old") / "v.sock"
    told = f"redis_version:{version}"
    replies = {b"HELLO": b"%0\r\n", b"CLIENT": b"+OK\r\n"}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while count := (await reader.readline()).strip():
            words = []
            for _ in range(int(count[1:])):
                await reader.readline()
                words.append((await reader.readline()).strip())
            info = f"${len(told)}\r\n{told}\r\n".encode()
            writer.write(replies.get(words[0], info))
        writer.close()

    async with await asyncio.start_unix_server(serve, str(path)):
        with pytest.raises(ConfigurationError, match=f"version {version}; it must be {SERVED}"):
            async with opened(url=f"unix://{path}"):
                pass


@pytest.mark.parametrize(
    ("fault", "expected", "words"),
    [
        (faults.ResponseError("MISCONF Errors writing"), StoreUnavailable, "disk"),
        (faults.ResponseError("ERR what"), MnemicError, "ERR what"),
        (faults.OutOfMemoryError("used memory"), StoreUnavailable, "maxmemory"),
        (faults.MovedError("12 host:1"), ConfigurationError, "cluster"),
        (faults.NoPermissionError("no"), ConfigurationError, "this user"),
        (faults.ReadOnlyError("replica"), Away, "replica"),
        (faults.BusyLoadingError("loading"), Away, "loading"),
        (faults.ConnectionError("gone"), Away, "ConnectionError"),
        (TimeoutError(), Away, "TimeoutError"),
        (ValueError("not of a server"), ValueError, "not of a server"),
    ],
)
def test_faults_of_the_server_leave_in_our_words(
    fault: Exception, expected: type[Exception], words: str
) -> None:
    error = translated(fault, sent=True)

    assert type(error) is expected
    assert words in str(error)


async def test_a_server_that_came_back_with_another_policy_is_refused(
    server: Valkey, watched: Redis, opened: Callable[..., Any], scope: Scope, proxy_to: Any
) -> None:
    proxy = await proxy_to(server.url)
    async with opened(contract_settings(retry_after_seconds=0.01), url=proxy.url) as places:
        memory = WorkingMemory(places, scope)
        await memory.set("k", 1)
        await proxy.cut()
        with pytest.raises(Unavailable):
            await memory.set("k", 2)
        await watched.config_set("maxmemory-policy", "allkeys-lru")
        await proxy.open()

        with pytest.raises(ConfigurationError, match="allkeys-lru"):
            async with asyncio.timeout(10):
                while True:
                    with suppress(StoreUnavailable):
                        await memory.set("k", 2)
                    await asyncio.sleep(0.01)


async def test_what_was_held_comes_in_where_the_server_is_full_by_then(
    server: Valkey, watched: Redis, opened: Callable[..., Any], scope: Scope, proxy_to: Any
) -> None:
    proxy = await proxy_to(server.url)
    settings = contract_settings(on_outage="degrade", retry_after_seconds=0.01)
    async with opened(settings, url=proxy.url) as places:
        memory = WorkingMemory(places, scope)
        await proxy.cut()
        await memory.set("held", 1)
        await watched.config_set("maxmemory", "1")
        await proxy.open()
        async with asyncio.timeout(10):
            while (await memory.status()).degraded:  # noqa: ASYNC110 - all a caller can see
                await asyncio.sleep(0.01)

        assert await memory.get_all() == {"held": 1}
        with pytest.raises(StoreUnavailable, match="full"):
            await memory.set("more", 1)


async def test_an_ended_session_leaves_no_row_at_all(
    opened: Callable[..., Any], working_database: Database, servers: EmbeddedServers, scope: Scope
) -> None:
    connection = await asyncpg.connect(servers.postgres_url("postgres", "working"))
    async with opened() as places:
        memory = WorkingMemory(places, scope)
        await memory.set("d", 1, durable=True)
        await memory.create_checkpoint()
        async with working_database.open_unit(scope.tenant.id) as unit:
            await places.drop_rows(unit, scope)
        left = [
            await connection.fetchval(
                f"SELECT count(*) FROM mnemic.{table} WHERE scope_id = $1", scope.id
            )
            for table in ("working_memory", "working_heads", "working_notes", "working_checkpoints")
        ]
    await connection.close()

    assert left == [0, 0, 0, 0]


async def test_the_local_place_lets_go_of_scopes_that_are_over() -> None:
    clock = TickingClock(step=timedelta(0))
    places = await open_working(
        None, None, contract_settings(place="local"), clock=clock, new_id=uuid4
    )
    tenant = a_scope()
    for number in range(1_000):
        await WorkingMemory(places, tenant.session(f"s{number}")).set("k", 1, ttl_seconds=60)
    clock.advance(timedelta(seconds=61))

    await WorkingMemory(places, tenant).set("k", 1)

    assert len(places.place._rooms) == 1
