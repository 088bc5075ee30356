"""Knowledge, and the ledger of evidence that its confidence follows from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from mnemic.errors import Conflict
from mnemic.model.fact import Fact, FactId
from mnemic.model.normalise import comparison_key
from mnemic.model.scope import MemoryScope, Scope
from mnemic.model.trust import Trust
from mnemic.store.columns import wording_values
from mnemic.store.statement import Statement
from mnemic.store.wording import words_of

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["Evidence", "FactLanding", "FactStore"]

REINFORCEMENT = 0.1

# A registered name that ends in `_` stands for a family; the longest name that fits decides.
IS_SINGLE = Statement("""
    SELECT p.cardinality FROM mnemic.predicates p
     WHERE p.name IN (CAST(:predicate AS text), split_part(CAST(:predicate AS text), '_', 1) || '_')
     ORDER BY length(p.name) DESC LIMIT 1
""")

# Writers of one single-valued statement wait for each other here, instead of losing the race for
# its unique row one by one.
WAIT_FOR_TURN = Statement("""
    SELECT pg_advisory_xact_lock(hashtextextended(
      concat_ws(chr(31), CAST(:tenant AS uuid), CAST(:scope AS uuid), CAST(:subject_key AS text),
                CAST(:predicate AS text)), 0))
""")

CLOSE_OTHERS = Statement("""
    UPDATE mnemic.facts f
       SET status = 'superseded', retired_at = :now, updated_at = :now,
           status_reason = 'a newer value of a single-valued predicate',
           valid_to = greatest(f.valid_from, coalesce(f.valid_to, :at))
     WHERE {tenant:f} AND f.scope_id = :scope AND f.subject_key = :subject_key
       AND f.predicate = :predicate AND f.object_key <> :object_key AND f.status = 'live'
    RETURNING f.id
""")

LINK_CLOSED = Statement("""
    UPDATE mnemic.facts f SET superseded_by = :id
     WHERE {tenant:f} AND f.id = ANY(CAST(:closed AS uuid[]))
""")

ADD = Statement("""
    INSERT INTO mnemic.facts (tenant_id, id, scope_id, project_id, subject, subject_key, predicate,
                              object, object_key, content, category, single_valued, confidence,
                              first_learned, last_reinforced, valid_from, valid_to, metadata, tags,
                              trust, source, recorded_at, updated_at, stems, stem_count, word_count,
                              tsv)
    VALUES (:tenant, :id, :scope, :project, :subject, :subject_key, :predicate, :object,
            :object_key, :content, :category, :single_valued, :confidence, :first_learned,
            :first_learned, :valid_from, :valid_to, :metadata, :tags, :trust, :source, :now, :now,
            :stems, :stem_count, :word_count, CAST(CAST(:tsv AS text) AS tsvector))
    ON CONFLICT (tenant_id, scope_id, subject_key, predicate, object_key) WHERE status = 'live'
    DO NOTHING
    RETURNING id
""")

LOCK_LIVE = Statement("""
    SELECT f.id, f.reinforcement_count FROM mnemic.facts f
     WHERE {tenant:f} AND f.scope_id = :scope AND f.subject_key = :subject_key
       AND f.predicate = :predicate AND f.object_key = :object_key AND f.status = 'live'
       FOR UPDATE
""")

ADD_EVIDENCE = Statement("""
    INSERT INTO mnemic.fact_evidence (tenant_id, fact_id, source_kind, source_id, session_id,
                                      observed_at, recorded_at)
    VALUES (:tenant, :fact, :source_kind, :source_id, :session, :observed_at, :now)
    ON CONFLICT (tenant_id, fact_id, source_kind, source_id) DO NOTHING
""")

REINFORCE = Statement("""
    UPDATE mnemic.facts f
       SET confidence = least(1.0, f.confidence + :step), updated_at = :now,
           reinforcement_count = f.reinforcement_count + 1,
           last_reinforced = greatest(f.last_reinforced, :observed_at)
     WHERE {tenant:f} AND f.id = :id
    RETURNING f.reinforcement_count
""")

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

OF_SCOPE = Statement("""
    SELECT f.* FROM mnemic.facts f
     WHERE {tenant:f} AND f.scope_id = :scope AND f.status = 'live' ORDER BY f.recorded_at, f.id
       FOR UPDATE
""")

EVIDENCE_OF = Statement("""
    SELECT v.source_kind, v.source_id, v.session_id, v.observed_at FROM mnemic.fact_evidence v
     WHERE {tenant:v} AND v.fact_id = :fact ORDER BY v.observed_at, v.source_id
""")

RETIRE = Statement("""
    UPDATE mnemic.facts f
       SET status = :status, status_reason = :reason, retired_at = :now, updated_at = :now,
           superseded_by = :superseded_by
     WHERE {tenant:f} AND f.scope_id = :scope AND f.id = :id AND f.status = 'live'
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why a fact is believed: one source, which counts once."""

    kind: str
    source_id: UUID
    observed_at: datetime
    session_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactLanding:
    """Where a statement landed: a new row, or one that was known and is reinforced."""

    id: FactId
    created: bool
    version: int
    superseded: tuple[UUID, ...] = ()


class FactStore:
    """Keeps one live row a value. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def put(
        self, scope: Scope, fact: Fact, evidence: Sequence[Evidence], *, now: datetime
    ) -> FactLanding:
        """The statement is live in `scope`, with its evidence in the ledger.

        Equal knowledge reinforces: each source counts once. A new value of a single-valued
        predicate closes the old one in the same transaction.
        """
        keys = {
            "scope": scope.id,
            "subject_key": comparison_key(fact.subject),
            "predicate": fact.predicate,
            "object_key": comparison_key(fact.object),
        }
        registered = await self._unit.fetch_one(IS_SINGLE, predicate=fact.predicate)
        single = registered is not None and registered["cardinality"] == "single"
        at = fact.valid_from or fact.first_learned
        closed = []
        if single:
            await self._unit.fetch(WAIT_FOR_TURN, **keys)
            closed = await self._unit.fetch(CLOSE_OTHERS, now=now, at=at, **keys)
        added = await self._unit.fetch_one(
            ADD, **keys, **_values(scope, fact), single_valued=single, now=now
        )
        if added is not None:
            await self._add_evidence(fact.id, evidence, now)
            superseded = tuple(row["id"] for row in closed)
            if superseded:
                await self._unit.execute(LINK_CLOSED, id=fact.id, closed=list(superseded))
            return FactLanding(id=fact.id, created=True, version=1, superseded=superseded)
        return await self._reinforce(keys, evidence, now)

    async def _reinforce(
        self, keys: dict[str, Any], evidence: Sequence[Evidence], now: datetime
    ) -> FactLanding:
        known = await self._unit.fetch_one(LOCK_LIVE, **keys)
        if known is None:
            # The winner of the race was retired meanwhile.
            raise Conflict("The fact changed at the same moment; retry.")
        version: int = known["reinforcement_count"]
        for one in evidence:
            if await self._add_evidence(known["id"], [one], now):
                row = await self._unit.fetch_one(
                    REINFORCE,
                    id=known["id"],
                    step=REINFORCEMENT,
                    observed_at=one.observed_at,
                    now=now,
                )
                version = row["reinforcement_count"] if row else version
        return FactLanding(id=FactId(known["id"]), created=False, version=version)

    async def _add_evidence(self, fact: UUID, evidence: Sequence[Evidence], now: datetime) -> int:
        added = 0
        for one in evidence:
            added += await self._unit.execute(
                ADD_EVIDENCE,
                fact=fact,
                source_kind=one.kind,
                source_id=one.source_id,
                session=one.session_id,
                observed_at=one.observed_at,
                now=now,
            )
        return added

    async def by_ids(self, scope: Scope, ids: Sequence[UUID]) -> list[Fact]:
        """The live facts among `ids` that are visible from `scope`, in no order."""
        rows = await self._unit.fetch(BY_IDS, scopes=scope.visible_ids, ids=list(ids))
        return [fact_of(row) for row in rows]

    async def best(self, scope: Scope, *, limit: int) -> list[Fact]:
        """The most confident and most reinforced facts visible from `scope`."""
        rows = await self._unit.fetch(BEST, scopes=scope.visible_ids, limit=limit)
        return [fact_of(row) for row in rows]

    async def lift(self, scope: Scope, *, parent: Scope, now: datetime) -> int:
        """The live facts of a session's scope are live in its parent's, by the rules of `put`.

        They get new rows there, derived from the old ones, so that history keeps both.
        """
        rows = await self._unit.fetch(OF_SCOPE, scope=scope.id)
        for row in rows:
            ledger = await self._unit.fetch(EVIDENCE_OF, fact=row["id"])
            evidence = [
                Evidence(
                    kind=one["source_kind"],
                    source_id=one["source_id"],
                    observed_at=one["observed_at"],
                    session_id=one["session_id"],
                )
                for one in ledger
            ]
            landing = await self.put(parent, _lifted(fact_of(row), parent), evidence, now=now)
            await self.retire(
                scope,
                row["id"],
                status="superseded",
                reason="moved to the wider scope when the session ended",
                superseded_by=landing.id,
                now=now,
            )
        return len(rows)

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


def _lifted(fact: Fact, parent: Scope) -> Fact:
    return replace(fact, id=FactId(uuid5(fact.id, f"lifted;{parent.id}")), scope_id=parent.id)


def _values(scope: Scope, fact: Fact) -> dict[str, object]:
    project = scope.ancestor(MemoryScope.PROJECT)
    return {
        "id": fact.id,
        "project": project.id if project else None,
        "subject": fact.subject,
        "object": fact.object,
        "content": fact.content,
        "category": fact.category,
        "confidence": fact.confidence,
        "first_learned": fact.first_learned,
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "metadata": fact.metadata,
        "tags": list(fact.tags),
        "trust": int(fact.trust),
        "source": fact.source,
        **wording_values(words_of(fact.content)),
    }


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
