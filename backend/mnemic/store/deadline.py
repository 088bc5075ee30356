"""How long a server may say nothing: one timer for all the exchanges of a unit."""

from __future__ import annotations

import asyncio
from types import TracebackType

__all__ = ["Deadline"]


class Deadline:
    """`with deadline:` raises `TimeoutError` once what runs within has had no end for `seconds`.

    As `asyncio.timeout`, to be entered again and again, by one task at a time. Most exchanges end
    long before: so the timer is left as it stands, and looks when it is due what it is to wait for
    by then. A timer for each exchange, and the driver's own beside it, are set and taken back for
    nothing, at a tenth of what a short statement costs.
    """

    __slots__ = ("_asked", "_due", "_loop", "_reached", "_seconds", "_task", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[object] | None = None
        self._asked = 0  # to end, by others, when it was entered
        self._due = 0.0
        self._reached = False
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline ends a task, and there is none")
        self._task, self._asked, self._reached = task, task.cancelling(), False
        self._due = self._loop.time() + self._seconds
        if self._timer is None:
            self._timer = self._loop.call_at(self._due, self._look)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        if self._reached and task is not None:
            others = task.uncancel() > self._asked
            if kind is asyncio.CancelledError and not others:
                raise TimeoutError from fault

    def _look(self) -> None:
        self._timer = None
        if self._task is None:
            return  # nothing runs; what comes next sets another timer
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._look)
        else:
            self._reached = True
            self._task.cancel()

    def close(self) -> None:
        """No timer is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
