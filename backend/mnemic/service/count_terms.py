"""Count the words of what was written, beside the writers."""

from __future__ import annotations

import structlog

from mnemic.errors import Unavailable
from mnemic.model.scope import TenantId
from mnemic.service.tools import Tools
from mnemic.store.statistics import PENDING_MAX
from mnemic.store.unit import Unit

__all__ = ["count_terms", "count_terms_now"]

BATCHES_MAX = 100
log = structlog.get_logger("mnemic")


async def count_terms(tools: Tools, tenant: TenantId) -> int:
    """Nothing of the tenant is left uncounted, within `BATCHES_MAX` batches; how many were."""
    counted = 0
    for _ in range(BATCHES_MAX):
        batch = tools.settings.maintenance.batch_max

        async def absorb(unit: Unit, limit: int = batch) -> int:
            return await unit.statistics.absorb(limit=limit)

        landed = await tools.transact(tenant, absorb)
        counted += landed
        if landed < batch:
            break
    return counted


async def count_terms_now(tools: Tools, tenant: TenantId, *, written: int) -> None:
    """What a process has written since its last count is counted once it is much.

    A recall reads up to `PENDING_MAX` uncounted memories as they are, so the counts it sees are
    exact as long as writers count before that many wait.
    """
    if tools.written_since_count(tenant, written) >= PENDING_MAX // 2:
        tools.written_since_count(tenant, None)
        try:
            await count_terms(tools, tenant)
        except Unavailable as fault:  # what was written stands, and the worker counts it
            log.warning("terms_not_counted", tenant=str(tenant), reason=str(fault))
