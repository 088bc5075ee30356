"""What a filter may ask of: the fields of each kind of memory, and the types of their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from mnemic.model.episode import Outcome
from mnemic.model.turn import ROLES

__all__ = ["FIELDS", "INSTANT", "KINDS", "METADATA", "Field", "FieldType", "instant_of"]

KINDS = ("turn", "episode", "fact", "procedure")
METADATA = "metadata"

# Read by PostgreSQL and by Python, so of what both write in the same way. Neither takes every one
# that it fits: there is no 30th of February. Years 1000 to 8999 are within the bounds of both.
INSTANT = (
    "^[1-8][0-9]{3}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?"
    "(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$"
)
_INSTANT = re.compile(INSTANT)


class FieldType(Enum):
    """What the values of a field are, and so what they may be compared with."""

    CHOICE = "one of a few words"
    TEXT = "text"
    TEXTS = "a list of texts"
    NUMBER = "a number"
    TRUST = "a trust, by number or name"
    TIME = "a time with a zone such as 2026-03-01T09:00:00Z"
    FLAG = "true or false"
    ID = "an id that a reply gave (a UUID)"
    JSON = "a text, a number, true, false or null"


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its type, and what it is called in each kind of memory that has it."""

    type: FieldType
    of: Mapping[str, str]
    choices: tuple[str, ...] = ()


def _in(name: str, *kinds: str) -> dict[str, str]:
    return dict.fromkeys(kinds or KINDS, name)


_WHEN = {**_in("occurred_at"), "fact": "last_reinforced", "procedure": "recorded_at"}
FIELDS: dict[str, Field] = {
    "kind": Field(FieldType.CHOICE, {}, KINDS),
    "outcome": Field(FieldType.CHOICE, _in("outcome", "episode"), tuple(Outcome)),
    "task_type": Field(FieldType.TEXT, _in("task_type", "episode", "procedure")),
    "tags": Field(FieldType.TEXTS, _in("tags")),
    "trust": Field(FieldType.TRUST, _in("trust")),
    "source": Field(FieldType.TEXT, _in("source")),
    "occurred_at": Field(FieldType.TIME, _WHEN),
    "recorded_at": Field(FieldType.TIME, _in("recorded_at")),
    "importance": Field(FieldType.NUMBER, _in("importance_score", "episode")),
    "confidence": Field(FieldType.NUMBER, _in("confidence", "fact")),
    "actor": Field(FieldType.TEXT, _in("actor", "turn")),
    "role": Field(FieldType.CHOICE, _in("role", "turn"), ROLES),
    "session": Field(FieldType.ID, _in("session_id", "turn", "episode")),
    "category": Field(FieldType.TEXT, _in("category", "fact")),
    "subject": Field(FieldType.TEXT, _in("subject", "fact")),
    "predicate": Field(FieldType.TEXT, _in("predicate", "fact")),
    "object": Field(FieldType.TEXT, _in("object", "fact")),
    "pinned": Field(FieldType.FLAG, _in("pinned", "fact")),
    "valid_from": Field(FieldType.TIME, _in("valid_from", "fact")),
    "valid_to": Field(FieldType.TIME, _in("valid_to", "fact")),
    "name": Field(FieldType.TEXT, _in("name", "procedure")),
    "key_topics": Field(FieldType.TEXTS, _in("key_topics", "episode")),
    "tools_used": Field(FieldType.TEXTS, _in("tools_used", "episode")),
    METADATA: Field(FieldType.JSON, _in(METADATA)),
}
"""What may be asked of, by the name in a filter. `occurred_at` is a hit's own."""


def instant_of(text: str) -> datetime | None:
    """The instant, if the text is a full time with a zone and nothing else."""
    if not _INSTANT.match(text) or text.endswith("\n"):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
