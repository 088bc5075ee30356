"""What every write does beside its effect: one answer a key, and one line in the audit log.

The answer is a receipt, or the memory as the effect left it. It is kept under the key in the
effect's own unit, and given again as it was until what it quotes is forgotten.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

import orjson

from mnemic.errors import NotFound
from mnemic.model.embedding import Vector
from mnemic.model.normalise import digest
from mnemic.model.receipt import Durability, Receipt, VectorState
from mnemic.model.scope import MemoryScope, Scope
from mnemic.model.snapshot import memory_of, snapshot_of
from mnemic.service.tools import Tools
from mnemic.store.guards import AuditEntry
from mnemic.store.unit import Unit

__all__ = [
    "View",
    "Work",
    "Write",
    "answer_afterwards",
    "answered",
    "claim_beforehand",
    "claimed",
    "committed",
    "land_and_show",
    "land_once",
    "request_digest",
]

M = TypeVar("M")
Work = Callable[[Unit, datetime], Awaitable[Receipt]]
"""The effect of a write, in its unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write as it is claimed and witnessed: which operation, of what, under which key.

    With `keeps` a memory comes to stand in the scope, so that a session takes part in it.
    """

    operation: str
    request: bytes
    keeps: bool = False
    content_digest: bytes | None = None
    key: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class View(Generic[M]):
    """How a memory of a kind is read, held until the unit ends, and as whatever it is by now."""

    kind: type[M]
    read: Callable[[Unit, Scope, UUID], Awaitable[M | None]]


def request_digest(operation: str, *parts: Any) -> bytes:
    """What an idempotency key stands for: the operation and all that was asked, not when."""
    options = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS  # a kind of text is a key too
    values = orjson.dumps(parts, option=options, default=str)
    return digest(operation, values.decode())


async def land_once(tools: Tools, write: Write, work: Work, *, scope: Scope) -> Receipt:
    """`work` in one unit of `scope`, once for each idempotency key, with its audit row.

    The same key with the same request gives the first answer again, after the end of a session too.
    Raises `Conflict` if the key came with another request, and if a memory is to be kept in a
    session that has ended.
    """
    now = tools.now()

    async def land(unit: Unit) -> Receipt:
        await unit.scopes.ensure(scope)
        answer = await claimed(unit, scope, write, now=now)
        if answer is not None:
            return Receipt.from_json(answer)
        receipt = await _landed(tools, unit, scope, write, work, now)
        naming = (receipt.id, *receipt.also) if receipt.notes else ()
        await answered(unit, scope, write, receipt.to_json(), naming=naming)
        return receipt

    return await tools.transact(scope.tenant.id, land)


async def land_and_show(
    tools: Tools, write: Write, work: Work, view: View[M], *, scope: Scope
) -> M:
    """As `land_once`; the memory that `work` made or changed, as it left it.

    The same key with the same request gives it again as it was then, whatever became of it. Of an
    answer that does not hold it (any more) it is the memory as it stands; `NotFound` if it is gone.
    """
    now = tools.now()

    async def land(unit: Unit) -> M:
        await unit.scopes.ensure(scope)
        answer = await claimed(unit, scope, write, now=now)
        if answer is None:
            receipt = await _landed(tools, unit, scope, write, work, now)
        else:
            kept = answer.get("memory")
            if kept is not None and (known := memory_of(view.kind, kept)) is not None:
                return known
            receipt = Receipt.from_json(answer)
        memory = await view.read(unit, scope, receipt.id)
        if memory is None:
            raise NotFound(f"The {receipt.kind} was forgotten since.", id=receipt.id)
        if write.key is not None:
            shown = {**receipt.to_json(), "memory": snapshot_of(memory)}
            await answered(unit, scope, write, shown, naming=(receipt.id, *receipt.also))
        return memory

    return await tools.transact(scope.tenant.id, land)


async def _landed(
    tools: Tools, unit: Unit, scope: Scope, write: Write, work: Work, now: datetime
) -> Receipt:
    """The effect, and its line in the audit log."""
    if write.keeps and scope.level is MemoryScope.SESSION:
        await unit.sessions.join(scope, now=now)
    receipt = await work(unit, now)
    await unit.guards.audit(scope, _entry(tools, write, receipt), now=now)
    return receipt


async def claim_beforehand(tools: Tools, write: Write, *, scope: Scope) -> Receipt | None:
    """For an effect outside of PostgreSQL: the write's key stands for it from now on.

    The receipt if it was given one before; none if the effect is to be made now, be it once more,
    for whoever claimed the key before may have ended half way. Raises `Conflict` if the key came
    with another request.
    """
    if write.key is None:
        return None
    now = tools.now()

    async def claim(unit: Unit) -> Any | None:
        await unit.scopes.ensure(scope)
        return await claimed(unit, scope, write, now=now)

    answer = await tools.transact(scope.tenant.id, claim)
    return None if answer is None else Receipt.from_json(answer)


async def answer_afterwards(
    tools: Tools, write: Write, receipt: Receipt, *, scope: Scope
) -> Receipt:
    """The receipt of an effect whose key was claimed, or that of an equal call which came first.

    The effect is witnessed once.
    """
    key = write.key
    if key is None:
        return receipt
    now = tools.now()

    async def answer(unit: Unit) -> Receipt:
        if not await unit.guards.answer_pending(scope, key, receipt.to_json()):
            known = await unit.guards.answer_of(scope, key, request=write.request)
            return receipt if known is None else Receipt.from_json(known)
        await unit.guards.audit(scope, _entry(tools, write, receipt), now=now)
        return receipt

    return await tools.transact(scope.tenant.id, answer)


def _entry(tools: Tools, write: Write, receipt: Receipt) -> AuditEntry:
    return AuditEntry(
        id=tools.new_id(),
        action=write.operation,
        subject_kind=receipt.kind,
        subject_id=receipt.id,
        reason=write.reason,
        content_digest=write.content_digest,
    )


async def claimed(unit: Unit, scope: Scope, write: Write, *, now: datetime) -> Any | None:
    """The answer that the write's key was given before; nothing if the write is to be done now.

    Raises `Conflict` if the key came with another request.
    """
    if write.key is None:
        return None
    return await unit.guards.claim(
        scope, write.key, operation=write.operation, request=write.request, now=now
    )


async def answered(
    unit: Unit, scope: Scope, write: Write, answer: Any, *, naming: Collection[UUID] = ()
) -> None:
    """The answer is kept under the write's key, if it has one; it quotes what it is `naming`."""
    if write.key is not None:
        await unit.guards.answer(scope, write.key, answer, naming=naming)


def committed(
    identity: UUID,
    kind: str,
    *,
    vectors: list[Vector] | None = None,
    version: int = 1,
    created: bool = True,
    also: tuple[UUID, ...] = (),
    notes: tuple[str, ...] = (),
) -> Receipt:
    """The receipt of a row that is committed when the unit ends; `vectors` are the new rows'."""
    state = VectorState.READY if vectors else VectorState.PENDING
    return Receipt(
        id=identity,
        kind=kind,
        version=version,
        durability=Durability.COMMITTED,
        vector=state if created else VectorState.NONE,
        created=created,
        also=also,
        notes=notes,
    )
