"""Deadlines that a busy event loop does not spend.

An answer may lie in the socket while the loop runs other tasks: a deadline that comes then says
nothing about the server. So a deadline that is itself served late is set anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

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


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """Raises `TimeoutError` after so long, in which the loop was free to see an answer."""
    async with asyncio.timeout(None) as limit:
        deadline = _Deadline(limit, seconds)
        try:
            yield
        finally:
            deadline.cancel()
