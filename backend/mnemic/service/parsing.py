"""Checks that stand before every verb: what is accepted here reads back equal.

Whatever calls, Python, the command line or a model by MCP, comes through here; an edge adds none of
its own. What a text, a time, a number or a JSON value must be is said in `model.normalise`, the
bounds stand in the settings (`limits`, `working`) and beside the checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import orjson

from mnemic.errors import InvalidInput
from mnemic.model.episode import Outcome
from mnemic.model.fact import FactCreate
from mnemic.model.moment import Moment
from mnemic.model.normalise import (
    checked_json,
    checked_time,
    checked_unit,
    clean_name,
    clean_text,
    shown,
)
from mnemic.model.scope import MemoryScope, Scope
from mnemic.model.trust import Trust
from mnemic.model.turn import ROLES, TurnCreate
from mnemic.settings import LimitSettings

__all__ = [
    "changes",
    "checked_fact",
    "checked_flag",
    "checked_given",
    "checked_id",
    "checked_idempotency_key",
    "checked_ids",
    "checked_limit",
    "checked_list",
    "checked_metadata",
    "checked_moment",
    "checked_object",
    "checked_outcome",
    "checked_query",
    "checked_scope",
    "checked_source",
    "checked_tags",
    "checked_trust",
    "checked_turn",
    "one_outcome",
    "session_scope",
]

KEY_CHARS_MAX = 500
SOURCE_CHARS_MAX = 200
TAG_CHARS_MAX = 200
PREDICATE_CHARS_MAX = 100
CATEGORY_CHARS_MAX = 100
TASK_TYPE_CHARS_MAX = 100
REASON_CHARS_MAX = 1_000

T = TypeVar("T")


def checked_given(value: object, kind: type[T], *, field: str) -> T:
    """The value if it is one of `kind`; a dict of the same fields is none."""
    if not isinstance(value, kind):
        raise InvalidInput(
            f"must be of the type {kind.__name__}, not {type(value).__name__}", field=field
        )
    return value


def checked_scope(value: object, *, field: str = "scope") -> Scope:
    """Whose memory: a `Scope`, which checked its own names when it was made."""
    if not isinstance(value, Scope):
        raise InvalidInput(
            f"must be a Scope, for example Scope.user('u-17'), not {type(value).__name__}",
            field=field,
        )
    return value


def checked_flag(value: object, *, field: str) -> bool:
    """True or false; neither 1 nor "true"."""
    if not isinstance(value, bool):
        raise InvalidInput(f"must be true or false, not {shown(value)}", field=field)
    return value


def checked_id(value: object, *, field: str) -> UUID:
    """The id, also of the text that it becomes in JSON."""
    if isinstance(value, UUID):
        return value
    try:
        return UUID(checked_given(value, str, field=field))
    except ValueError:
        raise InvalidInput(
            f"must be an id that a reply gave (a UUID), not {shown(value)}", field=field
        ) from None


def checked_ids(value: object, *, field: str, items_max: int) -> list[UUID]:
    """Each id of a list once, in the order given; at least one, at most `items_max`."""
    given = checked_list(value, field=field, items_max=items_max)
    if not given:
        raise InvalidInput("must name at least one", field=field)
    return list(dict.fromkeys(checked_id(one, field=field) for one in given))


def checked_object(value: object, *, field: str, bytes_max: int) -> dict[str, Any]:
    """A JSON object of at most `bytes_max` bytes."""
    if not isinstance(value, Mapping):
        raise InvalidInput(
            f"must be an object with text keys, not {type(value).__name__}", field=field
        )
    checked: dict[str, Any] = checked_json(value, field=field)
    size = len(orjson.dumps(checked))
    if size > bytes_max:
        raise InvalidInput(
            f"is {size} bytes long; the most is {bytes_max}. Shorten it", field=field
        )
    return checked


def checked_metadata(value: object, limits: LimitSettings) -> dict[str, Any]:
    """A JSON object within `limits.metadata_bytes_max` bytes."""
    return checked_object(value, field="metadata", bytes_max=limits.metadata_bytes_max)


def checked_moment(as_of: datetime | None, known_at: datetime | None) -> Moment:
    """When it is asked of, in UTC. Raises `InvalidInput`, as for any time."""
    return Moment(
        as_of=None if as_of is None else checked_time(as_of, field="as_of"),
        known_at=None if known_at is None else checked_time(known_at, field="known_at"),
    )


def checked_tags(value: object, limits: LimitSettings) -> tuple[str, ...]:
    """Tags as given, each once."""
    given = checked_list(value, field="tags", items_max=limits.tags_max)
    return tuple(
        dict.fromkeys(clean_text(tag, field="tags", chars_max=TAG_CHARS_MAX) for tag in given)
    )


def checked_trust(value: object) -> Trust:
    """How far something may be believed, from 0 (the operator) to 5 (an import)."""
    try:
        if type(value) in {int, Trust}:
            return Trust(value)  # type: ignore[arg-type]
    except ValueError:
        pass
    raise InvalidInput(f"must be a Trust from 0 to 5, not {shown(value)}", field="trust")


def checked_source(value: object) -> str:
    """Where something came from: a label on one line."""
    return clean_name(value, field="source", chars_max=SOURCE_CHARS_MAX)


def checked_list(value: object, *, field: str, items_max: int) -> list[Any]:
    """The items of a list or tuple of at most `items_max`; text is not a list."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise InvalidInput(f"must be a list, not {type(value).__name__}", field=field)
    if len(value) > items_max:
        raise InvalidInput(f"holds {len(value)}; the most is {items_max}. Split it", field=field)
    return list(value)


def checked_limit(value: object, *, largest: int, default: int | None = None) -> tuple[int, bool]:
    """The effective limit, and whether it was cut to the largest one.

    It may be left out (None) where there is a default.
    """
    if value is None and default is not None:
        return default, False
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"must be a whole number, not {type(value).__name__}", field="limit")
    if value < 1:
        raise InvalidInput(f"must be at least 1, not {shown(value)}", field="limit")
    return int(min(value, largest)), value > largest


def checked_query(value: object, limits: LimitSettings, *, field: str = "query") -> str:
    """A question that can be asked: text of at most `limits.query_chars_max` characters."""
    return clean_text(value, field=field, chars_max=limits.query_chars_max)


def checked_idempotency_key(value: object) -> str | None:
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
        return Outcome(value)  # type: ignore[arg-type]
    except ValueError:
        raise InvalidInput(
            f"must be success, failure or partial, not {shown(value)}", field="outcome"
        ) from None


def one_outcome(value: object) -> Outcome:
    """As `checked_outcome`, where leaving it out would ask for every one of them."""
    outcome = checked_outcome(value)
    if outcome is None:
        raise InvalidInput("must be success, failure or partial, not None", field="outcome")
    return outcome


def checked_fact(fact: FactCreate, limits: LimitSettings) -> FactCreate:
    """The statement if it can be held, its names on one line and its times in UTC."""
    checked_given(fact, FactCreate, field="fact")
    longest = limits.text_chars_max
    times = {
        name: value if value is None else checked_time(value, field=name)
        for name, value in (("valid_from", fact.valid_from), ("valid_to", fact.valid_to))
    }
    since, until = times["valid_from"], times["valid_to"]
    if since is not None and until is not None and until < since:
        raise InvalidInput("must not lie before valid_from; swap them", field="valid_to")
    return replace(
        fact,
        subject=clean_name(fact.subject, field="subject"),
        predicate=clean_name(fact.predicate, field="predicate", chars_max=PREDICATE_CHARS_MAX),
        object=clean_text(fact.object, field="object", chars_max=longest),
        content=_text_or_none(fact.content, "content", longest),
        confidence=checked_unit(fact.confidence, field="confidence"),
        category=fact.category
        if fact.category is None
        else clean_name(fact.category, field="category", chars_max=CATEGORY_CHARS_MAX),
        valid_from=since,
        valid_to=until,
        metadata=checked_metadata(fact.metadata, limits),
        tags=checked_tags(fact.tags, limits),
        trust=checked_trust(fact.trust),
        source=checked_source(fact.source),
    )


def _text_or_none(value: object, field: str, chars_max: int) -> str | None:
    return None if value is None else clean_text(value, field=field, chars_max=chars_max)


def checked_turn(turn: TurnCreate, limits: LimitSettings) -> TurnCreate:
    """The turn if it can be held, with its time in UTC."""
    checked_given(turn, TurnCreate, field="turns")
    if turn.role not in ROLES:
        raise InvalidInput(
            f"must be one of {', '.join(ROLES)}, not {shown(turn.role)}", field="role"
        )
    longest = limits.text_chars_max
    return replace(
        turn,
        text=clean_text(turn.text, field="text", chars_max=longest),
        actor=clean_name(turn.actor, field="actor"),
        caption=_text_or_none(turn.caption, "caption", longest),
        external_id=_text_or_none(turn.external_id, "external_id", KEY_CHARS_MAX),
        occurred_at=checked_time(turn.occurred_at, field="occurred_at"),
        metadata=checked_metadata(turn.metadata, limits),
        tags=checked_tags(turn.tags, limits),
        trust=checked_trust(turn.trust),
        source=checked_source(turn.source),
    )


def session_scope(scope: Scope) -> Scope:
    """The scope, if it names a session."""
    if checked_scope(scope).level is not MemoryScope.SESSION:
        raise InvalidInput(
            "must name a session: scope.session('…')", field="scope", level=scope.level.value
        )
    return scope


def changes(given: object, kept: object) -> tuple[str, ...]:
    """Which texts and lists of a value are kept in another form than they came, for a reply."""
    return tuple(
        f"{name} is kept as {_listed(after)}"
        for name in (one.name for one in fields(kept))  # type: ignore[arg-type]
        if isinstance(after := getattr(kept, name), (str, tuple))
        and (before := getattr(given, name, after)) is not None
        and (tuple(before) if isinstance(before, list) else before) != after
    )


def _listed(value: object) -> str:
    return ", ".join(map(shown, value)) if isinstance(value, tuple) else shown(value)
