"""Rights to write above one's own scope."""

from __future__ import annotations

from datetime import datetime
from itertools import takewhile
from typing import TYPE_CHECKING
from uuid import UUID

from mnemic.model.scope import Scope
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["GrantStore"]

ALLOW = Statement("""
    INSERT INTO mnemic.grants AS g (tenant_id, id, scope_id, principal, principal_key, rights,
                                    recorded_at)
    VALUES (:tenant, :id, :target, :principal, :key, ARRAY['write'], :now)
    ON CONFLICT (tenant_id, scope_id, principal_key)
    DO UPDATE SET revoked_at = NULL, rights = excluded.rights
""")

REVOKE = Statement("""
    UPDATE mnemic.grants g SET revoked_at = :now
     WHERE {tenant:g} AND g.scope_id = :target AND g.principal_key = :key AND g.revoked_at IS NULL
""")

HELD = Statement("""
    SELECT 1 FROM mnemic.grants g
     WHERE {tenant:g} AND g.scope_id = :target AND g.revoked_at IS NULL
       AND 'write' = ANY(g.rights) AND g.principal_key = ANY(CAST(:keys AS text[]))
     LIMIT 1
""")


class GrantStore:
    """Keeps and asks for rights. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def allow(self, scope: Scope, *, target: Scope, identity: UUID, now: datetime) -> None:
        """Whoever works in `scope`, or below it, may write in `target`."""
        await self._unit.execute(
            ALLOW,
            id=identity,
            target=target.id,
            principal=_words(scope),
            key=str(scope.id),
            now=now,
        )

    async def revoke(self, scope: Scope, *, target: Scope, now: datetime) -> bool:
        """That right is gone; false if there was none."""
        landed = await self._unit.execute(REVOKE, target=target.id, key=str(scope.id), now=now)
        return landed == 1

    async def held(self, scope: Scope, *, target: UUID) -> bool:
        """Whether `scope`, or one above it and below `target`, may write in `target`."""
        below = takewhile(lambda one: one.id != target, scope.chain)
        keys = [str(one.id) for one in below]
        return await self._unit.fetch_one(HELD, target=target, keys=keys) is not None


def _words(scope: Scope) -> str:
    return " / ".join(f"{level.value} {name}" for level, name in scope.path)[:1_000] or "global"
