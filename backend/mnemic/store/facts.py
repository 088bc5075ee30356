"""Knowledge, and the ledger of evidence that its confidence follows from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.model.fact import Fact, FactId
from mnemic.model.scope import Scope
from mnemic.model.trust import Trust
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["FactStore", "fact_of"]

REINFORCEMENT = 0.1

BY_IDS = Statement("""
    SELECT f.* FROM mnemic.facts f
     WHERE {owned:f} AND f.id = ANY(CAST(:ids AS uuid[])) AND f.status = 'live'
""")

BEST = Statement("""
    SELECT f.* FROM mnemic.facts f
     WHERE {owned:f} AND f.status = 'live' AND f.archived_at IS NULL
     ORDER BY f.confidence * ln(1 + f.reinforcement_count) DESC, f.id
     LIMIT :limit
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

    async def by_ids(self, scope: Scope, ids: Sequence[UUID]) -> list[Fact]:
        """The live facts among `ids` that are visible from `scope`, in no order."""
        rows = await self._unit.fetch(BY_IDS, scopes=scope.visible_ids, ids=list(ids))
        return [fact_of(row) for row in rows]

    async def best(self, scope: Scope, *, limit: int) -> list[Fact]:
        """The most confident and most reinforced facts visible from `scope`."""
        rows = await self._unit.fetch(BEST, scopes=scope.visible_ids, limit=limit)
        return [fact_of(row) for row in rows]

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
        pinned=row["pinned"],
        trust=Trust(row["trust"]),
        source=row["source"],
        metadata=row["metadata"],
        tags=tuple(row["tags"]),
    )
