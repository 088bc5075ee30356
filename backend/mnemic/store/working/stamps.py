"""Versions without asking anybody: hybrid logical clock stamps.

A stamp is 63 bits: 43 of Unix milliseconds (until the year 2248), 10 that count within one of them,
10 of the process. Those of one process only grow, and are later than every version it has seen, so
that what was written with knowledge of something counts as newer than it. Kulkarni, Demirbas et
al., "Logical Physical Clocks" (2014).
"""

from __future__ import annotations

import os
import secrets
import threading
from dataclasses import dataclass

__all__ = ["NODE_STEP", "Moment", "Stamps", "stamp_at"]

_NODE_BITS = 10
_COUNTER_BITS = 10
NODE_STEP = 1 << _NODE_BITS  # the least by which a later version of the same thing is greater
# A version further ahead than this was made by a broken clock; following it would leave the time.
_AHEAD_MS_MAX = 86_400_000


@dataclass(frozen=True, slots=True)
class Moment:
    """When a call happens: the caller's clock, a stamp, and the process that gave it."""

    now_ms: int
    stamp: int
    process: int = 0

    @property
    def id(self) -> str:
        """32 hexadecimal digits that no other call has."""
        return f"{self.stamp:016x}{self.process:016x}"


def stamp_at(milliseconds: int) -> int:
    """The least stamp of that Unix millisecond."""
    return milliseconds << (_COUNTER_BITS + _NODE_BITS)


class Stamps:
    """Stamps of this process; a forked child has a node of its own. Safe to use from any thread."""

    def __init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._process = secrets.randbits(64)
        self._node = self._process & (NODE_STEP - 1)
        self._last = getattr(self, "_last", 0)

    def _held(self) -> threading.Lock:
        if self._pid != os.getpid():
            self._renew()
        return self._lock

    def tick(self, now_ms: int) -> Moment:
        """A moment whose stamp is later than all given and observed here."""
        with self._held():
            self._last = max(self._last + 1, now_ms << _COUNTER_BITS)
            stamp = self._last << _NODE_BITS | self._node
            return Moment(now_ms, stamp, self._process)

    def observe(self, version: int, now_ms: int) -> None:
        """Later stamps will be greater than `version`, which was read from a store."""
        if version >= stamp_at(now_ms + _AHEAD_MS_MAX):
            return
        with self._held():
            self._last = max(self._last, version >> _NODE_BITS)
