"""Give a large tenant an index of its own, and take it away when it is large no more.

What the worker does on schedule, and what a host or an operator asks for one tenant.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime

import structlog
from pydantic import SecretStr

from mnemic.model.scope import TenantId
from mnemic.service.isolate import finish_moves
from mnemic.service.maintain import MaintenanceReport
from mnemic.settings import MaintenanceSettings, MemorySettings
from mnemic.store.owning import Owner, as_owner
from mnemic.store.promoting import TABLES, Promotions

__all__ = ["JOB", "Change", "demote", "owning", "promote", "promote_due"]

log = structlog.get_logger("mnemic")
TENANTS_MAX = 10_000
JOB = "promote_vectors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An index that was built (`promoted`) or dropped (`demoted`), and of which kind of memory."""

    tenant: TenantId
    kind: str
    what: str


def owning(
    url: str | SecretStr | None, settings: MaintenanceSettings
) -> AbstractAsyncContextManager[Owner]:
    """The database as its owner, alone; see `as_owner`."""
    return as_owner(
        url,
        memory_mb=settings.index_memory_mb,
        wait_seconds=settings.placement_wait_seconds,
    )


async def promote_due(
    url: str | SecretStr | None, settings: MemorySettings, *, at: datetime
) -> MaintenanceReport:
    """Every tenant beyond the bound has its indexes, and nobody else; what broke off is done.

    So is a move to a tenant's own partitions, or back. A tenant on which it fails holds up no
    other. Raises `ConfigurationError` without a `url`.
    """
    done = failed = 0
    async with owning(url, settings.maintenance) as owner:
        done += await finish_moves(owner, lock_seconds=settings.maintenance.move_lock_seconds)
        promotions = Promotions(owner)
        rows = settings.recall.exact_scan_rows_max
        tenants = dict.fromkeys(await promotions.beyond(rows, limit=TENANTS_MAX))
        tenants |= dict.fromkeys(TenantId(one.tenant) for one in await promotions.indexes())
        for tenant in tenants:
            try:
                done += len(await promote(owner, tenant, rows_max=rows, at=at))
            except Exception:
                if owner.connection.is_closed():
                    raise
                log.exception("tenant_not_promoted", tenant=str(tenant))
                failed += 1
    report = MaintenanceReport(job=JOB, tenants=len(tenants), done=done, failed=failed)
    log.info("maintenance", job=JOB, tenants=len(tenants), done=done, failed=failed)
    return report


async def promote(owner: Owner, tenant: TenantId, *, rows_max: int, at: datetime) -> list[Change]:
    """The tenant has a valid index of each kind of which it has more than `rows_max` vectors.

    One of which it has under half of that, and one of a model that answers no more, is dropped.
    Between the two an index stays as it is, so that none is built and dropped over and over.
    """
    promotions = Promotions(owner)
    model = await promotions.model()
    changes: list[Change] = []
    kept: dict[tuple[str, int], str] = {}
    for kind, table in TABLES.items():
        if model is None:
            break
        rows = await promotions.count(tenant, table, model.id, most=rows_max + 1)
        name = await promotions.name(tenant, table, model)
        is_valid = await promotions.is_valid(tenant, name)
        if rows > rows_max or (is_valid and rows * 2 > rows_max):
            kept[table, model.id] = name
            if not is_valid:
                await promotions.build(tenant, table, model, at=at)
                changes.append(Change(tenant=tenant, kind=kind, what="promoted"))
    return changes + await _demote_all(promotions, tenant, kept=kept)


async def demote(owner: Owner, tenant: TenantId) -> list[Change]:
    """The tenant has no index of its own; its vectors are all compared, as those of others."""
    return await _demote_all(Promotions(owner), tenant, kept={})


async def _demote_all(
    promotions: Promotions, tenant: TenantId, *, kept: dict[tuple[str, int], str]
) -> list[Change]:
    """No index of the tenant is there or in the register but those `kept`."""
    there = {
        one.name: (one.table_name, one.model)
        for one in await promotions.indexes()
        if one.tenant == tenant and one.table_name
    }
    there |= {one.index: (one.table, one.model) for one in await promotions.wanted(tenant)}
    changes = []
    for name, (table, model) in there.items():
        if kept.get((table, model)) == name:
            continue
        if (table, model) in kept:  # it has another one by now
            await promotions.drop(name)
        else:
            await promotions.demote(tenant, table, model, name)
        kind = next(kind for kind, of in TABLES.items() if of == table)
        changes.append(Change(tenant=tenant, kind=kind, what="demoted"))
    return changes
