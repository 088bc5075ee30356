"""Reports from the field, replayed on working memory: the id of each stands in the test's name.

Each has a positive control: the same call with harmless input does succeed.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from working_proxy import Proxy

from mnemic.embedded import EmbeddedServers
from mnemic.errors import InvalidInput, StoreUnavailable
from mnemic.model.scope import Scope
from mnemic.settings import WorkingSettings
from mnemic.store.working.keys import scope_keys
from mnemic.store.working.opening import WorkingPlaces
from mnemic.testing.builders import a_scope
from mnemic.testing.clock import TickingClock
from mnemic.testing.working_contract import contract_settings
from mnemic.tier.working import WorkingMemory


@pytest.fixture
def of(places: WorkingPlaces) -> Callable[[Scope], WorkingMemory]:
    """The working memory of a scope."""
    return lambda scope: WorkingMemory(places, scope)


@pytest.fixture
def memory(of: Callable[[Scope], WorkingMemory]) -> WorkingMemory:
    return of(a_scope().session("s"))


@pytest.mark.parametrize("hostile", ["*", "u[12]", "u?", "\\", "u*"])
async def test_d11_a_glob_in_a_user_id_lists_nobody_elses_keys(
    of: Callable[[Scope], WorkingMemory], hostile: str
) -> None:
    for user in ("u1", "u2"):
        await of(Scope.user(user).session("s")).set(f"of {user}", 1)
    own = of(Scope.user(hostile).session("s"))
    await own.set("mine", 1)

    listed = await own.list_keys()
    cleared = await own.clear()

    assert (listed, cleared) == (["mine"], 1)
    assert await of(Scope.user("u1").session("s")).list_keys() == ["of u1"]


async def test_d12_two_users_with_the_same_session_id_have_two_sessions(
    of: Callable[[Scope], WorkingMemory],
) -> None:
    one, other = (of(a_scope().session("same")) for _ in range(2))
    await one.set("k", "one")
    await other.set("k", "other")

    assert [await one.get("k"), await other.get("k")] == ["one", "other"]


async def test_d13_names_that_begin_alike_do_not_overlap(
    of: Callable[[Scope], WorkingMemory],
) -> None:
    names = ("prod", "prod2", "prod:2", "pro")
    for name in names:
        await of(Scope.organisation(name)).set("k", name)
    await of(Scope.organisation("prod")).clear()

    left = [await of(Scope.organisation(name)).get("k") for name in names]

    assert left == [None, "prod2", "prod:2", "pro"]


async def test_d15_a_comma_does_not_split_a_key(memory: WorkingMemory) -> None:
    await memory.set("red, green", 1)

    assert await memory.list_keys() == ["red, green"]
    assert await memory.list_keys("red,*") == ["red, green"]
    assert await memory.get("red") is None


async def test_b04_long_keys_that_differ_at_the_end_both_live(memory: WorkingMemory) -> None:
    for end in "ab":
        await memory.set("x" * 500 + end, end)
        await memory.set("y" * 500 + end, end, durable=True)

    assert sorted((await memory.get_all()).values()) == ["a", "a", "b", "b"]


async def test_c14_an_empty_session_reads_as_an_empty_list(memory: WorkingMemory) -> None:
    fresh = await memory.get_scratchpad()
    await memory.append_scratchpad("note")

    assert fresh == []
    assert await memory.get_scratchpad() == ["note"]


async def test_e11_a_stored_null_blocks_nobody(memory: WorkingMemory) -> None:
    await memory.set("null", None)
    await memory.set("inside", {"k": None})

    assert await memory.get_all() == {"inside": {"k": None}, "null": None}


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf, 2**64])
async def test_e24_a_number_json_does_not_have_is_refused_by_its_path(
    memory: WorkingMemory, poison: Any
) -> None:
    with pytest.raises(InvalidInput) as raised:
        await memory.set("k", {"scores": [1, poison]})
    await memory.set("k", {"scores": [1, 2]})

    assert raised.value.field == "value.scores[1]"
    assert await memory.get("k") == {"scores": [1, 2]}


async def test_g06_appends_at_once_are_all_kept(
    servers: EmbeddedServers, opened: Callable[..., Any]
) -> None:
    scope = a_scope().session("s")
    settings = contract_settings(scratchpad_entries_max=200)
    async with opened(settings) as one, opened(settings) as other:
        writers = [WorkingMemory(one, scope), WorkingMemory(other, scope)]
        await asyncio.gather(*(writers[n % 2].append_scratchpad(f"note {n}") for n in range(100)))

        notes = await writers[0].get_scratchpad()

    assert sorted(notes) == sorted(f"note {n}" for n in range(100))


async def test_g06_an_append_that_is_interrupted_leaves_the_rest(
    opened: Callable[..., Any], proxy: Proxy
) -> None:
    scope = a_scope().session("s")
    settings = contract_settings(retry_after_seconds=0.01)
    async with opened(settings, url=proxy.url) as places, opened() as watching:
        memory = WorkingMemory(places, scope)
        await memory.append_scratchpad("first")
        for _ in range(3):
            append = asyncio.ensure_future(memory.append_scratchpad("second"))
            await asyncio.sleep(0)
            proxy.reset()
            await asyncio.gather(append, return_exceptions=True)

        notes = await WorkingMemory(watching, scope).get_scratchpad()

    assert notes[:1] == ["first"]
    assert set(notes[1:]) <= {"second"}


async def test_h05_another_process_does_not_serve_what_was_deleted(
    opened: Callable[..., Any],
) -> None:
    scope = a_scope().session("s")
    async with opened() as one, opened() as other:
        ours, theirs = WorkingMemory(one, scope), WorkingMemory(other, scope)
        for durable in (False, True):
            await ours.set("k", 1, durable=durable)
            warm = [await ours.get("k"), await theirs.get("k")]
            await ours.delete("k")

            assert warm == [1, 1]
            assert [await ours.get("k"), await theirs.get("k")] == [None, None]


async def test_h24_reading_does_not_shorten_a_life(
    memory: WorkingMemory, clock: TickingClock
) -> None:
    await memory.set("k", 1, ttl_seconds=1_000)
    for _ in range(3):
        clock.advance(timedelta(seconds=300))
        await memory.get("k")

    assert await memory.get("k") == 1


async def test_i10_reading_does_not_revive_what_has_expired(
    memory: WorkingMemory, clock: TickingClock
) -> None:
    await memory.set("k", 1, ttl_seconds=60)
    clock.advance(timedelta(seconds=61))

    reads: list[Awaitable[Any]] = [memory.get("k"), memory.exists("k"), memory.get_all()]
    found = [await read for read in reads]

    assert found == [None, False, {}]
    assert await memory.list_keys() == []


@pytest.mark.parametrize("durable", [False, True])
async def test_i11_i12_an_update_keeps_the_time_to_live(
    memory: WorkingMemory, clock: TickingClock, *, durable: bool
) -> None:
    await memory.set("k", 1, ttl_seconds=60, durable=durable)
    await memory.append_scratchpad("note")
    await memory.set("k", 2)
    at_first = await memory.get("k")
    clock.advance(timedelta(seconds=60))

    assert at_first == 2
    assert await memory.get("k") is None


def test_i14_a_default_of_zero_is_refused_when_it_is_set() -> None:
    with pytest.raises(ValueError, match="greater than or equal to 1 second"):
        WorkingSettings(ttl=timedelta(0))

    assert WorkingSettings(ttl=timedelta(seconds=1)).ttl == timedelta(seconds=1)


@pytest.mark.parametrize("ttl", ["60", "never", True, [60], timedelta(seconds=60)])
async def test_i15_a_time_to_live_of_another_type_is_refused(
    memory: WorkingMemory, ttl: Any
) -> None:
    with pytest.raises(InvalidInput, match="ttl_seconds"):
        await memory.set("k", 1, ttl)
    await memory.set("k", 1, 60)

    assert await memory.get("k") == 1


@pytest.mark.parametrize("ttl", [0, -1, -0.001])
async def test_i16_a_time_to_live_that_is_over_is_refused_before_the_server_sees_it(
    memory: WorkingMemory, ttl: float
) -> None:
    await memory.set("k", 1)

    with pytest.raises(InvalidInput, match="more than 0"):
        await memory.set("k", 2, ttl)

    assert await memory.get("k") == 1


async def test_i17_huge_times_are_bounded_and_fractions_rounded_up(
    memory: WorkingMemory, clock: TickingClock
) -> None:
    with pytest.raises(InvalidInput, match="31622400 seconds"):
        await memory.set("k", 1, 10**12)
    await memory.set("k", 1, 1.0005)
    clock.advance(timedelta(milliseconds=1_000))
    at_first = await memory.get("k")
    clock.advance(timedelta(milliseconds=1))

    assert at_first == 1
    assert await memory.get("k") is None


async def test_i18_a_key_that_is_added_again_keeps_its_moment_until_it_has_expired(
    memory: WorkingMemory, clock: TickingClock
) -> None:
    await memory.set("k", 1, ttl_seconds=60)
    await memory.delete("k")
    await memory.set("k", 2)
    clock.advance(timedelta(seconds=120))

    assert await memory.get("k") == 2


async def test_i19_an_append_costs_the_same_however_long_the_session_is(
    opened: Callable[..., Any], servers: EmbeddedServers
) -> None:
    scope = a_scope().session("s")
    watched = Redis.from_url(servers.redis_url)
    async with opened(contract_settings(scratchpad_entries_max=2_000, bytes_max=10**7)) as places:
        memory = WorkingMemory(places, scope)
        sizes = []
        for number in range(1_000):
            if number in (1, 999):
                before = (await watched.info("stats"))["total_net_input_bytes"]
                await memory.append_scratchpad("x" * 100)
                sizes.append((await watched.info("stats"))["total_net_input_bytes"] - before)
            else:
                await memory.append_scratchpad("x" * 100)
        kept = await watched.hlen(scope_keys("mnemic", scope).notes)
    await watched.aclose()

    assert kept == 1_000
    assert sizes[1] <= sizes[0] + 10


async def test_l17_a_store_that_is_away_is_not_an_empty_memory(
    opened: Callable[..., Any], proxy: Proxy
) -> None:
    async with opened(url=proxy.url) as places:
        memory = WorkingMemory(places, a_scope())
        await memory.set("k", 1)
        await proxy.cut()

        for read in (memory.get("k", "default"), memory.list_keys(), memory.get_scratchpad()):
            with pytest.raises(StoreUnavailable):
                await read
