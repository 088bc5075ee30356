"""What every place of working memory does, and the rules they share.

A scope holds entries (keys, and the task state) and notes. An entry has a version, and an expiry
that is decided by the stored moment and the caller's clock, never by what a server has removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import Protocol
from uuid import UUID

from mnemic.errors import InvalidInput
from mnemic.model.scope import Scope
from mnemic.model.working import WorkingCheckpoint, WorkingStatus
from mnemic.settings import WorkingSettings
from mnemic.store.working.stamps import NODE_STEP, Moment

__all__ = [
    "Entry",
    "Expiry",
    "Limits",
    "MemoryStore",
    "Place",
    "Put",
    "Snapshot",
    "State",
    "after",
    "expiry_of",
    "full",
    "later",
    "restored",
]

CHECKPOINT = "checkpoint"
UNDO = "undo"


class Expiry(IntEnum):
    """Who decided when an entry expires."""

    NEVER = 0
    DEFAULT = 1  # housekeeping: each write puts it off
    GIVEN = 2  # the caller: an update without a time to live keeps the moment


class State(StrEnum):
    """What an entry is."""

    VALUE = "v"
    DURABLE = "d"  # PostgreSQL has the value
    DELETED = "x"  # kept for its version, so that an older value does not come back


@dataclass(frozen=True, slots=True)
class Entry:
    """A value, or what is known of one that is gone. `expires_ms` is Unix time, 0 for never."""

    field: bytes
    version: int
    expires_ms: int
    expiry: Expiry
    state: State
    body: bytes = b""
    size: int = 0
    id: str = ""  # of the call that wrote it, where that is known

    def is_live(self, now_ms: int) -> bool:
        """Whether it can be read."""
        return self.state is not State.DELETED and not 0 < self.expires_ms <= now_ms


@dataclass(frozen=True, slots=True)
class Put:
    """What is to be kept. `durable` says where: nothing means where it is."""

    field: bytes
    body: bytes
    ttl_ms: int | None = None
    forever: bool = False
    durable: bool | None = None

    @property
    def size(self) -> int:
        """The bytes that it counts for."""
        return len(self.field) - 1 + len(self.body)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that can be read in a scope at one moment; entries by field, notes in order."""

    entries: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a scope may hold."""

    keys_max: int
    bytes_max: int
    notes_max: int
    ttl_ms: int
    checkpoints_max: int

    @classmethod
    def of(cls, settings: WorkingSettings) -> Limits:
        """As set."""
        return cls(
            keys_max=settings.keys_max,
            bytes_max=settings.bytes_max,
            notes_max=settings.scratchpad_entries_max,
            ttl_ms=int(settings.ttl.total_seconds() * 1_000),
            checkpoints_max=settings.checkpoints_max,
        )


class Place(Protocol):
    """One place of working memory; the contract suite of `mnemic.testing` holds for each.

    Every method raises `Unavailable` when it cannot give the whole answer; `OutcomeUnknown` when a
    write may have happened.
    """

    async def get(self, scope: Scope, field: bytes, at: Moment) -> Entry | None:
        """The entry with its value, if it is live."""
        ...

    async def put(self, scope: Scope, put: Put, at: Moment) -> Entry:
        """The entry as it is kept, without its value. Raises `InvalidInput` if it does not fit."""
        ...

    async def delete(self, scope: Scope, field: bytes, at: Moment) -> bool:
        """Whether it was there; it no longer is."""
        ...

    async def fields(self, scope: Scope, at: Moment) -> list[bytes]:
        """The live fields, sorted."""
        ...

    async def snapshot(self, scope: Scope, at: Moment) -> Snapshot:
        """Everything that is live, read at one moment."""
        ...

    async def append(self, scope: Scope, text: str, at: Moment) -> None:
        """The note stands at the end. Raises `InvalidInput` if the scratchpad is full."""
        ...

    async def notes(self, scope: Scope, at: Moment) -> list[str]:
        """The notes in their order."""
        ...

    async def clear(self, scope: Scope, at: Moment) -> int:
        """How many keys there were; keys, task state and notes are gone."""
        ...

    async def drop(self, scope: Scope, at: Moment) -> None:
        """As `clear`, and the checkpoints are gone too."""
        ...

    async def save(self, scope: Scope, at: Moment) -> UUID:
        """A checkpoint of everything that is live; only the newest are kept."""
        ...

    async def restore(self, scope: Scope, checkpoint: UUID, at: Moment) -> UUID:
        """The scope holds what it held then; the checkpoint that undoes this. Raises `NotFound`."""
        ...

    async def saved(self, scope: Scope) -> list[WorkingCheckpoint]:
        """The checkpoints, newest first."""
        ...

    def status(self, scope: Scope) -> WorkingStatus:
        """How the scope stands, as this process sees it."""
        ...

    async def close(self) -> None:
        """Nothing is held open any more."""
        ...


MemoryStore = Place  # its public name


def later(stamp: int, *known: int) -> int:
    """The version of a write that comes after all `known` ones, whatever the clocks say."""
    return max(stamp, *(version + NODE_STEP for version in known))


def expiry_of(put: Put, old: Entry | None, *, ttl_ms: int, now_ms: int) -> tuple[int, Expiry]:
    """When the entry expires, and who decided it; `old` is the live entry that it replaces.

    What the caller says holds. Else a moment that the caller gave stays, and the default is put
    off, never shortened.
    """
    if put.forever:
        return 0, Expiry.NEVER
    if put.ttl_ms is not None:
        return now_ms + put.ttl_ms, Expiry.GIVEN
    if old is None:
        return now_ms + ttl_ms, Expiry.DEFAULT
    if old.expiry is Expiry.DEFAULT:
        return max(old.expires_ms, now_ms + ttl_ms), Expiry.DEFAULT
    return old.expires_ms, old.expiry


def after(put: Put, old: Entry | None, at: Moment, *, floor: int, ttl_ms: int) -> Entry:
    """The entry that `put` makes of `old`, which may be dead; its value included."""
    live = old if old is not None and old.is_live(at.now_ms) else None
    expires_ms, expiry = expiry_of(put, live, ttl_ms=ttl_ms, now_ms=at.now_ms)
    return Entry(
        field=put.field,
        version=later(at.stamp, floor, old.version if old else 0),
        expires_ms=expires_ms,
        expiry=expiry,
        state=State.DURABLE if put.durable else State.VALUE,
        body=put.body,
        size=put.size,
        id=at.id,
    )


def restored(entries: Iterable[Entry], *, version: int, ttl_ms: int, now_ms: int) -> list[Entry]:
    """The entries of a checkpoint as they are kept now: all of one version.

    The default time to live begins anew. A moment that the caller gave stays, so what has expired
    since does not come back.
    """
    renewed = []
    for entry in entries:
        expires_ms = now_ms + ttl_ms if entry.expiry is Expiry.DEFAULT else entry.expires_ms
        made = replace(entry, version=version, expires_ms=expires_ms, id="")
        if made.is_live(now_ms):
            renewed.append(made)
    return renewed


def full(what: str, limit: int) -> InvalidInput:
    """The refusal of a write beyond a limit: "keys", "bytes" or "notes"."""
    field, noun, setting = {
        "keys": ("key", "keys", "KEYS_MAX"),
        "bytes": ("value", "bytes", "BYTES_MAX"),
        "notes": ("content", "scratchpad entries", "SCRATCHPAD_ENTRIES_MAX"),
    }[what]
    return InvalidInput(
        f"the scope would hold more than {limit} {noun}, the most; nothing was changed. "
        f"Delete what is no longer needed, or raise MEM_WORKING__{setting}",
        field=field,
        limit=limit,
    )
