"""What the worker does when the clock says so; what is due is a query."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from mnemic.errors import Conflict, MnemicError, NotFound, Unavailable
from mnemic.model.scope import MemoryScope, Scope, Tenant, TenantId, TenantKind
from mnemic.service.count_terms import count_terms
from mnemic.service.end_session import end_session
from mnemic.service.tools import Tools
from mnemic.store.unit import Unit

__all__ = ["MaintenanceReport", "count_due_terms", "embed_missing", "end_idle_sessions"]

log = structlog.get_logger("mnemic")
BATCHES_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceReport:
    """What a run did: tenants looked at, items done, items that failed and stay due."""

    job: str
    tenants: int
    done: int
    failed: int


_Work = Callable[[Tools, TenantId], Awaitable[tuple[int, int]]]


async def end_idle_sessions(tools: Tools) -> MaintenanceReport:
    """Sessions without activity for `maintenance.idle_after` are ended, each with its episode."""
    return await _for_due_tenants(tools, "end_idle_sessions", _end_idle_of)


async def embed_missing(tools: Tools) -> MaintenanceReport:
    """Memories that were kept without a vector have one.

    Raises `EmbedderUnavailable` while the embedder is down; nothing is set aside for that.
    """
    return await _for_due_tenants(tools, "embed_missing", _embed_of)


async def count_due_terms(tools: Tools) -> MaintenanceReport:
    """The words of everything written are counted."""
    return await _for_due_tenants(tools, "count_terms", _count_of)


async def _for_due_tenants(tools: Tools, job: str, work: _Work) -> MaintenanceReport:
    settings = tools.settings.maintenance
    before = tools.now() - settings.idle_after
    tenants = await tools.transact(
        None,
        lambda unit: unit.jobs.tenants_due(job, before=before, limit=settings.tenants_max),
        read_only=True,
    )
    done = failed = 0
    for tenant in tenants:
        landed, missed = await work(tools, tenant)
        done += landed
        failed += missed
    report = MaintenanceReport(job=job, tenants=len(tenants), done=done, failed=failed)
    log.info("maintenance", job=job, tenants=len(tenants), done=done, failed=failed)
    return report


async def _end_idle_of(tools: Tools, tenant: TenantId) -> tuple[int, int]:
    settings = tools.settings.maintenance
    before = tools.now() - settings.idle_after
    idle = await tools.transact(
        tenant,
        lambda unit: unit.sessions.idle(before=before, limit=settings.batch_max),
        read_only=True,
    )
    done = failed = 0
    for one in idle:
        path = tuple((MemoryScope(level), name) for level, name in one["path"])
        scope = Scope(Tenant(TenantKind(one["kind"]), one["external_id"]), path)
        try:
            await end_session(tools, scope=scope)
            done += 1
        except Unavailable:
            raise
        except (Conflict, NotFound) as fault:
            # Somebody writes to it again, or it is gone: nothing is lost, and it stays due if idle.
            log.info("session_not_ended", session=str(scope.id), reason=fault.code)
            failed += 1
        except MnemicError as fault:
            log.warning("session_not_ended", session=str(scope.id), reason=fault.code)
            failed += 1
    return done, failed


async def _embed_of(tools: Tools, tenant: TenantId) -> tuple[int, int]:
    batch = tools.settings.maintenance.batch_max
    done = 0
    for _ in range(BATCHES_MAX):
        pending = await tools.transact(
            tenant, lambda unit: unit.vectors.missing(limit=batch), read_only=True
        )
        if not pending:
            break
        vectors = await tools.embedder.embed([one.text for one in pending])
        model = await tools.live_model()
        pairs = list(zip(pending, vectors, strict=True))

        async def land(unit: Unit) -> None:
            for kind in dict.fromkeys(one.kind for one, _ in pairs):  # noqa: B023 - run at once
                await unit.vectors.put(
                    kind,
                    [(one.id, vector) for one, vector in pairs if one.kind == kind],  # noqa: B023
                    model=model.id,  # noqa: B023
                )

        await tools.transact(tenant, land)
        done += len(pending)
        if len(pending) < batch:
            break
    return done, 0


async def _count_of(tools: Tools, tenant: TenantId) -> tuple[int, int]:
    return await count_terms(tools, tenant), 0
