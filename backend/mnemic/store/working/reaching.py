"""Valkey as far as it can be reached: declared degradation, or refusal, by setting.

While it is away, writes are held in this process and answered from there; what only Valkey knows
raises `Unavailable`. When it is back, what was held is merged before anything else of that scope
is read: the newer version wins, and where two had written without knowing of each other, that is
counted and reported.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from mnemic.errors import MnemicError, OutcomeUnknown, StoreUnavailable
from mnemic.model.scope import Scope, ScopeId
from mnemic.model.working import WorkingStatus
from mnemic.settings import WorkingSettings
from mnemic.store.working.faults import Away
from mnemic.store.working.held import Conflicts, Held, HeldScopes
from mnemic.store.working.outage import Outage
from mnemic.store.working.place import Entry, Limits, Put
from mnemic.store.working.stamps import Moment
from mnemic.store.working.valkey import Elsewhere, HeldNote, Valkey

__all__ = ["Reaching"]

T = TypeVar("T")
log = structlog.get_logger("mnemic")

_SEEN_MAX = 20_000


class _Process:
    """What one process knows; a forked child begins anew, since its parent still holds its own."""

    def __init__(self, settings: WorkingSettings) -> None:
        self.pid = os.getpid()
        self.outage = Outage(retry_after_seconds=settings.retry_after_seconds)
        self.held = HeldScopes(Limits.of(settings), bytes_max=settings.degraded_bytes_max)
        self.conflicts = Conflicts()
        self.seen: OrderedDict[tuple[ScopeId, bytes], str] = OrderedDict()
        self.seeing = threading.Lock()
        self.merging: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            weakref.WeakKeyDictionary()
        )
        self.keepers: set[asyncio.Task[None]] = set()


class Reaching:
    """Runs calls on Valkey, or holds what they would have written."""

    def __init__(
        self, valkey: Valkey, settings: WorkingSettings, now: Callable[[], Moment]
    ) -> None:
        self.valkey = valkey
        self._settings = settings
        self._now = now
        self._process = _Process(settings)
        valkey.client.is_away = lambda: self.is_away

    @property
    def _here(self) -> _Process:
        if self._process.pid != os.getpid():
            self._process = _Process(self._settings)
        return self._process

    @property
    def is_away(self) -> bool:
        """Whether Valkey could not be reached by the last call."""
        return self._here.outage.is_away

    async def call(
        self, scope: Scope, work: Callable[[], Awaitable[T]], *, writes: bool = False
    ) -> T:
        """`work` on Valkey, after what is held of the scope was merged.

        Raises `StoreUnavailable` when it is away, `OutcomeUnknown` when a write may have happened.
        """
        try:
            return await self._try(scope, work)
        except Away as fault:
            raise self._refusal(fault, writes=writes) from fault

    async def _try(self, scope: Scope, work: Callable[[], Awaitable[T]]) -> T:
        here, started = self._here, time.monotonic()
        if here.outage.is_away and not here.outage.may_try():
            raise Away("found to be away", sent=False)
        try:
            if here.outage.is_away:
                await self._look_again()
            if here.held.has(scope):
                await self._merge(scope)
            return await work()
        except Away as fault:
            self._lost_touch(started, fault)
            raise

    def _refusal(self, fault: Away, *, writes: bool) -> MnemicError:
        if writes and fault.sent:
            return OutcomeUnknown(
                "The connection to Valkey was lost before its answer came; read what is there now."
            )
        return StoreUnavailable(
            "Valkey is away, and this process alone does not know the whole answer; nothing was "
            "changed. Retry when it is back.",
            epoch=self._here.outage.epoch,
        )

    def _lost_touch(self, started: float, fault: Away) -> None:
        if self._here.outage.failed(started):
            log.warning("valkey_away", reason=str(fault), then=self._settings.on_outage)

    async def open(self) -> None:
        """Valkey is fit to serve. Raises `ConfigurationError`; away, it is refused or declared."""
        started = time.monotonic()
        try:
            features = await self.valkey.client.features()
        except Away as fault:
            self._lost_touch(started, fault)
            if self._settings.on_outage == "refuse":
                raise self._refusal(fault, writes=False) from fault
        else:
            self._here.outage.answered(features.instance)

    async def _look_again(self) -> None:
        """Valkey answers; else `Away` is raised."""
        instance = await self.valkey.client.instance()
        self.valkey.client.forget_features()
        if not self._here.outage.answered(instance):
            log.error("valkey_reset", reason="it came back without what it had held")
        self._keep_merging()

    async def get(self, scope: Scope, field: bytes, at: Moment) -> Entry | None:
        """What stands there, live or not; a durable entry comes without its value."""
        try:
            entry = await self._try(scope, lambda: self.valkey.get(scope, field, at))
        except Away as fault:
            held = self._here.held.get(scope, field)
            if held is None:
                raise self._refusal(fault, writes=False) from fault
            return held
        if entry is not None:
            self._saw(scope, field, f"{entry.version:016x}")
        return entry

    async def put(
        self, scope: Scope, put: Put, at: Moment, *, elsewhere: Callable[[], Awaitable[bool]]
    ) -> tuple[Entry, bool]:
        """The entry as it is kept, and whether it was durable before. Raises `Elsewhere`.

        Before it is held, `elsewhere` says whether PostgreSQL has it.
        """
        try:
            entry, durable = await self._try(scope, lambda: self.valkey.put(scope, put, at))
        except Away as fault:
            if await elsewhere():
                raise Elsewhere from fault
            held = self._held_or_refused(fault)
            entry = held.put(scope, put, at, known=self._known(scope, put.field, at, fault))
            self._keep_merging()
            return entry, False
        self._saw(scope, put.field, f"{entry.version:016x}")
        return entry, durable

    async def delete(self, scope: Scope, field: bytes, at: Moment) -> bool:
        """Whether it was live; it is no longer. Raises `Elsewhere`."""
        try:
            return await self._try(scope, lambda: self.valkey.delete(scope, field, at))
        except Away as fault:
            held = self._held_or_refused(fault)
            known = self._known(scope, field, at, fault)
            existed = held.delete(scope, field, at, known=known)
            if existed is None:
                raise self._refusal(fault, writes=True) from fault
            self._keep_merging()
            return existed

    async def append(self, scope: Scope, text: str, at: Moment) -> None:
        """The note stands at the end."""
        try:
            await self._try(scope, lambda: self.valkey.append(scope, text, at))
        except Away as fault:
            self._held_or_refused(fault).append(scope, HeldNote(at.id, text))
            self._keep_merging()

    def _held_or_refused(self, fault: Away) -> HeldScopes:
        if self._settings.on_outage == "refuse":
            raise self._refusal(fault, writes=True) from fault
        return self._here.held

    def _known(self, scope: Scope, field: bytes, at: Moment, fault: Away) -> tuple[str, ...]:
        """What may stand in Valkey without another having written it."""
        seen = self._here.seen.get((scope.id, field))
        return (*((seen,) if seen else ()), *((at.id,) if fault.sent else ()))

    def _saw(self, scope: Scope, field: bytes, version: str) -> None:
        here = self._here
        with here.seeing:
            here.seen[(scope.id, field)] = version
            here.seen.move_to_end((scope.id, field))
            while len(here.seen) > _SEEN_MAX:
                here.seen.popitem(last=False)

    def discard(self, scope: Scope, field: bytes | None = None) -> None:
        """Nothing of the field, or of the scope, is held any more: it was decided elsewhere."""
        self._here.held.discard(scope, field)

    async def _merge(self, scope: Scope) -> None:
        """What is held of the scope is in Valkey. Raises `Away`."""
        here = self._here
        lock = here.merging.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            taken = here.held.take(scope)
            if taken is None:
                return
            at = self._now()
            incoming = list(taken.entries.values())
            since = round((time.monotonic() - taken.since) * 1_000)
            answers = await self.valkey.merge(scope, incoming, taken.notes, at, since_ms=since)
            here.held.done(taken)
        self._report(taken, answers, at)

    def _report(self, taken: Held, answers: list[str], at: Moment) -> None:
        fields = [*taken.entries, *(None for _ in taken.notes)]
        found = 0
        for field, answer in zip(fields, answers, strict=True):
            if answer != "kept":
                kept = "ours" if answer == "won" else "theirs"
                self._here.conflicts.add(taken.scope, field, kept, at)
                found += 1
        log.info(
            "working_memory_merged",
            scope=str(taken.scope.id),
            writes=len(fields),
            conflicts=found,
        )

    def conflict(self, scope: Scope, field: bytes, kept: str, at: Moment) -> None:
        """A conflict that was found elsewhere."""
        self._here.conflicts.add(scope, field, kept, at)

    def _keep_merging(self) -> None:
        """A task of the running loop merges what is held, as soon as that can be done."""
        here, loop = self._here, asyncio.get_running_loop()
        if not here.held.scopes() or any(task.get_loop() is loop for task in here.keepers):
            return
        task = loop.create_task(self._until_merged())
        here.keepers.add(task)
        task.add_done_callback(here.keepers.discard)

    async def _until_merged(self) -> None:
        told = ""
        while scopes := self._here.held.scopes():
            for scope in scopes:
                try:
                    await self._try(scope, _nothing)
                except Away:
                    break
                except MnemicError as fault:
                    if str(fault) != told:
                        log.warning("working_memory_not_merged", reason=str(fault))
                    told = str(fault)
            await asyncio.sleep(self._settings.retry_after_seconds)

    def status(self, scope: Scope) -> WorkingStatus:
        """How the scope stands, as this process sees it."""
        here = self._here
        count, recent = here.conflicts.of(scope)
        pending = here.held.count(scope)
        return WorkingStatus(
            place="valkey",
            degraded=here.outage.is_away or pending > 0,
            epoch=here.outage.epoch,
            pending=pending,
            conflicts=count,
            recent_conflicts=recent,
            resets=here.outage.resets,
        )

    async def close(self) -> None:
        """What is held was merged if that could be done; what could not is lost, and logged."""
        here, loop = self._here, asyncio.get_running_loop()
        mine = [task for task in here.keepers if task.get_loop() is loop]
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)
        try:
            if here.outage.is_away and here.held.scopes():
                await self._look_again()
            for scope in here.held.scopes():
                await self._merge(scope)
        except (Away, MnemicError) as fault:
            left = here.held.scopes()
            lost = sum(here.held.count(scope) for scope in left)
            log.warning("working_memory_lost", writes=lost, scopes=len(left), reason=str(fault))
            for scope in left:
                here.held.discard(scope)


async def _nothing() -> None:
    """What is to be done after merging."""
