"""Filters by their rules: what an object asks, and what is refused in which words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from mnemic.errors import InvalidInput
from mnemic.model.episode import Outcome
from mnemic.model.filters import AllOf, AnyOf, Compare, Filter, Not, checked_filter
from mnemic.model.trust import Trust

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
TWO = UUID(int=2)


def told(value: object) -> str:
    """What a refusal says, the field that it names before it."""
    with pytest.raises(InvalidInput) as caught:
        checked_filter(value)
    assert str(caught.value).startswith(f"{caught.value.field}: ")
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "asked"),
    [
        ({"outcome": "success"}, Compare("outcome", "eq", "success")),
        ({"outcome": "completed"}, Compare("outcome", "eq", "success")),
        ({"outcome": Outcome.FAILURE}, Compare("outcome", "eq", "failure")),
        ({"kind": "turn"}, Compare("kind", "eq", "turn")),
        ({"trust": "operator"}, Compare("trust", "eq", 0)),
        ({"trust": {"le": 1}}, Compare("trust", "le", 1)),
        ({"trust": Trust.IMPORTED}, Compare("trust", "eq", 5)),
        ({"importance": {"ge": 1}}, Compare("importance", "ge", 1.0)),
        ({"pinned": False}, Compare("pinned", "eq", value=False)),
        ({"tags": {"in": ["red", None]}}, Compare("tags", "in", ("red", None))),
        ({"tags": {"in": []}}, Compare("tags", "in", ())),
        ({"session": str(TWO)}, Compare("session", "eq", TWO)),
        ({"session": TWO}, Compare("session", "eq", TWO)),
        ({"category": {"exists": False}}, Compare("category", "exists", value=False)),
        ({"valid_to": None}, Compare("valid_to", "eq", None)),
        ({"metadata.a": 1}, Compare("metadata", "eq", 1, ("a",))),
        ({"metadata.a.b": {"ne": "x"}}, Compare("metadata", "ne", "x", ("a", "b"))),
        ({r"metadata.a\.b": True}, Compare("metadata", "eq", value=True, path=("a.b",))),
        ({r"metadata.\\": 1.5}, Compare("metadata", "eq", 1.5, ("\\",))),
        ({"metadata.": 1}, Compare("metadata", "eq", 1, ("",))),
        ({"metadata.a\nb.c": 1}, Compare("metadata", "eq", 1, ("a\nb", "c"))),
        ({"metadata.a\\\nb": 1}, Compare("metadata", "eq", 1, ("a\nb",))),
        ({"metadata.at": AT}, Compare("metadata", "eq", AT.isoformat(), ("at",))),
        (
            {"occurred_at": {"ge": "2026-03-01T10:00:00+01:00"}},
            Compare("occurred_at", "ge", AT),
        ),
        (
            {"occurred_at": {"lt": AT.astimezone(timezone(timedelta(hours=5)))}},
            Compare("occurred_at", "lt", AT),
        ),
        (
            {"importance": {"gt": 0.1, "lt": 0.2}},
            AllOf((Compare("importance", "gt", 0.1), Compare("importance", "lt", 0.2))),
        ),
        (
            {"kind": "fact", "pinned": True},
            AllOf((Compare("kind", "eq", "fact"), Compare("pinned", "eq", value=True))),
        ),
        (
            {"or": [{"kind": "fact"}, {"not": {"kind": "turn"}}]},
            AnyOf((Compare("kind", "eq", "fact"), Not(Compare("kind", "eq", "turn")))),
        ),
        ({"and": [{"kind": "fact"}]}, AllOf((Compare("kind", "eq", "fact"),))),
    ],
)
def test_an_object_asks_what_it_says(value: dict[str, Any], asked: Filter) -> None:
    assert checked_filter(value) == asked
    assert Filter.from_json(value) == asked
    assert repr(checked_filter(asked)) == repr(asked)


@pytest.mark.parametrize("nothing", [None, {}])
def test_nothing_asked_is_no_filter(nothing: object) -> None:
    assert checked_filter(nothing) is None
    assert Filter.from_text("{}") is None


FIELDS_SHOWN = (
    "kind, outcome, task_type, tags, trust, source, occurred_at, recorded_at, importance, "
    "confidence, actor, role, session, category, subject, predicate, object, pinned, valid_from, "
    "valid_to, name, key_topics, tools_used, metadata.<path>"
)
OBJECT = 'must be an object such as {"outcome": "success"}, not '


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], f"filters: {OBJECT}a list"),
        ("kind", f"filters: {OBJECT}'kind'"),
        ({"and": [{}]}, "filters.and[0]: must name a field; an empty object says nothing"),
        ({"not": 1}, f"filters.not: {OBJECT}1"),
        ({"or": [{"kind": "turn"}, 2]}, f"filters.or[1]: {OBJECT}2"),
        ({"or": {"kind": "turn"}}, "filters.or: must be a list of at least one filter"),
        ({"and": []}, "filters.and: must be a list of at least one filter"),
        ({1: 2}, "filters: the field 1 is not text; pass text keys"),
        (
            {"outcom": 1},
            f"filters: 'outcom' is no field; did you mean outcome? Use one of {FIELDS_SHOWN}",
        ),
        (
            {"metadata": 1},
            (
                "filters: 'metadata' is no field; did you mean metadata.<path>? "
                f"Use one of {FIELDS_SHOWN}"
            ),
        ),
        ({"zzzzzz": 1}, f"filters: 'zzzzzz' is no field. Use one of {FIELDS_SHOWN}"),
        (
            {"kind.x": 1},
            f"filters: 'kind.x' is no field; did you mean kind? Use one of {FIELDS_SHOWN}",
        ),
        ({"nor": [1]}, f"filters: 'nor' is no field; did you mean or? Use one of {FIELDS_SHOWN}"),
        ({"kind": {}}, "filters: 'kind' must be compared with something; give an operator"),
        (
            {"importance": {"gte": 1}},
            (
                "filters: 'gte' is no operator; did you mean ge? "
                "Use one of eq, ne, lt, le, gt, ge, in, exists"
            ),
        ),
        (
            {"importance": {"$lte": 1}},
            (
                "filters: '$lte' is no operator; did you mean le? "
                "Use one of eq, ne, lt, le, gt, ge, in, exists"
            ),
        ),
        (
            {"kind": {"equals": "turn"}},
            (
                "filters: 'equals' is no operator; did you mean eq? "
                "Use one of eq, ne, lt, le, gt, ge, in, exists"
            ),
        ),
        (
            {"importance": {"between": 1}},
            "filters: 'between' is no operator. Use one of eq, ne, lt, le, gt, ge, in, exists",
        ),
        (
            {"importance": {7: 1}},
            "filters: 7 is no operator. Use one of eq, ne, lt, le, gt, ge, in, exists",
        ),
        ({"tags": {"exists": 1}}, "filters: exists must be true or false, not 1"),
        ({"tags": {"in": "red"}}, "filters: in must be a list of at most 1000 values, not 'red'"),
        (
            {"tags": {"in": ["x"] * 1001}},
            "filters: in must be a list of at most 1000 values, not of more",
        ),
        (
            {"pinned": {"lt": True}},
            (
                "filters: pinned has no order there: lt must stand with a number, a text or "
                "a time; use eq or in"
            ),
        ),
        (
            {"metadata.a": {"ge": True}},
            (
                "filters: metadata has no order there: ge must stand with a number, a text or "
                "a time; use eq or in"
            ),
        ),
        (
            {"importance": {"gt": None}},
            (
                "filters: importance has no order there: gt must stand with a number, a text or a "
                "time; use eq or in"
            ),
        ),
        ({"actor": 7}, "filters: actor must be text, not 7"),
        ({"tags": 7}, "filters: tags must be text, not 7"),
        ({"tags": ["a"]}, "filters: tags must be text, not a list; for several use in"),
        ({"importance": True}, "filters: importance must be a number, not True"),
        ({"importance": "1"}, "filters: importance must be a number, not '1'"),
        ({"importance": {"in": [1, "x"]}}, "filters: importance must be a number, not 'x'"),
        ({"pinned": 1}, "filters: pinned must be true or false, not 1"),
        (
            {"outcome": "won"},
            "filters: outcome must be one of success, failure, partial, not 'won'",
        ),
        ({"role": "x"}, "filters: role must be one of user, assistant, system, tool, not 'x'"),
        (
            {"trust": 6},
            (
                "filters: trust must be one of 0 (operator), 1 (approved), 2 (user), 3 (inferred), "
                "4 (external), 5 (imported), not 6"
            ),
        ),
        (
            {"trust": True},
            (
                "filters: trust must be one of 0 (operator), 1 (approved), 2 (user), 3 (inferred), "
                "4 (external), 5 (imported), not True"
            ),
        ),
        (
            {"occurred_at": "yesterday"},
            (
                "filters: occurred_at must be a time with a zone such as 2026-03-01T09:00:00Z, "
                "not 'yesterday'"
            ),
        ),
        (
            {"session": "x"},
            "filters: session must be an id that a reply gave (a UUID), not 'x'",
        ),
        ({"session": 5}, "filters: session must be an id that a reply gave (a UUID), not 5"),
        (
            {"metadata.a": [1]},
            (
                "filters: metadata must be a text, a number, true, false or null, not a list; "
                "for several use in"
            ),
        ),
        (
            {"metadata.a": {"eq": {"b": 1}}},
            "filters: metadata must be a text, a number, true, false or null, not a dict",
        ),
        ({"metadata.a": 2**63}, "filters: the integer is beyond 64 bits; pass it as text"),
        (
            {"metadata." + "a." * 16 + "a": 1},
            (
                "filters: 'a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a' must be at most 16 keys parted by "
                "dots; in a key write \\. for a dot and \\\\ for a backslash"
            ),
        ),
        (
            {"metadata.a\\": 1},
            (
                "filters: 'a\\\\' must be at most 16 keys parted by dots; in a key write \\. for a "
                "dot and \\\\ for a backslash"
            ),
        ),
        ({"metadata." + "a" * 10_001: 1}, "filters: a path must have at most 10000 characters"),
        ({"actor": "a" * 10_001}, "filters: a text must have at most 10000 characters"),
        (
            {"metadata.at": AT.replace(tzinfo=None)},
            "filters: the time has no zone; pass a datetime with tzinfo, for example in UTC.",
        ),
        ({"metadata.a\x00": 1}, "filters: must not hold a NUL character; remove it"),
        ({"metadata.a": "a\x00"}, "filters: must not hold a NUL character; remove it"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_these_words(value: object, words: str) -> None:
    assert told(value) == words


@pytest.mark.parametrize(
    ("wrapped", "step"),
    [
        (lambda part: {"not": part}, ".not"),
        (lambda part: {"and": [part]}, ".and[0]"),
        (lambda part: {"or": [part]}, ".or[0]"),
    ],
    ids=["not", "and", "or"],
)
def test_an_object_has_as_many_levels_as_the_bound_says(
    wrapped: Callable[[dict[str, Any]], dict[str, Any]], step: str
) -> None:
    deep: dict[str, Any] = {"kind": "turn"}
    for _ in range(7):
        deep = wrapped(deep)

    assert checked_filter(deep) is not None
    assert told(wrapped(deep)) == f"filters{step * 8}: is nested deeper than 8 levels; flatten it"


def test_a_filter_has_as_many_parts_as_the_bound_says() -> None:
    many = [{"kind": "turn"}] * 99
    assert checked_filter({"or": many}) is not None
    assert told({"or": [*many, many[0]]}) == "filters.or[99]: has more than 100 parts; use fewer"
    assert told({"or": [*many, {"not": many[0]}]}) == (
        "filters.or[99]: has more than 100 parts; use fewer"
    )
    assert told({"or": [*many, {"and": many[:1]}]}) == (
        "filters.or[99].and: has more than 100 parts; use fewer"
    )
    assert told({"or": many * 2}) == "filters.or: has more than 100 parts; use fewer"


def test_names_and_values_are_as_long_as_the_bounds_say() -> None:
    assert checked_filter({f"metadata.{'a' * 10_000}": 1}) is not None
    assert checked_filter({f"metadata.{'a.' * 15}a": 1}) is not None
    assert checked_filter({"tags": {"in": ["x"] * 1_000}}) is not None
    assert checked_filter({"actor": "a" * 10_000}) is not None


def test_text_is_read_as_json_and_names_no_key_twice() -> None:
    assert Filter.from_text('{"kind": "turn"}') == Compare("kind", "eq", "turn")
    with pytest.raises(InvalidInput) as broken:
        Filter.from_text("kind=turn")
    assert str(broken.value) == (
        'filters: must be a JSON object such as {"outcome": "success"}, not \'kind=turn\''
    )
    with pytest.raises(InvalidInput) as twice:
        Filter.from_text('{"metadata.a": {"gt": 1, "gt": 2}}')
    assert str(twice.value) == "filters: an object names a key twice; keep one"
    with pytest.raises(InvalidInput, match="must be a JSON object"):
        Filter.from_text("[" * 100_000)
