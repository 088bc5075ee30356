"""What belongs to one running loop of one process: it ends with the loop, and a fork leaves it be.

Connections are bound to the loop that opened them. `asyncio.run`, and whatever else shuts a loop
down as it should be, ends them even if nobody closes: a started asynchronous generator is what a
loop promises to close. A forked child holds its parent's connections, and to collect one would
unregister it from the parent's own selector: so they are never collected there.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakSet

__all__ = ["PerLoop"]

T = TypeVar("T")
_known: WeakSet[PerLoop[Any]] = WeakSet()


class PerLoop(Generic[T]):
    """At most one value a loop and process; `end` is called with it when its loop is shut down."""

    def __init__(self, end: Callable[[T], Awaitable[None]]) -> None:
        self._end = end
        self._held: WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[None, None]]
        ] = WeakKeyDictionary()
        _known.add(self)

    def get(self) -> T | None:
        """What the running loop holds."""
        held = self._held.get(asyncio.get_running_loop())
        return held[0] if held is not None else None

    def put(self, value: T) -> None:
        """The running loop holds `value` from now on."""
        ending = self._ending(value, os.getpid())
        with suppress(StopIteration):  # it runs to its only `yield`, and waits for nothing
            anext(ending).__await__().send(None)
        self._held[asyncio.get_running_loop()] = (value, ending)

    async def take(self) -> T | None:
        """What the running loop held: it is the caller's to end, and nobody else's."""
        held = self._held.pop(asyncio.get_running_loop(), None)
        if held is None:
            return None
        value, ending = held
        await ending.aclose()  # else the loop would end it under the caller's hands
        return value

    async def _ending(self, value: T, pid: int) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            if os.getpid() == pid:
                loop = asyncio.get_running_loop()
                held = self._held.get(loop)
                if held is not None and held[0] is value:
                    del self._held[loop]
                    await self._end(value)

    def leave_to_the_parent(self) -> None:
        """This process, a child, holds nothing; what its parent held is never collected here."""
        for held in self._held.values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))
        self._held = WeakKeyDictionary()


def _after_fork() -> None:
    for one in list(_known):
        one.leave_to_the_parent()


os.register_at_fork(after_in_child=_after_fork)
