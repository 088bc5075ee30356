"""From start to end of `mnemic mcp`: servers reached, one client served, everything released."""

from __future__ import annotations

import asyncio
import signal
import sys

from mnemic.edge.mcp.server import build_server
from mnemic.edge.mcp.stdio import InputLines
from mnemic.manager import MemoryManager
from mnemic.model.scope import Scope
from mnemic.settings import MemorySettings

__all__ = ["serve"]


async def serve(settings: MemorySettings, scope: Scope) -> None:
    """The client on the standard streams was served in `scope`, until its end or a signal.

    Calls that are running then have a moment to end; one that does not is cancelled, done wholly
    or not at all. Raises `ConfigurationError` or `Unavailable` if memory cannot be opened.
    """
    async with MemoryManager.open(settings) as memory:
        lines = InputLines(sys.stdin.fileno())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lines.end)
        await build_server(memory, scope).serve_lines(lines)
