"""What every write does beside its effect: one answer a key, and one line in the audit log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from mnemic.model.embedding import Vector
from mnemic.model.normalise import digest
from mnemic.model.receipt import Durability, Receipt, VectorState
from mnemic.model.scope import MemoryScope, Scope
from mnemic.service.tools import Tools
from mnemic.store.guards import AuditEntry
from mnemic.store.unit import Unit

__all__ = [
    "Write",
    "answer_before",
    "answered",
    "claimed",
    "committed",
    "land_once",
    "request_digest",
]


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


def request_digest(operation: str, *parts: Any) -> bytes:
    """What an idempotency key stands for: the operation and all that was asked, not when."""
    options = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS  # a kind of text is a key too
    values = orjson.dumps(parts, option=options, default=str)
    return digest(operation, values.decode())


async def land_once(
    tools: Tools,
    write: Write,
    work: Callable[[Unit, datetime], Awaitable[Receipt]],
    *,
    scope: Scope,
) -> Receipt:
    """`work` in one unit of `scope`, once for each idempotency key, with its audit row.

    The same key with the same request gives the first answer again, after the end of a session too.
    Raises `Conflict` if the key came with another request, and if a memory is to be kept in a
    session that has ended.
    """
    now = tools.now()
    joins = write.keeps and scope.level is MemoryScope.SESSION

    async def land(unit: Unit) -> Receipt:
        await unit.scopes.ensure(scope)
        answer = await claimed(unit, scope, write, now=now)
        if answer is not None:
            return Receipt.from_json(answer)
        if joins:
            await unit.sessions.join(scope, now=now)
        receipt = await work(unit, now)
        entry = AuditEntry(
            id=tools.new_id(),
            action=write.operation,
            subject_kind=receipt.kind,
            subject_id=receipt.id,
            reason=write.reason,
            content_digest=write.content_digest,
        )
        await unit.guards.audit(scope, entry, now=now)
        await answered(unit, scope, write, receipt.to_json())
        return receipt

    return await tools.transact(scope.tenant.id, land)


async def answer_before(tools: Tools, write: Write, *, scope: Scope) -> Receipt | None:
    """The receipt that the write's key was given before, for effects outside of PostgreSQL.

    Raises `Conflict` if the key came with another request.
    """
    key = write.key
    if key is None:
        return None
    answer = await tools.transact(
        scope.tenant.id,
        lambda unit: unit.guards.answer_of(scope, key, request=write.request),
        read_only=True,
    )
    return None if answer is None else Receipt.from_json(answer)


async def claimed(unit: Unit, scope: Scope, write: Write, *, now: datetime) -> Any | None:
    """The answer that the write's key was given before; nothing if the write is to be done now.

    Raises `Conflict` if the key came with another request.
    """
    if write.key is None:
        return None
    return await unit.guards.claim(
        scope, write.key, operation=write.operation, request=write.request, now=now
    )


async def answered(unit: Unit, scope: Scope, write: Write, answer: Any) -> None:
    """The answer is kept under the write's key, if it has one."""
    if write.key is not None:
        await unit.guards.answer(scope, write.key, answer)


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
