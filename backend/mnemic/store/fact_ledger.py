"""The ledger of evidence: how statements become facts, and how sure they are.

Equal knowledge reinforces one row, each source once. A single-valued predicate has one live value:
the one that was told to be true since last. A retracted value is refused until it is lifted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.model.fact import Fact, FactId
from mnemic.model.normalise import comparison_key
from mnemic.model.scope import MemoryScope, Scope
from mnemic.store.columns import wording_values
from mnemic.store.fact_history import FactHistory
from mnemic.store.faults import Raced
from mnemic.store.statement import Statement
from mnemic.store.tombstones import fact_mark
from mnemic.store.wording import words_of

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["Evidence", "FactLanding", "FactLedger"]

REINFORCEMENT = 0.1

# A registered name that ends in `_` stands for a family; the longest name that fits decides.
SINGLE = Statement("""
    SELECT n.name FROM unnest(CAST(:predicates AS text[])) AS n(name)
     CROSS JOIN LATERAL (SELECT p.cardinality FROM mnemic.predicates p
                          WHERE p.name IN (n.name, split_part(n.name, '_', 1) || '_')
                          ORDER BY length(p.name) DESC LIMIT 1) AS fits
     WHERE fits.cardinality = 'single'
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
           valid_to = greatest(f.valid_from, least(f.valid_to, :at))
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
                              reinforcement_count, first_learned, last_reinforced, valid_from,
                              valid_to, metadata, tags, trust, source, recorded_at, updated_at,
                              stems, stem_count, word_count, tsv)
    VALUES (:tenant, :id, :scope, :project, :subject, :subject_key, :predicate, :object,
            :object_key, :content, :category, :single_valued, :confidence, :reinforcement_count,
            :first_learned, :last_reinforced, :valid_from, :valid_to, :metadata, :tags, :trust,
            :source, :now, :now, :stems, :stem_count, :word_count,
            CAST(CAST(:tsv AS text) AS tsvector))
    ON CONFLICT (tenant_id, scope_id, subject_key, predicate, object_key) WHERE status = 'live'
    DO NOTHING
    RETURNING id
""")

# Those that the new scope knows already stay, and are left out of the answer. Evidence goes by the
# fact's id, and so stays with it; vectors follow when those of the whole session move.
MOVE = Statement("""
    UPDATE mnemic.facts f SET scope_id = :scope, stats_counted = false, updated_at = :now
     WHERE {tenant:f} AND f.status = 'live' AND f.id = ANY(CAST(:ids AS uuid[]))
       AND NOT EXISTS (SELECT FROM mnemic.facts k
                        WHERE {tenant:k} AND k.scope_id = :scope AND k.status = 'live'
                          AND k.subject_key = f.subject_key AND k.predicate = f.predicate
                          AND k.object_key = f.object_key)
    RETURNING f.id
""")

LOCK_LIVE = Statement("""
    SELECT f.id, f.reinforcement_count FROM mnemic.facts f
     WHERE {tenant:f} AND f.scope_id = :scope AND f.subject_key = :subject_key
       AND f.predicate = :predicate AND f.object_key = :object_key AND f.status = 'live'
       FOR UPDATE
""")

ADD_EVIDENCE = Statement("""
    INSERT INTO mnemic.fact_evidence (tenant_id, fact_id, source_kind, source_id, session_id,
                                      observed_at, recorded_at, true_since)
    VALUES (:tenant, :fact, :source_kind, :source_id, :session, :observed_at, :now, :since)
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

HAS_EVIDENCE = Statement("""
    SELECT 1 FROM mnemic.fact_evidence v
     WHERE {tenant:v} AND v.fact_id = :fact
       AND CASE v.source_kind
             WHEN 'episode' THEN EXISTS (SELECT FROM mnemic.episodes e
                                          WHERE {keyed:e} AND e.id = v.source_id)
             WHEN 'turn' THEN EXISTS (SELECT FROM mnemic.turns t
                                       WHERE {keyed:t} AND t.id = v.source_id)
             ELSE true
           END
     LIMIT 1
""")

EVIDENCE_OF = Statement("""
    SELECT v.source_kind, v.source_id, v.session_id, v.observed_at, v.true_since
      FROM mnemic.fact_evidence v
     WHERE {tenant:v} AND v.fact_id = :fact ORDER BY v.observed_at, v.source_id
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why a fact is believed: one source, which counts once.

    `since` is when, as it says, a single-valued fact began to be true; without it, as the fact did.
    """

    kind: str
    source_id: UUID
    observed_at: datetime
    session_id: UUID | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactLanding:
    """Where a statement landed: a new row, or one that was known and is reinforced."""

    id: FactId
    created: bool
    version: int
    superseded: tuple[UUID, ...] = ()
    live: bool = True


class FactLedger:
    """Keeps one live row a value. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def put(
        self,
        scope: Scope,
        fact: Fact,
        evidence: Sequence[Evidence],
        *,
        now: datetime,
        lift: bool = False,
        moves: FactId | None = None,
        single: bool | None = None,
    ) -> FactLanding:
        """The statement stands in `scope`, with its evidence in the ledger.

        Equal knowledge reinforces: each source counts once. Of a single-valued predicate the value
        that was told to be true since last is live, in whichever order they come, and of several
        since one moment the one told last; the others are its history.
        The live row `moves` of another scope becomes the row of this one, unless an equal one or a
        newer value stands here. Who knows whether the predicate is `single` says so. Raises
        `Retracted` if the value was retracted in `scope` or above it, unless `lift`.
        """
        mark = fact_mark(fact.subject, fact.predicate, fact.object)
        await self._unit.tombstones.respect(scope, mark, now=now, lift=lift)
        keys = _keys(scope, fact)
        if single is None:
            single = await self.is_single(fact.predicate)
        closed: tuple[UUID, ...] = ()
        if single:
            await self._unit.fetch(WAIT_FOR_TURN, **keys)
            evidence = [replace(one, since=one.since or _true_since(fact)) for one in evidence]
            since = max([_true_since(fact), *(one.since for one in evidence if one.since)])
            before = await self._known_before(scope, fact, evidence, keys, since, now)
            if before is not None:
                return before
            rows = await self._unit.fetch(CLOSE_OTHERS, **keys, now=now, at=since)
            closed = tuple(row["id"] for row in rows)
        if moves is not None:
            added = moves if await self.move(scope, [moves], now=now) else None
        else:
            values = _values(scope, fact)
            row = await self._unit.fetch_one(ADD, **keys, **values, single_valued=single, now=now)
            added = FactId(row["id"]) if row is not None else None
        if added is None:
            return await self._reinforce(keys, evidence, now)
        await self._add_evidence(added, evidence, now)
        if closed:
            await self._unit.execute(LINK_CLOSED, id=added, closed=list(closed))
            await self._unit.vectors.drop("fact", closed, now=now)
        return FactLanding(id=added, created=True, version=1, superseded=closed)

    async def move(self, scope: Scope, facts: Collection[FactId], *, now: datetime) -> set[FactId]:
        """The live rows stand in `scope`, but for those whose equals stood there already.

        Those that moved. The caller holds the rows, wherever they stood.
        """
        rows = await self._unit.fetch(MOVE, scope=scope.id, ids=list(facts), now=now)
        return {FactId(row["id"]) for row in rows}

    async def put_all(
        self,
        scope: Scope,
        facts: Sequence[Fact],
        evidence: Sequence[Evidence],
        *,
        now: datetime,
        lift: bool = False,
    ) -> list[FactLanding]:
        """As `put`, for each of the facts; the landings stand in their order.

        They are written in one order for every caller, so that two that write the same do not stop
        each other. Values of a single-valued predicate keep theirs, for the last one counts.
        """
        single = await self.single_among({fact.predicate for fact in facts})

        def order(place: int) -> tuple[str, str, str]:
            fact = facts[place]
            value = "" if fact.predicate in single else comparison_key(fact.object)
            return comparison_key(fact.subject), fact.predicate, value

        landed: dict[int, FactLanding] = {}
        for place in sorted(range(len(facts)), key=order):
            fact = facts[place]
            landed[place] = await self.put(
                scope, fact, evidence, now=now, lift=lift, single=fact.predicate in single
            )
        return [landed[place] for place in range(len(facts))]

    async def is_single(self, predicate: str) -> bool:
        """Whether the predicate holds one value at a time; no scope, since it is nobody's."""
        return predicate in await self.single_among([predicate])

    async def single_among(self, predicates: Collection[str]) -> set[str]:
        """Those of the predicates that hold one value at a time, asked in one statement."""
        rows = await self._unit.fetch(SINGLE, predicates=list(predicates))
        return {row["name"] for row in rows}

    async def has_live_evidence(self, scope: Scope, fact: UUID) -> bool:
        """Whether a source of the fact, whose row is held, is there to be seen from `scope`.

        Calls always are. What stands elsewhere counts as gone: a caller names the episodes that
        facts come from, and must not learn whether another scope has one of that id.
        """
        row = await self._unit.fetch_one(HAS_EVIDENCE, scopes=scope.visible_ids, fact=fact)
        return row is not None

    async def _known_before(
        self,
        scope: Scope,
        fact: Fact,
        evidence: Sequence[Evidence],
        keys: dict[str, Any],
        since: datetime,
        now: datetime,
    ) -> FactLanding | None:
        """Where a value landed that a later one has replaced already; nothing if none has."""
        history = FactHistory(self._unit)
        newer = await history.successor(scope, keys, since=since)
        if newer is None:
            return None
        known = await history.known(scope, keys, since=since)
        if known is not None:
            return await self._again(known, evidence, now, live=False)
        values = {**keys, **_values(scope, fact)}
        await history.insert(scope, values, before=newer, since=since, now=now)
        await self._add_evidence(fact.id, evidence, now)
        return FactLanding(id=fact.id, created=True, version=1, live=False)

    async def _reinforce(
        self, keys: dict[str, Any], evidence: Sequence[Evidence], now: datetime
    ) -> FactLanding:
        known = await self._unit.fetch_one(LOCK_LIVE, **keys)
        if known is None:
            # The winner of the race was retired meanwhile.
            raise Raced
        return await self._again(known, evidence, now, live=True)

    async def _again(
        self, known: Any, evidence: Sequence[Evidence], now: datetime, *, live: bool
    ) -> FactLanding:
        """Where a value landed whose row is known, and held: there, surer by what is new."""
        version = await self.reinforce(known["id"], evidence, now=now)
        version = version or known["reinforcement_count"]
        return FactLanding(id=FactId(known["id"]), created=False, version=version, live=live)

    async def reinforce(self, fact: UUID, evidence: Sequence[Evidence], *, now: datetime) -> int:
        """The fact is surer by each source that did not count yet; zero if none was new."""
        version = 0
        for one in evidence:
            if await self._unit.execute(ADD_EVIDENCE, **_source(fact, one, now)):
                row = await self._unit.fetch_one(
                    REINFORCE,
                    id=fact,
                    step=REINFORCEMENT,
                    observed_at=one.observed_at,
                    now=now,
                )
                version = row["reinforcement_count"] if row else version
        return version

    async def _add_evidence(self, fact: UUID, evidence: Sequence[Evidence], now: datetime) -> None:
        await self._unit.execute_many(ADD_EVIDENCE, [_source(fact, one, now) for one in evidence])

    async def evidence_of(self, fact: UUID) -> list[Evidence]:
        """The sources of a fact, oldest first. No scope: the caller holds the fact's own row."""
        rows = await self._unit.fetch(EVIDENCE_OF, fact=fact)
        return [
            Evidence(
                kind=row["source_kind"],
                source_id=row["source_id"],
                observed_at=row["observed_at"],
                session_id=row["session_id"],
                since=row["true_since"],
            )
            for row in rows
        ]


def _source(fact: UUID, evidence: Evidence, now: datetime) -> dict[str, object]:
    return {
        "fact": fact,
        "source_kind": evidence.kind,
        "source_id": evidence.source_id,
        "session": evidence.session_id,
        "observed_at": evidence.observed_at,
        "since": evidence.since,
        "now": now,
    }


def _true_since(fact: Fact) -> datetime:
    return fact.valid_from or fact.first_learned


def _keys(scope: Scope, fact: Fact) -> dict[str, Any]:
    return {
        "scope": scope.id,
        "subject_key": comparison_key(fact.subject),
        "predicate": fact.predicate,
        "object_key": comparison_key(fact.object),
    }


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
        "reinforcement_count": fact.reinforcement_count,
        "first_learned": fact.first_learned,
        "last_reinforced": fact.last_reinforced,
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "metadata": fact.metadata,
        "tags": list(fact.tags),
        "trust": int(fact.trust),
        "source": fact.source,
        **wording_values(words_of(fact.content)),
    }
