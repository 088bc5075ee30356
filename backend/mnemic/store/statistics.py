"""Document frequencies of the visible scopes, exact although they are kept beside the writers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.model.ranking_values import Corpus
from mnemic.model.scope import Scope
from mnemic.store.statement import Statement, statement_file

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["PENDING_MAX", "ScopeStatistics", "StatisticsStore"]

PENDING_MAX = 512
ACTORS_MAX = 200
THINGS_MAX = 20
_BETWEEN_NAMES = "\x1f"

READ = statement_file("statistics")
ABSORB = statement_file("absorb")

ALONE = Statement("""
    SELECT pg_try_advisory_xact_lock(hashtextextended('mnemic.count_terms', 0)
             # hashtextextended(CAST(CAST(:tenant AS uuid) AS text), 0)) AS alone
""")

DROP_SCOPE = Statement("DELETE FROM mnemic.term_stats s WHERE {tenant:s} AND s.scope_id = :scope")

# What stays behind in the scope counts there as everything does where it stands.
COUNT_ANEW = {
    noun: Statement(f"""
        UPDATE mnemic.{noun}s m SET stats_counted = false
         WHERE {{tenant:m}} AND m.scope_id = :scope AND m.stats_counted
    """)
    for noun in ("episode", "fact", "procedure")
}

DROP_UNUSED = Statement("""
    DELETE FROM mnemic.term_stats s
     USING unnest(CAST(:kinds AS text[]), CAST(:terms AS text[])) AS u(kind, term)
     WHERE {tenant:s} AND s.scope_id = :scope AND s.kind = u.kind AND s.term = u.term
       AND s.documents <= 0
""")

# What a memory said is taken out of the counts before it says something else.
_UNCOUNT = """
    WITH memory AS (
      UPDATE mnemic.__noun__s m SET stats_counted = false
       WHERE {tenant:m} AND m.id = :id AND m.stats_counted
      RETURNING m.scope_id, m.stems, m.stem_count
    ), counts AS (
      SELECT m.scope_id, 'term' AS kind, w.stem AS term, count(*) AS occurrences
        FROM memory m, LATERAL unnest(string_to_array(m.stems, ' ')) AS w(stem)
       WHERE w.stem <> '' GROUP BY m.scope_id, w.stem
      UNION ALL
      SELECT m.scope_id, 'total', '', m.stem_count FROM memory m
    )
    UPDATE mnemic.term_stats s
       SET documents = greatest(0, s.documents - 1),
           occurrences = greatest(0, s.occurrences - c.occurrences)
      FROM counts c
     WHERE {tenant:s} AND s.scope_id = c.scope_id AND s.kind = c.kind AND s.term = c.term
    RETURNING s.scope_id, s.kind, s.term, s.documents
"""
UNCOUNT = {noun: Statement(_UNCOUNT.replace("__noun__", noun)) for noun in ("episode", "procedure")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeStatistics:
    """What is known of the visible scopes before a question is scored.

    `things` have the names asked for, and others, as comparison keys; `uncounted` are the stems of
    the `pending` memories. `generation` is how often the tenant was written to when all of it was
    read.
    """

    corpus: Corpus
    actors: tuple[str, ...]
    pending: int
    turns: int
    things: tuple[tuple[str, ...], ...] = ()
    uncounted: tuple[str, ...] = ()
    generation: int = 0


class StatisticsStore:
    """Reads and keeps the counts. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def read(
        self, scope: Scope, terms: Sequence[str], names: Sequence[str] = ()
    ) -> ScopeStatistics:
        """Frequencies of `terms` over everything visible from `scope`, and who speaks there.

        With them the things that have one of `names` and others.
        """
        rows = await self._unit.fetch(
            READ,
            scopes=scope.visible_ids,
            terms=list(terms),
            names=list(names),
            things_max=THINGS_MAX,
            actors_max=ACTORS_MAX,
            pending_max=PENDING_MAX,
        )
        return _statistics(rows, frozenset(terms))

    async def absorb(self, *, limit: int) -> int:
        """Up to `limit` uncounted memories of each kind are counted; how many there were.

        Zero also when another transaction is counting for the tenant. One of the store methods
        without a scope: maintenance counts for the whole tenant.
        """
        row = await self._unit.fetch_one(ALONE)
        if row is None or not row["alone"]:
            return 0
        counted = await self._unit.fetch_one(ABSORB, limit=limit)
        return int(counted["counted"]) if counted is not None else 0

    async def drop_unused(self, place: UUID, counts: Sequence[tuple[str, str]]) -> None:
        """Those among the counts (kind and term) of the scope `place` that are zero are gone."""
        kinds, terms = [kind for kind, _ in counts], [term for _, term in counts]
        await self._unit.execute(DROP_UNUSED, scope=place, kinds=kinds, terms=terms)

    async def uncount(self, noun: str, identity: UUID) -> None:
        """The episode or procedure, whose row is held, is to be counted anew.

        No scope: its row decides it.
        """
        rows = await self._unit.fetch(UNCOUNT[noun], id=identity)
        unused = [row for row in rows if not row["documents"]]
        if unused:
            await self._unit.execute(
                DROP_UNUSED,
                scope=unused[0]["scope_id"],
                kinds=[row["kind"] for row in unused],
                terms=[row["term"] for row in unused],
            )

    async def drop(self, scope: Scope) -> None:
        """The counts of exactly this scope are gone, since its memories moved elsewhere.

        Those that stayed behind are to be counted anew.
        """
        await self._unit.execute(DROP_SCOPE, scope=scope.id)
        for statement in COUNT_ANEW.values():
            await self._unit.execute(statement, scope=scope.id)


def _statistics(rows: Iterable[Any], wanted: frozenset[str]) -> ScopeStatistics:
    """The rows of `READ`, of which those of uncounted memories are counted here."""
    frequencies: Counter[str] = Counter()
    actors: Counter[str] = Counter()
    roles: Counter[str] = Counter()
    things: list[tuple[str, ...]] = []
    uncounted: list[str] = []
    documents = occurrences = generation = 0
    for kind, term, count, length in rows:
        if kind == "term":
            frequencies[term] += count
        elif kind == "total":
            documents += count
            occurrences += length
        elif kind == "actor":
            actors[term] += count
        elif kind == "role":
            roles[term] += count
        elif kind == "generation":
            generation = count
        elif kind == "thing":
            things.append(tuple(term.split(_BETWEEN_NAMES)))
        else:
            _, role, actor = kind.split("/", 2)
            uncounted.append(term)
            documents += 1
            occurrences += length
            frequencies.update(wanted.intersection(term.split(" ")))
            if role:
                roles[role] += 1
                actors[actor] += 1
    return ScopeStatistics(
        corpus=Corpus(
            documents=documents,
            average_length=occurrences / documents if documents else 0.0,
            frequencies=frequencies,
            actor_shares=_shares(actors),
            role_shares=_shares(roles),
        ),
        actors=tuple(name for name, _ in actors.most_common()),
        pending=len(uncounted),
        things=tuple(things),
        uncounted=tuple(uncounted),
        turns=roles.total(),
        generation=generation,
    )


def _shares(counts: Counter[str]) -> dict[str, float]:
    total = counts.total()
    return {name: count / total for name, count in counts.items()}
