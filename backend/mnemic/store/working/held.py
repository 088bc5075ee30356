"""What this process holds while Valkey is away, until it can be merged.

Only what was written here since then is known; of everything else this process must say that it
does not know.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from mnemic.errors import StoreUnavailable
from mnemic.model.scope import Scope, ScopeId
from mnemic.model.working import WorkingConflict
from mnemic.store.working.keys import is_key, key_of
from mnemic.store.working.place import Entry, Limits, Put, State, after, full, later
from mnemic.store.working.stamps import Moment
from mnemic.store.working.valkey import HeldNote, Incoming

__all__ = ["Conflicts", "Held", "HeldScopes"]

_KNOWN_MAX = 8
_SCOPES_MAX = 10_000
_RECENT_MAX = 100


@dataclass(slots=True)
class Held:
    """What is held of one scope; `since` is when that began, in monotonic seconds."""

    scope: Scope
    since: float
    entries: dict[bytes, Incoming] = field(default_factory=dict)
    notes: list[HeldNote] = field(default_factory=list)
    size: int = 0

    def __len__(self) -> int:
        return len(self.entries) + len(self.notes)


class HeldScopes:
    """Safe to use from any thread."""

    def __init__(self, limits: Limits, *, bytes_max: int) -> None:
        self._limits = limits
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._scopes: dict[ScopeId, Held] = {}
        self._size = 0

    def has(self, scope: Scope) -> bool:
        """Whether anything of the scope is held."""
        return scope.id in self._scopes

    def count(self, scope: Scope) -> int:
        """How many writes of the scope are held."""
        held = self._scopes.get(scope.id)
        return len(held) if held is not None else 0

    def scopes(self) -> list[Scope]:
        """The scopes of which something is held."""
        with self._lock:
            return [held.scope for held in self._scopes.values()]

    def get(self, scope: Scope, field: bytes) -> Entry | None:
        """What was last written here, live or not; nothing if that is not known."""
        held = self._scopes.get(scope.id)
        found = held.entries.get(field) if held is not None else None
        return found.entry if found is not None else None

    def put(self, scope: Scope, put: Put, at: Moment, *, known: tuple[str, ...]) -> Entry:
        """The entry is held. Raises `InvalidInput` or `StoreUnavailable` if there is no room."""
        with self._lock:
            held = self._room(scope)
            old = held.entries.get(put.field)
            made = after(put, old.entry if old else None, at, floor=0, ttl_ms=self._limits.ttl_ms)
            live = sum(is_key(name) for name in held.entries)
            if old is None and is_key(put.field) and live >= self._limits.keys_max:
                raise full("keys", self._limits.keys_max)
            self._grow(held, made.size - (old.entry.size if old else 0))
            self._keep(held, replace(made, state=State.VALUE), old, known)
        return replace(made, body=b"", state=State.VALUE)

    def delete(
        self, scope: Scope, field: bytes, at: Moment, *, known: tuple[str, ...]
    ) -> bool | None:
        """Whether it was there, and no longer is; nothing if that is not known."""
        with self._lock:
            held = self._scopes.get(scope.id)
            old = held.entries.get(field) if held is not None else None
            if held is None or old is None:
                return None
            if not old.entry.is_live(at.now_ms):
                return False
            grave = replace(
                old.entry,
                version=later(at.stamp, old.entry.version),
                state=State.DELETED,
                body=b"",
                size=0,
                id=at.id,
            )
            self._grow(held, -old.entry.size)
            self._keep(held, grave, old, known)
            return True

    def append(self, scope: Scope, note: HeldNote) -> None:
        """The note is held. Raises as `put` does."""
        with self._lock:
            held = self._room(scope)
            if len(held.notes) >= self._limits.notes_max:
                raise full("notes", self._limits.notes_max)
            self._grow(held, len(note.text.encode()))
            held.notes.append(note)
            self._scopes[scope.id] = held

    def discard(self, scope: Scope, field: bytes | None = None) -> None:
        """Nothing of the field, or of the scope, is held any more."""
        with self._lock:
            held = self._scopes.get(scope.id)
            if held is None:
                return
            if field is None:
                held.entries.clear()
                held.notes.clear()
                self._grow(held, -held.size)
            elif (old := held.entries.pop(field, None)) is not None:
                self._grow(held, -old.entry.size)
            if not len(held):
                del self._scopes[scope.id]

    def take(self, scope: Scope) -> Held | None:
        """A copy of what is held, to be merged; `done` lets go of it."""
        with self._lock:
            held = self._scopes.get(scope.id)
            if held is None:
                return None
            return replace(held, entries=dict(held.entries), notes=list(held.notes))

    def done(self, taken: Held) -> None:
        """What was taken is merged; what came since is still held."""
        with self._lock:
            held = self._scopes.get(taken.scope.id)
            if held is None:
                return
            for name, merged in taken.entries.items():
                left = held.entries.get(name)
                if left is not None and left.entry.id == merged.entry.id:
                    del held.entries[name]
                    self._grow(held, -left.entry.size)
            merged_notes = {note.id for note in taken.notes}
            for note in held.notes:
                if note.id in merged_notes:
                    self._grow(held, -len(note.text.encode()))
            held.notes = [note for note in held.notes if note.id not in merged_notes]
            if not len(held):
                del self._scopes[taken.scope.id]

    def _room(self, scope: Scope) -> Held:
        return self._scopes.get(scope.id) or Held(scope, time.monotonic())

    def _keep(self, held: Held, entry: Entry, old: Incoming | None, known: tuple[str, ...]) -> None:
        names = (old.known if old is not None else ()) + known
        held.entries[entry.field] = Incoming(entry, names[-_KNOWN_MAX:])
        self._scopes[held.scope.id] = held

    def _grow(self, held: Held, size: int) -> None:
        if size > 0 and held.size + size > self._limits.bytes_max:
            raise full("bytes", self._limits.bytes_max)
        if size > 0 and self._size + size > self._bytes_max:
            raise StoreUnavailable(
                "Valkey is away, and this process holds as much as working.degraded_bytes_max "
                "allows; nothing was changed. Retry when it is back.",
                bytes_max=self._bytes_max,
            )
        held.size += size
        self._size += size


class Conflicts:
    """What was found while merging, by scope; bounded, safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: OrderedDict[ScopeId, int] = OrderedDict()
        self._recent: dict[ScopeId, deque[WorkingConflict]] = {}

    def add(self, scope: Scope, field: bytes | None, kept: str, at: Moment) -> None:
        """One more."""
        conflict = WorkingConflict(
            key=key_of(field) if field is not None and is_key(field) else None,
            kept=kept,
            found_at=datetime.fromtimestamp(at.now_ms / 1_000, UTC),
        )
        with self._lock:
            self._counts[scope.id] = self._counts.pop(scope.id, 0) + 1
            recent = self._recent.setdefault(scope.id, deque(maxlen=_RECENT_MAX))
            recent.append(conflict)
            while len(self._counts) > _SCOPES_MAX:
                oldest, _ = self._counts.popitem(last=False)
                del self._recent[oldest]

    def of(self, scope: Scope) -> tuple[int, tuple[WorkingConflict, ...]]:
        """How many there were, and the last of them."""
        with self._lock:
            return self._counts.get(scope.id, 0), tuple(self._recent.get(scope.id, ()))
