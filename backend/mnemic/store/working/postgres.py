"""Working memory in PostgreSQL: all of it, or what must outlive Valkey."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from mnemic.errors import StoreUnavailable
from mnemic.model.scope import Scope
from mnemic.model.working import WorkingCheckpoint, WorkingStatus
from mnemic.settings import WorkingSettings
from mnemic.store.unit import Database, Unit
from mnemic.store.working import checkpoints, rows
from mnemic.store.working.keys import is_key
from mnemic.store.working.place import (
    CHECKPOINT,
    UNDO,
    Entry,
    Expiry,
    Limits,
    Put,
    Snapshot,
    State,
    after,
    expiry_of,
    full,
    later,
    restored,
)
from mnemic.store.working.stamps import Moment

__all__ = ["PostgresPlace"]


class PostgresPlace:
    """One transaction a call; whoever writes in a scope holds its head."""

    def __init__(
        self, database: Database, settings: WorkingSettings, *, new_id: Callable[[], UUID]
    ) -> None:
        self.database = database
        self._limits = Limits.of(settings)
        self._tombstone_ms = int(settings.tombstone_ttl.total_seconds() * 1_000)
        self._new_id = new_id
        self._undo: dict[UUID, UUID] = {}

    async def get(self, scope: Scope, field: bytes, at: Moment) -> Entry | None:
        """The entry with its value, if it is live."""
        entry = await self.stored(scope, field)
        return entry if entry is not None and entry.is_live(at.now_ms) else None

    async def stored(self, scope: Scope, field: bytes) -> Entry | None:
        """The entry as it stands, live or not."""

        async def read(unit: Unit) -> Entry | None:
            return (await rows.stored(unit, scope, field))[0]

        return await self.database.transact(scope.tenant.id, read, read_only=True)

    async def known(self, scope: Scope) -> list[Entry]:
        """Every entry as it stands, live or not, without its value."""

        async def read(unit: Unit) -> list[Entry]:
            return await rows.known(unit, scope)

        return await self.database.transact(scope.tenant.id, read, read_only=True)

    async def put(self, scope: Scope, put: Put, at: Moment) -> Entry:
        """The entry as it is kept. Raises `InvalidInput` if it does not fit."""
        return (await self.put_beside(scope, put, at, None))[0]

    async def put_beside(
        self, scope: Scope, put: Put, at: Moment, beside: Entry | None
    ) -> tuple[Entry, float]:
        """As `put`, and for how many seconds there has been a row of this field.

        `beside` is the live entry that another place has: its expiry goes on unless told.
        """

        async def write(unit: Unit) -> tuple[Entry, float]:
            head = await rows.lock(unit, scope)
            old, age = await rows.stored(unit, scope, put.field)
            await self._check_fits(unit, scope, head, put, old, at)
            made = after(put, old, at, floor=head.floor, ttl_ms=self._limits.ttl_ms)
            if beside is not None and not (old is not None and old.is_live(at.now_ms)):
                ends = expiry_of(put, beside, ttl_ms=self._limits.ttl_ms, now_ms=at.now_ms)
                made = replace(made, expires_ms=ends[0], expiry=ends[1])
            await rows.put_rows(unit, scope, [made], _now(at))
            counted = old is not None and old.state is not State.DELETED
            head.bytes += made.size - (old.size if counted and old else 0)
            head.keys += int(is_key(put.field) and not counted)
            await rows.set_head(unit, scope, head)
            return replace(made, body=b"", state=State.DURABLE), age

        return await self.database.transact(scope.tenant.id, write)

    async def _check_fits(
        self, unit: Unit, scope: Scope, head: rows.Head, put: Put, old: Entry | None, at: Moment
    ) -> None:
        live = old if old is not None and old.is_live(at.now_ms) else None
        keys = int(live is None and is_key(put.field))
        size = put.size - (live.size if live else 0)
        if self._exceeded(head, keys, size) is None:
            return
        # Counting anew leaves out what has expired; the entry itself is counted in by the caller.
        await rows.recount(unit, scope, head, _now(at), self._purge_before(at))
        what = self._exceeded(head, keys, size)
        if what is not None:
            raise full(what, getattr(self._limits, f"{what}_max"))
        if old is not None and live is None and old.state is not State.DELETED:
            head.bytes += old.size
            head.keys += int(is_key(put.field))

    def _exceeded(self, head: rows.Head, keys: int, size: int) -> str | None:
        if keys > 0 and head.keys + keys > self._limits.keys_max:
            return "keys"
        if size > 0 and head.bytes + head.notes_bytes + size > self._limits.bytes_max:
            return "bytes"
        return None

    def _purge_before(self, at: Moment) -> datetime:
        return datetime.fromtimestamp((at.now_ms - self._tombstone_ms) / 1_000, UTC)

    async def delete(self, scope: Scope, field: bytes, at: Moment) -> bool:
        """Whether it was there; it no longer is, and its version is kept for a while."""
        return (await self.bury(scope, field, at)) is not None

    async def bury(self, scope: Scope, field: bytes, at: Moment) -> Entry | None:
        """What is kept of the entry instead, if it was live."""

        async def write(unit: Unit) -> Entry | None:
            head = await rows.lock(unit, scope)
            old, _ = await rows.stored(unit, scope, field)
            if old is None or not old.is_live(at.now_ms):
                return None
            grave = Entry(
                field=field,
                version=later(at.stamp, old.version, head.floor),
                expires_ms=at.now_ms + self._tombstone_ms,
                expiry=Expiry.GIVEN,
                state=State.DELETED,
            )
            await rows.put_rows(unit, scope, [grave], _now(at))
            head.bytes -= old.size
            head.keys -= int(is_key(field))
            await rows.set_head(unit, scope, head)
            return grave

        return await self.database.transact(scope.tenant.id, write)

    async def forget(self, scope: Scope, field: bytes) -> None:
        """The entry is gone, and nothing is kept of it: another place has a newer one."""

        async def write(unit: Unit) -> None:
            head = await rows.lock(unit, scope)
            old, _ = await rows.stored(unit, scope, field)
            if old is not None:
                await rows.delete_row(unit, scope, field)
                head.floor = later(head.floor, old.version)
                if old.state is not State.DELETED:
                    head.bytes -= old.size
                    head.keys -= int(is_key(field))
                await rows.set_head(unit, scope, head)

        await self.database.transact(scope.tenant.id, write)

    async def fields(self, scope: Scope, at: Moment) -> list[bytes]:
        """The live fields, sorted."""
        return sorted(entry.field for entry in await self.known(scope) if entry.is_live(at.now_ms))

    async def snapshot(self, scope: Scope, at: Moment) -> Snapshot:
        """Everything that is live, read at one moment."""
        held = await self.everything(scope, at)
        return Snapshot(tuple(one for one in held.entries if one.is_live(at.now_ms)), held.notes)

    async def everything(self, scope: Scope, at: Moment) -> Snapshot:
        """Every entry as it stands, live or not, and the notes."""

        async def read(unit: Unit) -> Snapshot:
            return await rows.everything(unit, scope, at)

        return await self.database.transact(scope.tenant.id, read, read_only=True)

    async def append(self, scope: Scope, text: str, at: Moment) -> None:
        """The note stands at the end."""
        size = len(text.encode())

        async def write(unit: Unit) -> None:
            head = await rows.lock(unit, scope)
            if head.notes_expire_at is not None and head.notes_expire_at <= _now(at):
                await rows.delete_notes(unit, scope)
                head.notes, head.notes_bytes, head.notes_expire_at = 0, 0, None
            if head.notes >= self._limits.notes_max:
                raise full("notes", self._limits.notes_max)
            if self._exceeded(head, 0, size) is not None:
                await rows.recount(unit, scope, head, _now(at), self._purge_before(at))
                if self._exceeded(head, 0, size) is not None:
                    raise full("bytes", self._limits.bytes_max)
            await rows.add_notes(unit, scope, head, [text], _now(at))
            self._put_off(head, at)
            await rows.set_head(unit, scope, head)

        await self.database.transact(scope.tenant.id, write)

    def _put_off(self, head: rows.Head, at: Moment) -> None:
        ends = rows.moment_of(at.now_ms + self._limits.ttl_ms)
        if ends is not None:
            head.notes_expire_at = max(head.notes_expire_at or ends, ends)

    async def notes(self, scope: Scope, at: Moment) -> list[str]:
        """The notes in their order."""

        async def read(unit: Unit) -> list[str]:
            return await rows.notes(unit, scope, _now(at))

        return await self.database.transact(scope.tenant.id, read, read_only=True)

    async def clear(self, scope: Scope, at: Moment) -> int:
        """How many keys there were; nothing is left but the checkpoints."""

        async def write(unit: Unit) -> int:
            head = await rows.lock(unit, scope)
            keys, _ = await rows.totals(unit, scope, _now(at))
            await self.empty(unit, scope, head, at)
            await rows.set_head(unit, scope, head)
            return keys

        return await self.database.transact(scope.tenant.id, write)

    async def drop(self, scope: Scope, at: Moment) -> None:  # noqa: ARG002 - as in every place
        """As `clear`, and the checkpoints are gone too."""

        async def write(unit: Unit) -> None:
            await self.drop_in(unit, scope)

        await self.database.transact(scope.tenant.id, write)

    async def drop_in(self, unit: Unit, scope: Scope) -> None:
        """As `drop`, as part of a transaction of others."""
        await rows.drop(unit, scope)
        await checkpoints.drop(unit, scope)
        self._undo.pop(scope.id, None)

    async def empty(self, unit: Unit, scope: Scope, head: rows.Head, at: Moment) -> None:
        """Nothing is held; what comes will be of a later version than all that was."""
        versions = [entry.version for entry in await rows.known(unit, scope)]
        head.floor = later(at.stamp, head.floor, *versions)
        await rows.delete_all(unit, scope)
        head.keys = head.bytes = head.notes = head.notes_bytes = 0
        head.notes_expire_at = None

    async def save(self, scope: Scope, at: Moment) -> UUID:
        """A checkpoint of everything that is live."""

        async def write(unit: Unit) -> UUID:
            await rows.lock(unit, scope)
            held = await rows.snapshot(unit, scope, at)
            return await self.keep(unit, scope, held, CHECKPOINT, at)

        return await self.database.transact(scope.tenant.id, write)

    async def keep(self, unit: Unit, scope: Scope, held: Snapshot, reason: str, at: Moment) -> UUID:
        """The id of a new checkpoint that holds it."""
        identity = self._new_id()
        await checkpoints.add(
            unit,
            scope,
            identity,
            held,
            reason=reason,
            now=_now(at),
            keep=self._limits.checkpoints_max,
        )
        return identity

    async def restore(self, scope: Scope, checkpoint: UUID, at: Moment) -> UUID:
        """The scope holds what it held then; the checkpoint that undoes this."""

        async def write(unit: Unit) -> UUID:
            head = await rows.lock(unit, scope)
            held = await checkpoints.load(unit, scope, checkpoint)
            undo = await self.keep(unit, scope, await rows.snapshot(unit, scope, at), UNDO, at)
            await self.empty(unit, scope, head, at)
            entries = restored(
                held.entries, version=head.floor, ttl_ms=self._limits.ttl_ms, now_ms=at.now_ms
            )
            await self.fill(unit, scope, head, Snapshot(tuple(entries), held.notes), at)
            return undo

        undo = await self.database.transact(scope.tenant.id, write)
        self._undo[scope.id] = undo
        return undo

    async def fill(
        self, unit: Unit, scope: Scope, head: rows.Head, held: Snapshot, at: Moment
    ) -> None:
        """The emptied scope holds that."""
        await rows.put_rows(unit, scope, held.entries, _now(at))
        head.keys = sum(is_key(entry.field) for entry in held.entries)
        head.bytes = sum(entry.size for entry in held.entries)
        if held.notes:
            await rows.add_notes(unit, scope, head, held.notes, _now(at))
            self._put_off(head, at)
        await rows.set_head(unit, scope, head)

    async def saved(self, scope: Scope) -> list[WorkingCheckpoint]:
        """The checkpoints, newest first."""

        async def read(unit: Unit) -> list[WorkingCheckpoint]:
            return await checkpoints.listed(unit, scope)

        return await self.database.transact(scope.tenant.id, read, read_only=True)

    def status(self, scope: Scope) -> WorkingStatus:
        """Never degraded: PostgreSQL answers, or the call fails."""
        undo = self._undo.get(scope.id)
        return WorkingStatus(
            place="postgres", degraded=False, epoch=0, undo_checkpoint=str(undo) if undo else None
        )

    async def close(self) -> None:
        """The database is closed by those who opened it."""


def _now(at: Moment) -> datetime:
    now = rows.moment_of(at.now_ms)
    if now is None:
        raise StoreUnavailable("The clock stands at 1970.")
    return now
