"""Valkey away: what is answered, what is refused, and what comes of it when it is back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from working_proxy import Proxy

from mnemic.errors import InvalidInput, NotFound, OutcomeUnknown, StoreUnavailable, Unavailable
from mnemic.model.scope import Scope
from mnemic.model.working import TaskState
from mnemic.settings import WorkingSettings
from mnemic.store.working.opening import WorkingPlaces
from mnemic.testing.builders import a_scope
from mnemic.testing.clock import TickingClock
from mnemic.testing.working_contract import contract_settings
from mnemic.tier.working import WorkingMemory

# Pauses short enough to wait for. The deadline of a call is long: nothing here hangs by itself.
QUICK = {"timeout_seconds": 5, "retry_after_seconds": 0.05, "durable_lease_seconds": 0.2}
# Far more than a busy machine needs, and far less than a deadline for each of the calls.
AT_ONCE_SECONDS_MAX = 20


def degrading(**given: Any) -> WorkingSettings:
    return contract_settings(**{"on_outage": "degrade", **QUICK, **given})


@pytest.fixture
def scope() -> Scope:
    return a_scope().session("s")


@pytest.fixture
async def cut_off(opened: Callable[..., Any], proxy: Proxy) -> AsyncIterator[WorkingPlaces]:
    """Places that reach Valkey through the proxy, and degrade without it."""
    async with opened(degrading(), url=proxy.url) as made:
        yield made
        await proxy.open()


@pytest.fixture
async def memory(cut_off: WorkingPlaces, scope: Scope) -> WorkingMemory:
    """The memory of the process that loses touch."""
    return WorkingMemory(cut_off, scope)


@pytest.fixture
async def other(opened: Callable[..., Any], scope: Scope) -> AsyncIterator[WorkingMemory]:
    """The same scope as a process sees it that stays in touch."""
    async with opened(degrading()) as made:
        yield WorkingMemory(made, scope)


async def merged(memory: WorkingMemory) -> None:
    """Returns once nothing is held in the process any more."""
    async with asyncio.timeout(10):
        while (await memory.status()).degraded:  # noqa: ASYNC110 - that is all a caller can see
            await asyncio.sleep(0.01)


async def reached(memory: WorkingMemory) -> None:
    """Returns once the process has found Valkey again."""
    async with asyncio.timeout(10):
        while True:
            try:
                await memory.list_keys()
            except StoreUnavailable:
                await asyncio.sleep(0.01)
            else:
                return


async def test_what_is_written_while_valkey_is_away_is_read_back_and_declared(
    memory: WorkingMemory, proxy: Proxy
) -> None:
    before = await memory.status()
    await proxy.cut()

    await memory.set("k", {"n": 1})
    await memory.set_task_state(TaskState("step"))
    await memory.append_scratchpad("note")

    assert await memory.get("k") == {"n": 1}
    assert await memory.get_task_state() == TaskState("step")
    assert await memory.delete("k") is True
    assert await memory.get("k") is None
    status = await memory.status()
    assert (before.degraded, before.epoch) == (False, 0)
    assert (status.place, status.degraded, status.epoch, status.pending) == ("valkey", True, 1, 3)


async def test_what_only_valkey_knows_is_unavailable_and_never_absent(
    memory: WorkingMemory, proxy: Proxy
) -> None:
    await memory.set("k", 1)
    await memory.append_scratchpad("note")
    saved = await memory.create_checkpoint()
    await proxy.cut()

    await memory.set("mine", 1)

    calls = [
        *(memory.get("k"), memory.get("never"), memory.exists("k"), memory.delete("k")),
        *(memory.list_keys(), memory.get_all(), memory.clear(), memory.get_scratchpad()),
        *(memory.get_task_state(), memory.create_checkpoint(), memory.restore_checkpoint(saved)),
        memory.record(),
    ]
    for call in calls:
        with pytest.raises(StoreUnavailable, match="Valkey is away"):
            await call
    assert await memory.get("mine") == 1


async def test_what_was_held_is_merged_by_itself_when_valkey_is_back(
    memory: WorkingMemory, other: WorkingMemory, proxy: Proxy
) -> None:
    await memory.set("gone", 1)
    await memory.set("kept", 1, ttl_seconds=500)
    await memory.append_scratchpad("before")
    await proxy.cut()
    await memory.set("k", 2)
    await memory.set("kept", 2)
    await memory.set("gone", 2)
    await memory.delete("gone")
    await memory.append_scratchpad("meanwhile")

    await proxy.open()
    await merged(memory)

    assert await other.get_all() == {"k": 2, "kept": 2}
    assert await other.get_scratchpad() == ["before", "meanwhile"]
    status = await memory.status()
    assert (status.degraded, status.pending, status.conflicts) == (False, 0, 0)


async def test_an_update_while_degraded_keeps_the_time_to_live_that_was_given(
    memory: WorkingMemory, other: WorkingMemory, proxy: Proxy, clock: TickingClock
) -> None:
    await memory.set("k", 1, ttl_seconds=500)
    await proxy.cut()
    await memory.set("k", 2)
    await proxy.open()
    await merged(memory)
    at_first = await other.get("k")

    clock.advance(timedelta(seconds=500))

    assert at_first == 2
    assert await other.get("k") is None


async def test_a_reader_that_is_back_sees_what_it_wrote_itself_at_once(
    memory: WorkingMemory, proxy: Proxy
) -> None:
    for number in range(20):
        await proxy.cut()
        await memory.set("k", number)
        await proxy.open()
        await reached(memory)

        assert await memory.get_all() == {"k": number}


async def test_two_that_wrote_the_same_key_keep_the_newer_and_say_so(
    memory: WorkingMemory, other: WorkingMemory, proxy: Proxy, clock: TickingClock
) -> None:
    await proxy.cut()
    await memory.set("ours older", "ours")
    clock.advance(timedelta(seconds=1))
    await other.set("ours older", "theirs")
    await other.set("ours newer", "theirs")
    clock.advance(timedelta(seconds=1))
    await memory.set("ours newer", "ours")
    await memory.set("alone", "ours")

    await proxy.open()
    await merged(memory)

    assert await other.get_all() == {
        "alone": "ours",
        "ours newer": "ours",
        "ours older": "theirs",
    }
    status = await memory.status()
    assert status.conflicts == 2
    assert {(one.key, one.kept) for one in status.recent_conflicts} == {
        ("ours older", "theirs"),
        ("ours newer", "ours"),
    }


async def test_a_delete_is_not_undone_by_an_older_write_that_comes_late(
    memory: WorkingMemory, other: WorkingMemory, proxy: Proxy, clock: TickingClock
) -> None:
    for key in ("deleted", "expired", "cleared"):
        await other.set(key, "old")
        await memory.get(key)
    await proxy.cut()
    for key in ("deleted", "expired", "cleared"):
        await memory.set(key, "late")
    await memory.append_scratchpad("late")
    clock.advance(timedelta(seconds=1))
    await other.delete("deleted")
    await other.set("expired", "soon gone", ttl_seconds=60)
    clock.advance(timedelta(seconds=60))
    await other.clear()

    await proxy.open()
    await merged(memory)

    assert await other.get_all() == {}
    assert await other.get_scratchpad() == []
    status = await memory.status()
    assert status.conflicts == 4
    assert {one.kept for one in status.recent_conflicts} == {"theirs"}


async def test_a_key_that_expired_meanwhile_is_not_revived_by_an_older_write(
    memory: WorkingMemory, other: WorkingMemory, proxy: Proxy, clock: TickingClock
) -> None:
    await proxy.cut()
    await memory.set("k", "late")
    clock.advance(timedelta(seconds=1))
    await other.set("k", "newer", ttl_seconds=60)
    clock.advance(timedelta(seconds=60))

    await proxy.open()
    await merged(memory)

    assert await other.get("k", "absent") == "absent"
    assert (await memory.status()).conflicts == 1


async def test_two_that_lost_touch_both_merge(
    memory: WorkingMemory,
    opened: Callable[..., Any],
    scope: Scope,
    proxy: Proxy,
    clock: TickingClock,
) -> None:
    async with opened(degrading(), url=proxy.url) as second:
        twin = WorkingMemory(second, scope)
        await proxy.cut()
        await memory.set("both", 1)
        await memory.set("first", 1)
        await memory.append_scratchpad("first")
        clock.advance(timedelta(seconds=1))
        await twin.set("both", 2)
        await twin.set("second", 2)
        await twin.append_scratchpad("second")

        await proxy.open()
        await merged(memory)
        await merged(twin)

        assert await memory.get_all() == {"both": 2, "first": 1, "second": 2}
        assert sorted(await twin.get_scratchpad()) == ["first", "second"]
        conflicts = (await memory.status()).conflicts + (await twin.status()).conflicts
        assert conflicts == 1


async def test_an_answer_that_was_lost_does_not_double_the_write(
    memory: WorkingMemory, other: WorkingMemory, proxy: Proxy
) -> None:
    await memory.set("k", 0)
    for number in range(1, 6):
        proxy.lose_answers(1 + number % 2)
        await memory.append_scratchpad(f"note {number}")
        proxy.lose_answers(1 + number % 2)
        await memory.set("k", number)
    proxy.lose_answers(0)
    await merged(memory)

    assert await other.get_scratchpad() == [f"note {number}" for number in range(1, 6)]
    assert await other.get("k") == 5
    assert (await memory.status()).conflicts == 0


async def test_a_delete_whose_answer_was_lost_still_tells_what_it_found(
    memory: WorkingMemory, proxy: Proxy
) -> None:
    await memory.set("k", 1)
    proxy.lose_answers(1)

    assert await memory.delete("k") is True
    assert await memory.delete("k") is False


async def test_a_clear_whose_answer_was_lost_still_counts(
    memory: WorkingMemory, proxy: Proxy
) -> None:
    await memory.set("k", 1)
    proxy.lose_answers(1, after=1)  # the first one says that Valkey is there

    assert await memory.clear() == 1


async def test_a_process_holds_no_more_than_it_may(
    opened: Callable[..., Any], proxy: Proxy, scope: Scope
) -> None:
    async with opened(degrading(degraded_bytes_max=2_000), url=proxy.url) as places:
        memory = WorkingMemory(places, scope)
        await proxy.cut()
        await memory.set("k", "x" * 1_500)

        with pytest.raises(StoreUnavailable, match="degraded_bytes_max"):
            await memory.set("more", "x" * 1_500)

        await memory.set("k", "small")
        await memory.set("more", "x" * 1_500)
        await proxy.open()
        assert (await memory.status()).pending == 2


async def test_refusing_refuses_at_once(
    opened: Callable[..., Any], proxy: Proxy, scope: Scope
) -> None:
    async with opened(contract_settings(**QUICK), url=proxy.url) as places:
        memory = WorkingMemory(places, scope)
        await memory.set("k", 1)
        await proxy.cut()
        with pytest.raises(StoreUnavailable):
            await memory.get("k")

        began = time.monotonic()
        for _ in range(200):
            for call in (memory.set("k", 2), memory.get("k"), memory.append_scratchpad("n")):
                with pytest.raises(StoreUnavailable):
                    await call
        took = time.monotonic() - began
        await proxy.open()
        await reached(memory)

        assert took < AT_ONCE_SECONDS_MAX
        assert await memory.get("k") == 1
        assert await memory.get_scratchpad() == []
        assert (await memory.status()).degraded is False


async def test_a_valkey_that_hangs_costs_one_deadline_and_not_one_a_call(
    opened: Callable[..., Any], proxy: Proxy, scope: Scope
) -> None:
    settings = contract_settings(timeout_seconds=1, retry_after_seconds=60)
    async with opened(settings, url=proxy.url) as places:
        memory = WorkingMemory(places, scope)
        await memory.set("k", 1)
        proxy.stall()

        began = time.monotonic()
        with pytest.raises(OutcomeUnknown):
            await memory.set("k", 2)
        for _ in range(50):
            with pytest.raises(StoreUnavailable):
                await memory.get("k")
        took = time.monotonic() - began

        assert 1 <= took < AT_ONCE_SECONDS_MAX


async def test_those_who_wait_for_a_connection_are_told_with_the_first_that_finds_nobody(
    opened: Callable[..., Any], proxy: Proxy, scope: Scope
) -> None:
    settings = contract_settings(
        timeout_seconds=1,
        acquire_timeout_seconds=10,
        connect_timeout_seconds=1,
        retry_after_seconds=60,
        connections_max=2,
    )
    async with opened(settings, url=proxy.url) as places:
        memory = WorkingMemory(places, scope)
        await memory.set("k", 1)
        proxy.stall()

        began = time.monotonic()
        answers = await asyncio.gather(
            *(memory.get("k") for _ in range(100)), return_exceptions=True
        )
        took = time.monotonic() - began

        assert {type(answer) for answer in answers} == {StoreUnavailable}
        assert took < AT_ONCE_SECONDS_MAX


async def test_a_loop_that_is_busy_is_no_outage(opened: Callable[..., Any], scope: Scope) -> None:
    settings = contract_settings(timeout_seconds=0.2, connect_timeout_seconds=0.2)
    async with opened(settings) as places:
        memory = WorkingMemory(places, scope)
        for fresh in (True, False):
            calls = [asyncio.ensure_future(memory.set(f"k{n}", n)) for n in range(8)]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            time.sleep(0.5)  # noqa: ASYNC251 - what other code may do to the loop

            assert await asyncio.gather(*calls) == [None] * 8, fresh
        assert (await memory.status()).epoch == 0


async def test_a_refused_write_whose_fate_is_not_known_says_so(
    opened: Callable[..., Any], proxy: Proxy, scope: Scope
) -> None:
    async with opened(contract_settings(**QUICK), url=proxy.url) as places:
        memory = WorkingMemory(places, scope)
        await memory.get("k")
        proxy.lose_answers(2)

        with pytest.raises(OutcomeUnknown):
            await memory.set("k", 1)

        proxy.lose_answers(0)
        await reached(memory)
        assert await memory.get("k") == 1


async def test_durable_values_are_served_whatever_happens_to_valkey(
    memory: WorkingMemory, other: WorkingMemory, proxy: Proxy
) -> None:
    await memory.set("before", 1, durable=True)
    await proxy.cut()

    await memory.set("meanwhile", 2, durable=True)
    await memory.set("before", 3)

    assert await memory.get("before") == 3
    assert await memory.get("meanwhile") == 2
    assert await other.get("before") == 3
    assert await other.get("meanwhile") == 2
    assert await memory.delete("before") is True
    assert await other.get("before") is None
    assert await other.list_keys() == ["meanwhile"]
    await proxy.open()
    await reached(memory)
    assert await memory.get_all() == {"meanwhile": 2}


async def test_a_durable_value_outranks_what_valkey_still_has_of_before(
    memory: WorkingMemory, other: WorkingMemory, proxy: Proxy, clock: TickingClock
) -> None:
    await other.set("k", "old")
    assert await other.get("k") == "old"
    await proxy.cut()
    clock.advance(timedelta(seconds=1))

    await memory.set("k", "new", durable=True)

    assert await other.get("k") == "new"
    assert await other.get_all() == {"k": "new"}
    assert await memory.delete("k") is True
    assert await other.get("k") is None
    assert await other.get_all() == {}


async def test_a_later_plain_value_outranks_a_durable_one_that_did_not_know_of_it(
    memory: WorkingMemory, other: WorkingMemory, proxy: Proxy, clock: TickingClock
) -> None:
    await proxy.cut()
    await memory.set("k", "durable", durable=True)
    clock.advance(timedelta(seconds=1))
    await other.set("k", "plain", durable=False)
    await memory.set("l", "durable", durable=True)
    await proxy.open()
    await reached(memory)

    assert await other.get("k") == "plain"
    assert await memory.get_all() == {"k": "plain", "l": "durable"}


async def test_a_plain_value_written_while_a_durable_one_is_on_its_way_is_not_undone(
    memory: WorkingMemory, other: WorkingMemory, clock: TickingClock
) -> None:
    postgres = memory._places.place.postgres
    keep = postgres.put_beside

    async def overtaken(*given: Any) -> Any:
        kept = await keep(*given)
        clock.advance(timedelta(seconds=1))
        await other.set("k", "plain")
        return kept

    postgres.put_beside = overtaken
    await memory.set("k", "durable", durable=True)
    status = await memory.status()

    assert [(one.key, one.kept) for one in status.recent_conflicts] == [("k", "theirs")]
    assert await memory.get("k") == "plain"
    assert await other.get_all() == {"k": "plain"}


async def test_a_durable_value_survives_a_valkey_that_lost_everything(
    memory: WorkingMemory, opened: Callable[..., Any], scope: Scope, places: WorkingPlaces
) -> None:
    await memory.set("d", 1, durable=True)
    await memory.set("p", 2)
    await places.drop_rest(scope)

    async with opened(degrading()) as fresh:
        again = WorkingMemory(fresh, scope)

        assert await again.get("d") == 1
        assert await again.get_all() == {"d": 1}
        await again.set("d", 3)
        await fresh.drop_rest(scope)
        assert await again.get_all() == {"d": 3}
        await again.set("d", 4, durable=False)
        await fresh.drop_rest(scope)
        assert await again.get_all() == {}


async def test_a_restore_that_lost_its_process_is_brought_to_its_end(
    memory: WorkingMemory, other: WorkingMemory, proxy: Proxy, clock: TickingClock
) -> None:
    await memory.set("k", "old")
    await memory.set("d", "old", durable=True)
    saved = await memory.create_checkpoint()
    await memory.set("k", "new")
    await memory.set("d", "new")
    restoring = memory._places.place._restoring
    decide = restoring._decide

    async def decide_and_lose_touch(*given: Any) -> Any:
        decided = await decide(*given)
        await proxy.cut()
        return decided

    restoring._decide = decide_and_lose_touch
    with pytest.raises(OutcomeUnknown, match="decided"):
        await memory.restore_checkpoint(saved)
    waiting = asyncio.ensure_future(other.get("k"))
    await asyncio.sleep(0.05)
    was_shut = not waiting.done()
    clock.advance(timedelta(seconds=11))

    assert was_shut
    assert await waiting == "old"
    assert await other.get_all() == {"d": "old", "k": "old"}


async def test_everybody_waits_while_a_scope_is_being_restored(
    memory: WorkingMemory, other: WorkingMemory, proxy: Proxy
) -> None:
    await proxy.cut()
    await memory.set("held", 1)
    await other.set("k", "old")
    saved = await other.create_checkpoint()
    await other.set("k", "new")
    await other.append_scratchpad("before")
    restoring = other._places.place._restoring
    decide = restoring._decide
    may_decide = asyncio.Event()

    async def decide_later(*given: Any) -> Any:
        await may_decide.wait()
        return await decide(*given)

    restoring._decide = decide_later
    restore = asyncio.ensure_future(other.restore_checkpoint(saved))
    async with asyncio.timeout(10):
        while b"g" not in await _values(other):  # noqa: ASYNC110 - what the server holds
            await asyncio.sleep(0.005)
    calls = {
        name: asyncio.ensure_future(call)
        for name, call in {
            "get": other.get("k"),
            "list": other.list_keys(),
            "all": other.get_all(),
            "notes": other.get_scratchpad(),
            "set": other.set("set", 1),
            "delete": other.delete("k"),
            "append": other.append_scratchpad("after"),
            "task": other.set_task_state(TaskState("after")),
        }.items()
    }
    await proxy.open()
    done, _ = await asyncio.wait(calls.values(), timeout=0.3)
    was_held = (await memory.status()).pending
    may_decide.set()
    await restore
    await asyncio.gather(*calls.values())
    await merged(memory)

    assert done == set()
    assert was_held == 1
    assert await calls["get"] in {"old", None}
    assert await calls["delete"] is True
    assert set(await calls["notes"]) <= {"after"}
    assert await other.get_all() == {"set": 1}
    assert await other.get_scratchpad() == ["after"]
    assert await other.get_task_state() == TaskState("after")
    # What was held is older than the restore that replaced everything.
    assert [one.key for one in (await memory.status()).recent_conflicts] == ["held"]


async def _values(memory: WorkingMemory) -> dict[bytes, bytes]:
    """What Valkey holds of the scope."""
    valkey = memory._places.place._valkey
    found: dict[bytes, bytes] = await valkey.client.call(
        "HGETALL", valkey._keys(memory._scope).values
    )
    return found


async def test_a_restore_that_was_never_decided_leaves_no_trace(
    memory: WorkingMemory, other: WorkingMemory, proxy: Proxy, clock: TickingClock
) -> None:
    await memory.set("k", "old")
    saved = await memory.create_checkpoint()
    await memory.set("k", "new")
    restoring = memory._places.place._restoring
    decide = restoring._decide

    async def lose_touch(*given: Any) -> Any:
        await proxy.cut()
        raise StoreUnavailable

    restoring._decide = lose_touch
    with pytest.raises(StoreUnavailable):
        await memory.restore_checkpoint(saved)
    clock.advance(timedelta(seconds=11))
    seen = await other.get("k")
    restoring._decide = decide
    await proxy.open()
    await reached(memory)
    await memory.restore_checkpoint(saved)

    assert seen == "new"
    assert await other.get("k") == "old"


async def test_a_restore_that_was_given_up_by_others_cannot_be_decided_late(
    memory: WorkingMemory, other: WorkingMemory, clock: TickingClock
) -> None:
    await memory.set("k", "old")
    saved = await memory.create_checkpoint()
    await memory.set("k", "new")
    restoring = memory._places.place._restoring
    decide = restoring._decide
    seen = []

    async def decide_late(*given: Any) -> Any:
        restoring._decide = decide
        clock.advance(timedelta(seconds=11))
        seen.append(await other.get("k"))
        await other.set("k", "newer")
        return await decide(*given)

    restoring._decide = decide_late
    await memory.restore_checkpoint(saved)
    undo = (await memory.status()).undo_checkpoint

    assert seen == ["new"]
    assert await other.get("k") == "old"
    await memory.restore_checkpoint(undo or "")
    assert await other.get("k") == "newer"


async def test_places_open_while_valkey_is_away_and_say_so(
    opened: Callable[..., Any], proxy: Proxy, scope: Scope
) -> None:
    await proxy.cut()

    async with opened(degrading(), url=proxy.url) as places:
        memory = WorkingMemory(places, scope)
        assert (await memory.status()).degraded
        await memory.set("k", 1)
        await proxy.open()
        await merged(memory)
        assert await memory.get_all() == {"k": 1}
    await proxy.cut()
    with pytest.raises(Unavailable):
        async with opened(contract_settings(**QUICK), url=proxy.url):
            pass


async def test_what_is_held_is_merged_on_closing(
    opened: Callable[..., Any], proxy: Proxy, scope: Scope, other: WorkingMemory
) -> None:
    async with opened(degrading(retry_after_seconds=60), url=proxy.url) as places:
        await proxy.cut()
        await WorkingMemory(places, scope).set("k", 1)
        await proxy.open()

    assert await other.get("k") == 1


async def test_what_cannot_be_merged_on_closing_is_logged_as_lost(
    opened: Callable[..., Any], proxy: Proxy, scope: Scope, capsys: pytest.CaptureFixture[str]
) -> None:
    async with opened(degrading(), url=proxy.url) as places:
        await proxy.cut()
        memory = WorkingMemory(places, scope)
        await memory.set("k", 1)
        await memory.append_scratchpad("note")

    told = capsys.readouterr().out
    assert "working_memory_lost" in told
    assert "writes=2" in told
    assert (await memory.status()).pending == 0


async def test_what_is_held_keeps_to_the_limits_of_a_scope(
    memory: WorkingMemory, proxy: Proxy
) -> None:
    await proxy.cut()
    for number in range(12):
        await memory.set(f"k{number}", number)
    for _ in range(6):
        await memory.append_scratchpad("note")

    with pytest.raises(InvalidInput, match="keys"):
        await memory.set("more", 1)
    with pytest.raises(InvalidInput, match="scratchpad"):
        await memory.append_scratchpad("more")
    with pytest.raises(InvalidInput, match="bytes"):
        await memory.set("k0", "x" * 19_990)
    await memory.delete("k1")
    assert await memory.delete("k1") is False
    assert (await memory.status()).pending == 18


async def test_a_foreign_checkpoint_is_not_found_while_degraded_either(
    memory: WorkingMemory, other: WorkingMemory, proxy: Proxy
) -> None:
    await proxy.cut()

    with pytest.raises(NotFound):
        await memory.restore_checkpoint("00000000-0000-0000-0000-000000000000")
