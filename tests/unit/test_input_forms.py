"""What nobody sees makes no difference, and every value can be shown in a message."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import InvalidInput, MemoryScope, Outcome, Scope, Tenant, TenantKind
from mnemic.model.characters import is_blank, without_invisible
from mnemic.model.normalise import checked_json, comparison_key, shown

ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
HUGE = 10**5_000


@pytest.mark.parametrize(
    "mark",
    ["\u200b", "\u200d", "\u202e", "\u034f", "\u061c", "\u115f", "\u3164", "\ufe0f", "\U000e0041"],
)
def test_a_mark_that_is_not_drawn_is_no_part_of_a_key_and_blank_alone(mark: str) -> None:
    assert comparison_key(f"ad{mark}min") == "admin"
    assert without_invisible(f"{mark}a{mark}") == "a"
    assert is_blank(mark)
    assert not is_blank(f"{mark}.")


def test_flags_that_differ_in_their_tags_alone_are_two() -> None:
    assert comparison_key(ENGLAND) != comparison_key(SCOTLAND)
    assert without_invisible(ENGLAND) == ENGLAND
    assert not is_blank(ENGLAND)


def test_a_line_separator_parts_two_words_as_a_space_does() -> None:
    assert comparison_key("Ada\u2028Lovelace") == comparison_key("Ada Lovelace")
    assert comparison_key("Ada\u2028Lovelace") != comparison_key("AdaLovelace")


@given(st.text())
def test_a_text_that_can_be_seen_has_a_key(text: str) -> None:
    assert is_blank(text) or comparison_key(text) != ""


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("a\nb\u202e\ud800", "'a\\nb\\u202e\\ud800'"),
        ("x" * 100, "'" + "x" * 60 + "…'"),
        (Outcome.SUCCESS, "'success'"),
        (HUGE, "an integer of 16610 bits"),
        (-3, "-3"),
        (True, "True"),
        (None, "None"),
        (math.nan, "nan"),
        ({"k": HUGE}, "a dict"),
        ([HUGE], "a list"),
    ],
    ids=range(10),
)
def test_whatever_it_is_it_is_shown_in_a_short_line(value: Any, told: str) -> None:
    assert shown(value) == told


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"a": {"b": [0, HUGE]}}, "v.a.b[1]"),
        ({HUGE: 1}, "v"),
        ({"\ud800": 1}, "v.'\\ud800'"),
        ({"k" * 60: HUGE}, "v." + "k" * 60),
        ({"k" * 61: HUGE}, "v.'" + "k" * 60 + "…'"),
        ({"k" * 5_000: HUGE}, "v.'" + "k" * 60 + "…'"),
        ((1, 2), "v"),
        ({1}, "v"),
    ],
    ids=range(8),
)
def test_json_that_cannot_be_held_is_named_by_a_path_that_can_be_shown(
    value: Any, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked_json(value, field="v")

    assert refused.value.field == field
    assert str(refused.value).isprintable()


def test_json_that_can_be_held_comes_back_as_plain_values() -> None:
    held = checked_json({"o": Outcome.SUCCESS, "level": [2**63 - 1, -(2**63), 1e308]}, field="v")

    assert held == {"o": "success", "level": [2**63 - 1, -(2**63), 1e308]}
    assert type(held["o"]) is str


@pytest.mark.parametrize(
    ("made", "field"),
    [
        (lambda: Tenant("robot", "x"), "tenant"),
        (lambda: Tenant(HUGE, "x"), "tenant"),
        (lambda: Scope("user"), "tenant"),
        (lambda: Scope(Tenant(TenantKind.PERSON, "u"), (("planet", "x"),)), "scope"),
        (lambda: Scope(Tenant(TenantKind.PERSON, "u"), ("project",)), "scope"),
        (lambda: Scope(Tenant(TenantKind.PERSON, "u"), ((MemoryScope.GLOBAL, "x"),)), "global"),
    ],
    ids=range(6),
)
def test_a_tenant_or_level_of_an_unknown_kind_is_refused(made: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        made()

    assert refused.value.field == field


def test_a_scope_is_the_same_by_the_names_that_json_has() -> None:
    told: Any = Scope(Tenant("person", "u"), [["project", "p"], ["session", "s"]])

    assert told == Scope.user("u").project("p").session("s")
    assert told.id == Scope.user("u").project("p").session("s").id
