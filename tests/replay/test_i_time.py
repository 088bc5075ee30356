"""I: instants, times to live, and what the clock may change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from redis.asyncio import Redis

from mnemic import (
    EpisodeCreate,
    InvalidInput,
    MemoryManager,
    NaiveTimestamp,
    Scope,
)
from mnemic.edge.worker.app import JOBS, build_app
from mnemic.embedded import EmbeddedServers
from mnemic.model.transcript import Utterance
from mnemic.settings import WorkingSettings
from mnemic.testing import TickingClock, a_conversation, a_fact, a_scope, a_turn
from oracles.reading import shown
from oracles.stored import difference, rows_of

NOT_APPLICABLE: dict[str, str] = {}

NEW_YORK = ZoneInfo("America/New_York")
LONG_AGO = datetime(2023, 3, 12, 12, 0, tzinfo=UTC)
NEVER: Any = "never"
generated = settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process runs in another zone than UTC."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@generated
@given(st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.timezones()))  # noqa: DTZ001 - the zone is drawn beside it
async def test_i03_an_instant_comes_back_as_the_same_instant(
    memory: MemoryManager, in_new_york: None, occurred_at: datetime
) -> None:
    here = memory.at(a_scope()).episodic
    told = EpisodeCreate(task_description="It went well.", occurred_at=occurred_at)

    kept = await here.record_episode(told)

    [read] = await here.get_recent()
    # In UTC: a time that a zone has twice equals none of another zone.
    assert kept.occurred_at == read.occurred_at == occurred_at.astimezone(UTC)
    assert read.occurred_at.utcoffset() == timedelta(0)
    with pytest.raises(NaiveTimestamp, match="zone"):
        await here.record_episode(
            EpisodeCreate(task_description="x", occurred_at=occurred_at.replace(tzinfo=None))
        )


async def test_i03_what_is_told_without_a_time_has_the_time_of_the_call(
    opened: Callable[..., Any], in_new_york: None, scope: Scope
) -> None:
    async with opened(clock=lambda: datetime.now(UTC)) as memory:
        before = datetime.now(UTC)
        await memory.remember("It went well.", scope=scope, memory_type="episodic")
        after = datetime.now(UTC)

        [kept] = await memory.at(scope).episodic.get_recent()
        assert before <= kept.occurred_at <= after
        assert before <= kept.recorded_at <= after


async def test_i04_what_is_made_of_old_sources_has_their_dates(
    memory: MemoryManager, scope: Scope
) -> None:
    said = [
        a_turn("I live in Oslo.", external_id="m-1", occurred_at=LONG_AGO),
        a_turn("I use Valkey.", external_id="m-2", occurred_at=LONG_AGO + timedelta(hours=1)),
    ]
    entries = [
        Utterance(session="s", turn=turn, line=place) for place, turn in enumerate(said, start=1)
    ]

    await memory.transcripts.ingest(entries, scope=scope)
    [episode] = await memory.at(scope).episodic.get_recent()
    facts = await memory.at(scope).semantic.extract_facts_from_episode(episode)

    assert (episode.occurred_at, episode.started_at, episode.ended_at) == (
        LONG_AGO,
        LONG_AGO,
        LONG_AGO + timedelta(hours=1),
    )
    assert facts
    for fact in facts:
        assert (fact.first_learned, fact.last_reinforced) == (LONG_AGO, LONG_AGO)
        assert fact.recorded_at > LONG_AGO + timedelta(days=365)


async def test_i10_reading_revives_nothing_that_has_expired(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    working = memory.at(scope).working
    for durable in (False, True):
        await working.set("short", 1, 60, durable=durable)
        await working.set("long", 2, 6_000, durable=durable)
        saved = await working.create_checkpoint()
        clock.advance(timedelta(seconds=100))
        reads: list[Callable[[], Any]] = [
            lambda: working.get("short"),
            lambda: working.exists("short"),
            lambda: working.delete("short"),
            lambda: working.list_keys("*"),
            working.record,
            working.create_checkpoint,
            lambda saved=saved: working.restore_checkpoint(saved),
        ]

        for read in reads:
            await read()
            assert await working.get_all() == {"long": 2}


async def test_i11_an_update_keeps_the_time_to_live(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    working = memory.at(scope).working
    await working.set("k", 1, 1_000)
    await working.set("never", 1, forever=True)

    for number in range(5):
        await working.set("k", number)
        await working.set("never", number)
        await working.append_scratchpad("note")
    clock.advance(timedelta(seconds=900))
    early = await working.get_all()
    clock.advance(timedelta(days=400))

    assert early == {"k": 4, "never": 4}
    assert await working.get_all() == {"never": 4}


async def test_i12_a_moment_that_was_given_outlives_changes_of_place_and_value(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    working = memory.at(scope).working
    await working.set("k", 1, 1_000)
    await working.set("k", 2, durable=True)
    await working.set("k", 3, durable=False)
    saved = await working.create_checkpoint()
    await working.restore_checkpoint(saved)

    clock.advance(timedelta(seconds=900))
    early = await working.get("k")
    clock.advance(timedelta(seconds=200))

    assert (early, await working.get("k")) == (3, None)


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(seconds=-1), 0, "PT0S"])
async def test_i14_a_time_to_live_of_nothing_is_refused_wherever_it_is_given(
    memory: MemoryManager, scope: Scope, ttl: Any
) -> None:
    working = memory.at(scope).working

    with pytest.raises(ValidationError, match="ttl"):
        WorkingSettings(ttl=ttl)
    with pytest.raises(InvalidInput) as refused:
        await working.set("k", 1, ttl_seconds=0)

    assert refused.value.field == "ttl_seconds"
    assert await working.get_all() == {}
    assert WorkingSettings(ttl=timedelta(seconds=1)).ttl.total_seconds() == 1
    await working.set("k", 1, ttl_seconds=1)


@pytest.mark.parametrize("value", [True, False, "never", "60", b"61", [60], {"s": 1}])
async def test_i15_what_is_no_time_is_refused_by_name(
    memory: MemoryManager, scope: Scope, value: Any
) -> None:
    working = memory.at(scope).working
    for seconds in (60, 60.5):
        await working.set("k", 1, seconds)

    with pytest.raises(InvalidInput) as ttl:
        await working.set("k", 2, value)
    with pytest.raises(InvalidInput) as until:
        await memory.store_fact(a_fact(valid_to=value), scope=scope)
    with pytest.raises(InvalidInput) as since:
        await memory.at(scope).episodic.get_recent(since=value)

    assert (ttl.value.field, until.value.field, since.value.field) == (
        "ttl_seconds",
        "valid_to",
        "since",
    )
    assert await working.get("k") == 1


@pytest.mark.parametrize("durable", [False, True])
async def test_i16_what_has_expired_already_is_as_deleted(
    memory: MemoryManager, scope: Scope, clock: TickingClock, *, durable: bool
) -> None:
    working = memory.at(scope).working
    await working.set("k", 1, 60, durable=durable)
    await working.set("kept", 1)
    saved = await working.create_checkpoint()
    for seconds in (0, -1, -(10**9)):
        with pytest.raises(InvalidInput, match="ttl_seconds"):
            await working.set("k", 2, seconds)
    untouched = await working.get("k")
    clock.advance(timedelta(seconds=61))

    await working.restore_checkpoint(saved)

    assert untouched == 1
    assert await working.get_all() == {"kept": 1}
    assert not await working.delete("k")


async def test_i17_huge_times_are_refused_and_parts_of_a_second_count(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    working = memory.at(scope).working
    for seconds in (10**12, 1e300, float("inf"), float("nan"), 10**400):
        with pytest.raises(InvalidInput, match="ttl_seconds"):
            await working.set("k", 1, seconds)

    await working.set("k", 1, 90.5)
    clock.advance(timedelta(seconds=80))
    early = await working.get("k")
    clock.advance(timedelta(seconds=20))

    assert (early, await working.get("k")) == (1, None)


async def test_i18_a_key_that_is_set_anew_does_not_inherit_the_old_moment(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    working = memory.at(scope).working
    await working.set("expired", 1, 60)
    await working.set("deleted", 1, 600)
    await working.set("updated", 1, 600)
    clock.advance(timedelta(seconds=100))
    await working.delete("deleted")

    for key in ("expired", "deleted", "updated"):
        await working.set(key, 2)
    clock.advance(timedelta(seconds=3_600))

    assert await working.get_all() == {"deleted": 2, "expired": 2}


async def test_i19_a_note_costs_the_same_after_a_thousand_others(
    memory: MemoryManager, scope: Scope, servers: EmbeddedServers
) -> None:
    working = memory.at(scope).working
    client = Redis.from_url(servers.redis_url)

    async def cost() -> int:
        before = await client.info("stats")
        await working.append_scratchpad("A note of the same length.")
        after = await client.info("stats")
        names = ("total_net_input_bytes", "total_net_output_bytes")
        return sum(int(after[name]) - int(before[name]) for name in names)

    await cost()
    first = await cost()
    for _ in range(1_000):
        await working.append_scratchpad("A note of the same length.")

    last = await cost()

    await client.aclose()
    assert first > 0
    assert last < first + 200
    assert len(await working.get_scratchpad()) == 1_003


async def test_i23_maintenance_is_asked_for_by_intervals_and_not_by_local_time(
    memory: MemoryManager, in_new_york: None
) -> None:
    app = build_app(memory.settings, redis_url="unix:///nowhere/valkey.sock")

    entries = app.conf.beat_schedule

    assert (app.conf.timezone, app.conf.enable_utc) == ("UTC", True)
    assert entries.keys() == {job.name for job in JOBS}
    assert all(isinstance(entry["schedule"], int | float) for entry in entries.values())
    assert all(entry["last_run_at"].utcoffset() == timedelta(0) for entry in entries.values())


async def test_i23_every_hour_of_the_night_on_which_the_clocks_change_ends_a_session_once(
    opened: Callable[..., Any], alone: MemoryManager, in_new_york: None
) -> None:
    clock = TickingClock(datetime(2026, 11, 1, 0, 30, tzinfo=NEW_YORK).astimezone(UTC))
    scope = a_scope()
    async with opened(alone.settings, clock=clock) as memory:
        done = []
        for hour in range(6):
            said = [a_turn("The lease is red.", occurred_at=clock())]
            await memory.sessions.append(said, scope=scope.session(f"s{hour}"))
            clock.advance(timedelta(hours=1))
            done.append((await memory.maintenance.end_idle_sessions()).done)
            done.append((await memory.maintenance.end_idle_sessions()).done)

        assert done == [1, 0] * 6
        assert len(await memory.at(scope).episodic.get_recent()) == 6


async def _count_all(memory: MemoryManager) -> None:
    """Of every tenant on the stage: a run looks at so many, in an order of its own."""
    while (await memory.maintenance.count_terms()).done:
        pass


@generated
@given(st.timedeltas(timedelta(seconds=1), timedelta(days=20_000)))
async def test_i10_time_alone_changes_no_stored_row(
    opened: Callable[..., Any], memory: MemoryManager, seen: asyncpg.Connection, later: timedelta
) -> None:
    scope, clock = a_scope(), TickingClock()
    session = scope.session("s")
    async with opened(clock=clock) as other:
        await other.store_fact(a_fact(), scope=scope)
        await other.sessions.append(a_conversation(["The lease is red."]), scope=session)
        await other.sessions.pause(scope=session)
        await _count_all(other)
        before = await rows_of(seen, scope)

        clock.advance(later)
        answers = await shown(other, session, "PostgreSQL")
        await other.maintenance.embed_missing()
        await _count_all(other)

        assert "PostgreSQL" in answers["recall semantic"]
        assert difference(before, await rows_of(seen, scope)) == {}
