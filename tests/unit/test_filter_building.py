"""Filters built in Python: each says what its JSON says, and wrong use is refused by its remedy."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from mnemic import Filter, InvalidInput, Outcome, Trust, where
from mnemic.model.filters import DEPTH_MAX, PARTS_MAX, AllOf, AnyOf, Compare, Not, checked_filter

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
RED = where("tags").eq("red")
NEW_YEAR = datetime(1000, 1, 1, tzinfo=timezone(timedelta(hours=5)))  # the old year in UTC


class Posing(str):
    """A text that looks like another, and is spelt as it likes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'red'"

    def __str__(self) -> str:
        return "eq"


class Moment(datetime):
    """A time with a spelling of its own."""

    def __repr__(self) -> str:
        return "now"


class Identity(UUID):
    """An id with a spelling of its own."""

    def __repr__(self) -> str:
        return "me"


EARLIER = Compare("occurred_at", "lt", datetime(2026, 3, 1, tzinfo=UTC))


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: where("outcom"), "did you mean outcome?"),
    (lambda: where("metadata"), "did you mean metadata.<path>?"),
    (lambda: where("tags", "a"), "only metadata has keys"),
    (lambda: where("metadata", *"abcdefghijklmnopq"), "at most 16 keys"),
    (lambda: where("metadata", 1), "must be text"),
    (lambda: where(7), "is not text"),
    (lambda: where("outcome").eq("sucess"), "success, failure, partial"),
    (lambda: where("outcome").lt("success"), "no order"),
    (lambda: where("importance").eq("0.5"), "must be a number"),
    (lambda: where("importance").ge(float("nan")), "not a JSON number"),
    (lambda: where("pinned").eq(1), "true or false"),
    (lambda: where("occurred_at").ge(AT.replace(tzinfo=None)), "zone"),
    (lambda: where("tags").eq(["a"]), "for several use in"),
    (lambda: where("metadata.team", "name"), 'use where("metadata", "team", "name")'),
    (lambda: where("metadata.a\\.b.c", "d"), 'use where("metadata", "a.b", "c", "d")'),
    (lambda: where("metadata.team", 1), "must be text"),
    (lambda: where("metadata.a", *"bcdefghijklmnopq"), "at most 16 keys"),
    (lambda: where("tags").in_("red"), "in must be a list of at most 1000 values, not 'red'"),
    (lambda: where("tags").in_(b"red"), "not a bytes"),
    (lambda: where("tags").in_({"red": 1}), "not a dict"),
    (lambda: where("tags").in_(one for one in "red"), "not a generator"),
    (lambda: where("tags").in_(7), "not 7"),
    (lambda: where("trust").in_(range(10**12)), "at most 1000 values, not of more"),
    (lambda: where("tags").exists(present="no"), "exists must be true or false"),
    (lambda: where("tags") == "red", "compared by its methods; use eq"),
    (lambda: where("importance") > 0.5, "compared by its methods; use eq"),
    (lambda: RED and RED, "use &, | and ~"),
    (lambda: not RED, "use &, | and ~"),
    (lambda: RED & {"tags": "red"}, 'use where("outcome").eq("success") or Filter.from_json'),
    (lambda: RED | where("tags"), "joined with a filter, not with a FilterField"),
    (lambda: RED & where("tags"), "joined with a filter, not with a FilterField"),
    (lambda: RED | None, "joined with a filter, not with None"),
    (lambda: AllOf(5) & RED, "the parts of a filter must be a tuple, not 5"),  # type: ignore[arg-type]
    (lambda: RED | AnyOf(None), "the parts of a filter must be a tuple, not None"),  # type: ignore[arg-type]
    (lambda: RED & 5, "joined with a filter, not with 5"),
    (lambda: None | RED, "joined with a filter, not with None"),
    (lambda: {"tags": "red"} & RED, "joined with a filter, not with a dict"),
    (lambda: where("pinned") and RED, "compare it first"),
    (lambda: where("pinned") or RED, "compare it first"),
    (lambda: not where("pinned"), "compare it first"),
    (lambda: ~where("pinned"), "compare it first"),
    (lambda: where("pinned") & RED, "compare it first"),
    (lambda: where("pinned") | RED, "compare it first"),
    (lambda: where("pinned") ^ RED, "compare it first"),
    (lambda: where("pinned") & where("tags"), "compare it first"),
    (lambda: {"tags": "red"} | where("pinned"), "compare it first"),
    (lambda: "red" in where("tags"), "compared by its methods; use eq"),
    (lambda: where("metadata.at").lt(AT.replace(year=999)), "the years 1000 to 8999"),
    (lambda: where("metadata.at").in_([AT.replace(year=9000)]), "this one is in 9000; use"),
    (lambda: where("metadata.at").ge(NEW_YEAR), "this one is in 999; use"),
    (lambda: checked_filter(where("tags")), "must be an object such as"),
    (lambda: checked_filter(where), "must be an object such as"),
    (lambda: checked_filter(Filter()), "must be an object such as"),
]


@pytest.mark.parametrize(
    ("built", "told"),
    [
        (lambda: where("outcome").eq(Outcome.SUCCESS), {"outcome": {"eq": "success"}}),
        (lambda: where("outcome").ne("failure"), {"outcome": {"ne": "failure"}}),
        (lambda: where("importance").gt(0.5), {"importance": {"gt": 0.5}}),
        (lambda: where("trust").le(Trust.USER), {"trust": {"le": 2}}),
        (lambda: where("trust").lt("inferred"), {"trust": {"lt": 3}}),
        (lambda: where("occurred_at").ge(AT), {"occurred_at": {"ge": "2026-03-01T09:00:00+00:00"}}),
        (lambda: where("session").eq(UUID(int=1)), {"session": {"eq": str(UUID(int=1))}}),
        (lambda: where("tags").in_(("a", "b")), {"tags": {"in": ["a", "b"]}}),
        (lambda: where("tags").in_([]), {"tags": {"in": []}}),
        (lambda: where("tags").in_({"a": 1}.keys()), {"tags": {"in": ["a"]}}),
        (lambda: where("tags").in_({"x": "a"}.values()), {"tags": {"in": ["a"]}}),
        (lambda: where("tags").in_(deque(["a"])), {"tags": {"in": ["a"]}}),
        (lambda: where("trust").in_(range(2)), {"trust": {"in": [0, 1]}}),
        (lambda: where("valid_to").exists(), {"valid_to": {"exists": True}}),
        (lambda: where("valid_to").exists(present=False), {"valid_to": {"exists": False}}),
        (lambda: where("task_type").eq(None), {"task_type": {"eq": None}}),
        (lambda: where("metadata.team.name").eq("a"), {"metadata.team.name": {"eq": "a"}}),
        (lambda: where("metadata", "a.b", "c\\").eq(1), {"metadata.a\\.b.c\\\\": {"eq": 1}}),
        (
            lambda: where("metadata", "at").lt(AT),
            {"metadata.at": {"lt": "2026-03-01T09:00:00+00:00"}},
        ),
        (
            lambda: RED & where("pinned").eq(True) & ~where("role").eq("tool"),  # noqa: FBT003 - a value
            {
                "and": [
                    {"tags": {"eq": "red"}},
                    {"pinned": {"eq": True}},
                    {"not": {"role": {"eq": "tool"}}},
                ]
            },
        ),
        (
            lambda: RED & (RED | ~RED),
            {
                "and": [
                    {"tags": {"eq": "red"}},
                    {"or": [{"tags": {"eq": "red"}}, {"not": {"tags": {"eq": "red"}}}]},
                ]
            },
        ),
        (lambda: ~~RED, {"tags": {"eq": "red"}}),
    ],
)
def test_what_is_built_tells_its_json(built: Callable[[], Filter], told: dict[str, Any]) -> None:
    asked = built()

    assert asked.to_json() == told
    assert Filter.from_json(told) == asked == checked_filter(asked)


@pytest.mark.parametrize(("wrong", "hint"), WRONG, ids=map(str, range(len(WRONG))))
def test_wrong_use_is_refused_with_what_to_do(wrong: Callable[[], object], hint: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        wrong()

    assert refused.value.field == "filters"
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            lambda: where("tags") == "red",
            "a field is compared by its methods; use eq, ne, lt, le, gt, ge, in_ or exists",
        ),
        (
            lambda: where("pinned") & RED,
            (
                "a field is no filter until it is compared; compare it first, as "
                'where("outcome").eq("success") does, and join filters by &, | and ~'
            ),
        ),
        (
            lambda: RED and RED,
            (
                "a filter is neither true nor false by itself; use &, | and ~ to join filters, "
                "and not `and`, `or` and `not`"
            ),
        ),
        (
            lambda: RED & 5,
            (
                "a filter is joined with a filter, not with 5; use "
                'where("outcome").eq("success") or Filter.from_json(…)'
            ),
        ),
        (lambda: where("tags", "a"), "only metadata has keys; leave them out"),
        (
            lambda: where("metadata.größe", "cm"),
            'a path has either dots or further keys; use where("metadata", "größe", "cm")',
        ),
    ],
    ids=["field ==", "field &", "filter and", "filter & 5", "keys", "dots and keys"],
)
def test_what_python_writes_otherwise_is_refused_in_these_words(
    wrong: Callable[[], object], told: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        wrong()

    assert str(refused.value) == f"filters: {told}"


@pytest.mark.parametrize(
    ("by_hand", "hint"),
    [
        (Compare("nobody", "eq", 1), "is no field"),
        (Compare("tags", "like", "a"), "is no operator"),
        (Compare("tags", "in", "red"), "in must be a list"),
        (Compare("importance", "eq", "high"), "must be a number"),
        (Compare("tags", "eq", "a", ("k",)), "is no field"),
        (Compare("metadata", "eq", 1, 5), "the path of a filter must be a tuple, not 5"),  # type: ignore[arg-type]
        (Compare("metadata", "eq", 1, "ab"), "the path of a filter must be a tuple, not 'ab'"),  # type: ignore[arg-type]
        (Compare("tags", "eq", "a", None), "the path of a filter must be a tuple, not None"),  # type: ignore[arg-type]
        (Compare("metadata", "eq", 1, (5,)), "must be text"),  # type: ignore[arg-type]
        (Compare(5, "eq", 1, ("a",)), "the field 5 is not text"),  # type: ignore[arg-type]
        (Compare(["tags"], "eq", 1), "is not text"),  # type: ignore[arg-type]
        (Compare("not", "tags", "red"), "'not' is no field"),
        (Compare("tags", ["eq"], "x"), "a list is no operator. Use one of eq"),  # type: ignore[arg-type]
        (Compare("tags", None, "x"), "None is no operator. Use one of eq"),  # type: ignore[arg-type]
        (Compare("tags", "eq", {(1, 2): 3}), "tags must be text, not a dict"),
        (Compare("tags", "eq", object()), "tags must be text, not a object"),
        (AllOf(5), "the parts of a filter must be a tuple, not 5"),  # type: ignore[arg-type]
        (AnyOf(RED), "the parts of a filter must be a tuple, not a Compare"),  # type: ignore[arg-type]
        (Not(5), "5 is no filter"),  # type: ignore[arg-type]
        (AllOf(()), "must be a list of at least one"),
        (AnyOf((RED, "red")), "is no filter"),  # type: ignore[arg-type]
        (AllOf((RED,) * PARTS_MAX), f"more than {PARTS_MAX} parts"),
        (Not(Not(Not(Not(Not(Not(Not(Not(RED)))))))), f"deeper than {DEPTH_MAX}"),
    ],
)
def test_what_was_put_together_by_hand_is_checked_like_any_other(
    by_hand: Filter, hint: str
) -> None:
    for used in (checked_filter, Filter.to_json):
        with pytest.raises(InvalidInput) as refused:
            used(by_hand)  # type: ignore[operator]

        assert str(refused.value.field).startswith("filters")
        assert hint in str(refused.value)


@pytest.mark.parametrize(
    ("posing", "plain"),
    [
        (Compare("tags", "eq", Posing("blue")), Compare("tags", "eq", "blue")),
        (Compare("tags", "in", (Posing("blue"),)), Compare("tags", "in", ("blue",))),
        (Compare(Posing("tags"), "eq", "a"), Compare("tags", "eq", "a")),
        (Compare("tags", Posing("ne"), "a"), Compare("tags", "ne", "a")),
        (Compare("outcome", "eq", Posing("success")), Compare("outcome", "eq", "success")),
        (Compare("outcome", "eq", Outcome.SUCCESS), Compare("outcome", "eq", "success")),
        (
            Compare("metadata", "eq", Posing("b"), (Posing("a"),)),
            Compare("metadata", "eq", "b", ("a",)),
        ),
        (Compare("trust", "le", Trust.USER), Compare("trust", "le", 2)),
        (Compare("importance", "gt", 1), Compare("importance", "gt", 1.0)),
        (Compare("occurred_at", "lt", Moment(2026, 3, 1, tzinfo=UTC)), EARLIER),
        (Compare("session", "eq", Identity(int=1)), Compare("session", "eq", UUID(int=1))),
        (Not(Compare("tags", "eq", Posing("blue"))), Not(Compare("tags", "eq", "blue"))),
    ],
)
def test_of_what_was_put_together_by_hand_only_the_plain_values_are_kept(
    posing: Filter, plain: Filter
) -> None:
    assert repr(checked_filter(posing)) == repr(plain)


def test_a_long_sum_is_no_deep_nest() -> None:
    long = RED
    for number in range(PARTS_MAX - 2):
        long |= where("tags").eq(str(number))

    assert len(checked_filter(long).parts) == PARTS_MAX - 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "wrapped",
    [Not, lambda part: AllOf((part,)), lambda part: AnyOf((part,))],
    ids=["not", "and", "or"],
)
def test_a_nest_has_as_many_levels_as_the_bound_says_and_no_deeper_one_is_a_fault_of_python(
    wrapped: Callable[[Filter], Filter],
) -> None:
    deep = RED
    for _ in range(DEPTH_MAX - 1):
        deep = wrapped(deep)
    assert checked_filter(deep) == deep == Filter.from_json(deep.to_json())

    for more in (1, 5_000):
        for _ in range(more):
            deep = wrapped(deep)
        with pytest.raises(InvalidInput) as refused:
            checked_filter(deep)
        assert (
            str(refused.value) == f"filters: is nested deeper than {DEPTH_MAX} levels; flatten it"
        )


def test_a_time_that_json_cannot_ask_for_is_told_to_nobody() -> None:
    early = where("occurred_at").ge(AT.replace(year=900))

    assert checked_filter(early) == early
    with pytest.raises(InvalidInput) as refused:
        early.to_json()
    assert str(refused.value) == (
        "filters: a time in metadata and in JSON must lie in the years 1000 to 8999 of UTC, and "
        "this one is in 900; use a time within them, or leave the condition out"
    )
