"""Filters: which memories may answer, told as data and checked before anything is searched.

    {"outcome": "success"}                                   equality
    {"outcome": "success", "tags": {"in": ["red", "blue"]}}  both
    {"or": [{"trust": {"le": 1}}, {"not": {"metadata.draft": true}}]}

The same, built in Python:

    where("outcome").eq("success")
    where("outcome").eq("success") & where("tags").in_(["red", "blue"])
    where("trust").le(1) | ~where("metadata", "draft").eq(True)

A condition holds or it does not; there is no third answer. A field without a value, one that the
kind of memory does not have, and JSON's null are one: `eq`, `in`, `lt`, `le`, `gt` and `ge` do not
hold there, so `ne` and `not` do. `exists` and a comparison with null ask for just that.

A list (tags, topics, a list in the metadata) equals what one of its elements equals. Numbers
compare as numbers, texts by code point, and in the metadata never one with the other; a text there
that is a full time with a zone is compared with such times as an instant.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any, NoReturn
from uuid import UUID

from mnemic.errors import InvalidInput
from mnemic.model.filter_fields import FIELDS, FieldType
from mnemic.model.filter_names import NAME_CHARS, Path, field_of, path_text
from mnemic.model.filter_values import time_text, value_of
from mnemic.model.normalise import shown

__all__ = [
    "AllOf",
    "AnyOf",
    "Compare",
    "Filter",
    "Not",
    "checked_filter",
    "compared",
]

DEPTH_MAX = 8
PARTS_MAX = 100
CHOICES_MAX = 1_000
_LIKENESS = 0.5

ORDERED = ("lt", "le", "gt", "ge")
OPERATORS = ("eq", "ne", *ORDERED, "in", "exists")
_ELSEWHERE = {"gte": "ge", "lte": "le"}  # as others write them

_UNORDERED = {FieldType.CHOICE, FieldType.TEXTS, FieldType.FLAG, FieldType.ID}


class Filter:
    """Which memories may answer: a condition, or several joined by `and`, `or` and `not`.

    Made of JSON, or of `where(…)`; `&`, `|` and `~` join.
    """

    __slots__ = ()

    def __and__(self, other: Filter) -> Filter:
        """Both hold."""
        return AllOf((*_parts_of(self, AllOf), *_parts_of(_joinable(other), AllOf)))

    def __or__(self, other: Filter) -> Filter:
        """One of them holds."""
        return AnyOf((*_parts_of(self, AnyOf), *_parts_of(_joinable(other), AnyOf)))

    def __rand__(self, other: object) -> Filter:
        return _joinable(other) & self

    def __ror__(self, other: object) -> Filter:
        return _joinable(other) | self

    def __invert__(self) -> Filter:
        """It does not hold; twice, and it is what it was."""
        return self.part if isinstance(self, Not) else Not(self)

    def __bool__(self) -> NoReturn:
        raise InvalidInput(
            "a filter is neither true nor false by itself; use &, | and ~ to join filters, "
            "and not `and`, `or` and `not`",
            field="filters",
        )

    def to_json(self) -> dict[str, Any]:
        """The JSON object that tells the same: `from_json` makes an equal filter of it.

        Raises `InvalidInput` for a time out of the years 1000 to 8999, which JSON cannot ask for,
        and as `from_json` for what was put together wrongly by hand.
        """
        told: dict[str, Any] = json.loads(json.dumps(_told(checked_filter(self)), default=_as_text))
        return told

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
    path: Path = ()


def _joinable(other: object) -> Filter:
    if not isinstance(other, (AllOf, AnyOf, Not, Compare)):
        raise InvalidInput(
            f"a filter is joined with a filter, not with {shown(other)}; use "
            'where("outcome").eq("success") or Filter.from_json(…)',
            field="filters",
        )
    return other


def _parts_of(one: Filter, kind: type[AllOf | AnyOf]) -> tuple[Filter, ...]:
    """Its parts if it joins in the same way: a long sum is no deep nest."""
    return _listed(one.parts, "parts") if isinstance(one, kind) else (one,)


def _told(one: object, depth: int = 1) -> dict[str, Any]:
    """What tells the filter: as JSON, but for times and ids, which stand as they are."""
    if depth > DEPTH_MAX:
        raise InvalidInput(f"is nested deeper than {DEPTH_MAX} levels; flatten it", field="filters")
    match one:
        case AllOf(parts):
            return {"and": [_told(part, depth + 1) for part in _listed(parts, "parts")]}
        case AnyOf(parts):
            return {"or": [_told(part, depth + 1) for part in _listed(parts, "parts")]}
        case Not(part):
            return {"not": _told(part, depth + 1)}
        case Compare():
            return _told_comparison(one)
    raise InvalidInput(f"{shown(one)} is no filter; use where(…)", field="filters")


def _told_comparison(one: Compare) -> dict[str, Any]:
    path = _listed(one.path, "path")
    key = one.field
    if path and isinstance(key, str):
        key = ".".join([key, path_text(path)])
    field_of(key, "filters")  # "not" would tell something else
    operator, value = _operator(one.operator, "filters"), one.value
    listed = isinstance(value, tuple) and operator == "in"
    return {str.__str__(key): {operator: list(value) if listed else value}}


def _listed(value: object, name: str) -> tuple[Any, ...]:
    if not isinstance(value, (tuple, list)):
        raise InvalidInput(
            f"the {name} of a filter must be a tuple, not {shown(value)}; use where(…)",
            field="filters",
        )
    return tuple(value)


def _as_text(value: datetime | UUID) -> str:
    return time_text(value, "filters") if isinstance(value, datetime) else str(value)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidInput("an object names a key twice; keep one", field="filters")
    return found


def checked_filter(value: object, *, field: str = "filters") -> Filter | None:
    """The filter, of a JSON object too; none for None and for an empty object.

    Raises `InvalidInput` as `Filter.from_json` does. One that was put together by hand is checked
    like any other.
    """
    if value is None:
        return None
    if isinstance(value, (AllOf, AnyOf, Not, Compare)):
        # What was read is returned and never what was given: two that tell the same by `repr` ask
        # the same, which those put together of other types do not.
        return _Reader().filter(_told(value), at=field, depth=1)
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
            name, path = field_of(key, at)
            asked = inner if isinstance(inner, Mapping) else {"eq": inner}
            if not asked:
                raise InvalidInput(
                    f"{shown(key)} must be compared with something; give an operator", field=at
                )
            for operator, operand in asked.items():
                self._count(at)
                yield compared(name, path, operator, operand, at)

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


def compared(name: str, path: Path, operator: object, operand: object, at: str) -> Compare:
    """The field compared, as JSON tells it: a list for `in`.

    Raises `InvalidInput` for an operator that there is not, with the nearest, and for a value that
    the field cannot be compared with.
    """
    told = "metadata" if path else name
    operator = _operator(operator, at)
    known = FIELDS[name]
    if operator == "exists":
        if not isinstance(operand, bool):
            raise InvalidInput(f"exists must be true or false, not {shown(operand)}", field=at)
        return Compare(name, "exists", operand, path)
    if operator == "in":
        if not isinstance(operand, list) or len(operand) > CHOICES_MAX:
            came = "of more" if isinstance(operand, list) else shown(operand)
            raise InvalidInput(
                f"in must be a list of at most {CHOICES_MAX} values, not {came}", field=at
            )
        values = tuple(value_of(known, told, one, at) for one in operand)
        return Compare(name, "in", values, path)
    value = value_of(known, told, operand, at)
    if operator in ORDERED and (
        value is None or isinstance(value, bool) or known.type in _UNORDERED
    ):
        raise InvalidInput(
            f"{told} has no order there: {operator} must stand with a number, a text or a time; "
            "use eq or in",
            field=at,
        )
    return Compare(name, operator, value, path)


def _operator(value: object, at: str) -> str:
    text = str.__str__(value) if isinstance(value, str) else ""
    if text not in OPERATORS:
        named = text[:NAME_CHARS].strip("$")
        near = get_close_matches(_ELSEWHERE.get(named, named), OPERATORS, 1, _LIKENESS)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise InvalidInput(
            f"{shown(value)} is no operator{hint} Use one of {', '.join(OPERATORS)}", field=at
        )
    return text
