"""What a single-valued statement said before: each value ends where the next one begins.

Which value is live does not depend on the order in which the values come to be known, nor do the
rows of values that are told of one moment each. The live value, told again of another moment, keeps
its one row and its `valid_from`; that moment stands with its evidence, and a value between the two
ends there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.model.scope import Scope
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["FactHistory", "Successor"]

# The first moment, later than that of the value that comes, since which a value is told to be true,
# if the live one is told of such. Of one value there may be several: they stand with its evidence.
# What a session carried up is replaced by a row of another scope, and is no part of a history.
# `IS TRUE`: the value that came is looked up by its id, not among all of the scope.
SUCCESSOR = Statement("""
    SELECT f.id, m.since FROM mnemic.facts f
      LEFT JOIN mnemic.facts w
        ON {tenant:w} AND w.id = f.superseded_by AND (w.scope_id = f.scope_id) IS TRUE
     CROSS JOIN LATERAL (
       SELECT min(t.since) AS since
         FROM (SELECT coalesce(f.valid_from, f.first_learned) AS since
                UNION ALL
               SELECT v.true_since FROM mnemic.fact_evidence v
                WHERE {tenant:v} AND v.fact_id = f.id) t
        WHERE t.since > :since) m
     WHERE {tenant:f} AND f.scope_id = :scope AND f.subject_key = :subject_key
       AND f.predicate = :predicate AND m.since IS NOT NULL
       AND (f.object_key <> :object_key OR coalesce(f.valid_from, f.first_learned) > :since)
       AND (f.status = 'live' OR f.status = 'superseded' AND w.id IS NOT NULL)
       AND EXISTS (SELECT FROM mnemic.facts l
                    WHERE {tenant:l} AND l.scope_id = :scope AND l.subject_key = :subject_key
                      AND l.predicate = :predicate AND l.object_key <> :object_key
                      AND l.status = 'live'
                      AND (coalesce(l.valid_from, l.first_learned) > :since
                           OR EXISTS (SELECT FROM mnemic.fact_evidence o
                                       WHERE {tenant:o} AND o.fact_id = l.id
                                         AND o.true_since > :since)))
     ORDER BY m.since, f.id LIMIT 1
""")

KNOWN = Statement("""
    SELECT f.id, f.reinforcement_count FROM mnemic.facts f
     WHERE {tenant:f} AND f.scope_id = :scope AND f.subject_key = :subject_key
       AND f.predicate = :predicate AND f.object_key = :object_key AND f.status = 'superseded'
       AND (coalesce(f.valid_from, f.first_learned) = :since
            OR EXISTS (SELECT FROM mnemic.fact_evidence v
                        WHERE {tenant:v} AND v.fact_id = f.id AND v.true_since = :since))
     ORDER BY f.id LIMIT 1 FOR UPDATE
""")

INSERT = Statement("""
    INSERT INTO mnemic.facts (tenant_id, id, scope_id, project_id, subject, subject_key, predicate,
                              object, object_key, content, category, single_valued, confidence,
                              reinforcement_count, first_learned, last_reinforced, valid_from,
                              valid_to, metadata, tags, trust, source, recorded_at, updated_at,
                              stems, stem_count, word_count, tsv, needs_vector, status,
                              status_reason, retired_at, superseded_by)
    VALUES (:tenant, :id, :scope, :project, :subject, :subject_key, :predicate, :object,
            :object_key, :content, :category, true, :confidence, :reinforcement_count,
            :first_learned, :last_reinforced,
            CAST(:valid_from AS timestamptz),
            greatest(CAST(:valid_from AS timestamptz),
                     least(CAST(:valid_to AS timestamptz), CAST(:until AS timestamptz))),
            :metadata, :tags, :trust, :source, :now, :now, :stems, :stem_count, :word_count,
            CAST(CAST(:tsv AS text) AS tsvector), false, 'superseded',
            'a newer value of a single-valued predicate', :now, :successor)
""")

# Values that ended where the successor begins, and began before the one that came between them.
HAND_OVER = Statement("""
    UPDATE mnemic.facts f
       SET superseded_by = :id, updated_at = :now,
           valid_to = greatest(f.valid_from, least(f.valid_to, :since))
     WHERE {tenant:f} AND f.scope_id = :scope AND f.subject_key = :subject_key
       AND f.predicate = :predicate AND f.status = 'superseded' AND f.superseded_by = :successor
       AND f.id <> :id AND coalesce(f.valid_from, f.first_learned) <= :since
""")


@dataclass(frozen=True, slots=True)
class Successor:
    """The value that replaced another one, and since when it did."""

    id: UUID
    since: datetime


class FactHistory:
    """Puts values where they belong in time. Never commits; the unit does.

    `keys` are the scope and the comparison keys of subject, predicate and object. The caller holds
    the statement's turn, so that nobody else writes to the same history.
    """

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def successor(
        self, scope: Scope, keys: dict[str, Any], *, since: datetime
    ) -> Successor | None:
        """What replaced a value that is true since then; nothing if none did and it is live."""
        row = await self._unit.fetch_one(SUCCESSOR, **{**keys, "scope": scope.id}, since=since)
        return None if row is None else Successor(row["id"], row["since"])

    async def known(self, scope: Scope, keys: dict[str, Any], *, since: datetime) -> Any:
        """Id and count of this value's row in the history, told of the same moment; held."""
        return await self._unit.fetch_one(KNOWN, **{**keys, "scope": scope.id}, since=since)

    async def insert(
        self,
        scope: Scope,
        values: dict[str, Any],
        *,
        before: Successor,
        since: datetime,
        now: datetime,
    ) -> None:
        """The value stands in the history, until `before`; those before it end where it begins."""
        placed = {**values, "scope": scope.id, "successor": before.id, "now": now}
        await self._unit.execute(INSERT, **placed, until=before.since)
        await self._unit.execute(HAND_OVER, **placed, since=since)
