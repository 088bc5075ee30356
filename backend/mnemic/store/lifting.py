"""Facts of a session move up when it ends: together, but for those that meet others there."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid5

from mnemic.errors import Retracted
from mnemic.model.fact import FactId
from mnemic.model.scope import Scope
from mnemic.store.facts import COLUMNS, fact_of
from mnemic.store.statement import Statement
from mnemic.store.tombstones import fact_mark

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["LiftingStore"]

MOVED = "moved to the wider scope when the session ended"
REFUSED = "retracted in the wider scope"

OF_SCOPE = Statement(f"""
    SELECT {", ".join(f"f.{name}" for name in COLUMNS)} FROM mnemic.facts f
     WHERE {{tenant:f}} AND f.scope_id = :scope AND f.status = 'live'
     ORDER BY f.subject_key, f.predicate, f.object_key FOR UPDATE
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
        single = await ledger.single_among({row["predicate"] for row in rows})
        plain = [
            FactId(row["id"])
            for row in rows
            if row["predicate"] not in single and marks[row["id"]] not in refused
        ]
        moved = await ledger.move(parent, plain, now=now)
        for row in rows:
            if row["id"] not in moved:
                is_single = row["predicate"] in single
                await self._put(scope, row, parent=parent, single=is_single, now=now)
        return len(rows)

    async def _put(
        self, scope: Scope, row: Any, *, parent: Scope, single: bool, now: datetime
    ) -> None:
        fact = fact_of(row)
        above = FactId(uuid5(fact.id, f"lifted;{parent.id}"))
        moved = replace(fact, id=above, scope_id=parent.id)
        reason, landing = MOVED, None
        evidence = await self._unit.ledger.evidence_of(fact.id)
        try:
            landing = await self._unit.ledger.put(
                parent, moved, evidence, now=now, moves=fact.id, single=single
            )
            if landing.id == fact.id:
                return
            await self._unit.vectors.copy_fact(scope, fact.id, to=landing.id, now=now)
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
