"""The handle of maintenance: `memory.maintenance`, for the worker and for hosts with a clock."""

from __future__ import annotations

from mnemic.model.cache_counts import CacheCounts
from mnemic.model.scope import Scope
from mnemic.service.cache_counts import cache_counts
from mnemic.service.maintain import (
    MaintenanceReport,
    count_due_terms,
    embed_missing,
    end_idle_sessions,
    expire_working,
)
from mnemic.service.place import (
    demote_tenant,
    isolate_tenant,
    promote_tenant,
    promote_vectors,
)
from mnemic.service.promote import Change
from mnemic.service.tools import Tools

__all__ = ["Maintenance"]


class Maintenance:
    """Jobs that find what is due by a query; running one twice, or twice at once, is harmless."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def end_idle_sessions(self) -> MaintenanceReport:
        """Sessions idle for `maintenance.idle_after` are ended, each with its episode."""
        return await end_idle_sessions(self._tools)

    async def embed_missing(self) -> MaintenanceReport:
        """Memories without a vector have one. Raises `EmbedderUnavailable`."""
        return await embed_missing(self._tools)

    async def count_terms(self) -> MaintenanceReport:
        """The words of everything written are counted."""
        return await count_due_terms(self._tools)

    async def promote_vectors(self) -> MaintenanceReport:
        """Tenants beyond `recall.exact_scan_rows_max` have an index of their own, and only they.

        Needs `MEM_DATABASE_OWNER_URL`, as all that follow; raises `ConfigurationError` without it.
        """
        return await promote_vectors(self._tools)

    async def promote(self, *, scope: Scope) -> list[Change]:
        """The same for the tenant of `scope` alone; which indexes were built or dropped."""
        return await promote_tenant(self._tools, scope)

    async def demote(self, *, scope: Scope) -> list[Change]:
        """The tenant of `scope` has no index of its own, until it is promoted again."""
        return await demote_tenant(self._tools, scope)

    async def isolate(self, *, scope: Scope, isolation: str) -> int:
        """The vectors of the tenant of `scope` stand in tables of their own, or among all again.

        `isolation` is "dedicated" or "shared". Readers and writers go on, and wait while a table
        is held, for at most `maintenance.move_lock_seconds`; `StoreUnavailable` if that is not
        enough. How many tables moved; asked again, it goes on where it broke off.
        """
        return await isolate_tenant(self._tools, scope, isolation)

    async def caches(self) -> dict[str, CacheCounts]:
        """How often each cache of this process helped: of vectors, recalls and surest facts."""
        return cache_counts(self._tools)

    async def expire(self) -> MaintenanceReport:
        """Working memory in PostgreSQL that has expired is gone."""
        return await expire_working(self._tools)
