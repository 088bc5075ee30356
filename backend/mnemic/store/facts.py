"""Knowledge, and the ledger of evidence that its confidence follows from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.model.fact import Fact, FactId
from mnemic.model.normalise import comparison_key
from mnemic.model.scope import Scope
from mnemic.model.trust import Trust
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["FactStore", "fact_of"]

# What a fact is made of: its words are as long as itself, and nobody asks for them.
COLUMNS = (
    *("id", "scope_id", "subject", "predicate", "object", "content", "category"),
    *("confidence", "reinforcement_count", "first_learned", "last_reinforced"),
    *("valid_from", "valid_to", "recorded_at", "retired_at", "status", "status_reason"),
    *("pinned", "verified_at", "verification", "trust", "source", "metadata", "tags"),
)
_COLUMNS = ", ".join(f"f.{name}" for name in COLUMNS)

BY_IDS = Statement(f"""
    SELECT {_COLUMNS} FROM mnemic.facts f
     WHERE {{keyed:f}} AND f.id = ANY(CAST(:ids AS uuid[]))
       AND (f.status = 'live' OR NOT CAST(:live_only AS boolean))
""")

BEST = Statement(f"""
    SELECT {_COLUMNS} FROM mnemic.facts f
     WHERE {{owned:f}} AND f.status = 'live' AND f.archived_at IS NULL
     ORDER BY f.confidence * ln(1 + f.reinforcement_count) DESC, f.id
     LIMIT :limit
""")

BY_ENTITY = Statement(f"""
    SELECT {_COLUMNS} FROM mnemic.facts f
     WHERE {{owned:f}} AND f.status = 'live' AND f.archived_at IS NULL
       AND (f.subject_key = ANY(CAST(:names AS text[]))
            OR f.object_key = ANY(CAST(:names AS text[])))
     ORDER BY f.confidence DESC, f.last_reinforced DESC, f.id
     LIMIT :limit
""")

OF_KIND = Statement(f"""
    SELECT {_COLUMNS} FROM mnemic.facts f
     WHERE {{owned:f}} AND f.status = 'live' AND f.archived_at IS NULL AND f.trust <= :trust
       AND (f.category = ANY(CAST(:categories AS text[]))
            OR f.predicate = ANY(CAST(:predicates AS text[])))
     ORDER BY f.confidence DESC, f.id
     LIMIT :limit
""")

# Live values of the same subject and predicate, wherever they are seen from.
RIVALS = Statement(f"""
    SELECT {_COLUMNS} FROM mnemic.facts f
     WHERE {{owned:f}} AND f.subject_key = :subject_key AND f.predicate = :predicate
       AND f.status = 'live' AND f.id <> :id
     ORDER BY f.trust, coalesce(f.valid_from, f.first_learned) DESC, f.confidence DESC, f.id
     LIMIT :limit
""")

LOCK = Statement(f"""
    SELECT {_COLUMNS} FROM mnemic.facts f
     WHERE {{keyed:f}} AND f.id = ANY(CAST(:ids AS uuid[])) ORDER BY f.id FOR UPDATE
""")

SET_VERIFICATION = Statement("""
    UPDATE mnemic.facts f SET verified_at = :now, verification = :verification, updated_at = :now
     WHERE {tenant:f} AND f.id = :id
""")

RETIRE = Statement("""
    UPDATE mnemic.facts f
       SET status = :status, status_reason = :reason, retired_at = :now, updated_at = :now,
           superseded_by = :superseded_by
     WHERE {tenant:f} AND f.scope_id = :scope AND f.id = :id AND f.status = 'live'
""")


class FactStore:
    """Finds facts and retires them. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def by_ids(
        self, scope: Scope, ids: Sequence[UUID], *, live_only: bool = True
    ) -> list[Fact]:
        """The facts among `ids` that are visible from `scope`, in no order."""
        rows = await self._unit.fetch(
            BY_IDS, scopes=scope.visible_ids, ids=list(ids), live_only=live_only
        )
        return [fact_of(row) for row in rows]

    async def best(self, scope: Scope, *, limit: int) -> list[Fact]:
        """The most confident and most reinforced facts visible from `scope`."""
        rows = await self._unit.fetch(BEST, scopes=scope.visible_ids, limit=limit)
        return [fact_of(row) for row in rows]

    async def by_entity(self, scope: Scope, names: Sequence[str], *, limit: int) -> list[Fact]:
        """Live facts whose subject or object is one of `names` (comparison keys), surest first."""
        rows = await self._unit.fetch(
            BY_ENTITY, scopes=scope.visible_ids, names=list(names), limit=limit
        )
        return [fact_of(row) for row in rows]

    async def of_kind(
        self,
        scope: Scope,
        *,
        categories: Sequence[str],
        predicates: Sequence[str],
        trust: Trust,
        limit: int,
    ) -> list[Fact]:
        """Live facts of these categories or predicates, at least so trusted; the surest first."""
        rows = await self._unit.fetch(
            OF_KIND,
            scopes=scope.visible_ids,
            categories=list(categories),
            predicates=list(predicates),
            trust=int(trust),
            limit=limit,
        )
        return [fact_of(row) for row in rows]

    async def rivals(self, scope: Scope, fact: Fact, *, limit: int) -> list[Fact]:
        """Other live values of the fact's subject and predicate, seen from `scope`.

        The most trusted first, then those that became true last, then the surest.
        """
        rows = await self._unit.fetch(
            RIVALS,
            scopes=scope.visible_ids,
            subject_key=comparison_key(fact.subject),
            predicate=fact.predicate,
            id=fact.id,
            limit=limit,
        )
        return [fact_of(row) for row in rows]

    async def lock(self, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, Fact]:
        """The facts among `ids` that are visible from `scope`, live or not, held for the unit."""
        rows = await self._unit.fetch(LOCK, scopes=scope.visible_ids, ids=list(ids))
        return {row["id"]: fact_of(row) for row in rows}

    async def set_verification(self, fact: Fact, verification: str, *, now: datetime) -> None:
        """What was found when the fact, whose row is held, was checked against its evidence."""
        await self._unit.execute(SET_VERIFICATION, id=fact.id, verification=verification, now=now)

    async def retire(
        self,
        scope: Scope,
        identity: UUID,
        *,
        status: str,
        reason: str,
        now: datetime,
        superseded_by: UUID | None = None,
    ) -> bool:
        """The live fact of exactly this scope is retired; false if there was none."""
        landed = await self._unit.execute(
            RETIRE,
            scope=scope.id,
            id=identity,
            status=status,
            reason=reason,
            superseded_by=superseded_by,
            now=now,
        )
        await self._unit.vectors.drop("fact", [identity] if landed else [], now=now)
        return landed == 1


def fact_of(row: Any) -> Fact:
    """The value of a row of `facts`."""
    return Fact(
        id=FactId(row["id"]),
        scope_id=row["scope_id"],
        subject=row["subject"],
        predicate=row["predicate"],
        object=row["object"],
        content=row["content"],
        category=row["category"],
        confidence=row["confidence"],
        reinforcement_count=row["reinforcement_count"],
        first_learned=row["first_learned"],
        last_reinforced=row["last_reinforced"],
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
        recorded_at=row["recorded_at"],
        retired_at=row["retired_at"],
        status=row["status"],
        status_reason=row["status_reason"],
        pinned=row["pinned"],
        verified_at=row["verified_at"],
        verification=row["verification"],
        trust=Trust(row["trust"]),
        source=row["source"],
        metadata=row["metadata"],
        tags=tuple(row["tags"]),
    )
