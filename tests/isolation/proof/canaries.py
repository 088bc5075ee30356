"""What an answer holds: the tokens that were planted in texts, ids, and its shape without them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import UUID

from mnemic.errors import MnemicError

__all__ = ["ids_in", "shape_of", "shown", "shown_error", "token", "tokens_in"]

_TOKEN = re.compile(r"cn[0-9a-f]{8}z", re.IGNORECASE)
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TOOK = re.compile(r"took=datetime\.timedelta\([^)]*\)")
_CAUSES_MAX = 5


def token(number: int) -> str:
    """A word that stands in one text alone; no case, stem or title changes it."""
    return f"cn{number:08x}z"


def tokens_in(text: str) -> set[str]:
    """The tokens of a text, however they are spelt."""
    return {found.lower() for found in _TOKEN.findall(text)}


def ids_in(text: str) -> set[UUID]:
    """The ids of a text."""
    return {UUID(found) for found in _ID.findall(text)}


def shown(value: object) -> str:
    """Everything a caller can read in the value: `repr` of frozen values, but for its duration."""
    return _TOOK.sub("took=…", repr(value))


def shown_error(fault: BaseException) -> str:
    """Class, text and context of the fault and of what caused it."""
    parts = []
    for one in _causes(fault):
        context = f" {one.context!r}" if isinstance(one, MnemicError) else ""
        parts.append(f"{type(one).__name__}: {one}{context}")
    return " <- ".join(parts)


def _causes(fault: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = fault
    for _ in range(_CAUSES_MAX):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__


def shape_of(text: str) -> str:
    """The text with every id and token replaced by its place of first appearance."""
    places: dict[str, str] = {}

    def place(found: re.Match[str]) -> str:
        return places.setdefault(found[0].lower(), f"<{len(places)}>")

    return _TOKEN.sub(place, _ID.sub(place, text))
