"""Where one message ends and the next begins, in what a client or a server sends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

_SSL_REQUEST = 80_877_103
_INT = 4


class Frames(Protocol):
    """Cuts a stream into messages; what is not whole yet waits for the rest."""

    def of(self, data: bytes) -> Iterator[bytes]: ...


class PostgresClient:
    """The first message has no type byte; all others have."""

    def __init__(self) -> None:
        self._held = b""
        self._started = False

    def of(self, data: bytes) -> Iterator[bytes]:
        self._held += data
        while True:
            head = 0 if not self._started else 1
            if len(self._held) < head + _INT:
                return
            size = head + int.from_bytes(self._held[head : head + _INT])
            if len(self._held) < size:
                return
            message, self._held = self._held[:size], self._held[size:]
            if not self._started:
                self._started = int.from_bytes(message[4:8]) != _SSL_REQUEST
            yield message


class PostgresServer:
    """Every message has a type byte."""

    def __init__(self) -> None:
        self._held = b""

    def of(self, data: bytes) -> Iterator[bytes]:
        self._held += data
        while len(self._held) > _INT:
            size = 1 + int.from_bytes(self._held[1:5])
            if len(self._held) < size:
                return
            message, self._held = self._held[:size], self._held[size:]
            yield message


class ValkeyClient:
    """Commands are arrays of bulk strings."""

    def __init__(self) -> None:
        self._held = b""

    def of(self, data: bytes) -> Iterator[bytes]:
        self._held += data
        while (size := self._whole()) is not None:
            message, self._held = self._held[:size], self._held[size:]
            yield message

    def _whole(self) -> int | None:
        place = self._held.find(b"\r\n")
        if place < 0:
            return None
        parts = int(self._held[1:place])
        place += 2
        for _ in range(parts):
            end = self._held.find(b"\r\n", place)
            if end < 0:
                return None
            place = end + 2 + int(self._held[place + 1 : end]) + 2
        return place if len(self._held) >= place else None


class Chunks:
    """Each read is a message: good enough where answers are only dropped."""

    def of(self, data: bytes) -> Iterator[bytes]:
        yield data
