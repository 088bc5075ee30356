"""What maintenance is due: a query over rows, never a message."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from mnemic.model.scope import TenantId
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["JobStore"]

DUE = Statement("""
    SELECT d.tenant_id
      FROM mnemic.tenants_due(CAST(:job AS text), CAST(:limit AS int),
                              CAST(:before AS timestamptz)) AS d(tenant_id)
""")


BEYOND = Statement("""
    SELECT b.tenant_id FROM mnemic.tenants_beyond(CAST(:rows AS bigint), CAST(:limit AS int)) AS b
""")


class JobStore:
    """Finds tenants with work: ids only, through the one look-up made before a tenant is known."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def tenants_due(self, job: str, *, before: datetime, limit: int) -> list[TenantId]:
        """Tenants for which `job` has something to do; no scope, since no tenant is known yet."""
        rows = await self._unit.fetch(DUE, job=job, limit=limit, before=before)
        return [TenantId(row["tenant_id"]) for row in rows]

    async def has_beyond(self, rows: int) -> bool:
        """Whether a tenant holds more memories than `rows`; no scope, as above."""
        return await self._unit.fetch_one(BEYOND, rows=rows, limit=1) is not None
