"""Working memory in this process alone: for tests, and for hosts that need no more."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from mnemic.errors import NotFound
from mnemic.model.scope import Scope, ScopeId
from mnemic.model.working import WorkingCheckpoint, WorkingStatus
from mnemic.settings import WorkingSettings
from mnemic.store.working.keys import is_key
from mnemic.store.working.place import (
    CHECKPOINT,
    UNDO,
    Entry,
    Limits,
    Put,
    Snapshot,
    after,
    full,
    later,
    restored,
)
from mnemic.store.working.stamps import Moment

__all__ = ["LocalPlace"]

_SCOPES_BEFORE_SWEEP = 1_000


@dataclass(slots=True)
class _Room:
    """What one scope holds. `keys` and `size` are never too small; see `_count`."""

    entries: dict[bytes, Entry] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    notes_expire_ms: int = 0
    notes_size: int = 0
    floor: int = 0
    keys: int = 0
    size: int = 0

    def is_over(self, now_ms: int) -> bool:
        """Whether everything has expired."""
        return self.notes_expire_ms <= now_ms and not any(
            entry.is_live(now_ms) for entry in self.entries.values()
        )


@dataclass(frozen=True, slots=True)
class _Saved:
    listed: WorkingCheckpoint
    held: Snapshot


class LocalPlace:
    """A dictionary a scope behind one lock; a forked child begins with nothing."""

    def __init__(self, settings: WorkingSettings, *, new_id: Callable[[], UUID]) -> None:
        self._limits = Limits.of(settings)
        self._new_id = new_id
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._rooms: dict[ScopeId, _Room] = {}
        self._saved: dict[ScopeId, list[_Saved]] = {}
        self._undo: dict[ScopeId, UUID] = {}
        self._sweep_at = _SCOPES_BEFORE_SWEEP

    def _held(self) -> threading.Lock:
        if self._pid != os.getpid():
            self._begin()
        return self._lock

    def _room(self, scope: Scope) -> _Room:
        return self._rooms.get(scope.id) or _Room()

    def _room_to_write(self, scope: Scope, at: Moment) -> _Room:
        if len(self._rooms) >= self._sweep_at:
            over = [name for name, room in self._rooms.items() if room.is_over(at.now_ms)]
            for name in over:
                del self._rooms[name]
            self._sweep_at = max(_SCOPES_BEFORE_SWEEP, 2 * len(self._rooms))
        room = self._rooms.setdefault(scope.id, _Room())
        if room.notes_expire_ms <= at.now_ms:
            room.notes, room.notes_size, room.notes_expire_ms = [], 0, 0
        return room

    async def get(self, scope: Scope, field: bytes, at: Moment) -> Entry | None:
        """The entry with its value, if it is live."""
        with self._held():
            entry = self._room(scope).entries.get(field)
        return entry if entry is not None and entry.is_live(at.now_ms) else None

    async def put(self, scope: Scope, put: Put, at: Moment) -> Entry:
        """The entry as it is kept. Raises `InvalidInput` if it does not fit."""
        with self._held():
            room = self._room_to_write(scope, at)
            self._check_fits(room, put, at)
            old = room.entries.get(put.field)
            made = after(put, old, at, floor=room.floor, ttl_ms=self._limits.ttl_ms)
            room.entries[put.field] = made
            _count(room, put.field, made.size - (old.size if old else 0), 0 if old else 1)
        return replace(made, body=b"")

    def _check_fits(self, room: _Room, put: Put, at: Moment) -> None:
        old = room.entries.get(put.field)
        live = old if old is not None and old.is_live(at.now_ms) else None
        keys = int(live is None and is_key(put.field))
        size = put.size - (live.size if live else 0)
        if self._exceeded(room, keys, size) is None:
            return
        _recount(room, at.now_ms)
        what = self._exceeded(room, keys, size)
        if what is not None:
            raise full(what, getattr(self._limits, f"{what}_max"))

    def _exceeded(self, room: _Room, keys: int, size: int) -> str | None:
        """What would be exceeded by so many keys and bytes more."""
        if keys > 0 and room.keys + keys > self._limits.keys_max:
            return "keys"
        if size > 0 and room.size + room.notes_size + size > self._limits.bytes_max:
            return "bytes"
        return None

    async def delete(self, scope: Scope, field: bytes, at: Moment) -> bool:
        """Whether it was there; it no longer is."""
        with self._held():
            room = self._room(scope)
            old = room.entries.pop(field, None)
            if old is None:
                return False
            room.floor = later(room.floor, old.version)
            _count(room, field, -old.size, -1)
        return old.is_live(at.now_ms)

    async def fields(self, scope: Scope, at: Moment) -> list[bytes]:
        """The live fields, sorted."""
        return [entry.field for entry in (await self.snapshot(scope, at)).entries]

    async def snapshot(self, scope: Scope, at: Moment) -> Snapshot:
        """Everything that is live."""
        with self._held():
            return self._snapshot(scope, at)

    def _snapshot(self, scope: Scope, at: Moment) -> Snapshot:
        room = self._room(scope)
        live = [entry for entry in room.entries.values() if entry.is_live(at.now_ms)]
        notes = room.notes if room.notes_expire_ms > at.now_ms else []
        return Snapshot(tuple(sorted(live, key=lambda entry: entry.field)), tuple(notes))

    async def append(self, scope: Scope, text: str, at: Moment) -> None:
        """The note stands at the end."""
        size = len(text.encode())
        with self._held():
            room = self._room_to_write(scope, at)
            if len(room.notes) >= self._limits.notes_max:
                raise full("notes", self._limits.notes_max)
            if self._exceeded(room, 0, size) is not None:
                _recount(room, at.now_ms)
                if self._exceeded(room, 0, size) is not None:
                    raise full("bytes", self._limits.bytes_max)
            room.notes.append(text)
            room.notes_size += size
            room.notes_expire_ms = max(room.notes_expire_ms, at.now_ms + self._limits.ttl_ms)

    async def notes(self, scope: Scope, at: Moment) -> list[str]:
        """The notes in their order."""
        return list((await self.snapshot(scope, at)).notes)

    async def clear(self, scope: Scope, at: Moment) -> int:
        """How many keys there were; nothing is left but the checkpoints."""
        with self._held():
            held = self._snapshot(scope, at)
            self._replace(scope, Snapshot(), at)
        return sum(is_key(entry.field) for entry in held.entries)

    async def drop(self, scope: Scope, at: Moment) -> None:
        """As `clear`, and the checkpoints are gone too."""
        await self.clear(scope, at)
        with self._held():
            self._saved.pop(scope.id, None)
            self._undo.pop(scope.id, None)

    def _replace(self, scope: Scope, held: Snapshot, at: Moment) -> None:
        old = self._room(scope)
        version = later(at.stamp, old.floor, *(entry.version for entry in old.entries.values()))
        room = self._rooms[scope.id] = _Room(floor=version)
        entries = restored(
            held.entries, version=version, ttl_ms=self._limits.ttl_ms, now_ms=at.now_ms
        )
        room.entries = {entry.field: entry for entry in entries}
        if held.notes:
            room.notes = list(held.notes)
            room.notes_size = sum(len(text.encode()) for text in held.notes)
            room.notes_expire_ms = at.now_ms + self._limits.ttl_ms
        _recount(room, at.now_ms)

    async def save(self, scope: Scope, at: Moment) -> UUID:
        """A checkpoint of everything that is live."""
        with self._held():
            return self._save(scope, at, CHECKPOINT)

    def _save(self, scope: Scope, at: Moment, reason: str) -> UUID:
        listed = WorkingCheckpoint(
            id=self._new_id(),
            created_at=datetime.fromtimestamp(at.now_ms / 1_000, UTC),
            reason=reason,
        )
        saved = self._saved.setdefault(scope.id, [])
        saved.append(_Saved(listed, self._snapshot(scope, at)))
        alike = [one for one in saved if one.listed.reason == reason]
        for outdated in alike[: -self._limits.checkpoints_max]:
            saved.remove(outdated)
        return listed.id

    async def restore(self, scope: Scope, checkpoint: UUID, at: Moment) -> UUID:
        """The scope holds what it held then; the checkpoint that undoes this."""
        with self._held():
            found = [one for one in self._saved.get(scope.id, ()) if one.listed.id == checkpoint]
            if not found:
                raise NotFound("No such checkpoint in this scope.", id=checkpoint)
            undo = self._save(scope, at, UNDO)
            self._replace(scope, found[0].held, at)
            self._undo[scope.id] = undo
        return undo

    async def saved(self, scope: Scope) -> list[WorkingCheckpoint]:
        """The checkpoints, newest first."""
        with self._held():
            return [one.listed for one in reversed(self._saved.get(scope.id, []))]

    def status(self, scope: Scope) -> WorkingStatus:
        """Never degraded: there is nothing to lose touch with."""
        with self._held():
            undo = self._undo.get(scope.id)
        return WorkingStatus(
            place="local", degraded=False, epoch=0, undo_checkpoint=str(undo) if undo else None
        )

    async def close(self) -> None:
        """Nothing is held open."""


def _count(room: _Room, field: bytes, size: int, keys: int) -> None:
    room.size += size
    if is_key(field):
        room.keys += keys


def _recount(room: _Room, now_ms: int) -> None:
    """What has expired is gone and no longer counts."""
    dead = [entry for entry in room.entries.values() if not entry.is_live(now_ms)]
    for entry in dead:
        del room.entries[entry.field]
        room.floor = later(room.floor, entry.version)
    room.keys = sum(is_key(name) for name in room.entries)
    room.size = sum(entry.size for entry in room.entries.values())
