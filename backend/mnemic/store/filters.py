"""Filters as SQL: what `model.filter_matching` says in Python, said to PostgreSQL.

Every condition is true or false, never null. Values, and the keys of the metadata with them, are
bound; what stands in the text are names of our own and the shape of the filter. Text is compared
in the collation "C", which in UTF-8 is the order of the code points.
"""

from __future__ import annotations

from typing import Any

import orjson

from mnemic.model.filter_fields import FIELDS, INSTANT, METADATA, FieldType, instant_of
from mnemic.model.filter_matching import holds
from mnemic.model.filters import AllOf, AnyOf, Compare, Filter, Not

__all__ = ["FALSE", "TRUE", "Conditions"]

TRUE, FALSE = "true", "false"
_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_TYPES = {
    FieldType.CHOICE: "text",
    FieldType.TEXT: "text",
    FieldType.TEXTS: "text",
    FieldType.NUMBER: "double precision",
    FieldType.TRUST: "integer",
    FieldType.TIME: "timestamptz",
    FieldType.FLAG: "boolean",
    FieldType.ID: "uuid",
}


class Conditions:
    """Makes conditions of one statement, and gathers the values that it is to be given."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}

    def of(self, filters: Filter | None, kind: str, alias: str) -> str:
        """The condition under which a row of `alias`, a memory of `kind`, passes.

        `TRUE` or `FALSE` where the kind alone decides.
        """
        match filters:
            case None:
                return TRUE
            case AllOf(parts):
                return _joined("AND", [self.of(one, kind, alias) for one in parts], FALSE)
            case AnyOf(parts):
                return _joined("OR", [self.of(one, kind, alias) for one in parts], TRUE)
            case Not(part):
                return _negated(self.of(part, kind, alias))
            case Compare():
                return self._compared(filters, kind, alias)
        raise TypeError(filters)

    def _compared(self, compare: Compare, kind: str, alias: str) -> str:
        if compare.field == "kind":
            return TRUE if holds(compare, kind) else FALSE
        name = FIELDS[compare.field].of.get(kind)
        if name is None:
            return TRUE if holds(compare, None) else FALSE
        if compare.field == METADATA:
            keys = "".join(f" -> CAST({self._bound(key)} AS text)" for key in compare.path)
            return self._of_json(compare, f"({alias}.{METADATA}{keys})")
        return self._of_column(compare, f"{alias}.{name}")

    def _of_column(self, compare: Compare, column: str) -> str:
        kind = FIELDS[compare.field].type
        if kind is FieldType.TEXTS:
            exists = f"cardinality({column}) > 0"
        else:
            exists = f"{column} IS NOT NULL"
        if kind is FieldType.CHOICE:
            column = f"CAST({column} AS text)"
        if kind is FieldType.TEXT:
            column = f'{column} COLLATE "C"'
        value, type_ = compare.value, _TYPES[kind]
        match compare.operator:
            case "exists":
                return f"({exists})" if value else f"(NOT {exists})"
            case "eq" | "ne" | "in":
                values = list(value) if compare.operator == "in" else [value]
                found = self._among(values, column, type_, exists, many=kind is FieldType.TEXTS)
                return _negated(found) if compare.operator == "ne" else found
        sign = _SIGNS[compare.operator]
        return f"coalesce({column} {sign} CAST({self._bound(value)} AS {type_}), false)"

    def _among(self, values: list[Any], column: str, type_: str, exists: str, *, many: bool) -> str:
        found = []
        if known := [one for one in values if one is not None]:
            place = f"CAST({self._bound(known)} AS {type_}[])"
            test = f"{column} && {place}" if many else f"{column} = ANY({place})"
            found.append(f"coalesce({test}, false)")
        if len(known) < len(values):
            found.append(f"(NOT {exists})")
        return _joined("OR", found, TRUE)

    def _of_json(self, compare: Compare, value: str) -> str:
        exists = f"coalesce(jsonb_typeof({value}) <> 'null', false)"
        match compare.operator:
            case "exists":
                return exists if compare.value else f"NOT {exists}"
            case "eq" | "ne" | "in":
                wanted = list(compare.value) if compare.operator == "in" else [compare.value]
                found = self._json_among(wanted, value, exists)
                return _negated(found) if compare.operator == "ne" else found
        return self._json_ordered(compare.value, value, _SIGNS[compare.operator])

    def _json_among(self, values: list[Any], value: str, exists: str) -> str:
        """A scalar or one of a list's elements is among the values; `@>` says so of both."""
        found = []
        if known := [one for one in values if one is not None]:
            texts = self._bound([orjson.dumps(one).decode() for one in known])
            found.append(
                f"coalesce({value} @> ANY(CAST(CAST({texts} AS text[]) AS jsonb[])), false)"
            )
        instants = [instant_of(one) for one in known if isinstance(one, str)]
        if times := [one for one in instants if one is not None]:
            place = f"CAST({self._bound(times)} AS timestamptz[])"
            found.append(f"coalesce({_instant(value)} = ANY({place}), false)")
        if len(known) < len(values):
            found.append(f"NOT {exists}")
        return _joined("OR", found, TRUE)

    def _json_ordered(self, wanted: Any, value: str, sign: str) -> str:
        if not isinstance(wanted, str):
            number = f"CAST(CAST({self._bound(orjson.dumps(wanted).decode())} AS text) AS jsonb)"
            return f"coalesce(jsonb_typeof({value}) = 'number' AND {value} {sign} {number}, false)"
        if (time := instant_of(wanted)) is not None:
            place = f"CAST({self._bound(time)} AS timestamptz)"
            return f"coalesce({_instant(value)} {sign} {place}, false)"
        text = f"CAST({self._bound(wanted)} AS text)"
        return (
            f"coalesce(jsonb_typeof({value}) = 'string'"
            f" AND ({value} #>> '{{}}') COLLATE \"C\" {sign} {text}, false)"
        )

    def _bound(self, value: object) -> str:
        name = f"f{len(self.values)}"
        self.values[name] = value
        return f":{name}"


def _instant(value: str) -> str:
    """The instant that a text of JSON tells, or null; no text makes it fail."""
    text = f"({value} #>> '{{}}')"
    return (
        f"CASE WHEN jsonb_typeof({value}) = 'string' AND {text} COLLATE \"C\" ~ '{INSTANT}'"
        f" AND pg_input_is_valid({text}, 'timestamptz') THEN CAST({text} AS timestamptz) END"
    )


def _joined(word: str, parts: list[str], decisive: str) -> str:
    """The parts joined; one that decides alone stands alone, those that decide nothing go."""
    neutral = TRUE if decisive == FALSE else FALSE
    if decisive in parts:
        return decisive
    left = [one for one in parts if one != neutral]
    if not left:
        return neutral
    return left[0] if len(left) == 1 else f"({f' {word} '.join(left)})"


def _negated(condition: str) -> str:
    if condition in {TRUE, FALSE}:
        return FALSE if condition == TRUE else TRUE
    return f"NOT {condition}" if condition.startswith(("(", "coalesce(")) else f"NOT ({condition})"
