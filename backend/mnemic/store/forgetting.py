"""Delete memories by their exact ids, with everything that was made for finding them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from mnemic.model.scope import Scope
from mnemic.store.statement import Statement, statement_text
from mnemic.store.tombstones import (
    episode_mark,
    fact_mark,
    procedure_mark,
    said_mark,
    turn_mark,
)

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["ForgettingStore"]

KINDS = ("turn", "episode", "fact", "procedure")

_SPEAKERS = """
  UNION ALL
  SELECT 'actor', g.actor, count(*), sum(g.stem_count) FROM gone g
   WHERE g.stats_counted GROUP BY g.actor
  UNION ALL
  SELECT 'role', g.role, count(*), sum(g.stem_count) FROM gone g
   WHERE g.stats_counted GROUP BY g.role
"""

_TEMPLATE = statement_text("forget")

FORGET = {
    noun: Statement(
        _TEMPLATE.replace("__noun__", noun).replace("__turn__", _SPEAKERS if noun == "turn" else "")
    )
    for noun in KINDS
}

# What a row is referred to by stays, without the reference.
UNLINK = {
    "episode": Statement("""
        UPDATE mnemic.sessions s SET episode_id = NULL
         WHERE {tenant:s} AND s.episode_id = ANY(CAST(:ids AS uuid[]))
    """),
    "fact": Statement("""
        UPDATE mnemic.facts f SET superseded_by = NULL
         WHERE {tenant:f} AND f.superseded_by = ANY(CAST(:ids AS uuid[]))
    """),
}

# A fact of a session whose equal stood above when it ended left its row there: it says the same. So
# did a procedure that became a version of one above. `IS TRUE` leaves the planner the ids alone.
LEFT_BEHIND = {
    "fact": Statement("""
        SELECT s.id, s.scope_id FROM mnemic.facts s JOIN mnemic.facts f ON f.id = s.superseded_by
         WHERE {tenant:s} AND {tenant:f} AND (f.scope_id = :scope) IS TRUE
           AND f.id = ANY(CAST(:ids AS uuid[]))
           AND s.scope_id <> f.scope_id AND s.subject_key = f.subject_key
           AND s.predicate = f.predicate AND s.object_key = f.object_key
         ORDER BY s.id FOR UPDATE OF s
    """),
    "procedure": Statement("""
        SELECT s.id, s.scope_id FROM mnemic.procedures s
          JOIN mnemic.scopes c ON c.id = s.scope_id AND c.scope_type = 'session'
          JOIN mnemic.procedures p ON p.scope_id = c.parent_id AND p.name_key = s.name_key
         WHERE {tenant:s} AND {tenant:c} AND {tenant:p} AND p.scope_id = :scope
           AND p.id = ANY(CAST(:ids AS uuid[])) AND s.status = 'retired'
         ORDER BY s.id FOR UPDATE OF s
    """),
}

# Whoever names such a row means what stands above, as with a fact that moved with its id.
LIVES_ON = Statement("""
    SELECT s.id AS left_id, f.id, f.scope_id
      FROM mnemic.facts s JOIN mnemic.facts f ON f.id = s.superseded_by
     WHERE {keyed:s} AND {keyed:f} AND s.id = ANY(CAST(:ids AS uuid[]))
       AND s.scope_id <> f.scope_id AND s.subject_key = f.subject_key
       AND s.predicate = f.predicate AND s.object_key = f.object_key
     ORDER BY f.id FOR UPDATE OF f
""")

VISIBLE = {
    noun: Statement(f"""
        SELECT m.id, m.scope_id FROM mnemic.{noun}s m
         WHERE {{keyed:m}} AND m.id = ANY(CAST(:ids AS uuid[]))
           FOR UPDATE
    """)
    for noun in KINDS
}


# What identifies a memory of each kind, so that it can be refused when it comes again.
IDENTIFYING = {
    "turn": Statement("""
        SELECT t.session_id, coalesce(t.external_digest, t.content_digest) AS named,
               t.content_digest AS said, t.occurred_at
          FROM mnemic.turns t
         WHERE {tenant:t} AND t.scope_id = :scope AND t.id = ANY(CAST(:ids AS uuid[]))
    """),
    "episode": Statement("""
        SELECT e.summary FROM mnemic.episodes e
         WHERE {tenant:e} AND e.scope_id = :scope AND e.id = ANY(CAST(:ids AS uuid[]))
    """),
    "fact": Statement("""
        SELECT f.subject, f.predicate, f.object FROM mnemic.facts f
         WHERE {tenant:f} AND f.scope_id = :scope AND f.id = ANY(CAST(:ids AS uuid[]))
    """),
    # Each of its versions is forgotten.
    "procedure": Statement("""
        SELECT p.name, p.steps FROM mnemic.procedures p
         WHERE {tenant:p} AND p.scope_id = :scope AND p.id = ANY(CAST(:ids AS uuid[]))
         UNION ALL
        SELECT p.name, v.steps
          FROM mnemic.procedures p JOIN mnemic.procedure_versions v ON v.procedure_id = p.id
         WHERE {tenant:p} AND {tenant:v} AND p.scope_id = :scope
           AND p.id = ANY(CAST(:ids AS uuid[]))
    """),
}


class ForgettingStore:
    """Deletes. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def locate(self, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, tuple[str, UUID]]:
        """Kind and scope of each id that is visible from `scope`; locked until the unit ends."""
        found: dict[UUID, tuple[str, UUID]] = {}
        for noun in KINDS:
            rows = await self._unit.fetch(VISIBLE[noun], scopes=scope.visible_ids, ids=sorted(ids))
            found.update({row["id"]: (noun, row["scope_id"]) for row in rows})
        return found

    async def live_on(self, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, tuple[UUID, UUID]]:
        """For each fact that a session left behind the id and scope of the one that says the same.

        Locked until the unit ends.
        """
        rows = await self._unit.fetch(LIVES_ON, scopes=scope.visible_ids, ids=sorted(ids))
        return {row["left_id"]: (row["id"], row["scope_id"]) for row in rows}

    async def marks(self, scope: Scope, noun: str, ids: Sequence[UUID]) -> list[bytes]:
        """The digests under which these memories of exactly this scope are to be refused."""
        rows = await self._unit.fetch(IDENTIFYING[noun], scope=scope.id, ids=list(ids))
        if noun == "fact":
            return [fact_mark(row["subject"], row["predicate"], row["object"]) for row in rows]
        if noun == "turn":
            return [
                mark
                for row in rows
                for mark in (
                    turn_mark(row["session_id"], row["named"]),
                    said_mark(row["session_id"], row["said"], row["occurred_at"]),
                )
            ]
        if noun == "procedure":
            return [
                procedure_mark(row["name"], [step["action"] for step in row["steps"]])
                for row in rows
            ]
        return [episode_mark(row["summary"]) for row in rows]

    async def delete(self, scope: Scope, noun: str, ids: Sequence[UUID]) -> int:
        """The memories of exactly this scope are gone, vectors and evidence with them.

        So are the rows of sessions that said the same when these ended, and whatever quotes any of
        them in an answer that a key was given; its ids and versions stay.
        """
        return await self._delete(scope.id, noun, ids)

    async def delete_resting(self, place: UUID, ids: Sequence[UUID]) -> int:
        """As `delete`, for facts of the scope with the id `place`, whose rows are held."""
        return await self._delete(place, "fact", ids)

    async def _delete(self, place: UUID, noun: str, ids: Sequence[UUID]) -> int:
        quoted = list(ids)
        if noun in LEFT_BEHIND:
            rows = await self._unit.fetch(LEFT_BEHIND[noun], scope=place, ids=list(ids))
            quoted += [row["id"] for row in rows]
            if rows and noun in UNLINK:
                await self._unit.execute(UNLINK[noun], ids=[row["id"] for row in rows])
            for session in sorted({row["scope_id"] for row in rows}):
                left = [row["id"] for row in rows if row["scope_id"] == session]
                await self._remove(session, noun, left)
        if noun in UNLINK:
            await self._unit.execute(UNLINK[noun], ids=list(ids))
        await self._unit.guards.unquote(quoted)
        return await self._remove(place, noun, ids)

    async def _remove(self, place: UUID, noun: str, ids: Sequence[UUID]) -> int:
        rows = await self._unit.fetch(FORGET[noun], scope=place, ids=list(ids))
        unused = [(row["kind"], row["term"]) for row in rows if row["id"] is None]
        await self._unit.statistics.drop_unused(place, unused)
        return len(rows) - len(unused)
