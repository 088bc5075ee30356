"""J: what is read in parts is read whole and once, and counted to the end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemic import MemoryManager, MemorySettings, Scope
from mnemic.service import sessions
from mnemic.testing import TickingClock, a_scope, a_turn
from oracles.partition import assert_partition
from oracles.together import HeldEmbedder, HeldThinker, meanwhile

PAGE = 10
NOT_APPLICABLE: dict[str, str] = {
    "J04": "Lists have a limit and no next page yet; jobs page by keys without nulls.",
    "J08": "Lists are bounded by a limit and have no next page yet, so nothing tells of more.",
    "J09": "Lists are bounded by a limit and have no next page yet, so no caller holds a cursor.",
}

generated = settings(
    max_examples=5,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


# A turn of more words than are short is embedded as one text.
ENOUGH = " and so on" * 7


def in_pages(settings: MemorySettings) -> MemorySettings:
    small = settings.maintenance.model_copy(update={"batch_max": PAGE})
    return settings.model_copy(update={"maintenance": small})


@generated
@given(st.integers(0, 35))
async def test_j01_a_job_takes_each_of_many_rows_of_one_moment_once(
    opened: Callable[..., Any], alone: MemoryManager, count: int
) -> None:
    embedder, standing = HeldEmbedder(), TickingClock(step=timedelta(0))
    async with opened(in_pages(alone.settings), clock=standing, embedder=embedder) as memory:
        embedder.fail()
        said = [a_turn(f"t{number}{ENOUGH}") for number in range(count)]
        await memory.sessions.append(said, scope=a_scope().session("s"))
        embedder.fault, embedder.asked = None, []

        report = await memory.maintenance.embed_missing()

        assert_partition(
            embedder.asked, {f"User: t{number}{ENOUGH}" for number in range(count)}, size_max=PAGE
        )
        assert (report.done, report.failed) == (count, 0)


async def test_j01_a_session_is_told_with_each_of_its_turns_once(
    opened: Callable[..., Any], scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_PAGE", PAGE)
    thinker, session = HeldThinker(), scope.session("s")
    async with opened(thinker=thinker, clock=TickingClock(step=timedelta(0))) as memory:
        said = await memory.sessions.append(
            [a_turn(f"t{number}") for number in range(35)], scope=session
        )
        await memory.forget([said[9].id, said[20].id], scope=session)

        await memory.sessions.end(scope=session)

        told = [turn.text for turn in thinker.told[0].turns]
        assert_partition([told], {f"t{n}" for n in range(35)} - {"t9", "t20"}, size_max=33)


async def test_j05_rows_that_come_and_go_between_two_pages_repeat_and_lose_none(
    opened: Callable[..., Any], alone: MemoryManager
) -> None:
    embedder, scope = HeldEmbedder(), a_scope()
    session = scope.session("s")
    async with opened(in_pages(alone.settings), embedder=embedder) as memory:
        embedder.fail()
        said = await memory.sessions.append(
            [a_turn(f"t{number}{ENOUGH}") for number in range(25)], scope=session
        )
        embedder.fault, embedder.asked = None, []

        async def write() -> None:
            await memory.forget([said[place].id for place in (0, 5, 12, 24)], scope=session)
            await memory.sessions.append([a_turn(f"late{ENOUGH}")], scope=session)

        await meanwhile(embedder.gate, memory.maintenance.embed_missing(), write)

        pages = [page for page in embedder.asked if page != [f"User: late{ENOUGH}"]]
        kept = {f"User: t{n}{ENOUGH}" for n in range(25) if n not in (12, 24)}
        assert_partition(pages, kept, size_max=PAGE)
        assert (await memory.maintenance.embed_missing()).done == 0


async def test_j07_what_was_searched_is_counted_beyond_any_page(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    for start in (0, 700):
        said = [a_turn(f"t{number}") for number in range(start, start + 700)]
        await memory.sessions.append(said, scope=session)

    found = await memory.recall("t5", scope=session, limit=5, floor=0.0)
    elsewhere = await memory.recall("t5", scope=scope, limit=5, floor=0.0)

    assert (found.searched, found.returned) == (1_400, 5)
    assert (elsewhere.searched, elsewhere.returned) == (0, 0)
