"""What a transcript file holds, entry by entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from mnemic.model.episode import Outcome
from mnemic.model.fact import FactCreate
from mnemic.model.turn import TurnCreate

__all__ = [
    "BadLine",
    "Bounds",
    "Entry",
    "Format",
    "SessionInfo",
    "StatedFact",
    "Utterance",
    "bad_line",
]

REASON_CHARS_MAX = 300


class Format(StrEnum):
    """The forms of file that can be read."""

    NDJSON = "ndjson"
    LOCOMO = "locomo"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How large the parts of an entry may be; the defaults are those of the settings."""

    text_chars_max: int = 100_000
    metadata_bytes_max: int = 65_536
    tags_max: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """A turn, the session it belongs to by its name in the file, and the line it starts on.

    `turn.external_id` is always set, and the same in each reading of the same file.
    """

    session: str
    turn: TurnCreate
    project: str | None = None
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """What the file says of a session as a whole; it comes before the turns it speaks of."""

    name: str
    started_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: Outcome | None = None
    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    project: str | None = None
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFact:
    """A fact that the file states outright; `external_id` is the same in each reading."""

    fact: FactCreate
    external_id: str
    session: str | None = None
    project: str | None = None
    line: int


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be held: its number from 1, and a reason with field and remedy."""

    number: int
    reason: str


Entry = Utterance | SessionInfo | StatedFact | BadLine


def bad_line(number: int, reason: object) -> BadLine:
    """A `BadLine` whose reason is one printable line of at most 300 characters."""
    line = " ".join(str(reason)[: 2 * REASON_CHARS_MAX].split())
    shown = "".join(mark if mark.isprintable() else f"\\u{ord(mark):04x}" for mark in line)
    if len(shown) > REASON_CHARS_MAX:
        shown = f"{shown[: REASON_CHARS_MAX - 1]}…"
    return BadLine(number, shown)
