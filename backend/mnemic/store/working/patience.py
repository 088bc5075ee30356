"""Deadlines that a busy event loop does not spend.

An answer may lie in the socket while the loop runs other tasks: a deadline that comes then says
nothing about the server. So a deadline that is itself served late is set anew.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

__all__ = ["within"]

_LATE_SECONDS = 0.02
_RENEWALS_MAX = 20


class _Deadline:
    """Sets off `limit` at its time, or later by as much when the loop is late itself."""

    def __init__(self, limit: asyncio.Timeout, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._renewals = 0
        self._set()

    def _set(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + self._seconds
        self._timer = loop.call_at(self._due, self._reached)

    def _reached(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._due > _LATE_SECONDS and self._renewals < _RENEWALS_MAX:
            self._renewals += 1
            self._set()
        else:
            self._limit.reschedule(now)

    def cancel(self) -> None:
        """It sets off nothing any more."""
        self._timer.cancel()


class within:  # noqa: N801 - read as a statement: `async with within(seconds)`
    """Raises `TimeoutError` after so long, in which the loop was free to see an answer."""

    # A class and no generator: this stands around every exchange, and costs a third less so.
    __slots__ = ("_deadline", "_limit", "_seconds")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def __aenter__(self) -> None:
        self._limit = asyncio.timeout(None)
        await self._limit.__aenter__()
        self._deadline = _Deadline(self._limit, self._seconds)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._deadline.cancel()
        await self._limit.__aexit__(kind, fault, trace)
