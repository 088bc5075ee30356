"""The standard streams as a transport: every line that comes in is answered or understood.

The SDK's own transport reads with a thread that cannot be told to stop, so that SIGTERM would
wait for the client; and it drops a line that it cannot read (half of an emoji is enough) without
a word, so that the client would wait for ever.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from concurrent.futures import CancelledError
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic import ValidationError

from mnemic.model.normalise import shown

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

__all__ = ["Exchange", "InputLines", "repeated_key", "unreadable"]

LINE_BYTES_MAX = 16 * 1024 * 1024
LINE_BYTES_KEPT = 4_096
LINES_WAITING_MAX = 64
CHUNK_BYTES = 65_536
INTEGER_DIGITS_MAX = 19
GRACE_SECONDS = 1.5  # a client that closed our input kills us after two
CANCELLED = "notifications/cancelled"
# At the end of a line, so that it is no JSON: a strict parser would keep one value without a word.
REPEATS = "\udcff"


class InputLines:
    """The lines of a descriptor, until it ends or `end` is called; blank ones are left out.

    A line over `LINE_BYTES_MAX` comes cut to `LINE_BYTES_KEPT`, and is no JSON any more. What is
    not UTF-8 comes as lone surrogates, which is no JSON either; so does an object with a key twice.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(LINES_WAITING_MAX)
        threading.Thread(target=self._read, name="mnemic-stdin", daemon=True).start()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def end(self) -> None:
        """No further line comes. To be called on the loop."""
        while not self._lines.empty():
            self._lines.get_nowait()
        self._lines.put_nowait(None)

    def _read(self) -> None:
        held = bytearray()
        while chunk := self._chunk():
            for place, part in enumerate(chunk.split(b"\n")):
                if place:
                    self._pass_on(held)
                    held.clear()
                if len(held) <= LINE_BYTES_MAX:
                    held += part
        self._pass_on(held)
        self._put(None)

    def _chunk(self) -> bytes:
        try:
            return os.read(self._descriptor, CHUNK_BYTES)
        except OSError:
            return b""

    def _pass_on(self, held: bytearray) -> None:
        if len(held) > LINE_BYTES_MAX:
            del held[LINE_BYTES_KEPT:]
        if not held.isspace() and held:
            line = held.decode(errors="surrogateescape")
            self._put(line if repeated_key(line) is None else line + REPEATS)

    def _put(self, line: str | None) -> None:
        """The line waits to be read, once there is room for it."""
        putting = self._lines.put(line)
        try:
            asyncio.run_coroutine_threadsafe(putting, self._loop).result()
        except (RuntimeError, CancelledError):  # the loop has ended, and with it the reader
            putting.close()


class Exchange:
    """What comes in from a client: the sender of a line that cannot be read is told so.

    When nothing comes any more, the calls that are running may still be answered, for
    `GRACE_SECONDS` together.
    """

    def __init__(
        self,
        incoming: ReadStream[SessionMessage | Exception],
        outgoing: WriteStream[SessionMessage],
    ) -> None:
        self.answers = _Answers(self, outgoing)
        self._incoming = incoming
        self._running: set[RequestId] = set()
        self._quiet = asyncio.Event()

    def answered(self, number: RequestId | None) -> None:
        """The call is no longer waited for."""
        if number is not None:
            self._running.discard(number)
        if not self._running:
            self._quiet.set()

    async def receive(self) -> SessionMessage | Exception:
        """The next message that can be read."""
        return await self.__anext__()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            while isinstance(item := await self._incoming.__anext__(), Exception):
                await self.answers.send(SessionMessage(unreadable(item)))
        except StopAsyncIteration:
            await self._let_calls_end()
            raise
        self._note(item.message)
        return item

    def _note(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest) and message.method == "tools/call":
            self._running.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == CANCELLED:
            self.answered((message.params or {}).get("requestId"))

    async def _let_calls_end(self) -> None:
        if self._running:
            self._quiet.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._quiet.wait(), GRACE_SECONDS)

    async def aclose(self) -> None:
        """Nothing further comes in."""
        await self._incoming.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Answers:
    """What goes out, noted by the exchange."""

    def __init__(self, exchange: Exchange, outgoing: WriteStream[SessionMessage]) -> None:
        self._exchange = exchange
        self._outgoing = outgoing

    async def send(self, item: SessionMessage, /) -> None:
        await self._outgoing.send(item)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._exchange.answered(item.message.id)

    async def aclose(self) -> None:
        await self._outgoing.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def unreadable(fault: Exception) -> JSONRPCError:
    """The answer to a line that is no message, under the id of its request if that can be found."""
    line: object = None
    twice: str | None = None
    code = PARSE_ERROR
    if isinstance(fault, ValidationError):
        first = fault.errors(include_url=False)[0]
        line = first["input"]
        if first["type"] not in {"json_invalid", "string_unicode"}:
            code = INVALID_REQUEST
    if isinstance(line, str) and line.endswith(REPEATS):
        line = line.removesuffix(REPEATS)
        twice = repeated_key(line)
    told = (
        "The message is not JSON-RPC: look at its fields."
        if code == INVALID_REQUEST
        else "The message is not JSON in UTF-8. Remove lone surrogates (half of an emoji), write "
        f"numbers within 64 bits, nest less, and stay under {LINE_BYTES_MAX} bytes."
    )
    if twice is not None:
        told = f"An object gives the key {shown(twice)} twice; keep one."
    return JSONRPCError(
        jsonrpc="2.0", id=_request_id(line), error=ErrorData(code=code, message=told)
    )


class _Twice(Exception):
    """An object gives a key twice."""


def repeated_key(line: str) -> str | None:
    """The key that an object of the line gives twice; nothing also for what is no JSON."""

    def each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:
            if key in found:
                raise _Twice(key)
            found[key] = value
        return found

    try:
        json.loads(line, object_pairs_hook=each_once, parse_int=_small_integer)
    except _Twice as fault:
        return str(fault)
    except (ValueError, RecursionError):
        return None
    return None


def _request_id(line: object) -> RequestId | None:
    """The id of the request, read by a parser that takes what the strict one refuses."""
    if isinstance(line, str):
        try:
            line = json.loads(line, parse_int=_small_integer)
        except (ValueError, RecursionError):
            return None
    if not isinstance(line, dict) or "method" not in line:
        return None
    found = line.get("id")
    if isinstance(found, str) and found.isascii():
        return found
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _small_integer(digits: str) -> int | None:
    return int(digits) if len(digits) < INTEGER_DIGITS_MAX else None
