"""Whether Valkey can be reached, as this process has found; no call waits to find it again."""

from __future__ import annotations

import threading
import time

__all__ = ["Outage"]


class Outage:
    """Safe to use from any thread."""

    def __init__(self, *, retry_after_seconds: float) -> None:
        self._retry_after = retry_after_seconds
        self._lock = threading.Lock()
        self._began: float | None = None
        self._next_try = 0.0
        self._found = 0.0
        self._instance: str | None = None
        self.epoch = 0
        self.resets = 0

    @property
    def is_away(self) -> bool:
        """Whether the last call found nobody."""
        return self._began is not None

    def may_try(self) -> bool:
        """Whether this caller is to look again; the others are told that it is away."""
        with self._lock:
            if self._began is None:
                return True
            now = time.monotonic()
            if now < self._next_try:
                return False
            self._next_try = now + self._retry_after
            return True

    def failed(self, started: float) -> bool:
        """A call that began at `started` (monotonic seconds) found nobody; whether that is news."""
        with self._lock:
            if self._began is not None:
                self._next_try = time.monotonic() + self._retry_after
                return False
            if started < self._found:  # before it was found again: that says nothing about now
                return False
            self._began = started
            self.epoch += 1
            self._next_try = time.monotonic() + self._retry_after
            return True

    def answered(self, instance: str | None) -> bool:
        """The server answers again; whether its data are still the ones that it had."""
        with self._lock:
            self._began, self._found = None, time.monotonic()
            known, self._instance = self._instance, instance or self._instance
            lost = known is not None and instance is not None and known != instance
            self.resets += int(lost)
            return not lost
