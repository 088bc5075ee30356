"""What makes writes safe to repeat, and every change witnessed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.errors import Conflict
from mnemic.model.normalise import digest
from mnemic.model.scope import Scope
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["AuditEntry", "GuardStore"]

CLAIM = Statement("""
    INSERT INTO mnemic.idempotency_keys (tenant_id, key_digest, operation, request_digest, answer,
                                         recorded_at)
    VALUES (:tenant, :key, :operation, :request, CAST('null' AS jsonb), :now)
    ON CONFLICT (tenant_id, key_digest) DO NOTHING
""")

READ = Statement("""
    SELECT k.request_digest, k.answer FROM mnemic.idempotency_keys k
     WHERE {tenant:k} AND k.key_digest = :key
""")

# What the answer quotes is found again by the memories that it names.
ANSWER = Statement("""
    WITH named AS (
      INSERT INTO mnemic.answered_memories (tenant_id, key_digest, memory_id)
      SELECT :tenant, CAST(:key AS bytea), m.id FROM unnest(CAST(:naming AS uuid[])) AS m(id)
      ON CONFLICT (tenant_id, key_digest, memory_id) DO NOTHING
    )
    UPDATE mnemic.idempotency_keys k SET answer = :answer
     WHERE {tenant:k} AND k.key_digest = :key
""")

ANSWER_PENDING = Statement("""
    UPDATE mnemic.idempotency_keys k SET answer = :answer
     WHERE {tenant:k} AND k.key_digest = :key AND k.answer = CAST('null' AS jsonb)
""")

# A note of a receipt says in what form a name was kept, and so quotes it; a key of any scope of the
# tenant may have made or changed the memory. Ids and versions stay.
UNQUOTE = Statement("""
    WITH named AS (
      DELETE FROM mnemic.answered_memories a
       WHERE {tenant:a} AND a.memory_id = ANY(CAST(:ids AS uuid[]))
      RETURNING a.key_digest
    )
    UPDATE mnemic.idempotency_keys k SET answer = k.answer - 'notes' - 'memory'
     WHERE {tenant:k} AND k.key_digest IN (SELECT n.key_digest FROM named n)
""")

NAME_TOO = Statement("""
    INSERT INTO mnemic.answered_memories (tenant_id, key_digest, memory_id)
    SELECT a.tenant_id, a.key_digest, CAST(:to AS uuid) FROM mnemic.answered_memories a
     WHERE {tenant:a} AND a.memory_id = :source
    ON CONFLICT (tenant_id, key_digest, memory_id) DO NOTHING
""")

AUDIT = Statement("""
    INSERT INTO mnemic.audit_log (tenant_id, id, scope_id, action, subject_kind, subject_id, actor,
                                  reason, content_digest, recorded_at)
    VALUES (:tenant, :id, :scope, :action, :subject_kind, :subject_id, :actor, :reason,
            :content_digest, :now)
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One change: ids, a digest and a reason, never content."""

    id: UUID
    action: str
    subject_kind: str
    subject_id: UUID | None
    actor: str = "api"
    reason: str | None = None
    content_digest: bytes | None = None


class GuardStore:
    """Claims keys and writes the audit log. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def claim(
        self, scope: Scope, key: str, *, operation: str, request: bytes, now: datetime
    ) -> Any | None:
        """Nothing when the key is new and now ours; else the answer that it was given.

        Waits for another transaction that holds the key. Raises `Conflict` if the key came with
        another request.
        """
        claimed = await self._unit.execute(
            CLAIM, key=_key_digest(scope, key), operation=operation, request=request, now=now
        )
        return None if claimed else await self.answer_of(scope, key, request=request)

    async def answer_of(self, scope: Scope, key: str, *, request: bytes) -> Any | None:
        """The answer that the key was given, or nothing for a key that is free.

        Raises `Conflict` if the key came with another request.
        """
        row = await self._unit.fetch_one(READ, key=_key_digest(scope, key))
        if row is None:
            return None
        if row["request_digest"] != request:
            raise Conflict("The idempotency key was used for another request; take a new key.")
        return row["answer"]

    async def request_of(self, scope: Scope, key: str) -> bytes | None:
        """The digest of the write that landed with this key, or nothing."""
        row = await self._unit.fetch_one(READ, key=_key_digest(scope, key))
        return None if row is None else row["request_digest"]

    async def answer(
        self, scope: Scope, key: str, answer: object, *, naming: Collection[UUID] = ()
    ) -> None:
        """The key's answer is kept, to be given again.

        It quotes the memories that it is `naming`, until one of them is forgotten.
        """
        await self._unit.execute(
            ANSWER, key=_key_digest(scope, key), answer=answer, naming=list(naming)
        )

    async def answer_pending(self, scope: Scope, key: str, answer: object) -> bool:
        """The claimed key has this answer, unless another call gave it one first."""
        landed = await self._unit.execute(
            ANSWER_PENDING, key=_key_digest(scope, key), answer=answer
        )
        return landed == 1

    async def unquote(self, memories: Collection[UUID]) -> None:
        """No answer quotes these memories any more. No scope: a key of any may have named them.

        The caller holds their rows, so that nobody quotes them meanwhile.
        """
        await self._unit.execute(UNQUOTE, ids=list(memories))

    async def name_too(self, memory: UUID, *, to: UUID) -> None:
        """What quotes the memory is found by `to` as well, which it lives on in; both are held."""
        await self._unit.execute(NAME_TOO, source=memory, to=to)

    async def audit(self, scope: Scope, *entries: AuditEntry, now: datetime) -> None:
        """The changes are witnessed in their own transaction."""
        await self._unit.execute_many(
            AUDIT,
            [
                {
                    "id": entry.id,
                    "scope": scope.id,
                    "action": entry.action,
                    "subject_kind": entry.subject_kind,
                    "subject_id": entry.subject_id,
                    "actor": entry.actor,
                    "reason": entry.reason,
                    "content_digest": entry.content_digest,
                    "now": now,
                }
                for entry in entries
            ],
        )


def _key_digest(scope: Scope, key: str) -> bytes:
    return digest(str(scope.id), key)
