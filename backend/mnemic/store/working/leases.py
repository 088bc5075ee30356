"""Which keys of a scope PostgreSQL has, as far as that is known without asking it each time.

A process that cannot tell Valkey about a new durable value waits, before it acknowledges it, until
what every other process knew without it has run out. So whoever asks after the acknowledgement
finds it, and a key that is not durable costs nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mnemic.model.scope import Scope, ScopeId
from mnemic.store.working.place import Entry

__all__ = ["Leases"]

_SCOPES_MAX = 10_000


@dataclass(slots=True)
class _Lease:
    until: float
    entries: dict[bytes, Entry]
    added: dict[bytes, float]  # when this process wrote it itself


class Leases:
    """Safe to use from any thread; a forked child asks anew."""

    def __init__(self, *, seconds: float) -> None:
        self.seconds = seconds
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._leases: OrderedDict[ScopeId, _Lease] = OrderedDict()

    def _held(self) -> threading.Lock:
        if self._pid != os.getpid():  # the parent may have held the lock while it forked
            self._begin()
        return self._lock

    def known(self, scope: Scope) -> Mapping[bytes, Entry] | None:
        """The entries of PostgreSQL by field, live or not; nothing when that must be asked."""
        lease = self._leases.get(scope.id)
        if lease is None or lease.until <= time.monotonic():
            return None
        return lease.entries

    def learn(self, scope: Scope, entries: Iterable[Entry], *, asked_at: float) -> None:
        """PostgreSQL was asked at that moment (monotonic seconds), and has these."""
        found = {entry.field: entry for entry in entries}
        with self._held():
            before = self._leases.pop(scope.id, None)
            added: dict[bytes, float] = {}
            if before is not None:  # the answer may be older than what was written meanwhile
                added = {name: when for name, when in before.added.items() if when >= asked_at}
                found.update((name, before.entries[name]) for name in added)
            self._leases[scope.id] = _Lease(asked_at + self.seconds, found, added)
            while len(self._leases) > _SCOPES_MAX:
                self._leases.popitem(last=False)

    def add(self, scope: Scope, entry: Entry) -> None:
        """This process has just written it."""
        with self._held():
            lease = self._leases.setdefault(scope.id, _Lease(0.0, {}, {}))
            lease.entries[entry.field] = entry
            lease.added[entry.field] = time.monotonic()

    def forget(self, scope: Scope) -> None:
        """PostgreSQL must be asked again."""
        with self._held():
            self._leases.pop(scope.id, None)
