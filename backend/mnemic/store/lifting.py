"""Facts of a session move up when it ends: together, but for those that meet others there."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid5

from mnemic.errors import Retracted
from mnemic.model.fact import FactId
from mnemic.model.scope import Scope
from mnemic.store.facts import fact_of
from mnemic.store.statement import Statement
from mnemic.store.tombstones import fact_mark

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["LiftingStore"]

MOVED = "moved to the wider scope when the session ended"
REFUSED = "retracted in the wider scope"

OF_SCOPE = Statement("""
    SELECT f.* FROM mnemic.facts f
     WHERE {tenant:f} AND f.scope_id = :scope AND f.status = 'live'
     ORDER BY f.subject_key, f.predicate, f.object_key FOR UPDATE
""")

# Those that the wider scope knows already stay, and are left out of the answer. Evidence goes by
# the fact's id, and so stays with it; vectors follow when those of the whole session move.
MOVE = Statement("""
    UPDATE mnemic.facts f SET scope_id = :parent, stats_counted = false, updated_at = :now
     WHERE {tenant:f} AND f.scope_id = :scope AND f.status = 'live'
       AND f.id = ANY(CAST(:ids AS uuid[]))
       AND NOT EXISTS (SELECT FROM mnemic.facts k
                        WHERE {tenant:k} AND k.scope_id = :parent AND k.status = 'live'
                          AND k.subject_key = f.subject_key AND k.predicate = f.predicate
                          AND k.object_key = f.object_key)
    RETURNING f.id
""")


class LiftingStore:
    """Moves facts from a session to the scope above. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def facts(self, scope: Scope, *, parent: Scope, now: datetime) -> int:
        """The live facts of a session's scope stand in its parent's, by the rules of the ledger.

        A fact moves with its id. Where an equal one or a newer value stands above, its row stays
        behind as history; so does a value that the parent retracted.
        """
        rows = await self._unit.fetch(OF_SCOPE, scope=scope.id)
        marks = {
            row["id"]: fact_mark(row["subject"], row["predicate"], row["object"]) for row in rows
        }
        refused = await self._unit.tombstones.refused(parent, sorted(set(marks.values())))
        ledger = self._unit.ledger
        single = {one for one in {r["predicate"] for r in rows} if await ledger.is_single(one)}
        plain = [
            row["id"]
            for row in rows
            if row["predicate"] not in single and marks[row["id"]] not in refused
        ]
        moved = await self._unit.fetch(MOVE, scope=scope.id, parent=parent.id, ids=plain, now=now)
        done = {row["id"] for row in moved}
        for row in rows:
            if row["id"] not in done:
                await self._put(scope, row, parent=parent, now=now)
        return len(rows)

    async def _put(self, scope: Scope, row: Any, *, parent: Scope, now: datetime) -> None:
        fact = fact_of(row)
        above = FactId(uuid5(fact.id, f"lifted;{parent.id}"))
        moved = replace(fact, id=above, scope_id=parent.id)
        reason, landing = MOVED, None
        evidence = await self._unit.ledger.evidence_of(fact.id)
        try:
            landing = await self._unit.ledger.put(parent, moved, evidence, now=now, moves=fact.id)
            if landing.id == fact.id:
                return
            await self._unit.vectors.copy_fact(scope, fact.id, to=landing.id)
        except Retracted:
            reason = REFUSED
        await self._unit.facts.retire(
            scope,
            fact.id,
            status="superseded",
            reason=reason,
            superseded_by=landing.id if landing else None,
            now=now,
        )
