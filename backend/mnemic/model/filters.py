"""Filters: which memories may answer, told as data and checked before anything is searched.

    {"outcome": "success"}                                   equality
    {"outcome": "success", "tags": {"in": ["red", "blue"]}}  both
    {"or": [{"trust": {"le": 1}}, {"not": {"metadata.draft": true}}]}

A condition holds or it does not; there is no third answer. A field without a value, one that the
kind of memory does not have, and JSON's null are one: `eq`, `in`, `lt`, `le`, `gt` and `ge` do not
hold there, so `ne` and `not` do. `exists` and a comparison with null ask for just that.

A list (tags, topics, a list in the metadata) equals what one of its elements equals. Numbers
compare as numbers, texts by code point, and in the metadata never one with the other; a text there
that is a full time with a zone is compared with such times as an instant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any
from uuid import UUID

from mnemic.errors import InvalidInput
from mnemic.model.episode import Outcome
from mnemic.model.filter_fields import FIELDS, METADATA, Field, FieldType, instant_of
from mnemic.model.normalise import checked_json, checked_time, held_text, shown
from mnemic.model.trust import Trust

__all__ = ["AllOf", "AnyOf", "Compare", "Filter", "Not", "checked_filter"]

DEPTH_MAX = 8
PARTS_MAX = 100
CHOICES_MAX = 1_000
TEXT_CHARS_MAX = 10_000
KEYS_MAX = 16
_NAME_CHARS = 60
_LIKENESS = 0.5

ORDERED = ("lt", "le", "gt", "ge")
OPERATORS = ("eq", "ne", *ORDERED, "in", "exists")
JOINTS = ("and", "or", "not")
_ELSEWHERE = {"gte": "ge", "lte": "le"}  # as others write them

_Path = tuple[str, ...]

_SHOWN_FIELDS = ", ".join([*(name for name in FIELDS if name != METADATA), "metadata.<path>"])
_UNORDERED = {FieldType.CHOICE, FieldType.TEXTS, FieldType.FLAG, FieldType.ID}
_PATH_PART = re.compile(r"((?:[^.\\]|\\.)*)(\.|\Z)", re.DOTALL)


class Filter:
    """Which memories may answer: a condition, or several joined by `and`, `or` and `not`."""

    __slots__ = ()

    @staticmethod
    def from_json(value: object) -> Filter | None:
        """The filter that a JSON object tells; none for an empty one.

        Raises `InvalidInput` for a field or an operator that there is not (with the nearest), and
        for a value that the field cannot be compared with.
        """
        return checked_filter(value)

    @staticmethod
    def from_text(text: str) -> Filter | None:
        """The filter that JSON text tells, as `from_json`; no object names a key twice."""
        try:
            value = json.loads(text, object_pairs_hook=_each_once)
        except (ValueError, RecursionError):
            raise InvalidInput(
                f'must be a JSON object such as {{"outcome": "success"}}, not {shown(text)}',
                field="filters",
            ) from None
        return checked_filter(value)


@dataclass(frozen=True, slots=True)
class AllOf(Filter):
    """All of the parts hold."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(Filter):
    """One of the parts holds."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not(Filter):
    """The part does not hold."""

    part: Filter


@dataclass(frozen=True, slots=True)
class Compare(Filter):
    """A field, or a path of keys into the metadata, compared with a value of its type.

    The value is a tuple for `in`, true or false for `exists`.
    """

    field: str
    operator: str
    value: Any
    path: _Path = ()


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidInput("an object names a key twice; keep one", field="filters")
    return found


def checked_filter(value: object, *, field: str = "filters") -> Filter | None:
    """The filter, of a JSON object too; none for None and for an empty object.

    Raises `InvalidInput` as `Filter.from_json` does.
    """
    if value is None or isinstance(value, (AllOf, AnyOf, Not, Compare)):
        return value
    if isinstance(value, Mapping) and not value:
        return None
    return _Reader().filter(value, at=field, depth=1)


class _Reader:
    """Reads one filter, and counts its parts."""

    def __init__(self) -> None:
        self._parts = 0

    def filter(self, value: object, *, at: str, depth: int) -> Filter:
        """The filter of an object; several keys are joined by `and`."""
        if not isinstance(value, Mapping):
            raise InvalidInput(
                f'must be an object such as {{"outcome": "success"}}, not {shown(value)}', field=at
            )
        if not value:
            raise InvalidInput("must name a field; an empty object says nothing", field=at)
        if depth > DEPTH_MAX:
            raise InvalidInput(f"is nested deeper than {DEPTH_MAX} levels; flatten it", field=at)
        return _all_of([part for key in value for part in self._of_key(value, key, at, depth)])

    def _of_key(
        self, value: Mapping[Any, Any], key: object, at: str, depth: int
    ) -> Iterator[Filter]:
        inner = value[key]
        if key == "and":
            yield AllOf(self._several(inner, f"{at}.and", depth))
        elif key == "or":
            yield AnyOf(self._several(inner, f"{at}.or", depth))
        elif key == "not":
            self._count(at)
            yield Not(self.filter(inner, at=f"{at}.not", depth=depth + 1))
        else:
            name, path = _field_of(key, at)
            asked = inner if isinstance(inner, Mapping) else {"eq": inner}
            if not asked:
                raise InvalidInput(
                    f"{shown(key)} must be compared with something; give an operator", field=at
                )
            for operator, operand in asked.items():
                self._count(at)
                yield _compared(name, path, operator, operand, at)

    def _several(self, value: object, at: str, depth: int) -> tuple[Filter, ...]:
        self._count(at)
        if not isinstance(value, list) or not value:
            raise InvalidInput("must be a list of at least one filter", field=at)
        if len(value) > PARTS_MAX:
            self._count(at, len(value))
        return tuple(
            self.filter(one, at=f"{at}[{place}]", depth=depth + 1)
            for place, one in enumerate(value)
        )

    def _count(self, at: str, parts: int = 1) -> None:
        self._parts += parts
        if self._parts > PARTS_MAX:
            raise InvalidInput(f"has more than {PARTS_MAX} parts; use fewer", field=at)


def _all_of(parts: list[Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def _field_of(key: object, at: str) -> tuple[str, _Path]:
    """The field that a key names, and the path of keys below `metadata.`."""
    if not isinstance(key, str):
        raise InvalidInput(f"the field {shown(key)} is not text; pass text keys", field=at)
    name, dot, rest = key.partition(".")
    if name == METADATA and dot:
        return METADATA, _path_of(held_text(rest, field=at), at)
    if name in FIELDS and name != METADATA and not dot:
        return name, ()
    near = get_close_matches(name[:_NAME_CHARS], [*FIELDS, *JOINTS], 1)
    hint = f"; did you mean {near[0]}{'.<path>' if near[0] == METADATA else ''}?" if near else "."
    raise InvalidInput(f"{shown(key)} is no field{hint} Use one of {_SHOWN_FIELDS}", field=at)


def _path_of(text: str, at: str) -> _Path:
    """The keys of a path: parted by dots, a dot or backslash in a key behind a backslash."""
    if len(text) > TEXT_CHARS_MAX:
        raise InvalidInput(f"a path must have at most {TEXT_CHARS_MAX} characters", field=at)
    keys: list[str] = []
    position = 0
    while True:
        found = _PATH_PART.match(text, position)
        if found is None or len(keys) == KEYS_MAX:
            raise InvalidInput(
                f"{shown(text)} must be at most {KEYS_MAX} keys parted by dots; in a key write "
                "\\. for a dot and \\\\ for a backslash",
                field=at,
            )
        keys.append(re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL))
        position = found.end()
        if not found[2]:
            return tuple(keys)


def _compared(name: str, path: _Path, operator: object, operand: object, at: str) -> Compare:
    told = "metadata" if path else name
    if operator not in OPERATORS:
        named = operator[:_NAME_CHARS].strip("$") if isinstance(operator, str) else ""
        near = get_close_matches(_ELSEWHERE.get(named, named), OPERATORS, 1, _LIKENESS)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise InvalidInput(
            f"{shown(operator)} is no operator{hint} Use one of {', '.join(OPERATORS)}", field=at
        )
    known = FIELDS[name]
    if operator == "exists":
        if not isinstance(operand, bool):
            raise InvalidInput(f"exists must be true or false, not {shown(operand)}", field=at)
        return Compare(name, "exists", operand, path)
    if operator == "in":
        if not isinstance(operand, list) or len(operand) > CHOICES_MAX:
            raise InvalidInput(f"in must be a list of at most {CHOICES_MAX} values", field=at)
        values = tuple(_value(known, told, one, at) for one in operand)
        return Compare(name, "in", values, path)
    value = _value(known, told, operand, at)
    if operator in ORDERED and (
        value is None or isinstance(value, bool) or known.type in _UNORDERED
    ):
        raise InvalidInput(
            f"{told} has no order there: {operator} must stand with a number, a text or a time; "
            "use eq or in",
            field=at,
        )
    return Compare(name, str(operator), value, path)


def _value(known: Field, name: str, value: object, at: str) -> Any:
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
    return str.__str__(held_text(value, field=at))


def _scalar(known: Field, name: str, value: object, at: str) -> Any:
    """A value of JSON that is neither a list nor an object; of a datetime its text."""
    if isinstance(value, str):
        return _text(known, name, value, at)
    if isinstance(value, datetime):
        return checked_time(value, field=at).isoformat()
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
    return checked_time(found, field=at)


def _id(known: Field, name: str, value: object, at: str) -> UUID:
    if isinstance(value, UUID):
        return value
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
