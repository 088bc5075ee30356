"""Where the vectors of a tenant stand: what the front door is asked of it."""

from __future__ import annotations

from mnemic.model.scope import Scope
from mnemic.service.isolate import checked_isolation, isolate
from mnemic.service.maintain import MaintenanceReport
from mnemic.service.parsing import checked_scope
from mnemic.service.promote import JOB, Change, demote, owning, promote, promote_due
from mnemic.service.tools import Tools

__all__ = ["demote_tenant", "isolate_tenant", "promote_tenant", "promote_vectors"]


async def promote_vectors(tools: Tools) -> MaintenanceReport:
    """See `promote_due`. Without the owner's URL nothing is done, as long as no tenant is large."""
    if tools.owner_url is None and not await _has_large(tools):
        return MaintenanceReport(job=JOB, tenants=0, done=0, failed=0)
    return await promote_due(tools.owner_url, tools.settings, at=tools.now())


async def _has_large(tools: Tools) -> bool:
    rows = tools.settings.recall.exact_scan_rows_max
    return await tools.transact(None, lambda unit: unit.jobs.has_beyond(rows), read_only=True)


async def promote_tenant(tools: Tools, scope: Scope) -> list[Change]:
    """See `promote`."""
    checked_scope(scope)
    rows = tools.settings.recall.exact_scan_rows_max
    async with owning(tools.owner_url, tools.settings.maintenance) as owner:
        return await promote(owner, scope.tenant.id, rows_max=rows, at=tools.now())


async def demote_tenant(tools: Tools, scope: Scope) -> list[Change]:
    """See `demote`."""
    checked_scope(scope)
    async with owning(tools.owner_url, tools.settings.maintenance) as owner:
        return await demote(owner, scope.tenant.id)


async def isolate_tenant(tools: Tools, scope: Scope, isolation: str) -> int:
    """See `isolate`."""
    checked_scope(scope)
    checked_isolation(isolation)
    seconds = tools.settings.maintenance.move_lock_seconds
    async with owning(tools.owner_url, tools.settings.maintenance) as owner:
        return await isolate(owner, scope.tenant, isolation, lock_seconds=seconds)
