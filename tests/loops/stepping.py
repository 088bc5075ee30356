"""Cancels a call at a chosen await, or after a chosen number of rounds of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from contextlib import suppress
from typing import Any

__all__ = ["Stepped", "cancelled_after", "cancelled_at"]


class Stepped:
    """Awaits `call`; when it waits for the `at`-th time, the task that runs it is cancelled."""

    def __init__(self, call: Awaitable[Any], *, at: int = 0) -> None:
        self._call = call
        self._at = at
        self.steps = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self._call.__await__()
        thrown: BaseException | None = None
        while True:
            try:
                waited_for = inner.send(None) if thrown is None else inner.throw(thrown)
            except StopIteration as over:
                return over.value
            self.steps += 1
            task = asyncio.current_task()
            if self.steps == self._at and task is not None:
                task.cancel()
            thrown = None
            try:
                yield waited_for
            except BaseException as fault:  # noqa: BLE001 - it is the call's to handle
                thrown = fault


async def cancelled_at(call: Awaitable[Any], step: int) -> bool:
    """Whether the call was cancelled at its `step`-th await; it may have ended before."""
    stepped = Stepped(call, at=step)

    async def run() -> None:
        await stepped

    return await _was_cancelled(asyncio.ensure_future(run()))


async def cancelled_after(call: Awaitable[Any], rounds: int) -> bool:
    """Whether the call was cancelled after that many rounds of the loop; it may have ended."""

    async def run() -> None:
        await call

    task = asyncio.ensure_future(run())
    for _ in range(rounds):
        if task.done():
            break
        await asyncio.sleep(0)
    task.cancel()
    return await _was_cancelled(task)


async def _was_cancelled(task: asyncio.Task[None]) -> bool:
    with suppress(asyncio.CancelledError):
        await task
    return task.cancelled()
