"""A memory as it was at one moment, written down so that it reads back equal in every type."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints
from uuid import UUID

__all__ = ["memory_of", "snapshot_of"]

M = TypeVar("M")


def snapshot_of(memory: object) -> str:
    """The memory as text; JSON, in which a float keeps its digits and a mapping its order."""
    return json.dumps(_plain(memory), ensure_ascii=False, separators=(",", ":"))


def memory_of(kind: type[M], text: str) -> M | None:
    """The memory that `snapshot_of` wrote; nothing if this release tells of it what that did not.

    What that release told beyond this one is left out.
    """
    try:
        memory: M = _memory(kind, json.loads(text))
    except (LookupError, ValueError):
        return None
    return memory


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    return value.value if isinstance(value, Enum) else value


def _memory(kind: Any, values: dict[str, Any]) -> Any:
    hints = _hints(kind)
    if missing := _needed(kind) - values.keys():
        raise LookupError(missing)
    return kind(**{name: _typed(hints[name], values[name]) for name in hints if name in values})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _needed(kind: Any) -> frozenset[str]:
    return frozenset(
        one.name
        for one in fields(kind)
        if one.default is MISSING and one.default_factory is MISSING
    )


def _typed(hint: Any, value: Any) -> Any:
    """The value in the type that its field is told to have; JSON's own are what they are."""
    if value is None:
        return None
    told = [one for one in get_args(hint) if one is not NoneType] or [hint]
    if get_origin(hint) is tuple:
        return tuple(_typed(told[0], one) for one in value)
    kind = getattr(told[0], "__supertype__", told[0])
    if is_dataclass(kind):
        return _memory(kind, value)
    if kind is datetime:
        return datetime.fromisoformat(value)
    if isinstance(kind, type) and issubclass(kind, (UUID, Enum)):
        return kind(value)
    return value
