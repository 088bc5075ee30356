"""Numbered lines of a stream, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Protocol

from mnemic.model.transcript.entry import BadLine, bad_line

__all__ = ["LINE_BYTES_MAX", "Readable", "Source", "numbered_lines", "whole_text"]

CHUNK_BYTES = 65_536
# The longest text that can be set (1,000,000 characters), each as two JSON escapes, and room.
LINE_BYTES_MAX = 16 * 1_048_576
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Readable(Protocol):
    """Any open file: binary, or text."""

    def read(self, size: int, /) -> bytes | str:
        """At most `size` bytes or characters; nothing at the end."""
        ...


class Source:
    """A stream whose first bytes (`head`, at most 64 kB) can be looked at before it is read."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        parts, size = list[bytes](), 0
        while size < CHUNK_BYTES and (chunk := self._next()):
            parts.append(chunk)
            size += len(chunk)
        self.head = b"".join(parts)

    def chunks(self) -> Iterator[bytes]:
        """All bytes once, without a byte order mark; what is text already comes as UTF-8."""
        return chain([self.head.removeprefix(BYTE_ORDER_MARK)], iter(self._next, b""))

    def _next(self) -> bytes:
        chunk = self._stream.read(CHUNK_BYTES)
        return chunk.encode("utf-8", "surrogatepass") if isinstance(chunk, str) else chunk


def numbered_lines(source: Source) -> Iterator[tuple[int, str] | BadLine]:
    r"""Each line with its number from 1, without its ending (`\n` or `\r\n`).

    What is not UTF-8, or longer than 16 MiB, is a `BadLine`; no more than one line is held.
    """
    number, parts, size = 1, list[bytes](), 0
    for chunk in source.chunks():
        for place, piece in enumerate(chunk.split(b"\n")):
            if place:
                yield _decoded(number, parts, size)
                number, parts, size = number + 1, [], 0
            size += len(piece)
            if size <= LINE_BYTES_MAX:
                parts.append(piece)
    if size:
        yield _decoded(number, parts, size)


def _decoded(number: int, parts: list[bytes], size: int) -> tuple[int, str] | BadLine:
    if size > LINE_BYTES_MAX:
        return bad_line(number, f"line: is longer than {LINE_BYTES_MAX} bytes; split it")
    raw = b"".join(parts)
    try:
        return number, raw.removesuffix(b"\r").decode()
    except UnicodeDecodeError as fault:
        return bad_line(number, f"line: byte {fault.start + 1} is not UTF-8; save it as UTF-8")


def whole_text(source: Source, *, bytes_max: int) -> str | BadLine:
    """All of the stream, or why it cannot be held."""
    parts, size = list[bytes](), 0
    for chunk in source.chunks():
        size += len(chunk)
        if size > bytes_max:
            return bad_line(1, f"file: is longer than {bytes_max} bytes; split it")
        parts.append(chunk)
    raw = b"".join(parts)
    try:
        return raw.decode()
    except UnicodeDecodeError as fault:
        number = raw.count(b"\n", 0, fault.start) + 1
        return bad_line(number, "file: is not UTF-8 on this line; save it as UTF-8")
