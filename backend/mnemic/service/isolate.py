"""Keep a tenant's vectors physically apart from those of others, or among them again."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from mnemic.errors import InvalidInput
from mnemic.model.normalise import shown
from mnemic.model.scope import Tenant, TenantId
from mnemic.store.owning import Owner
from mnemic.store.partitioning import DEDICATED, SHARED, Partitions
from mnemic.store.promoting import TABLES, Promotions

__all__ = ["ISOLATIONS", "checked_isolation", "finish_moves", "isolate"]

ISOLATIONS = (SHARED, DEDICATED)
log = structlog.get_logger("mnemic")


def checked_isolation(isolation: str) -> str:
    """The word. Raises `InvalidInput` for another one."""
    if isolation not in ISOLATIONS:
        raise InvalidInput(
            f"must be among {', '.join(ISOLATIONS)}, not {shown(isolation)}", field="isolation"
        )
    return isolation


async def isolate(owner: Owner, tenant: Tenant, isolation: str, *, lock_seconds: float) -> int:
    """The tenant's vectors stand as `isolation` says ("dedicated" or "shared"); how many moved.

    Counted are tables, each moved in a transaction of its own; what was moved before is left. The
    tenant's row says so first, so that a worker finishes what breaks off. Raises
    `StoreUnavailable` if a table would be held for longer than `lock_seconds`.
    """
    await Partitions(owner).wish(tenant, isolation)
    return await _moved(owner, tenant.id, isolation, lock_seconds=lock_seconds)


async def finish_moves(owner: Owner, *, lock_seconds: float) -> int:
    """Moves that broke off are done, as the tenants' rows say; how many tables moved."""
    partitions = Partitions(owner)
    tenants: Iterable[TenantId] = dict.fromkeys(
        TenantId(one.tenant) for one in await partitions.all()
    )
    moved = 0
    for tenant in tenants:
        isolation = await partitions.wished(tenant)
        moved += await _moved(owner, tenant, isolation, lock_seconds=lock_seconds)
    return moved


async def _moved(owner: Owner, tenant: TenantId, isolation: str, *, lock_seconds: float) -> int:
    partitions = Partitions(owner)
    model = await Promotions(owner).model()
    moved = 0
    for table in TABLES.values():
        if isolation == DEDICATED:
            done = await partitions.set_apart(tenant, table, model=model, seconds=lock_seconds)
        else:
            done = await partitions.put_back(tenant, table, seconds=lock_seconds)
        if done:
            log.info("vectors_moved", tenant=str(tenant), table=table, isolation=isolation)
        moved += done
    return moved
