"""Delete memories by their exact ids, with everything that was made for finding them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from mnemic.model.scope import Scope
from mnemic.store.statement import Statement, statement_text

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

VISIBLE = {
    noun: Statement(f"""
        SELECT m.id, m.scope_id FROM mnemic.{noun}s m
         WHERE {{owned:m}} AND m.id = ANY(CAST(:ids AS uuid[]))
           FOR UPDATE
    """)
    for noun in KINDS
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

    async def delete(self, scope: Scope, noun: str, ids: Sequence[UUID]) -> int:
        """The memories of exactly this scope are gone, vectors and evidence with them."""
        if noun in UNLINK:
            await self._unit.execute(UNLINK[noun], ids=list(ids))
        return len(await self._unit.fetch(FORGET[noun], scope=scope.id, ids=list(ids)))
