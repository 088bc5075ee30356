"""Names and their aliases."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from mnemic.model.normalise import comparison_key
from mnemic.model.scope import Scope
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["EntityStore"]

ALIASES_MAX = 200

NAMES = Statement("""
    SELECT e.name_key, e.aliases FROM mnemic.entities e
     WHERE {owned:e} AND (e.name_key = :key OR CAST(:key AS text) = ANY(e.aliases))
""")

ADD_ALIAS = Statement("""
    INSERT INTO mnemic.entities AS e (tenant_id, id, scope_id, name, name_key, aliases, recorded_at)
    VALUES (:tenant, :id, :scope, :name, :name_key, ARRAY[CAST(:alias AS text)], :now)
    ON CONFLICT (tenant_id, scope_id, name_key)
    DO UPDATE SET aliases = CASE WHEN excluded.aliases[1] = ANY(e.aliases) THEN e.aliases
                                 ELSE e.aliases || excluded.aliases END,
                  updated_at = excluded.recorded_at
""")

REMOVE_ALIAS = Statement("""
    UPDATE mnemic.entities e
       SET aliases = array_remove(e.aliases, CAST(:alias AS text)), updated_at = :now
     WHERE {tenant:e} AND e.scope_id = :scope AND e.name_key = :name_key
       AND CAST(:alias AS text) = ANY(e.aliases)
    RETURNING e.id
""")

# What was taken away is in no past either.
TAKE_FROM_HISTORY = Statement("""
    UPDATE mnemic.memory_history h
       SET before = jsonb_set(h.before, '{aliases}',
                              (h.before -> 'aliases') - CAST(:alias AS text))
     WHERE {tenant:h} AND h.memory_id = :id AND h.before -> 'aliases' IS NOT NULL
""")

# A name without any other means itself, with or without a row.
DROP_PLAIN = Statement("""
    DELETE FROM mnemic.entities e
     WHERE {tenant:e} AND e.scope_id = :scope AND e.name_key = :name_key AND e.aliases = '{}'
       AND NOT EXISTS (SELECT FROM mnemic.entity_mentions m
                        WHERE {tenant:m} AND m.entity_id = e.id)
""")


class EntityStore:
    """Keeps which names mean one thing. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def names_of(self, scope: Scope, name: str) -> list[str]:
        """The comparison keys of a name and of every alias known from `scope`."""
        key = comparison_key(name)
        rows = await self._unit.fetch(NAMES, scopes=scope.visible_ids, key=key)
        found = dict.fromkeys([key])
        for row in rows:
            found.update(dict.fromkeys([row["name_key"], *row["aliases"]]))
        return list(found)[:ALIASES_MAX]

    async def add_alias(
        self, scope: Scope, identity: UUID, name: str, alias: str, *, now: datetime
    ) -> None:
        """In `scope` and below, `alias` means what `name` means."""
        await self._unit.execute(
            ADD_ALIAS,
            id=identity,
            scope=scope.id,
            name=name,
            name_key=comparison_key(name),
            alias=comparison_key(alias),
            now=now,
        )

    async def remove_alias(self, scope: Scope, name: str, alias: str, *, now: datetime) -> bool:
        """In exactly `scope` the alias does not mean the name any more; whether it did."""
        name_key, alias_key = comparison_key(name), comparison_key(alias)
        removed = await self._unit.fetch_one(
            REMOVE_ALIAS, scope=scope.id, name_key=name_key, alias=alias_key, now=now
        )
        if removed is not None:
            await self._unit.execute(TAKE_FROM_HISTORY, id=removed["id"], alias=alias_key)
            await self._unit.execute(DROP_PLAIN, scope=scope.id, name_key=name_key)
        return removed is not None
