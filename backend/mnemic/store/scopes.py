"""The scope tree, grown on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mnemic.model.normalise import digest
from mnemic.model.scope import MemoryScope, Scope
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["ScopeStore"]

ADD_TENANT = Statement("""
    INSERT INTO mnemic.tenants (tenant_id, kind, external_id)
    VALUES (:tenant, :kind, :external_id)
    ON CONFLICT (tenant_id) DO NOTHING
""")

# Widest first, so that two writers of one chain lock in one order.
ADD_SCOPES = Statement("""
    INSERT INTO mnemic.scopes (tenant_id, id, scope_type, parent_id, project, agent_type,
                               agent_instance, session, path_digest)
    SELECT :tenant, n.id, CAST(n.scope_type AS mnemic.scope_type), n.parent_id, n.project,
           n.agent_type, n.agent_instance, n.session, n.path_digest
      FROM unnest(CAST(:ids AS uuid[]), CAST(:types AS text[]), CAST(:parents AS uuid[]),
                  CAST(:projects AS text[]), CAST(:agent_types AS text[]), CAST(:agents AS text[]),
                  CAST(:sessions AS text[]), CAST(:digests AS bytea[]))
           WITH ORDINALITY AS n(id, scope_type, parent_id, project, agent_type, agent_instance,
                                session, path_digest, place)
     ORDER BY n.place
    ON CONFLICT (tenant_id, id) DO NOTHING
""")

KNOWN = Statement("""
    SELECT count(*) AS known FROM mnemic.scopes s
     WHERE {tenant:s} AND s.id = ANY(CAST(:ids AS uuid[]))
""")


class ScopeStore:
    """Grows the tree. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def ensure(self, scope: Scope) -> None:
        """The tenant and every scope of the chain exist."""
        wide_to_narrow = scope.chain[::-1]
        ids = [one.id for one in wide_to_narrow]
        known = await self._unit.fetch_one(KNOWN, ids=ids)
        if known is not None and known["known"] == len(ids):
            return
        await self._unit.execute(
            ADD_TENANT, kind=scope.tenant.kind.value, external_id=scope.tenant.external_id
        )
        names = [dict(one.path) for one in wide_to_narrow]
        await self._unit.execute(
            ADD_SCOPES,
            ids=ids,
            types=[one.level.value for one in wide_to_narrow],
            parents=[one.parent.id if one.parent else None for one in wide_to_narrow],
            projects=[path.get(MemoryScope.PROJECT) for path in names],
            agent_types=[path.get(MemoryScope.AGENT_TYPE) for path in names],
            agents=[path.get(MemoryScope.AGENT_INSTANCE) for path in names],
            sessions=[path.get(MemoryScope.SESSION) for path in names],
            digests=[
                digest(*(part for level, name in one.path for part in (level.value, name)))
                for one in wide_to_narrow
            ],
        )
