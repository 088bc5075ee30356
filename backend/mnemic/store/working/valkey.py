"""Working memory in Valkey: three hashes a scope, one round trip a call.

What a reply looks like is written in `lua/entry.lua` and beside each script.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from mnemic.errors import StoreUnavailable
from mnemic.model.scope import Scope
from mnemic.settings import WorkingSettings
from mnemic.store.working import scripts
from mnemic.store.working.client import ValkeyClient
from mnemic.store.working.faults import foreign
from mnemic.store.working.keys import GATE, ScopeKeys, scope_keys
from mnemic.store.working.place import (
    Entry,
    Expiry,
    Limits,
    Put,
    Snapshot,
    State,
    full,
)
from mnemic.store.working.stamps import Moment, Stamps, stamp_at

__all__ = ["Elsewhere", "Gate", "HeldNote", "Incoming", "Valkey"]

_GATE_SECONDS_MAX = 2.0
GATE_PAUSE_SECONDS = 0.005
_VALUE_HEAD = 32
_HEAD = 78
_NUMBER = 12
_ENTRIES = (b"k", b"t")


class Elsewhere(Exception):
    """PostgreSQL has the entry; nothing was changed here."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A scope is being restored; whoever meets it after `until_ms` may see to its end."""

    id: str
    until_ms: int
    checkpoint: UUID

    def to_text(self) -> str:
        """As it is kept."""
        return f"{self.id}{self.until_ms:014d}{self.checkpoint.hex}"

    @classmethod
    def from_text(cls, raw: bytes) -> Gate:
        """What `to_text` gave."""
        try:
            text = raw.decode()
            return cls(id=text[:32], until_ms=int(text[32:46]), checkpoint=UUID(text[46:]))
        except ValueError:
            raise foreign() from None


@dataclass(frozen=True, slots=True)
class Incoming:
    """An entry to merge, and versions and ids of calls that were known in its place."""

    entry: Entry
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldNote:
    """A note to merge, and the id of the call that gave it."""

    id: str
    text: str


OnGate = Callable[[Scope, Gate], Awaitable[None]]


async def _wait(_scope: Scope, _gate: Gate) -> None:
    await asyncio.sleep(GATE_PAUSE_SECONDS)


class Valkey:
    """Raises `Away` when the server cannot be reached, `StoreUnavailable` while being restored."""

    def __init__(self, client: ValkeyClient, settings: WorkingSettings, stamps: Stamps) -> None:
        self.client = client
        self.on_gate: OnGate = _wait
        self._limits = Limits.of(settings)
        self._namespace = settings.namespace
        self._tombstone_ms = int(settings.tombstone_ttl.total_seconds() * 1_000)
        self._stamps = stamps

    def _keys(self, scope: Scope) -> ScopeKeys:
        return scope_keys(self._namespace, scope)

    async def _run(
        self, script: scripts.Script, scope: Scope, at: Moment, *rest: Any, bulk: bool = False
    ) -> list[Any]:
        features = await self.client.features()
        keys, limits = self._keys(scope), self._limits
        arguments = (
            at.id,
            at.now_ms,
            int(features.fields_expire),
            int(features.keys_may_expire),
            self._tombstone_ms,
            limits.keys_max,
            limits.bytes_max,
            limits.notes_max,
            limits.ttl_ms,
            *rest,
        )
        until = time.monotonic() + _GATE_SECONDS_MAX
        while True:
            reply: list[Any] = await self.client.run(
                script, (keys.values, keys.heads, keys.notes), *arguments, bulk=bulk
            )
            if reply[0] != b"gated":
                return reply
            await self._pass(scope, reply[1], until)

    async def _pass(self, scope: Scope, gate: bytes, until: float) -> None:
        if time.monotonic() > until:
            raise StoreUnavailable("The scope is being restored to a checkpoint; retry.")
        await self.on_gate(scope, Gate.from_text(gate))

    def _version(self, raw: bytes, at: Moment) -> int:
        try:
            version = int(raw, 16)
        except ValueError:
            raise foreign() from None
        self._stamps.observe(version, at.now_ms)
        return version

    async def get(self, scope: Scope, field: bytes, at: Moment) -> Entry | None:
        """What stands there, live or not; a durable entry comes without its value."""
        until = time.monotonic() + _GATE_SECONDS_MAX
        while True:
            gate, raw = await self.client.call("HMGET", self._keys(scope).values, GATE, field)
            if gate is None:
                break
            await self._pass(scope, gate, until)
        if raw is None:
            return None
        entry = _entry(field, raw)
        self._stamps.observe(entry.version, at.now_ms)
        return entry

    async def head(self, scope: Scope, field: bytes) -> Entry | None:
        """What is known of it, without its value, deleted or not."""
        raw = await self.client.call("HGET", self._keys(scope).heads, field)
        return _head(field, raw) if raw is not None else None

    async def heads(self, scope: Scope) -> list[Entry]:
        """What is known of every entry, without the values."""
        until = time.monotonic() + _GATE_SECONDS_MAX
        while True:
            raw = await self.client.call("HGETALL", self._keys(scope).heads, bulk=True)
            if b"#g" not in raw:
                break
            await self._pass(scope, raw[b"#g"], until)
        return [_head(field, head) for field, head in raw.items() if field[:1] in _ENTRIES]

    async def put(self, scope: Scope, put: Put, at: Moment) -> tuple[Entry, bool]:
        """The entry as it is kept, and whether it was durable before. Raises `Elsewhere`."""
        ttl = "f" if put.forever else "" if put.ttl_ms is None else str(put.ttl_ms)
        volatile = int(put.durable is False)
        reply = await self._run(scripts.SET, scope, at, put.field, ttl, volatile, put.body)
        if reply[0] == b"durable":
            self._version(reply[1], at)
            raise Elsewhere
        self._refuse(reply)
        entry = Entry(
            field=put.field,
            version=self._version(reply[1], at),
            expires_ms=int(reply[2]),
            expiry=Expiry(int(reply[3])),
            state=State.VALUE,
            size=put.size,
            id=at.id,
        )
        return entry, reply[4] == b"1"

    def _refuse(self, reply: Sequence[Any]) -> None:
        if reply[0] == b"full":
            what = reply[1].decode()
            raise full(what, getattr(self._limits, f"{what}_max"))

    async def delete(self, scope: Scope, field: bytes, at: Moment) -> bool:
        """Whether it was live; it is no longer. Raises `Elsewhere`."""
        reply = await self._run(scripts.DELETE, scope, at, field)
        if reply[0] == b"durable":
            self._version(reply[1], at)
            raise Elsewhere
        return bool(reply[1])

    async def snapshot(self, scope: Scope, at: Moment) -> Snapshot:
        """Everything that is known at one moment, live or not; durable entries have no value."""
        reply = await self._run(scripts.SNAPSHOT, scope, at, bulk=True)
        return _snapshot(reply[1:4], at)

    async def append(self, scope: Scope, text: str, at: Moment) -> None:
        """The note stands at the end."""
        self._refuse(await self._run(scripts.APPEND, scope, at, text.encode()))

    async def notes(self, scope: Scope, at: Moment) -> list[str]:
        """The notes in their order."""
        reply = await self._run(scripts.NOTES, scope, at, bulk=True)
        notes = dict(zip(reply[2][::2], reply[2][1::2], strict=True))
        return _notes(reply[1], notes, at)

    async def clear(self, scope: Scope, at: Moment) -> int:
        """How many keys had their values here; nothing is left."""
        reply = await self._run(scripts.CLEAR, scope, at, bulk=True)
        return int(reply[1])

    async def reserve(self, scope: Scope, put: Put, at: Moment) -> tuple[int, Entry | None]:
        """A version later than what stands there, and that if it is live, without its value.

        The place of the new entry is kept for half a minute.
        """
        reply = await self._run(scripts.RESERVE, scope, at, put.field, put.size)
        self._refuse(reply)
        version = self._version(reply[1], at)
        if not reply[2]:
            return version, None
        expiry = Expiry(int(reply[3]))
        return version, Entry(put.field, 0, int(reply[2]), expiry, State.VALUE)

    async def settle(self, scope: Scope, entries: Sequence[Entry], at: Moment) -> list[bool]:
        """The entries of PostgreSQL are marked; for each, whether a later value stands here."""
        told: list[Any] = []
        for entry in entries:
            told += (*_told(entry, f"{entry.version:016x}"), entry.state.value, entry.size)
        reply = await self._run(scripts.SETTLE, scope, at, len(entries), *told, bulk=True)
        return [answer == b"newer" for answer in reply[1]]

    async def release(self, scope: Scope, field: bytes, at: Moment) -> None:
        """The place that `reserve` kept at that moment is free."""
        await self._run(scripts.SETTLE, scope, at, 1, field, f"{0:016x}", 0, 0, "", 0)

    async def merge(
        self,
        scope: Scope,
        entries: Sequence[Incoming],
        notes: Sequence[HeldNote],
        at: Moment,
        *,
        since_ms: int,
    ) -> list[str]:
        """What became of each entry, then each note: "kept", "won" or "lost" (`merge.lua`)."""
        told: list[Any] = []
        for incoming in entries:
            entry = incoming.entry
            told += (*_told(entry, entry.id), entry.state.value, entry.body)
            told.append(" ".join(incoming.known))
        oldest = f"{stamp_at(max(0, at.now_ms - self._tombstone_ms)):016x}"
        rest = (since_ms, oldest, len(entries), *told, *_told_notes(notes))
        reply = await self._run(scripts.MERGE, scope, at, *rest, bulk=True)
        return [answer.decode() for answer in reply[1]]

    async def begin(self, scope: Scope, gate: Gate, at: Moment) -> tuple[Snapshot, int]:
        """The scope is shut; what is known of it, and a version later than all of it."""
        reply = await self._run(scripts.BEGIN, scope, at, gate.to_text(), bulk=True)
        return _snapshot(reply[1:4], at), self._version(reply[4], at)

    async def finish(
        self,
        scope: Scope,
        gate: Gate,
        at: Moment,
        *,
        version: int | None = None,
        holds: Snapshot | None = None,
    ) -> None:
        """The scope is open again, if that gate still shut it; it `holds` that, or what it did."""
        entries = holds.entries if holds else ()
        told: list[Any] = []
        for entry in entries:
            durable = entry.state is State.DURABLE
            field, _, expires, expiry = _told(entry, "")
            body = b"" if durable else entry.body
            told += (field, expires, expiry, entry.state.value, entry.size, body)
        rest = (gate.to_text(), f"{version:016x}" if version else "", len(entries), *told)
        texts = holds.notes if holds else ()
        notes = _told_notes(
            HeldNote(f"{version or 0:016x}{place:016x}", text) for place, text in enumerate(texts)
        )
        await self._run(scripts.FINISH, scope, at, *rest, *notes, bulk=True)


def _told(entry: Entry, name: str) -> tuple[bytes, str, int, int]:
    return entry.field, name, entry.expires_ms, entry.expiry.value


def _told_notes(notes: Iterable[HeldNote]) -> list[Any]:
    listed = list(notes)
    told: list[Any] = [len(listed)]
    for note in listed:
        told += (note.id, note.text.encode())
    return told


def _entry(field: bytes, raw: bytes) -> Entry:
    body = raw[_VALUE_HEAD:]
    try:
        return Entry(
            field=field,
            version=int(raw[:16], 16),
            expires_ms=int(raw[16:30]),
            expiry=Expiry(int(raw[30:31])),
            state=State(raw[31:32].decode()),
            body=body,
            size=len(field) - 1 + len(body),
        )
    except ValueError:
        raise foreign() from None


def _head(field: bytes, raw: bytes) -> Entry:
    try:
        return Entry(
            field=field,
            version=int(raw[:16], 16),
            expires_ms=int(raw[48:62]),
            expiry=Expiry(int(raw[62:63])),
            state=State(raw[63:64].decode()),
            size=int(raw[_HEAD:]),
            id=raw[16:48].decode(),
        )
    except ValueError:
        raise foreign() from None


def _gone(head: Entry) -> Entry:
    """A head whose value the server has removed, as it had expired there."""
    return replace(head, state=State.DELETED) if head.state is State.VALUE else head


def _snapshot(reply: Sequence[Any], at: Moment) -> Snapshot:
    values, heads, notes = (dict(zip(one[::2], one[1::2], strict=True)) for one in reply)
    entries = []
    for field, raw in sorted(heads.items()):
        if field[:1] in _ENTRIES:
            value = values.get(field)
            entries.append(_entry(field, value) if value is not None else _gone(_head(field, raw)))
    return Snapshot(tuple(entries), tuple(_notes(heads.get(b"#x", b"0"), notes, at)))


def _notes(expires_at: bytes, notes: Mapping[bytes, bytes], at: Moment) -> list[str]:
    try:
        if 0 < int(expires_at) <= at.now_ms:
            return []
        numbered = sorted(notes.values(), key=lambda text: text[:_NUMBER])
        return [text[_NUMBER:].decode() for text in numbered]
    except ValueError:
        raise foreign() from None
