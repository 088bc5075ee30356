"""The values that a filter compares with: each in the type of its field, or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from mnemic.errors import InvalidInput
from mnemic.model.episode import Outcome
from mnemic.model.filter_fields import Field, FieldType, instant_of
from mnemic.model.normalise import checked_json, checked_time, held_text, shown
from mnemic.model.trust import Trust

__all__ = ["TEXT_CHARS_MAX", "time_text", "value_of"]

TEXT_CHARS_MAX = 10_000


def value_of(known: Field, name: str, value: object, at: str) -> Any:
    """The value in the type of the field; null is the same for all."""
    return None if value is None else _READERS[known.type](known, name, value, at)


def _refused(known: Field, name: str, value: object, at: str) -> InvalidInput:
    wanted = FieldType.TEXT if known.type is FieldType.TEXTS else known.type
    several = "; for several use in" if isinstance(value, list) else ""
    return InvalidInput(f"{name} must be {wanted.value}, not {shown(value)}{several}", field=at)


def _text(known: Field, name: str, value: object, at: str) -> str:
    if not isinstance(value, str):
        raise _refused(known, name, value, at)
    if len(value) > TEXT_CHARS_MAX:
        raise InvalidInput(f"a text must have at most {TEXT_CHARS_MAX} characters", field=at)
    return held_text(value, field=at)


def _scalar(known: Field, name: str, value: object, at: str) -> Any:
    """A value of JSON that is neither a list nor an object; of a datetime its text."""
    if isinstance(value, str):
        return _text(known, name, value, at)
    if isinstance(value, datetime):
        return time_text(_plain_time(value, at), at)
    if not isinstance(value, (bool, int, float)):
        raise _refused(known, name, value, at)
    return checked_json(value, field=at)


def _number(known: Field, name: str, value: object, at: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _refused(known, name, value, at)
    return float(checked_json(value, field=at))


def _flag(known: Field, name: str, value: object, at: str) -> bool:
    if not isinstance(value, bool):
        raise _refused(known, name, value, at)
    return value


def _chosen(known: Field, name: str, value: object, at: str) -> str:
    if value == "completed" and name == "outcome":
        return str(Outcome.SUCCESS.value)
    found = next((one for one in known.choices if one == value), None)
    if found is None:
        raise InvalidInput(
            f"{name} must be one of {', '.join(known.choices)}, not {shown(value)}", field=at
        )
    return str.__str__(found)


def _trust(_known: Field, _name: str, value: object, at: str) -> int:
    if isinstance(value, str) and value.upper() in Trust.__members__:
        return int(Trust[value.upper()])
    if isinstance(value, int) and not isinstance(value, bool) and value in tuple(Trust):
        return int(value)
    names = ", ".join(f"{one.value} ({one.name.lower()})" for one in Trust)
    raise InvalidInput(f"trust must be one of {names}, not {shown(value)}", field=at)


def _time(known: Field, name: str, value: object, at: str) -> datetime:
    found = instant_of(value) if isinstance(value, str) else value
    if not isinstance(found, datetime):
        raise _refused(known, name, value, at)
    return _plain_time(found, at)


def _plain_time(value: datetime, at: str) -> datetime:
    """The instant in UTC, as a datetime and no class of its own."""
    time = checked_time(value, field=at)
    parts = (time.hour, time.minute, time.second, time.microsecond)
    return datetime(time.year, time.month, time.day, *parts, tzinfo=UTC)


def time_text(value: datetime, at: str) -> str:
    """A time in UTC as JSON tells it. `InvalidInput` if its text is not read as a time."""
    text = value.isoformat()
    if instant_of(text) is None:
        raise InvalidInput(
            f"a time in metadata and in JSON must lie in the years 1000 to 8999 of UTC, and this "
            f"one is in {value.year}; use a time within them, or leave the condition out",
            field=at,
        )
    return text


def _id(known: Field, name: str, value: object, at: str) -> UUID:
    if isinstance(value, UUID):
        return UUID(int=value.int)
    try:
        return UUID(value if isinstance(value, str) else "")
    except ValueError:
        raise _refused(known, name, value, at) from None


_READERS: dict[FieldType, Callable[[Field, str, object, str], Any]] = {
    FieldType.CHOICE: _chosen,
    FieldType.TEXT: _text,
    FieldType.TEXTS: _text,
    FieldType.NUMBER: _number,
    FieldType.TRUST: _trust,
    FieldType.TIME: _time,
    FieldType.FLAG: _flag,
    FieldType.ID: _id,
    FieldType.JSON: _scalar,
}
