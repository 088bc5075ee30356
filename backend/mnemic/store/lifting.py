"""Facts of a session move up when it ends: together, but for those that meet others there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from mnemic.errors import Retracted
from mnemic.model.fact import FactId
from mnemic.model.scope import MemoryScope, Scope
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

# Those that the wider scope knows already are left out of the answer.
COPY = Statement("""
    INSERT INTO mnemic.facts (tenant_id, id, scope_id, project_id, subject, subject_key, predicate,
                              object, object_key, content, category, single_valued, confidence,
                              reinforcement_count, first_learned, last_reinforced, valid_from,
                              valid_to, metadata, tags, trust, source, recorded_at, updated_at,
                              stems, stem_count, word_count, tsv)
    SELECT f.tenant_id, w.made, :parent, :project, f.subject, f.subject_key, f.predicate, f.object,
           f.object_key, f.content, f.category, f.single_valued, f.confidence,
           f.reinforcement_count, f.first_learned, f.last_reinforced, f.valid_from, f.valid_to,
           f.metadata, f.tags, f.trust, f.source, :now, :now, f.stems, f.stem_count, f.word_count,
           f.tsv
      FROM unnest(CAST(:ids AS uuid[]), CAST(:made AS uuid[])) AS w(id, made)
      JOIN mnemic.facts f ON {tenant:f} AND f.scope_id = :scope AND f.id = w.id
     ORDER BY f.subject_key, f.predicate, f.object_key
    ON CONFLICT (tenant_id, scope_id, subject_key, predicate, object_key) WHERE status = 'live'
    DO NOTHING
    RETURNING id
""")

COPY_EVIDENCE = Statement("""
    INSERT INTO mnemic.fact_evidence (tenant_id, fact_id, source_kind, source_id, session_id,
                                      quality, observed_at, recorded_at)
    SELECT v.tenant_id, w.made, v.source_kind, v.source_id, v.session_id, v.quality, v.observed_at,
           :now
      FROM unnest(CAST(:ids AS uuid[]), CAST(:made AS uuid[])) AS w(id, made)
      JOIN mnemic.fact_evidence v ON {tenant:v} AND v.fact_id = w.id
""")

# The text is the same, so its vector is too.
COPY_VECTORS = Statement("""
    WITH made AS (
      INSERT INTO mnemic.fact_vectors (tenant_id, model_id, scope_id, memory_id, embedding)
      SELECT v.tenant_id, v.model_id, :parent, w.made, v.embedding
        FROM unnest(CAST(:ids AS uuid[]), CAST(:made AS uuid[])) AS w(id, made)
        JOIN mnemic.fact_vectors v ON {tenant:v} AND v.memory_id = w.id
      RETURNING memory_id
    )
    UPDATE mnemic.facts m SET needs_vector = false
     WHERE {tenant:m} AND m.id IN (SELECT made.memory_id FROM made)
""")

RETIRE = Statement("""
    UPDATE mnemic.facts f
       SET status = 'superseded', status_reason = :reason, retired_at = :now, updated_at = :now,
           superseded_by = w.made
      FROM unnest(CAST(:ids AS uuid[]), CAST(:made AS uuid[])) AS w(id, made)
     WHERE {tenant:f} AND f.scope_id = :scope AND f.id = w.id
""")


class LiftingStore:
    """Moves facts from a session to the scope above. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def facts(self, scope: Scope, *, parent: Scope, now: datetime) -> int:
        """The live facts of a session's scope stand in its parent's, by the rules of the ledger.

        They get new rows there, derived from the old ones, so that history keeps both. A value
        that the parent retracted stays behind.
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
        copied = await self._copy(scope, plain, parent=parent, now=now)
        for row in rows:
            if row["id"] not in copied:
                await self._put(scope, row, parent=parent, now=now)
        return len(rows)

    async def _copy(
        self, scope: Scope, ids: Sequence[UUID], *, parent: Scope, now: datetime
    ) -> set[UUID]:
        """Which of the facts are new to the parent's scope: they stand there now."""
        made = {_lifted(one, parent): one for one in ids}
        project = parent.ancestor(MemoryScope.PROJECT)
        rows = await self._unit.fetch(
            COPY,
            scope=scope.id,
            parent=parent.id,
            project=project.id if project else None,
            ids=list(made.values()),
            made=list(made),
            now=now,
        )
        pairs = {"made": [row["id"] for row in rows], "ids": [made[row["id"]] for row in rows]}
        await self._unit.execute(COPY_EVIDENCE, **pairs, now=now)
        await self._unit.execute(COPY_VECTORS, **pairs, parent=parent.id)
        await self._unit.execute(RETIRE, **pairs, scope=scope.id, reason=MOVED, now=now)
        await self._unit.vectors.drop("fact", pairs["ids"])
        return set(pairs["ids"])

    async def _put(self, scope: Scope, row: Any, *, parent: Scope, now: datetime) -> None:
        fact = fact_of(row)
        moved = replace(fact, id=FactId(_lifted(fact.id, parent)), scope_id=parent.id)
        reason, landing = MOVED, None
        evidence = await self._unit.ledger.evidence_of(fact.id)
        try:
            landing = await self._unit.ledger.put(parent, moved, evidence, now=now)
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


def _lifted(fact: UUID, parent: Scope) -> UUID:
    return uuid5(fact, f"lifted;{parent.id}")
