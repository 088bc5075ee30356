"""What a filter lets through in the database is what it lets through in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic import MemoryManager, Scope
from mnemic.testing import a_fact
from oracles.applied import FILTERS, LIMIT, Filter, assert_applied, assert_counted
from oracles.holdings import EPISODES, furnish
from oracles.stage import Stage
from oracles.stored import rows_of

Run = Callable[[Awaitable[Any]], Any]


@pytest.fixture(scope="module")
async def furnished(stage: Stage) -> Scope:
    """A scope that holds something for every filter to let through."""
    scope = Scope.user("applied")
    await furnish(stage.memory, scope)
    return scope


@pytest.mark.parametrize("narrowing", FILTERS, ids=str)
@settings(max_examples=15)
@given(data=st.data(), limit=st.integers(1, EPISODES + 5))
def test_a_filter_finds_in_the_database_what_it_finds_in_memory(
    stage: Stage, furnished: Scope, run_here: Run, narrowing: Filter, data: Any, limit: int
) -> None:
    value = data.draw(narrowing.values)

    run_here(assert_applied(narrowing, stage.memory, furnished, value, limit))


@pytest.mark.parametrize("narrowing", FILTERS, ids=str)
async def test_what_a_filter_lets_through_is_some_of_all(
    memory: MemoryManager, furnished: Scope, narrowing: Filter
) -> None:
    found = await narrowing.ask(memory, furnished, narrowing.good, LIMIT)
    whole = await narrowing.whole(memory, furnished)

    assert 0 < len(found) <= len(whole)
    await assert_applied(narrowing, memory, furnished, narrowing.good, 1)


def broken(narrowing: Filter, fault: str) -> Filter:
    """The filter as somebody might have built it."""

    async def ask(memory: MemoryManager, scope: Scope, value: Any, limit: Any) -> Any:
        if fault == "ignored":
            return (await narrowing.whole(memory, scope))[:limit]
        if fault == "applied after the cut":
            cut = (await narrowing.whole(memory, scope))[: min(limit, 5)]
            return [one for one in cut if narrowing.fits(one, value)]
        found = await narrowing.ask(memory, scope, value, limit)
        if fault == "in another order":
            return list(found)[::-1]
        return list(await narrowing.ask(memory, scope, value, LIMIT))  # the limit forgotten

    return replace(narrowing, ask=ask)


@pytest.mark.parametrize(
    "fault", ["ignored", "applied after the cut", "in another order", "without its limit"]
)
async def test_a_filter_that_is_not_what_it_says_is_seen(
    memory: MemoryManager, furnished: Scope, fault: str
) -> None:
    [narrowing] = [one for one in FILTERS if one.field == "outcome"]

    with pytest.raises(AssertionError, match="outcome="):
        await assert_applied(broken(narrowing, fault), memory, furnished, narrowing.good, 3)


async def test_what_a_reply_counts_is_what_went(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    facts = [await memory.store_fact(a_fact(object=name), scope=scope) for name in "abc"]
    told = await memory.remember("It went well.", scope=scope, memory_type="episodic")
    before = await rows_of(seen, scope)

    gone = await memory.forget([facts[0].id, facts[1].id, told.id], scope=scope)

    after = await rows_of(seen, scope)
    assert_counted(gone.counts, before, after)
    for untrue in (
        {"fact": 2},
        {"fact": 3, "episode": 1},
        {"fact": 2, "episode": 1, "turn": 1},
        {},
    ):
        with pytest.raises(AssertionError):
            assert_counted(untrue, before, after)
    with pytest.raises(AssertionError, match="nothing went"):
        assert_counted({}, before, before)
