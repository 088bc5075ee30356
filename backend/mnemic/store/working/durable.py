"""Working memory in Valkey, with what must outlive it in PostgreSQL: one place of both.

A key is in one of them: where it was put, until a write says otherwise. Valkey holds a mark in the
stead of a durable value, so that a key costs one round trip until the mark sends the reader on. Two
processes that could not reach Valkey, or not tell it, may leave a value in both: the newer
version wins, and the older one is what `status` counts as a conflict.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from mnemic.errors import MnemicError, OutcomeUnknown, StoreUnavailable, Unavailable
from mnemic.model.scope import Scope, ScopeId
from mnemic.model.working import WorkingCheckpoint, WorkingStatus
from mnemic.settings import WorkingSettings
from mnemic.store.faults import after_landing
from mnemic.store.working.keys import TASK
from mnemic.store.working.leases import Leases
from mnemic.store.working.place import Entry, Put, Snapshot, State
from mnemic.store.working.postgres import PostgresPlace
from mnemic.store.working.reaching import Reaching
from mnemic.store.working.restoring import Restoring, newest
from mnemic.store.working.stamps import Moment
from mnemic.store.working.valkey import Elsewhere

__all__ = ["ValkeyPlace"]

_REPORTED_MAX = 10_000
_Question = asyncio.Future[Mapping[bytes, Entry]]
_Asking = dict[ScopeId, tuple[float, _Question]]


class ValkeyPlace:
    """The place that serves: see `Place` for what each method gives."""

    def __init__(
        self,
        reaching: Reaching,
        postgres: PostgresPlace,
        restoring: Restoring,
        settings: WorkingSettings,
    ) -> None:
        self._reaching = reaching
        self._valkey = reaching.valkey
        self.postgres = postgres
        self._restoring = restoring
        self._leases = Leases(seconds=settings.durable_lease_seconds)
        self._reported: set[tuple[ScopeId, bytes, int]] = set()
        self._asking: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Asking] = (
            weakref.WeakKeyDictionary()
        )

    async def _durables(self, scope: Scope) -> Mapping[bytes, Entry]:
        """What PostgreSQL has, asked at most once a lease. Raises `Unavailable`."""
        known = self._leases.known(scope)
        if known is not None:
            return known
        asking = self._asking.setdefault(asyncio.get_running_loop(), {})
        began, question = asking.get(scope.id, (0.0, None))
        # An answer may be shared by those who came before it was a lease old.
        if question is None or time.monotonic() - began > self._leases.seconds / 2:
            began, question = time.monotonic(), asyncio.ensure_future(self._ask(scope))
            asking[scope.id] = began, question
            question.add_done_callback(lambda done: _answered(asking, scope.id, done))
        return await asyncio.shield(question)

    async def _ask(self, scope: Scope) -> Mapping[bytes, Entry]:
        asked_at = time.monotonic()
        entries = await self.postgres.known(scope)
        self._leases.learn(scope, entries, asked_at=asked_at)
        return {entry.field: entry for entry in entries}

    async def get(self, scope: Scope, field: bytes, at: Moment) -> Entry | None:
        """The entry with its value, if it is live."""
        away = self._reaching.is_away
        if away:  # what others mark as durable cannot be seen from here
            with suppress(Unavailable):
                return await self._get_durable(scope, field, at)
        fault: Unavailable | None = None
        try:
            if field in await self._durables(scope):
                return await self._get_durable(scope, field, at)
        except Unavailable as raised:
            fault = raised
        try:
            here = await self._reaching.get(scope, field, at)
        except StoreUnavailable:
            if fault is not None or away:
                raise
            return await self._get_durable(scope, field, at)
        if here is not None and here.is_live(at.now_ms):
            if here.state is State.DURABLE:
                return await self._get_durable(scope, field, at)
            return here
        if fault is not None:  # it may be there all the same, where we cannot look
            raise fault
        return None

    async def _get_durable(self, scope: Scope, field: bytes, at: Moment) -> Entry | None:
        """The newer of what stands in Valkey and in PostgreSQL, which may have it."""
        row = await self.postgres.stored(scope, field)
        try:
            here = await self._reaching.get(scope, field, at)
            if here is None and row is not None:
                here = await self._reaching.call(scope, lambda: self._valkey.head(scope, field))
        except StoreUnavailable:
            if row is not None and row.is_live(at.now_ms):
                return row
            raise
        if row is not None and (here is None or here.version < row.version):
            with suppress(StoreUnavailable):
                await self._tell(scope, [row], at)
        elif here is not None and here.state is not State.DURABLE:
            if row is not None and row.is_live(at.now_ms):
                self._report(scope, row, at)
            return here if here.state is State.VALUE and here.is_live(at.now_ms) else None
        return row if row is not None and row.is_live(at.now_ms) else None

    def _report(self, scope: Scope, row: Entry, at: Moment) -> None:
        """A durable value was overtaken by one that was not written to be durable."""
        name = (scope.id, row.field, row.version)
        if name not in self._reported:
            if len(self._reported) >= _REPORTED_MAX:
                self._reported.clear()  # told once more, at worst
            self._reported.add(name)
            self._reaching.conflict(scope, row.field, "theirs", at)

    async def _tell(self, scope: Scope, entries: list[Entry], at: Moment) -> None:
        """Valkey knows what PostgreSQL has. Raises `Unavailable`."""
        await self._reaching.call(scope, lambda: self._valkey.settle(scope, entries, at))

    async def put(self, scope: Scope, put: Put, at: Moment) -> Entry:
        """The entry as it is kept, without its value."""
        if put.durable or (put.durable is None and self._is_durable(scope, put, at)):
            return await self._put_durable(scope, put, at)
        # Asked before anything is written: an older durable value would come back in its time.
        takes_back = put.durable is False and put.field in await self._durables(scope)
        try:
            entry, was_durable = await self._reaching.put(
                scope, put, at, elsewhere=lambda: self._is_stored(scope, put, at)
            )
        except Elsewhere:
            return await self._put_durable(scope, put, at)
        if was_durable or takes_back:
            with after_landing("set it again"):
                await self.postgres.forget(scope, put.field)
            self._leases.forget(scope)
        return entry

    def _is_durable(self, scope: Scope, put: Put, at: Moment) -> bool:
        """Whether PostgreSQL has it, as far as that is known."""
        known = self._leases.known(scope)
        found = known.get(put.field) if known is not None else None
        return found is not None and found.is_live(at.now_ms)

    async def _is_stored(self, scope: Scope, put: Put, at: Moment) -> bool:
        """Whether PostgreSQL has it and is to keep it; asked when Valkey cannot say."""
        found: Entry | None = None
        if put.durable is None:
            with suppress(Unavailable):
                found = await self.postgres.stored(scope, put.field)
        return found is not None and found.is_live(at.now_ms)

    async def _put_durable(self, scope: Scope, put: Put, at: Moment) -> Entry:
        """Committed in PostgreSQL, and every reader will find it there from now on."""
        put = replace(put, durable=True)
        beside: Entry | None = None
        reached, moment = False, at
        with suppress(StoreUnavailable, OutcomeUnknown):
            version, beside = await self._reaching.call(
                scope, lambda: self._valkey.reserve(scope, put, at)
            )
            reached, moment = True, replace(at, stamp=max(at.stamp, version))
        try:
            entry, age = await self.postgres.put_beside(scope, put, moment, beside)
        except BaseException:
            if reached:
                await asyncio.shield(self._give_up(scope, put.field, at))
            raise
        self._leases.add(scope, entry)
        self._reaching.discard(scope, put.field)
        told = False
        with suppress(StoreUnavailable, OutcomeUnknown):
            [newer] = await self._reaching.call(
                scope, lambda: self._valkey.settle(scope, [entry], at)
            )
            told = True
            if newer:
                self._report(scope, entry, at)
        if not told and age < self._leases.seconds:
            await asyncio.sleep(self._leases.seconds)
        return entry

    async def _give_up(self, scope: Scope, field: bytes, at: Moment) -> None:
        with suppress(MnemicError):
            await self._reaching.call(scope, lambda: self._valkey.release(scope, field, at))

    async def delete(self, scope: Scope, field: bytes, at: Moment) -> bool:
        """Whether it was there; it no longer is."""
        fault: Unavailable | None = None
        durable = False
        try:
            durable = field in await self._durables(scope)
        except Unavailable as raised:
            fault = raised
        existed = False
        if not durable:
            try:
                existed = await self._reaching.delete(scope, field, at)
            except Elsewhere:
                durable = True
            except (StoreUnavailable, OutcomeUnknown):
                if fault is not None or await self.postgres.stored(scope, field) is None:
                    raise
                durable = True
        if durable:
            return await self._delete_durable(scope, field, at)
        if fault is not None and not existed:
            raise fault
        return existed

    async def _delete_durable(self, scope: Scope, field: bytes, at: Moment) -> bool:
        existed = await self._get_durable(scope, field, at) is not None
        grave = await self.postgres.bury(scope, field, at)
        if grave is not None:
            self._leases.add(scope, grave)
        try:
            if grave is not None:
                await self._tell(scope, [grave], at)
            await self._reaching.delete(scope, field, at)
        except Elsewhere:
            pass  # a mark of what is not there any more
        except (StoreUnavailable, OutcomeUnknown):
            if grave is None:
                raise
        return existed

    async def fields(self, scope: Scope, at: Moment) -> list[bytes]:
        """The live fields, sorted."""
        heads = await self._reaching.call(scope, lambda: self._valkey.heads(scope))
        rows: list[Entry] = []
        if any(head.state is State.DURABLE for head in heads) or await self._durables(scope):
            rows = await self.postgres.known(scope)
        live = newest(heads, rows, at.now_ms)
        return sorted(entry.field for entry in live)

    async def snapshot(self, scope: Scope, at: Moment) -> Snapshot:
        """Everything that is live."""
        return await self._restoring.snapshot(scope, at)

    async def append(self, scope: Scope, text: str, at: Moment) -> None:
        """The note stands at the end."""
        await self._reaching.append(scope, text, at)

    async def notes(self, scope: Scope, at: Moment) -> list[str]:
        """The notes in their order."""
        return await self._reaching.call(scope, lambda: self._valkey.notes(scope, at))

    async def clear(self, scope: Scope, at: Moment) -> int:
        """How many keys there were; nothing is left but the checkpoints."""
        # Before anything is deleted, both must be there to be emptied.
        await self._reaching.call(scope, lambda: self._valkey.head(scope, TASK))
        keys = await self.postgres.clear(scope, at) if await self.postgres.known(scope) else 0
        self._leases.forget(scope)
        with after_landing("clear the scope again"):
            return keys + await self._reaching.call(
                scope, lambda: self._valkey.clear(scope, at), writes=True
            )

    async def drop(self, scope: Scope, at: Moment) -> None:
        """As `clear`, and the checkpoints are gone too."""
        await self.postgres.drop(scope, at)
        with after_landing("drop the scope again"):
            await self.drop_here(scope, at)

    async def drop_here(self, scope: Scope, at: Moment) -> None:
        """What Valkey and this process hold of the scope is gone."""
        self._leases.forget(scope)
        self._reaching.discard(scope)
        await self._reaching.call(scope, lambda: self._valkey.clear(scope, at), writes=True)

    async def save(self, scope: Scope, at: Moment) -> UUID:
        """A checkpoint of everything that is live."""
        return await self._restoring.save(scope, at)

    async def restore(self, scope: Scope, checkpoint: UUID, at: Moment) -> UUID:
        """The scope holds what it held then; the checkpoint that undoes this."""
        try:
            return await self._restoring.restore(scope, checkpoint, at)
        finally:
            self._leases.forget(scope)

    async def saved(self, scope: Scope) -> list[WorkingCheckpoint]:
        """The checkpoints, newest first."""
        return await self.postgres.saved(scope)

    def status(self, scope: Scope) -> WorkingStatus:
        """How the scope stands, as this process sees it."""
        return replace(self._reaching.status(scope), undo_checkpoint=self._restoring.undo_of(scope))

    async def close(self) -> None:
        """What this process holds was merged, if that could be done."""
        await self._reaching.close()
        await self._valkey.client.close()


def _answered(asking: _Asking, scope: ScopeId, question: _Question) -> None:
    """The question is over; whoever asked has its answer, or was cancelled."""
    if asking.get(scope, (0.0, None))[1] is question:
        del asking[scope]
    if not question.cancelled():
        question.exception()
