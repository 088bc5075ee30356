"""What was made of a memory: the episode of its session, and the facts that rest on it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from mnemic.model.episode import Episode
from mnemic.model.scope import Scope
from mnemic.store.episodes import COLUMNS, episode_of
from mnemic.store.fact_ledger import REINFORCEMENT
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["LineageStore", "RestingFact"]

# Whoever ends the session, or forgets another turn of it, waits; ending locks in this order too.
HOLD_SESSIONS = Statement("""
    SELECT s.id FROM mnemic.sessions s
     WHERE {tenant:s}
       AND s.id IN (SELECT t.session_id FROM mnemic.turns t
                     WHERE {keyed:t} AND t.id = ANY(CAST(:turns AS uuid[])))
     ORDER BY s.id FOR UPDATE
""")

# A session and its turns move up together, so the episode stands where its turns stand.
EPISODES_OF_TURNS = Statement(f"""
    SELECT {", ".join(f"e.{name}" for name in COLUMNS)} FROM mnemic.episodes e
     WHERE {{keyed:e}} AND e.source = 'session_end'
       AND e.session_id IN (SELECT t.session_id FROM mnemic.turns t
                             WHERE {{keyed:t}} AND t.id = ANY(CAST(:turns AS uuid[])))
     ORDER BY e.id FOR UPDATE
""")

# A source stands in one scope, what was made of it perhaps in narrower ones: it goes all the same.
RESTING = Statement("""
    SELECT f.id, f.scope_id, f.subject_key, f.predicate, f.object_key, v.source_id,
           EXISTS (SELECT FROM mnemic.fact_evidence o
                    WHERE {tenant:o} AND o.fact_id = f.id
                      AND NOT (o.source_kind = v.source_kind
                               AND o.source_id = ANY(CAST(:sources AS uuid[])))) AS has_others
      FROM mnemic.fact_evidence v
      JOIN mnemic.facts f ON {tenant:f} AND f.id = v.fact_id
     WHERE {tenant:v} AND v.source_kind = :kind AND v.source_id = ANY(CAST(:sources AS uuid[]))
     ORDER BY f.id FOR UPDATE OF f
""")

# The confidence that each source added is taken back with it.
WITHDRAW = Statement("""
    WITH withdrawn AS (
      DELETE FROM mnemic.fact_evidence v
       WHERE {tenant:v} AND v.fact_id = ANY(CAST(:facts AS uuid[])) AND v.source_kind = :kind
         AND v.source_id = ANY(CAST(:sources AS uuid[]))
      RETURNING v.fact_id
    ), lost AS (SELECT w.fact_id, count(*) AS sources FROM withdrawn w GROUP BY w.fact_id)
    UPDATE mnemic.facts f
       SET reinforcement_count = greatest(1, f.reinforcement_count - l.sources),
           confidence = greatest(0.0, f.confidence - CAST(:step AS float8) * l.sources),
           updated_at = :now
      FROM lost l
     WHERE {tenant:f} AND f.id = l.fact_id
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestingFact:
    """A fact that a source speaks for; `has_others` tells whether any other does as well."""

    id: UUID
    scope_id: UUID
    source_id: UUID
    key: tuple[str, str, str]
    has_others: bool


class LineageStore:
    """Follows what was made of a memory. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def hold_sessions(self, scope: Scope, turns: Collection[UUID]) -> list[UUID]:
        """The sessions of those among the ids that are turns change for nobody else meanwhile."""
        rows = await self._unit.fetch(HOLD_SESSIONS, scopes=scope.visible_ids, turns=list(turns))
        return [row["id"] for row in rows]

    async def episodes_of_turns(self, scope: Scope, turns: Collection[UUID]) -> list[Episode]:
        """The episodes that sessions with these turns became; locked until the unit ends."""
        rows = await self._unit.fetch(
            EPISODES_OF_TURNS, scopes=scope.visible_ids, turns=list(turns)
        )
        return [episode_of(row) for row in rows]

    async def resting_on(self, kind: str, sources: Sequence[UUID]) -> list[RestingFact]:
        """The facts for which these sources speak, wherever in the tenant; locked.

        One of the store methods without a scope: a source that is gone speaks for none of them.
        """
        rows = await self._unit.fetch(RESTING, kind=kind, sources=list(sources))
        return [
            RestingFact(
                id=row["id"],
                scope_id=row["scope_id"],
                source_id=row["source_id"],
                key=(row["subject_key"], row["predicate"], row["object_key"]),
                has_others=row["has_others"],
            )
            for row in rows
        ]

    async def withdraw(
        self, kind: str, sources: Sequence[UUID], facts: Sequence[UUID], *, now: datetime
    ) -> None:
        """The sources do not speak for these facts any more, whose rows are held."""
        await self._unit.execute(
            WITHDRAW,
            kind=kind,
            sources=list(sources),
            facts=list(facts),
            step=REINFORCEMENT,
            now=now,
        )
