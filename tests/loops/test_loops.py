"""Whatever loop runs it, how often one is made, and in how many threads at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from looping import LOOPS, a_manager, job, logins, told

from mnemic import MemoryManager
from mnemic.settings import MemorySettings

THREADS = 6


def run_on(loop: str, coroutine: Any) -> Any:
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(coroutine)


async def opened_job(settings: MemorySettings, who: str) -> list[str]:
    async with a_manager(settings) as memory:
        return await job(memory, who)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_job_runs_on_every_loop_again_and_again(loop: str, settings: MemorySettings) -> None:
    names = [f"{loop}-{round_}" for round_ in range(3)]

    answers = [run_on(loop, opened_job(settings, who)) for who in names]

    assert answers == [told(who) for who in names]


@pytest.mark.parametrize("loop", LOOPS)
def test_one_manager_serves_loop_after_loop(loop: str, settings: MemorySettings) -> None:
    """As a task queue does it that makes a loop for each of its tasks."""
    memory = run_on(loop, a_manager(settings).start())
    names = [f"{loop}-again-{round_}" for round_ in range(3)]

    answers = [run_on(loop, job(memory, who)) for who in names]

    run_on(loop, memory.close())
    assert answers == [told(who) for who in names]


def test_loops_of_two_kinds_share_a_manager(settings: MemorySettings) -> None:
    memory = run_on("asyncio", a_manager(settings).start())

    answers = [run_on(loop, job(memory, f"both-{loop}")) for loop in LOOPS]

    run_on("uvloop", memory.close())
    assert answers == [told(f"both-{loop}") for loop in LOOPS]


def _in_threads(work: Callable[[int], Any]) -> list[Any]:
    """What each thread gives; all of them are there before any begins."""
    all_there = threading.Barrier(THREADS)

    def one(number: int) -> Any:
        all_there.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(THREADS)))


def test_threads_with_a_manager_each_do_not_meet(settings: MemorySettings) -> None:
    kinds = [*LOOPS]

    answers = _in_threads(
        lambda number: run_on(kinds[number % 2], opened_job(settings, f"own-{number}"))
    )

    assert answers == [told(f"own-{number}") for number in range(THREADS)]


def test_threads_with_one_manager_have_connections_of_their_own(settings: MemorySettings) -> None:
    kinds = [*LOOPS]
    memory: MemoryManager = run_on("asyncio", a_manager(settings).start())
    all_in = threading.Barrier(THREADS)

    async def both(number: int) -> tuple[list[str], set[int]]:
        answer, mine = await job(memory, f"shared-{number}"), await logins(memory)
        await asyncio.to_thread(all_in.wait)  # while every loop still has its connections
        return answer, mine

    answers = _in_threads(lambda number: run_on(kinds[number % 2], both(number)))

    run_on("asyncio", memory.close())
    assert [answer for answer, _ in answers] == [told(f"shared-{n}") for n in range(THREADS)]
    assert len(set().union(*(mine for _, mine in answers))) == 2 * THREADS


_across: dict[str, MemoryManager] = {}


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize("number", [1, 2, 3])
async def test_a_manager_outlives_the_loop_of_each_test(
    settings: MemorySettings, number: int
) -> None:
    """One manager for all, as a module of somebody's tests might keep it."""
    if "manager" not in _across:
        _across["manager"] = await a_manager(settings).start()

    answer = await job(_across["manager"], f"test-{number}")

    assert answer == told(f"test-{number}")


BEGIN = """
import asyncio, gc, sys
from looping import LOOPS, a_manager, job
from mnemic.settings import MemorySettings

async def main(who):
    memory = await a_manager(MemorySettings()).start()
    print(await job(memory, who))
    return memory
"""
ENDINGS = {
    "kept": "with asyncio.Runner(loop_factory=LOOPS[KIND]) as r: kept = r.run(main('kept'))",
    "dropped": "with asyncio.Runner(loop_factory=LOOPS[KIND]) as r: r.run(main('dropped'))",
    "collected": """
with asyncio.Runner(loop_factory=LOOPS[KIND]) as r: r.run(main('collected'))
gc.collect()
""",
    "twice": """
with asyncio.Runner(loop_factory=LOOPS[KIND]) as r: kept = r.run(main('twice'))
with asyncio.Runner(loop_factory=LOOPS[KIND]) as r: print(r.run(job(kept, 'twice')))
""",
    "exit": """
async def leaving():
    await main('exit')
    sys.exit(0)
with asyncio.Runner(loop_factory=LOOPS[KIND]) as r: r.run(leaving())
""",
}


@pytest.mark.parametrize(
    ("ending", "loop"), [*((one, "asyncio") for one in ENDINGS), ("kept", "uvloop")]
)
def test_a_process_that_closes_nothing_ends_without_a_word(
    ending: str, loop: str, run: Callable[[str], str]
) -> None:
    printed = run(f"KIND = {loop!r}\n{BEGIN}\n{ENDINGS[ending]}")

    assert printed.splitlines()[0] == str(told(ending))
