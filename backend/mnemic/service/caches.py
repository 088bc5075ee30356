"""What a process keeps of answers that it was given: their outlines, never a text.

An outline names memories by their ids. Whoever uses it reads their rows, in the transaction in
which it is checked that nothing was written since. So what was forgotten is held by no cache, and
what another process wrote is heard of as soon as it is committed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from mnemic.embed.fork import renew_in_children
from mnemic.model.cache_counts import CacheCounts
from mnemic.settings import CacheSettings

__all__ = ["Caches", "Outlines"]

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class _Kept(Generic[V]):
    value: V
    generation: int
    since: datetime


class Outlines(Generic[V]):
    """The last outlines of one kind, at most `entries_max`, each while nothing is written."""

    def __init__(self, *, entries_max: int, lifetime: timedelta) -> None:
        self.entries_max = entries_max
        self._lifetime = lifetime
        self._renew()
        renew_in_children(self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept[V]] = OrderedDict()
        self._hits = self._misses = 0

    def holds(self, key: Hashable, *, now: datetime) -> bool:
        """Whether something recent is kept, for `get` to compare; if not, it did not help."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and not self._is_old(kept, now):
                return True
            self._kept.pop(key, None)
            self._misses += 1
            return False

    def get(self, key: Hashable, *, generation: int, now: datetime) -> V | None:
        """What was answered at this generation, if that is known and recent."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept.generation != generation or self._is_old(kept, now):
                self._kept.pop(key, None)
                self._misses += 1
                return None
            self._kept.move_to_end(key)
            self._hits += 1
            return kept.value

    def put(self, key: Hashable, value: V, *, generation: int, now: datetime) -> None:
        """The answer is known, of the generation that was read before it."""
        with self._lock:
            self._kept[key] = _Kept(value, generation, now)
            self._kept.move_to_end(key)
            while len(self._kept) > self.entries_max:
                self._kept.popitem(last=False)

    def counts(self) -> CacheCounts:
        """How often it helped."""
        with self._lock:
            return CacheCounts(hits=self._hits, misses=self._misses, entries=len(self._kept))

    def _is_old(self, kept: _Kept[V], now: datetime) -> bool:
        return not timedelta(0) <= now - kept.since <= self._lifetime


class Caches:
    """The outlines of one process."""

    def __init__(self, settings: CacheSettings) -> None:
        lifetime = timedelta(seconds=settings.seconds)
        self.recalls: Outlines[object] = Outlines(
            entries_max=settings.recalls_max, lifetime=lifetime
        )
        self.facts: Outlines[object] = Outlines(entries_max=settings.facts_max, lifetime=lifetime)
