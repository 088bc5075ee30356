"""A server's stand-in on loopback that does one thing wrong at one message of its client."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

from wire_frames import Chunks, Frames, PostgresClient, PostgresServer, ValkeyClient

_AT_ONCE = struct.pack("ii", 1, 0)


class Fault(StrEnum):
    """What happens at a message."""

    CUT = "cut"  # it does not arrive, and both ends are closed
    RESET = "reset"  # it arrives, and the client gets a RST
    LOST_REPLY = "lost reply"  # it is answered, and the answer does not arrive
    PARTIAL = "partial"  # half of it arrives, and both ends are closed
    STALL = "stall"  # from it on nothing is passed on, and nothing is closed


@dataclass(frozen=True, slots=True)
class Speech:
    """How the two ends speak.

    `ends_reply` says whether a message of the server is its last, `is_farewell` whether one of the
    client only announces that it hangs up: those come at any time, and are passed on uncounted.
    """

    client: Callable[[], Frames]
    server: Callable[[], Frames]
    ends_reply: Callable[[bytes], bool]
    is_farewell: Callable[[bytes], bool]


POSTGRES = Speech(
    PostgresClient,
    PostgresServer,
    ends_reply=lambda message: message[:1] == b"Z",
    is_farewell=lambda message: message[:1] == b"X",
)
VALKEY = Speech(
    ValkeyClient, Chunks, ends_reply=lambda _message: True, is_farewell=lambda _message: False
)


@dataclass(slots=True, eq=False)
class _Connection:
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    loses_replies: bool = False
    stalls: bool = False
    closing: bool = False


@dataclass(slots=True)
class WireProxy:
    """`seen` counts the client's messages since it was armed; `struck` says that one was hit."""

    target: str
    speech: Speech
    seen: int = 0
    struck: bool = False
    port: int = 0
    _fault: Fault | None = None
    _at: int = -1
    _server: asyncio.Server | None = None
    _open: set[_Connection] = field(default_factory=set)

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def arm(self, fault: Fault | None = None, at: int = -1) -> None:
        """The client's message number `at`, counted from now, is hit; without a fault, none is."""
        self.seen, self.struck, self._fault, self._at = 0, False, fault, at

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self._open):
            connection.client.transport.abort()
            connection.server.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back_reader, back_writer = await asyncio.open_unix_connection(self.target)
        except OSError:
            writer.transport.abort()
            return
        connection = _Connection(writer, back_writer)
        self._open.add(connection)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._from_client(reader, connection))
                tasks.create_task(self._from_server(back_reader, connection))
        finally:
            self._open.discard(connection)

    async def _from_client(self, reader: asyncio.StreamReader, connection: _Connection) -> None:
        frames = self.speech.client()
        with suppress(OSError):
            while data := await reader.read(65_536):
                for message in frames.of(data):
                    if connection.closing or connection.stalls:
                        break
                    await self._message(message, connection)
        connection.closing = True
        connection.server.close()
        connection.client.close()

    async def _from_server(self, reader: asyncio.StreamReader, connection: _Connection) -> None:
        frames = self.speech.server()
        with suppress(OSError):
            while data := await reader.read(65_536):
                if connection.loses_replies:
                    if any(map(self.speech.ends_reply, frames.of(data))):
                        break
                    continue
                for _ in frames.of(data):  # keeps its place in the stream
                    pass
                if not connection.stalls:
                    connection.client.write(data)
        if not connection.stalls:
            connection.closing = True
            connection.client.close()
            connection.server.close()

    async def _message(self, message: bytes, connection: _Connection) -> None:
        self.seen += not self.speech.is_farewell(message)
        hit = self._fault is not None and self.seen - 1 == self._at
        if self.struck or not hit or self.speech.is_farewell(message):
            connection.server.write(message)
            return
        self.struck = True
        match self._fault:
            case Fault.STALL:
                connection.stalls = True
            case Fault.LOST_REPLY:
                connection.loses_replies = True
                connection.server.write(message)
            case Fault.CUT:
                _close(connection)
            case Fault.PARTIAL:
                connection.server.write(message[: len(message) // 2])
                _close(connection)
            case Fault.RESET:
                connection.server.write(message)
                raw: socket.socket = connection.client.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                connection.client.transport.abort()
                connection.server.close()


def _close(connection: _Connection) -> None:
    connection.closing = True
    connection.client.close()
    connection.server.close()
