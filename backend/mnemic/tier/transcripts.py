"""The handle of transcripts: `memory.transcripts`."""

from __future__ import annotations

from collections.abc import Iterable

from mnemic.model.scope import Scope
from mnemic.model.transcript import Entry
from mnemic.service.ingest import IngestReport, Progress, ingest
from mnemic.service.tools import Tools

__all__ = ["Transcripts"]


class Transcripts:
    """Conversations that were held elsewhere."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def ingest(
        self,
        entries: Iterable[Entry],
        *,
        scope: Scope,
        keep_open: bool = False,
        progress: Progress | None = None,
    ) -> IngestReport:
        """What `mnemic.model.transcript.read` gives stands in memory; its sessions have ended.

        Sessions stand below `scope`, in the project that the transcript names if `scope` is global.
        `keep_open` leaves them active. A second call adds nothing, and completes one that was
        killed. Raises `InvalidInput` if `scope` names a session, and `Unavailable`.
        """
        return await ingest(
            self._tools, entries, scope=scope, keep_open=keep_open, progress=progress
        )
