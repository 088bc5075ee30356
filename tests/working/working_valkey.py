"""A Valkey of a test's own: for outages, limits and policies that others must not feel."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from mnemic.embedded.binaries import find_binaries


class Valkey:
    """A server of the test's own that writes down what it acknowledged, and can be killed.

    With `appendfsync everysec` it would put that off while an fsync runs, and lose it by a kill.
    """

    def __init__(self, folder: Path, *, fsync: str = "always") -> None:
        self.folder = folder
        self._fsync = fsync
        self.url = f"unix://{folder}/v.sock"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            str(find_binaries().valkey_server),
            *("--port", "0", "--unixsocket", f"{self.folder}/v.sock", "--dir", str(self.folder)),
            *("--appendonly", "yes", "--appendfsync", self._fsync, "--save", ""),
            stdout=asyncio.subprocess.DEVNULL,
        )
        async with asyncio.timeout(10):
            while not await self._answers():  # noqa: ASYNC110 - a server has no event to wait for
                await asyncio.sleep(0.02)

    async def _answers(self) -> bool:
        with suppress(OSError):
            reader, writer = await asyncio.open_unix_connection(f"{self.folder}/v.sock")
            writer.write(b"PING\r\n")
            answer = await reader.readline()
            writer.close()
            await writer.wait_closed()
            return answer.startswith(b"+PONG")
        return False

    async def kill(self) -> None:
        """As `kill -9`."""
        if self._process is not None:
            self._process.kill()
            await self._process.wait()
