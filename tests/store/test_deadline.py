"""One timer for all the exchanges of a unit gives each of them its whole time, and no more."""

from __future__ import annotations

import asyncio

import pytest

from mnemic.store.deadline import Deadline

SHORT = 0.05
FOREVER = 60.0


async def test_what_takes_too_long_is_ended() -> None:
    loop = asyncio.get_running_loop()
    deadline, began = Deadline(SHORT), loop.time()

    with pytest.raises(TimeoutError), deadline:
        await asyncio.sleep(FOREVER)

    assert SHORT <= loop.time() - began < FOREVER / 2


async def test_each_that_enters_has_the_whole_time() -> None:
    deadline = Deadline(0.5)
    loop = asyncio.get_running_loop()
    began = loop.time()

    while loop.time() - began < 0.7:  # together longer than one may take
        with deadline:
            await asyncio.sleep(0.01)
    last = loop.time()
    with pytest.raises(TimeoutError), deadline:
        await asyncio.sleep(FOREVER)

    assert loop.time() - last >= 0.5


async def test_nothing_is_ended_between_two() -> None:
    deadline = Deadline(SHORT)

    with deadline:
        await asyncio.sleep(0)
    await asyncio.sleep(3 * SHORT)
    with pytest.raises(TimeoutError), deadline:
        await asyncio.sleep(FOREVER)
    await asyncio.sleep(0)


async def test_whoever_is_cancelled_by_others_is_cancelled() -> None:
    deadline, within = Deadline(FOREVER), asyncio.Event()

    async def wait() -> None:
        with deadline:
            within.set()
            await asyncio.sleep(FOREVER)

    task = asyncio.ensure_future(wait())
    await within.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_another_fault_is_told_as_it_is() -> None:
    deadline = Deadline(FOREVER)

    with pytest.raises(LookupError), deadline:
        raise LookupError


async def test_closed_it_leaves_no_timer() -> None:
    deadline = Deadline(FOREVER)
    with deadline:
        await asyncio.sleep(0)

    deadline.close()

    assert deadline._timer is None
