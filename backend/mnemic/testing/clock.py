"""A clock that a test holds in its hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["TickingClock"]

_START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class TickingClock:
    """Each reading is `step` later than the one before; `advance` jumps."""

    def __init__(self, start: datetime = _START, step: timedelta = timedelta(seconds=1)) -> None:
        self._next = start
        self._step = step

    def __call__(self) -> datetime:
        """The time now."""
        now = self._next
        self._next += self._step
        return now

    def advance(self, by: timedelta) -> None:
        """`by` more has passed."""
        self._next += by
