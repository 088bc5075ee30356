"""The handle of maintenance: `memory.maintenance`, for the worker and for hosts with a clock."""

from __future__ import annotations

from mnemic.service.maintain import (
    MaintenanceReport,
    count_due_terms,
    embed_missing,
    end_idle_sessions,
    expire_working,
)
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

    async def expire(self) -> MaintenanceReport:
        """Working memory in PostgreSQL that has expired is gone."""
        return await expire_working(self._tools)
