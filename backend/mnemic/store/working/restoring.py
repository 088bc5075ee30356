"""Checkpoints over both stores: taken at one moment, restored as a whole or not at all.

A restore shuts the scope in Valkey, so that nobody reads or writes half of it; is decided by one
transaction of PostgreSQL, which also keeps what was there before; and opens the scope again with
what it holds now. If the process that does this is lost, the next one to meet the gate asks
PostgreSQL what was decided and sees to the end of it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from mnemic.errors import Conflict, NotFound, OutcomeUnknown, StoreUnavailable
from mnemic.model.scope import Scope, ScopeId
from mnemic.settings import WorkingSettings
from mnemic.store.unit import Unit
from mnemic.store.working import checkpoints, rows
from mnemic.store.working.place import (
    CHECKPOINT,
    UNDO,
    Entry,
    Limits,
    Snapshot,
    State,
    restored,
)
from mnemic.store.working.postgres import PostgresPlace
from mnemic.store.working.reaching import Reaching
from mnemic.store.working.stamps import Moment, Stamps
from mnemic.store.working.valkey import GATE_PAUSE_SECONDS, Gate

__all__ = ["Restoring", "newest"]

_ATTEMPTS_MAX = 5
_SHUT_MS_MAX = 10_000
_UNDO_MAX = 10_000


class _Fenced(Exception):
    """The restore was given up by others, or a later one was decided."""

    def __init__(self, fence: int) -> None:
        super().__init__()
        self.fence = fence


def newest(here: Iterable[Entry], stored: Iterable[Entry], now_ms: int) -> list[Entry]:
    """The live entries of both stores: of each field the newer; a mark is what PostgreSQL has."""
    rows_left = {row.field: row for row in stored}
    chosen: list[Entry | None] = []
    for entry in here:
        row = rows_left.pop(entry.field, None)
        if entry.state is State.DURABLE or (row is not None and row.version >= entry.version):
            chosen.append(row)
        else:
            chosen.append(entry)
    chosen += rows_left.values()
    return [entry for entry in chosen if entry is not None and entry.is_live(now_ms)]


class Restoring:
    """Takes and restores checkpoints."""

    def __init__(
        self,
        reaching: Reaching,
        postgres: PostgresPlace,
        settings: WorkingSettings,
        stamps: Stamps,
        now: Callable[[], Moment],
    ) -> None:
        self._reaching = reaching
        self._valkey = reaching.valkey
        self._postgres = postgres
        self._ttl_ms = Limits.of(settings).ttl_ms
        self._stamps = stamps
        self._now = now
        self._undo: OrderedDict[ScopeId, UUID] = OrderedDict()
        self._running: set[asyncio.Task[UUID]] = set()
        self._valkey.on_gate = self.pass_gate

    def undo_of(self, scope: Scope) -> str | None:
        """The checkpoint that undoes the last restore of this process."""
        undo = self._undo.get(scope.id)
        return str(undo) if undo is not None else None

    async def snapshot(self, scope: Scope, at: Moment) -> Snapshot:
        """Everything that is live, of both stores at one moment.

        While durable values are written all the time, it may be of two that lie close together.
        """
        held = Snapshot()
        for _ in range(_ATTEMPTS_MAX):
            before = await self._postgres.known(scope)
            here = await self._reaching.call(scope, lambda: self._valkey.snapshot(scope, at))
            stored: Sequence[Entry] = ()
            if before or _marks(here):
                stored = (await self._postgres.everything(scope, at)).entries
            held = _joined(here, stored, at)
            if _versions(before) == _versions(stored):
                break
        return held

    async def save(self, scope: Scope, at: Moment) -> UUID:
        """A checkpoint of everything that is live, in both stores at one moment."""
        for _ in range(_ATTEMPTS_MAX):
            before = await self._postgres.known(scope)
            here = await self._reaching.call(scope, lambda: self._valkey.snapshot(scope, at))
            saved = await self._save(scope, before, here, at)
            if saved is not None:
                return saved
        raise Conflict("Durable values are being written all the time; try again.")

    async def _save(
        self, scope: Scope, before: Sequence[Entry], here: Snapshot, at: Moment
    ) -> UUID | None:
        """Nothing when durable values have changed since `before`."""

        async def write(unit: Unit) -> UUID | None:
            await rows.lock(unit, scope)
            stored = (await rows.everything(unit, scope, at)).entries
            if _versions(before) != _versions(stored):
                return None
            held = _joined(here, stored, at)
            return await self._postgres.keep(unit, scope, held, CHECKPOINT, at)

        return await self._postgres.database.transact(scope.tenant.id, write)

    async def restore(self, scope: Scope, checkpoint: UUID, at: Moment) -> UUID:
        """The scope holds what it held then; the checkpoint that undoes this. Raises `NotFound`.

        Once begun it comes to its end, though the caller may have been cancelled.
        """
        task = asyncio.ensure_future(self._restore(scope, checkpoint, at))
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[UUID]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # seen by the caller, unless that was cancelled

    async def _restore(self, scope: Scope, checkpoint: UUID, at: Moment) -> UUID:
        await self._check(scope, checkpoint)
        for _ in range(_ATTEMPTS_MAX):
            gate = Gate(at.id, at.now_ms + _SHUT_MS_MAX, checkpoint)
            here, version = await self._begin(scope, gate, at)
            try:
                undo, floor, held = await self._decide(scope, gate, here, version, at)
            except _Fenced as fault:
                await self._open(scope, gate, at)
                self._stamps.observe(fault.fence, at.now_ms)
                at = self._now()
                continue
            except OutcomeUnknown:
                raise  # whoever meets the gate will ask what was decided
            except BaseException:
                await self._open(scope, gate, at)
                raise
            self._remember(scope, undo)
            await self._open(scope, gate, at, floor, held)
            return undo
        raise Conflict("The scope is being restored by others all the time; try again.")

    async def _check(self, scope: Scope, checkpoint: UUID) -> None:
        async def read(unit: Unit) -> None:
            await checkpoints.load(unit, scope, checkpoint)

        await self._postgres.database.transact(scope.tenant.id, read, read_only=True)

    async def _begin(self, scope: Scope, gate: Gate, at: Moment) -> tuple[Snapshot, int]:
        return await self._reaching.call(scope, lambda: self._valkey.begin(scope, gate, at))

    async def _decide(
        self, scope: Scope, gate: Gate, here: Snapshot, version: int, at: Moment
    ) -> tuple[UUID, int, Snapshot]:
        """The undo checkpoint, the version of what is restored, and that; all committed."""

        async def write(unit: Unit) -> tuple[UUID, int, Snapshot]:
            head = await rows.lock(unit, scope)
            if max(head.fence, head.restored) >= at.stamp:
                raise _Fenced(max(head.fence, head.restored))
            held = await checkpoints.load(unit, scope, gate.checkpoint)
            stored = (await rows.everything(unit, scope, at)).entries
            undo = await self._postgres.keep(unit, scope, _joined(here, stored, at), UNDO, at)
            await self._postgres.empty(unit, scope, head, replace(at, stamp=version))
            head.restored = at.stamp
            back = self._back(held, head.floor, at)
            durable = tuple(one for one in back.entries if one.state is State.DURABLE)
            await self._postgres.fill(unit, scope, head, Snapshot(durable), at)
            return undo, head.floor, back

        return await self._postgres.database.transact(scope.tenant.id, write)

    def _back(self, held: Snapshot, version: int, at: Moment) -> Snapshot:
        entries = restored(held.entries, version=version, ttl_ms=self._ttl_ms, now_ms=at.now_ms)
        return Snapshot(tuple(entries), held.notes)

    async def _open(
        self,
        scope: Scope,
        gate: Gate,
        at: Moment,
        version: int | None = None,
        held: Snapshot | None = None,
    ) -> None:
        """The scope is open, and holds what was decided."""
        try:
            await self._reaching.call(
                scope, lambda: self._valkey.finish(scope, gate, at, version=version, holds=held)
            )
        except StoreUnavailable as fault:
            if held is not None:
                raise OutcomeUnknown(
                    "The restore is decided; it takes effect as soon as Valkey can be reached."
                ) from fault

    def _remember(self, scope: Scope, undo: UUID) -> None:
        self._undo[scope.id] = undo
        self._undo.move_to_end(scope.id)
        while len(self._undo) > _UNDO_MAX:
            self._undo.popitem(last=False)

    async def pass_gate(self, scope: Scope, gate: Gate) -> None:
        """A moment later; a restore that should long have ended was brought to its end."""
        at = self._now()
        if at.now_ms < gate.until_ms:
            await asyncio.sleep(GATE_PAUSE_SECONDS)
            return
        stamp = int(gate.id[:16], 16)

        async def look(unit: Unit) -> tuple[int, Snapshot] | None:
            head = await rows.lock(unit, scope)
            if head.restored != stamp:
                head.fence = max(head.fence, stamp)  # it can no longer be decided
                await rows.set_head(unit, scope, head)
                return None
            try:
                held = await checkpoints.load(unit, scope, gate.checkpoint)
            except NotFound:  # the scope was dropped meanwhile
                held = Snapshot()
            return head.floor, self._back(held, head.floor, at)

        decided = await self._postgres.database.transact(scope.tenant.id, look)
        version, back = decided if decided is not None else (None, None)
        await self._valkey.finish(scope, gate, at, version=version, holds=back)

    async def close(self) -> None:
        """No restore is under way in the running loop."""
        loop = asyncio.get_running_loop()
        mine = [task for task in self._running if task.get_loop() is loop]
        await asyncio.gather(*mine, return_exceptions=True)


def _versions(entries: Iterable[Entry]) -> dict[bytes, int]:
    return {entry.field: entry.version for entry in entries}


def _marks(here: Snapshot) -> bool:
    return any(entry.state is State.DURABLE for entry in here.entries)


def _joined(here: Snapshot, stored: Iterable[Entry], at: Moment) -> Snapshot:
    live = sorted(newest(here.entries, stored, at.now_ms), key=lambda entry: entry.field)
    return Snapshot(tuple(live), here.notes)
