"""The parts of an entry, checked: what is refused names its field and the remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

from mnemic.errors import InvalidInput
from mnemic.model.episode import Outcome
from mnemic.model.normalise import checked_json, checked_time, clean_name, clean_text
from mnemic.model.transcript.entry import Bounds
from mnemic.model.trust import Trust
from mnemic.model.turn import ROLES

__all__ = [
    "json_object",
    "metadata_of",
    "names_of",
    "only_known",
    "outcome_of",
    "required",
    "role_of",
    "tags_of",
    "text_of",
    "time_of",
    "trust_of",
]

NAMES_MAX = 100
SHOWN_CHARS_MAX = 60
_ROLE_OF_ACTOR = {
    "assistant": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "system": "system",
    "tool": "tool",
}
_TRUST_OF_ROLE = {"assistant": Trust.INFERRED, "tool": Trust.EXTERNAL}
_INSTANT = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(:\d\d)?(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)?", re.ASCII
)


def json_object(line: str) -> dict[str, Any]:
    """The JSON object on the line; its keys are unique and its numbers are JSON numbers."""
    try:
        value = json.loads(line, parse_constant=_no_constant, object_pairs_hook=_unique)
    except json.JSONDecodeError as fault:
        raise InvalidInput(
            f"is not JSON ({fault.msg.lower()} at character {fault.colno}); "
            "write one object on one line",
            field="line",
        ) from None
    except RecursionError:
        raise InvalidInput("is nested too deeply; flatten it", field="line") from None
    except ValueError:
        raise InvalidInput(
            "an integer is too long to read; pass it as text", field="line"
        ) from None
    if not isinstance(value, dict):
        raise InvalidInput(f"is a JSON {type(value).__name__}; write an object", field="line")
    return value


def _no_constant(constant: str) -> NoReturn:
    raise InvalidInput(f"{constant} is not a JSON number; pass null or text", field="line")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict[str, Any]()
    for key, value in pairs:
        if key in found:
            raise InvalidInput("is given twice in one object; keep one", field=_shown(key))
        found[key] = value
    return found


def only_known(entry: Mapping[str, Any], known: Collection[str]) -> None:
    """Raises `InvalidInput` for the first key that is not known."""
    for key in entry:
        if key not in known:
            raise InvalidInput(
                f"is not a key of this type; use {', '.join(sorted(known))}", field=_shown(key)
            )


def required(entry: Mapping[str, Any], key: str) -> Any:
    """The value of a key that must be there and not null."""
    if (value := entry.get(key)) is None:
        raise InvalidInput("is missing; give it", field=key)
    return value


def text_of(value: object, *, field: str, bounds: Bounds) -> str:
    """The text as given, if it can be held."""
    return clean_text(value, field=field, chars_max=bounds.text_chars_max)


def time_of(value: object, *, field: str, utc_if_naive: bool = False) -> datetime:
    """The instant of an RFC 3339 text, in UTC; seconds may be left out, a zone may not.

    With `utc_if_naive` a time without a zone is taken as UTC.
    """
    match = _INSTANT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise InvalidInput(
            f"{_shown(value)} is not a time; write it as 2026-03-02T09:00:00Z", field=field
        )
    day, minute, second, fraction, zone = match.groups()
    if zone is None and not utc_if_naive:
        raise InvalidInput(
            f"{_shown(value)} has no zone; write {day}T{minute}{second or ':00'}Z if it is UTC",
            field=field,
        )
    offset = "+00:00" if zone in {None, "Z", "z"} else zone
    try:
        instant = datetime.fromisoformat(
            f"{day}T{minute}{second or ':00'}{(fraction or '')[:7]}{offset}"
        )
    except ValueError as fault:
        raise InvalidInput(
            f"{_shown(value)} is no time ({fault}); correct it", field=field
        ) from None
    return checked_time(instant, field=field).astimezone(UTC)


def role_of(value: object, *, actor: str) -> str:
    """The role given, else the one that the actor's name tells, else user."""
    if value is None:
        return _ROLE_OF_ACTOR.get(actor.casefold(), "user")
    if not isinstance(value, str) or value not in ROLES:
        raise InvalidInput(f"{_shown(value)} is none of {', '.join(ROLES)}", field="role")
    return value


def trust_of(role: str) -> Trust:
    """A person's word is the user's, an assistant's is inferred, a tool's is external."""
    return _TRUST_OF_ROLE.get(role, Trust.USER)


def outcome_of(value: object) -> Outcome | None:
    """The outcome; "completed" is read as success."""
    if value is None:
        return None
    named = "success" if value == "completed" else value
    if not isinstance(named, str) or named not in set(Outcome):
        raise InvalidInput(
            f"{_shown(value)} is none of success, failure, partial, completed", field="outcome"
        )
    return Outcome(named)


def metadata_of(value: object, *, bounds: Bounds) -> dict[str, Any]:
    """The JSON object, if it can be held exactly."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidInput("must be an object", field="metadata")
    held: dict[str, Any] = checked_json(value, field="metadata")
    size = len(json.dumps(held, ensure_ascii=False, separators=(",", ":")).encode())
    if size > bounds.metadata_bytes_max:
        raise InvalidInput(
            f"is {size} bytes long; the most is {bounds.metadata_bytes_max}. Shorten it",
            field="metadata",
        )
    return held


def tags_of(value: object, *, bounds: Bounds) -> tuple[str, ...]:
    """The tags in the order given, each once."""
    return names_of(value, field="tags", count_max=bounds.tags_max)


def names_of(value: object, *, field: str, count_max: int = NAMES_MAX) -> tuple[str, ...]:
    """The names of a list in the order given, each once."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidInput("must be a list of texts", field=field)
    if len(value) > count_max:
        raise InvalidInput(f"holds {len(value)}; the most is {count_max}", field=field)
    named = (clean_name(item, field=f"{field}[{place}]") for place, item in enumerate(value))
    return tuple(dict.fromkeys(named))


def _shown(value: object) -> str:
    """The value for a message: quoted, on one line, and short."""
    quoted = repr(value[:SHOWN_CHARS_MAX]) if isinstance(value, str) else repr(value)
    return quoted if len(quoted) <= SHOWN_CHARS_MAX else f"{quoted[: SHOWN_CHARS_MAX - 1]}…"
