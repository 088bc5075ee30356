"""Whether a memory passes a filter: what the SQL of `store.filters` says, said in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Any

from mnemic.model.episode import Episode
from mnemic.model.fact import Fact
from mnemic.model.filter_fields import FIELDS, METADATA, FieldType, instant_of
from mnemic.model.filters import AllOf, AnyOf, Compare, Filter, Not
from mnemic.model.procedure import Procedure
from mnemic.model.turn import Turn

__all__ = ["holds", "matches"]

_KIND_OF = {Turn: "turn", Episode: "episode", Fact: "fact", Procedure: "procedure"}
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"lt": lt, "le": le, "gt": gt, "ge": ge}


def matches(filters: Filter, memory: Turn | Episode | Fact | Procedure) -> bool:
    """Whether the memory passes."""
    match filters:
        case AllOf(parts):
            return all(matches(part, memory) for part in parts)
        case AnyOf(parts):
            return any(matches(part, memory) for part in parts)
        case Not(part):
            return not matches(part, memory)
        case Compare():
            return holds(filters, _value_of(filters, memory))
    raise TypeError(filters)


def _value_of(compare: Compare, memory: Any) -> Any:
    """What the memory has there; None if it has nothing."""
    kind = _KIND_OF[type(memory)]
    if compare.field == "kind":
        return kind
    name = FIELDS[compare.field].of.get(kind)
    value = None if name is None else getattr(memory, name)
    for key in compare.path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def holds(compare: Compare, held: Any) -> bool:
    """Whether the condition holds of what a memory has in that field."""
    equal = _json_equal if compare.field == METADATA else _equal
    value = compare.value
    match compare.operator:
        case "exists":
            return _exists(compare, held) is value
        case "eq":
            return _is(compare, held, value, equal)
        case "ne":
            return not _is(compare, held, value, equal)
        case "in":
            return any(_is(compare, held, one, equal) for one in value)
    if compare.field == METADATA:
        return _json_ordered(held, value, _ORDERS[compare.operator])
    return held is not None and _ORDERS[compare.operator](held, value)


def _exists(compare: Compare, held: Any) -> bool:
    if FIELDS[compare.field].type is FieldType.TEXTS:
        return bool(held)
    return held is not None


def _is(compare: Compare, held: Any, value: Any, equal: Callable[[Any, Any], bool]) -> bool:
    return not _exists(compare, held) if value is None else equal(held, value)


def _equal(held: Any, value: Any) -> bool:
    return value in held if isinstance(held, tuple) else bool(held == value)


def _json_equal(held: Any, value: Any) -> bool:
    """Equal and of one type; a text that is an instant, to the same instant."""
    if isinstance(held, list):
        return any(_same(one, value) for one in held)
    if isinstance(held, str) and isinstance(value, str) and _instants(held, value, _equal):
        return True
    return _same(held, value)


def _same(held: Any, value: Any) -> bool:
    if _is_number(held) and _is_number(value):
        return _exact(held) == _exact(value)
    return type(held) is type(value) and bool(held == value)


def _json_ordered(held: Any, value: Any, order: Callable[[Any, Any], bool]) -> bool:
    if _is_number(held) and _is_number(value):
        return order(_exact(held), _exact(value))
    if not isinstance(held, str) or not isinstance(value, str):
        return False
    return _instants(held, value, order) if instant_of(value) else order(held, value)


def _instants(held: str, value: str, compared: Callable[[datetime, datetime], bool]) -> bool:
    """Whether both are instants, and compare so."""
    one, other = instant_of(held), instant_of(value)
    return one is not None and other is not None and compared(one, other)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _exact(value: float) -> Decimal:
    """The number as JSON writes it: PostgreSQL keeps that, and not the nearest binary fraction."""
    return Decimal(value) if isinstance(value, int) else Decimal(repr(value))
