"""Tells the format of a transcript file and reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mnemic.errors import InvalidInput, UnknownFormat
from mnemic.model.transcript.document import Document
from mnemic.model.transcript.entry import Bounds, Entry, Format, bad_line
from mnemic.model.transcript.lines import BYTE_ORDER_MARK, CHUNK_BYTES, Readable, Source
from mnemic.model.transcript.locomo import is_locomo_key, read_locomo
from mnemic.model.transcript.ndjson import read_ndjson
from mnemic.model.transcript.plain import is_plain_line, read_plain

__all__ = ["detect", "read"]

LINES_LOOKED_AT = 50
_REFUSED_STARTS = {
    b"\x1f\x8b": "is compressed with gzip; unpack it first",
    b"PK\x03\x04": "is a zip archive; unpack it first",
    b"\xff\xfe": "is UTF-16; save it as UTF-8",
    b"\xfe\xff": "is UTF-16; save it as UTF-8",
}
_NAMES = ", ".join(Format)


def detect(source: Path | bytes) -> Format:
    """The format of a file, told by its first 64 kB (or fewer bytes).

    Raises `UnknownFormat` when it is none that can be read, with the remedy.
    """
    if isinstance(source, Path):
        with source.open("rb") as stream:
            return detect(stream.read(CHUNK_BYTES))
    for signature, remedy in _REFUSED_STARTS.items():
        if source.startswith(signature):
            raise UnknownFormat(remedy, field="file")
    text = source.removeprefix(BYTE_ORDER_MARK).decode(errors="replace")
    start = text.lstrip()
    if not start:
        raise UnknownFormat("holds nothing to read", field="file")
    if start[0] == "{":
        return _of_object(start)
    if start[0] == "[" and start[1:].lstrip()[:1] in {"{", "]"}:
        return Format.LOCOMO
    if any(is_plain_line(line.removesuffix("\r")) for line in text.split("\n")[:LINES_LOOKED_AT]):
        return Format.PLAIN
    raise UnknownFormat(
        f"is none of the forms that can be read: {_NAMES}; in plain text a turn is `Name: text`, "
        "the name with a capital",
        field="file",
    )


def _of_object(text: str) -> Format:
    """LoCoMo if a key of the first object is one of its own, else lines of JSON."""
    document = Document(text)
    try:
        for key in document.members():
            if key == "type":
                return Format.NDJSON
            if is_locomo_key(key):
                return Format.LOCOMO
            document.value()
    except InvalidInput:
        # The head breaks off inside a value, or the line is bad and will be told by its number.
        return Format.NDJSON
    return Format.NDJSON


def read(
    source: Path | Readable,
    *,
    format: Format | None = None,  # noqa: A002 - the word that callers look for
    name: str | None = None,
    bounds: Bounds | None = None,
) -> Iterator[Entry]:
    """The entries of a file or open stream, in order; what cannot be held comes as `BadLine`.

    `name` stands for the file in the names of sessions that have none of their own (default: the
    path's stem). A second reading gives the same entries. Nothing in the file raises; only
    opening and reading it can (`OSError`).
    """
    if isinstance(source, Path):
        with source.open("rb") as stream:
            yield from read(stream, format=format, name=name or source.stem, bounds=bounds)
        return
    count = 0
    for entry in _entries(source, format, name, bounds or Bounds()):
        count += 1
        yield entry
    if not count:
        yield bad_line(1, "the file holds no turn and no fact; is it the right one?")


def _entries(
    source: Readable,
    format: Format | None,  # noqa: A002 - as above
    name: str | None,
    within: Bounds,
) -> Iterator[Entry]:
    opened = Source(source)
    try:
        told = detect(opened.head) if format is None else Format(format)
    except UnknownFormat as unknown:
        yield bad_line(1, unknown)
        return
    if told is Format.NDJSON:
        yield from read_ndjson(opened, bounds=within)
    elif told is Format.LOCOMO:
        yield from read_locomo(opened, name=name, bounds=within)
    else:
        yield from read_plain(opened, name=name, bounds=within)
