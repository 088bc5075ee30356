"""Checks that stand before every verb: what is accepted here reads back equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from mnemic.errors import InvalidInput
from mnemic.model.episode import Outcome
from mnemic.model.normalise import checked_json, checked_time, clean_name, clean_text
from mnemic.model.scope import MemoryScope, Scope
from mnemic.model.trust import Trust
from mnemic.model.turn import ROLES, TurnCreate
from mnemic.settings import LimitSettings

__all__ = [
    "checked_key",
    "checked_limit",
    "checked_list",
    "checked_metadata",
    "checked_outcome",
    "checked_query",
    "checked_source",
    "checked_tags",
    "checked_trust",
    "checked_turn",
    "session_scope",
]

KEY_CHARS_MAX = 500
SOURCE_CHARS_MAX = 200


def checked_metadata(value: object, limits: LimitSettings) -> dict[str, Any]:
    """A JSON object within `limits.metadata_bytes_max` bytes."""
    if not isinstance(value, Mapping):
        raise InvalidInput("must be an object with text keys", field="metadata")
    checked: dict[str, Any] = checked_json(value, field="metadata")
    size = len(orjson.dumps(checked))
    if size > limits.metadata_bytes_max:
        raise InvalidInput(
            f"is {size} bytes long; the most is {limits.metadata_bytes_max}", field="metadata"
        )
    return checked


def checked_tags(value: Sequence[str], limits: LimitSettings) -> tuple[str, ...]:
    """Tags as given, each once."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInput("must be a list of texts", field="tags")
    if len(value) > limits.tags_max:
        raise InvalidInput(f"holds {len(value)}; the most is {limits.tags_max}", field="tags")
    return tuple(dict.fromkeys(clean_text(tag, field="tags", chars_max=200) for tag in value))


def checked_trust(value: object) -> Trust:
    """How far something may be believed, from 0 (the operator) to 5 (an import)."""
    try:
        return Trust(value)  # type: ignore[arg-type]
    except ValueError:
        raise InvalidInput(f"must be a Trust from 0 to 5, not {value!r}", field="trust") from None


def checked_source(value: object) -> str:
    """Where something came from: a label on one line."""
    return clean_name(value, field="source", chars_max=SOURCE_CHARS_MAX)


def checked_list(value: object, *, field: str, items_max: int) -> list[Any]:
    """The items of a list or tuple of at most `items_max`; text is not a list."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise InvalidInput(f"must be a list, not {type(value).__name__}", field=field)
    if len(value) > items_max:
        raise InvalidInput(f"holds {len(value)}; the most is {items_max}", field=field)
    return list(value)


def checked_limit(value: int | None, *, default: int, largest: int) -> tuple[int, bool]:
    """The effective limit, and whether it was cut to the largest one."""
    if value is None:
        return default, False
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput("must be a whole number", field="limit")
    if value < 1:
        raise InvalidInput(f"must be at least 1, not {value}", field="limit")
    return min(value, largest), value > largest


def checked_query(value: str, limits: LimitSettings) -> str:
    """A question that can be asked: text of at most `limits.query_chars_max` characters."""
    return clean_text(value, field="query", chars_max=limits.query_chars_max)


def checked_key(value: str | None) -> str | None:
    """An idempotency key: text of at most 500 characters."""
    if value is None:
        return None
    return clean_text(value, field="idempotency_key", chars_max=KEY_CHARS_MAX)


def checked_outcome(value: object) -> Outcome | None:
    """success, failure or partial; "completed" means success."""
    if value is None or isinstance(value, Outcome):
        return value
    if value == "completed":
        return Outcome.SUCCESS
    try:
        return Outcome(str(value))
    except ValueError:
        raise InvalidInput(
            f"must be success, failure or partial, not {value!r}", field="outcome"
        ) from None


def checked_turn(turn: TurnCreate, limits: LimitSettings) -> TurnCreate:
    """The turn if it can be held, with its time in UTC."""
    if not isinstance(turn, TurnCreate):
        raise InvalidInput(f"must be TurnCreates, not {type(turn).__name__}", field="turns")
    if turn.role not in ROLES:
        raise InvalidInput(f"must be one of {', '.join(ROLES)}, not {turn.role!r}", field="role")
    longest = limits.text_chars_max
    return replace(
        turn,
        text=clean_text(turn.text, field="text", chars_max=longest),
        actor=clean_name(turn.actor, field="actor"),
        caption=clean_text(turn.caption, field="caption", chars_max=longest)
        if turn.caption is not None
        else None,
        external_id=clean_text(turn.external_id, field="external_id", chars_max=KEY_CHARS_MAX)
        if turn.external_id is not None
        else None,
        occurred_at=checked_time(turn.occurred_at, field="occurred_at"),
        metadata=checked_metadata(turn.metadata, limits),
        tags=checked_tags(turn.tags, limits),
        trust=checked_trust(turn.trust),
        source=checked_source(turn.source),
    )


def session_scope(scope: Scope) -> Scope:
    """The scope, if it names a session."""
    if scope.level is not MemoryScope.SESSION:
        raise InvalidInput(
            "must name a session: scope.session('…')", field="scope", level=scope.level.value
        )
    return scope
