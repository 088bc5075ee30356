"""What the worker does when the clock says so; what is due is a query."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from mnemic.errors import (
    Conflict,
    MnemicError,
    NotFound,
    ThinkerUnavailable,
    Unavailable,
)
from mnemic.model.scope import MemoryScope, Scope, Tenant, TenantId, TenantKind
from mnemic.service.count_terms import count_terms
from mnemic.service.embed_due import embedded, keep_vectors
from mnemic.service.end_session import end_session
from mnemic.service.tools import Tools
from mnemic.store.vectors import PendingText
from mnemic.store.working.opening import purge_expired

__all__ = [
    "MaintenanceReport",
    "count_due_terms",
    "embed_missing",
    "end_idle_sessions",
    "expire_working",
]

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
    """Memories that were kept without a vector have one; one that was made otherwise is made anew.

    Raises `EmbedderUnavailable` while the embedder is down; nothing is set aside for that.
    """
    return await _for_due_tenants(tools, "embed_missing", _embed_of)


async def count_due_terms(tools: Tools) -> MaintenanceReport:
    """The words of everything written are counted."""
    return await _for_due_tenants(tools, "count_terms", _count_of)


async def expire_working(tools: Tools) -> MaintenanceReport:
    """Working memory that has expired is gone from PostgreSQL.

    A row is kept for its version as long as an outage of Valkey can still be merged
    (`working.tombstone_ttl`); it is hidden from the moment at which it expires.
    """
    kept_for = tools.settings.working.tombstone_ttl
    return await _for_due_tenants(tools, "expire", _expire_of, since=kept_for)


async def _for_due_tenants(
    tools: Tools, job: str, work: _Work, *, since: timedelta | None = None
) -> MaintenanceReport:
    settings = tools.settings.maintenance
    before = tools.now() - (settings.idle_after if since is None else since)
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
    """One batch of sessions; those that cannot be ended now do not stand before the others."""
    settings = tools.settings.maintenance
    before = tools.now() - settings.idle_after
    done = 0
    missed: set[UUID] = set()
    for _ in range(BATCHES_MAX):
        idle = await _idle(tools, tenant, before=before, skip=missed)
        ended = {scope.id: await _end(tools, scope) for scope in idle}
        failed = [session for session, count in ended.items() if count is None]
        done += sum(filter(None, ended.values()))
        missed.update(failed)
        if not failed or len(idle) < settings.batch_max:
            break
    return done, len(missed)


async def _idle(
    tools: Tools, tenant: TenantId, *, before: datetime, skip: Collection[UUID]
) -> list[Scope]:
    limit = tools.settings.maintenance.batch_max
    found = await tools.transact(
        tenant,
        lambda unit: unit.sessions.idle(before=before, limit=limit, skip=skip),
        read_only=True,
    )
    return [
        Scope(
            Tenant(TenantKind(one["kind"]), one["external_id"]),
            tuple((MemoryScope(level), name) for level, name in one["path"]),
        )
        for one in found
    ]


async def _end(tools: Tools, scope: Scope) -> int | None:
    """1 if this ended the session, 0 if another did; nothing if it stays due (it is logged why)."""
    try:
        receipt = await end_session(tools, scope=scope)
    except (Conflict, NotFound) as fault:
        # Somebody writes to it again, or it is gone: nothing is lost.
        log.info("session_not_ended", session=str(scope.id), reason=fault.code)
    except MnemicError as fault:
        if isinstance(fault, Unavailable) and not isinstance(fault, ThinkerUnavailable):
            raise
        log.warning("session_not_ended", session=str(scope.id), reason=fault.code)
    except Exception:  # one session that nobody foresaw holds up no other
        log.exception("session_not_ended", session=str(scope.id))
    else:
        return int(receipt is None or receipt.created)
    return None


async def _embed_of(tools: Tools, tenant: TenantId) -> tuple[int, int]:
    batch = tools.settings.maintenance.batch_max
    done = 0
    refused: set[UUID] = set()
    for _ in range(BATCHES_MAX):
        pending = await _pending(tools, tenant, limit=batch, skip=refused)
        if not pending:
            break
        pairs = await embedded(tools, pending)
        taken = {one.id for one, _ in pairs}
        refused.update(one.id for one in pending if one.id not in taken)
        await keep_vectors(tools, tenant, pairs)
        done += len(pairs)
        if len(pending) < batch:
            break
    return done, len(refused)


async def _pending(
    tools: Tools, tenant: TenantId, *, limit: int, skip: Collection[UUID]
) -> list[PendingText]:
    return await tools.transact(
        tenant, lambda unit: unit.vectors.missing(limit=limit, skip=skip), read_only=True
    )


async def _count_of(tools: Tools, tenant: TenantId) -> tuple[int, int]:
    return await count_terms(tools, tenant), 0


async def _expire_of(tools: Tools, tenant: TenantId) -> tuple[int, int]:
    batch = tools.settings.maintenance.batch_max
    done = 0
    for _ in range(BATCHES_MAX):
        gone = await purge_expired(
            tools.database, tenant, tools.settings.working, now=tools.now(), limit=batch
        )
        done += gone
        if gone < batch:
            break
    return done, 0
