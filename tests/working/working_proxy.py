"""A socket in front of Valkey that a test can cut, stall, or rob of its answers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit


class Proxy:
    """`url` leads to the server behind it as long as nothing was done to it."""

    def __init__(self, folder: Path, target_url: str) -> None:
        self.path = folder / "proxy.sock"
        self._target = unquote(urlsplit(target_url).path)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._answers_left = 0
        self._answers_lost = 0

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self.path))}"

    async def open(self) -> None:
        """Connections are accepted."""
        if self._server is not None:
            return
        self.path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, str(self.path))

    async def cut(self) -> None:
        """Connections are closed, and refused until `open`."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.path.unlink(missing_ok=True)
        self.reset()

    def reset(self) -> None:
        """Every connection is closed; new ones are accepted as before."""
        for writer in list(self._writers):
            writer.transport.abort()

    def stall(self) -> None:
        """Nothing is passed on, and nothing is closed."""
        self._flows.clear()

    def flow(self) -> None:
        """Everything is passed on again."""
        self._flows.set()

    def lose_answers(self, count: int, *, after: int = 0) -> None:
        """`count` answers do not arrive, after the next few: the connection is closed instead."""
        self._answers_left = after
        self._answers_lost = count

    async def close(self) -> None:
        self._flows.set()
        await self.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back_reader, back_writer = await asyncio.open_unix_connection(self._target)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, back_writer}
        self._writers |= ends
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pass(reader, back_writer, ends, answers=False))
                tasks.create_task(self._pass(back_reader, writer, ends, answers=True))
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        ends: set[asyncio.StreamWriter],
        *,
        answers: bool,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                await self._flows.wait()
                if answers and self._answers_left:
                    self._answers_left -= 1
                elif answers and self._answers_lost:
                    self._answers_lost -= 1
                    break
                writer.write(data)
                await writer.drain()
        for end in ends:
            end.transport.abort()
