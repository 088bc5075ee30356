"""What nobody should send, by the kind of value that is expected."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

from hostile.surface import Leaf
from mnemic import Filter, Outcome, Tenant, TenantKind, Trust

__all__ = ["Value", "hostile"]

HUGE = 10**5_000  # Python itself refuses to print it
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - naive on purpose
SOME_ID = UUID("00000000-0000-4000-8000-000000000001")
MANY = 100_001  # more than any list may be set to hold
LONG = "long " * 400_001  # more than any text may be set to have


@dataclass(frozen=True, slots=True)
class Value:
    """A value to send. One that is not `refused` may be taken too, if it reads back."""

    label: str
    given: Any
    refused: bool


_STRANGERS: dict[str, Any] = {
    "null": None,
    "bytes": b"bytes",
    "object": {"$ne": None},
    "list": ["a"],
    "set": {"a"},
    "huge integer": HUGE,
    "boolean": True,
    "number": 5,
    "fraction": 1.5,
    "not a number": math.nan,
    "text": "5",
    "type": str,
}
# Strangers that are of the kind, or may be.
_AT_HOME: dict[str, set[str]] = {
    "text": {"text"},
    "whole": {"number", "huge integer"},
    "number": {"number", "fraction", "huge integer"},
    "flag": {"boolean"},
    "id": set(),
    "time": set(),
    "scope": set(),
    "json": set(_STRANGERS) - {"not a number", "huge integer", "bytes", "set", "type"},
    "object": {"object"},
    "objects": set(),
    "texts": {"list"},
    "ids": set(),
    "many": set(),
    "given": set(),
    "choice": set(),
    "trust": {"number"},
    "function": set(),
    "settings": set(),
    "path": {"text"},
    "filter": set(),
}

_UNHOLDABLE = {
    "empty": "",
    "blank": " \t\n",
    "zero-width": "\u200b",
    "ideographic space": "\u3000",
    "filler": "\u3164",
    "byte order mark": "\ufeff\u2060",
    "NUL": "\x00",
    "NUL inside": "a\x00b",
    "lone surrogate": "\ud83d",
    "lone surrogate inside": "a\udc00b",
    "very long": LONG,
}
_ODD = {
    "controls": "a\x01b\x1b[31m\tc\x7f\x85",
    "bidi": "\u202eabc\u2066d\u2069",
    "zero-width inside": "ad\u200dmin\u034f",
    "decomposed": "cafe\u0301",
    "emoji": "\U0001f469\u200d\U0001f680 \U0001f3f4\U000e0067\U000e0062\U000e007f",
    "quotes": 'a\'); DROP TABLE mnemic.facts;-- "x" `y`',
    "wildcards": "100%_\\ *?[a-z] {x} %s {} $1 :name",
    "lines": "a\r\nb\u2028c\u2029d",
    "special marker": "<|endoftext|>",
    "path": "../../etc/passwd%2Fx",
    "scripts": "\u0436 \u4e2d\u6587 \u0639\u0631\u0628\u064a \u0e01",
}


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"k": value}
    return value


def _endless() -> Any:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


def _negations(depth: int) -> Any:
    value: Any = {"outcome": "success"}
    for _ in range(depth):
        value = {"not": value}
    return value


_BAD_JSON = {
    "not a number inside": {"k": [math.nan]},
    "infinite inside": {"k": {"x": math.inf}},
    "integer beyond 64 bits": {"k": 2**64},
    "huge integer inside": {"k": HUGE},
    "number as a key": {1: 2},
    "huge integer as a key": {HUGE: 1},
    "NUL inside a text": {"k": "a\x00"},
    "NUL in a key": {"a\x00": 1},
    "lone surrogate inside": {"k": "\ud800"},
    "lone surrogate in a key": {"\ud800": 1},
    "too deep": _nested(5_000),
    "endless": _endless(),
    "tuple inside": {"k": (1, 2)},
    "set inside": {"k": {1}},
    "bytes inside": {"k": b"x"},
    "time inside": {"k": datetime.now},
    "too large": {"k": "x" * 17_000_000},
}
_GOOD_JSON = {
    "extremes": {"f": [1e308, 5e-324, -0.0, 1e17, 0.1], "i": [2**63 - 1, -(2**63)]},
    "odd keys": {"": None, "a.b[0]": [], "\u202e\u200b": {}, "$ne": "a'); --", "'": True},
    "deep": _nested(30),
    "owner": {"tenant_id": "other", "scope_id": "other", "user_id": "bob"},
}


_NO_MEMBER = {
    "empty": "",
    "unknown": "splendid",
    "unhashable": [[]],
    "outside": 99,
    "below": -1,
    "surrogate": "\ud800",
    "long": LONG,
}
_NO_NUMBER = {
    "negative": -1,
    "negative huge": -HUGE,
    "infinite": math.inf,
    "minus infinite": -math.inf,
    "decimal": Decimal("0.5"),
}
_EDGE_NUMBERS = {"zero": 0, "one": 1, "large": 2**53, "beyond a column": 2**63}
_FAR = timezone(timedelta(hours=14))

_REFUSED: dict[str, dict[str, Any]] = {
    "text": _UNHOLDABLE,
    "choice": _NO_MEMBER,
    "trust": _NO_MEMBER,
    "whole": _NO_NUMBER,
    "number": _NO_NUMBER,
    "id": {
        "no id": "not-a-uuid",
        "empty": "",
        "NUL": "\x00",
        "surrogate": "\ud800",
        "long": "a" * 4_096,
    },
    "ids": {
        "none": [],
        "no id": ["x"],
        "numbers": [5],
        "huge": [HUGE],
        "one": SOME_ID,
        "nulls": [None],
        "surrogate": ["\ud800"],
        "too many": [SOME_ID] * MANY,
    },
    "time": {
        "naive": NAIVE,
        "day": date(2026, 1, 1),
        "text of a time": "2026-01-01T00:00:00Z",
        "last": datetime.max.replace(tzinfo=UTC),
        "first": datetime.min.replace(tzinfo=_FAR),
    },
    "scope": {"tenant": Tenant(TenantKind.PERSON, "x"), "path": ("user", "x")},
    "object": _BAD_JSON,
    "json": _BAD_JSON,
    "objects": {
        "texts": ["a"],
        "nulls": [None],
        "lists": [[{}]],
        **{label: [value] for label, value in _BAD_JSON.items()},
    },
    "texts": {
        **{label: ["a", value] for label, value in _UNHOLDABLE.items()},
        "numbers": [5],
        "nulls": [None],
        "lists": [["a"]],
        "huge": [HUGE],
        "too many": [str(at) for at in range(MANY)],
    },
    "many": {"numbers": [5], "objects": [{}], "nulls": [None], "texts": ["a"]},
    "path": {"NUL": "a\x00b"},
    "filter": {
        "unknown field": {"outcom": "success"},
        "unknown operator": {"importance": {"between": [0, 1]}},
        "operator of others": {"importance": {"$gte": 0.5}},
        "owner": {"tenant_id": "other"},
        "owner, not null": {"user_id": {"$ne": None}},
        "column": {"stems": "x"},
        "text among": {"tags": {"in": "red"}},
        "list": {"tags": ["red"]},
        "time without a zone": {"occurred_at": {"ge": NAIVE}},
        "day": {"occurred_at": {"ge": "2026-01-01"}},
        "text of a number": {"importance": {"ge": "0.5"}},
        "flag for a text": {"source": True},
        "order of flags": {"metadata.k": {"lt": True}},
        "unknown outcome": {"outcome": "splendid"},
        "empty inside": {"not": {}},
        "nothing asked": {"source": {}},
        "no parts": {"or": []},
        "not a number": {"metadata.k": math.nan},
        "huge integer": {"metadata.k": HUGE},
        "huge operator": {"source": {HUGE: "x"}},
        "NUL": {"source": "a\x00"},
        "NUL in a key": {"metadata.a\x00": 1},
        "lone surrogate": {"metadata.\ud800": 1},
        "long": {"source": LONG},
        "long path": {f"metadata.{LONG}": 1},
        "deep path": {f"metadata.{'a.' * 1_000}": 1},
        "too deep": _negations(5_000),
        "endless": _endless(),
        "too many": {"source": {"in": ["x"] * MANY}},
        "too wide": {"or": [{"source": "x"}] * MANY},
        "number as a key": {1: 2},
    },
}
_EITHER: dict[str, dict[str, Any]] = {
    "text": _ODD,
    "choice": {"a member": Outcome.SUCCESS},
    "trust": {"a member": Trust.EXTERNAL},
    "whole": _EDGE_NUMBERS,
    "number": _EDGE_NUMBERS,
    "id": {"unknown": SOME_ID, "as text": str(SOME_ID)},
    "ids": {"unknown": [SOME_ID], "twice": [SOME_ID, str(SOME_ID)]},
    "time": {
        "early": datetime(2, 1, 2, tzinfo=UTC),
        "late": datetime(9_989, 1, 1, tzinfo=UTC),
        "zoned": datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=-9, minutes=-30))),
    },
    "object": _GOOD_JSON,
    "json": _GOOD_JSON,
    "objects": {"none": [], "empty": [{}]} | {k: [v] for k, v in _GOOD_JSON.items()},
    "filter": {
        "empty": {},
        "none of them": {"tags": {"in": []}},
        "hostile key": {"metadata.a'); DROP TABLE mnemic.turns; --": {"ne": "'; --"}},
        "read": Filter.from_json({"not": {"metadata.a\\.b": None}}),
        "owner in the metadata": {"metadata.tenant_id": "other"},
    },
    "texts": {"none": [], "twice": ["a", "a"]} | {k: [v] for k, v in _ODD.items()},
}


def _of_kind(kind: str) -> Iterator[Value]:
    """What is special to a kind."""
    for label, given in _REFUSED.get(kind, {}).items():
        yield Value(label, given, refused=True)
    for label, given in _EITHER.get(kind, {}).items():
        yield Value(label, given, refused=False)


# A key of working memory is any text, and so is a pattern over them; nothing is asked of a default.
_MAY_BE = {
    "key": {"blank", "zero-width", "ideographic space", "filler", "byte order mark"}
    | {"NUL", "NUL inside"},
    "pattern": {"empty", "blank", "zero-width", "ideographic space", "filler"}
    | {"byte order mark", "NUL", "NUL inside"},
    "default": set(_STRANGERS) | set(_BAD_JSON),
    "current_step": {"text", "negative"},
    "description": {"empty"},
    "checkpoint_id": {"text", "empty", "blank", "zero-width", "ideographic space", "filler"}
    | {"byte order mark", "very long"},
}


def hostile(leaf: Leaf) -> list[Value]:
    """Everything to send in the place of a leaf, what must be refused first."""
    allowed = _MAY_BE.get(leaf.name, set())
    at_home = _AT_HOME[leaf.kind]
    found = []
    for label, given in _STRANGERS.items():
        if (label == "null" and leaf.optional) or (label == "type" and leaf.kind == "function"):
            continue
        found.append(Value(label, given, refused=label not in at_home | allowed))
    found += [
        Value(one.label, one.given, refused=one.refused and one.label not in allowed)
        for one in _of_kind(leaf.kind)
    ]
    return sorted(found, key=lambda one: not one.refused)
