"""Filters built in Python: `where("outcome").eq("success") & ~where("tags").in_(["draft"])`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from itertools import islice
from typing import NoReturn
from uuid import UUID

from mnemic.errors import InvalidInput
from mnemic.model.filter_fields import METADATA
from mnemic.model.filter_names import NAME_CHARS, Path, field_of, path_of, path_text
from mnemic.model.filters import CHOICES_MAX, Filter, compared

__all__ = ["FilterField", "FilterValue", "where"]

FilterValue = str | float | bool | datetime | UUID | None
"""What a field may be compared with; which of these, says the type of the field."""

_NO_CHOICES = (str, bytes, bytearray, memoryview, Mapping)


def where(field: str, *keys: str) -> FilterField:
    """A field to compare: `where("outcome").eq("success")`.

    A path into the metadata is told as in JSON, `where("metadata.team.name")`, or by its keys as
    they are, `where("metadata", "team", "name")`. Raises `InvalidInput` for a field that there is
    not, with the nearest.
    """
    if field == METADATA and keys:
        return FilterField(METADATA, path_of(path_text(keys), "filters"))
    name, path = field_of(field, "filters")
    if keys and name == METADATA:
        whole = (METADATA, *path_of(path_text((*path, *keys)), "filters"))
        told = ", ".join(json.dumps(key[:NAME_CHARS], ensure_ascii=False) for key in whole)
        raise InvalidInput(
            f"a path has either dots or further keys; use where({told})", field="filters"
        )
    if keys:
        raise InvalidInput("only metadata has keys; leave them out", field="filters")
    return FilterField(name, path)


class FilterField:
    """A field that is yet to be compared; each comparison is a `Filter`.

    Each raises `InvalidInput` for a value that the field cannot be compared with.
    """

    __slots__ = ("_name", "_path")

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path

    def eq(self, value: FilterValue) -> Filter:
        """It equals the value; of a list, one element does. None: there is no value."""
        return self._compared("eq", value)

    def ne(self, value: FilterValue) -> Filter:
        """It does not equal the value, or there is none."""
        return self._compared("ne", value)

    def lt(self, value: FilterValue) -> Filter:
        """It comes before the value."""
        return self._compared("lt", value)

    def le(self, value: FilterValue) -> Filter:
        """It comes before the value, or equals it."""
        return self._compared("le", value)

    def gt(self, value: FilterValue) -> Filter:
        """It comes after the value."""
        return self._compared("gt", value)

    def ge(self, value: FilterValue) -> Filter:
        """It comes after the value, or equals it."""
        return self._compared("ge", value)

    def in_(self, values: Collection[FilterValue]) -> Filter:
        """It equals one of the values; of none of them, nothing does.

        Any collection but a text, bytes and a mapping will do.
        """
        operand: object = values
        if isinstance(operand, Collection) and not isinstance(operand, _NO_CHOICES):
            # Of a range of a billion no more are read than tell that they are too many.
            operand = list(islice(operand, CHOICES_MAX + 1))
        return self._compared("in", operand)

    def exists(self, *, present: bool = True) -> Filter:
        """There is a value; with `present=False`, there is none."""
        return self._compared("exists", present)

    def _compared(self, operator: str, operand: object) -> Filter:
        return compared(self._name, self._path, operator, operand, "filters")

    def _use_a_method(self, other: object) -> NoReturn:  # noqa: ARG002 - as Python calls it
        raise InvalidInput(
            "a field is compared by its methods; use eq, ne, lt, le, gt, ge, in_ or exists",
            field="filters",
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _use_a_method

    def _compare_first(self, other: object = None) -> NoReturn:  # noqa: ARG002 - as Python calls it
        raise InvalidInput(
            "a field is no filter until it is compared; compare it first, as "
            'where("outcome").eq("success") does, and join filters by &, | and ~',
            field="filters",
        )

    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _compare_first
    __invert__ = __bool__ = _compare_first
