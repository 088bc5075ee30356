"""Which of many patterns match, told together, is what each of them tells alone."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from mnemic.service import triggers
from mnemic.service.triggers import matching, trigger_of

pieces = st.sampled_from(
    [
        r"\bP[12]\b",
        "^deploy",
        "now$",
        "(a+)+$",
        "ship|sell",
        "x{2,3}",
        "",
        ".",
        "é",
        r"\d",
        "(?-i)A",
    ]
)
patterns = st.lists(st.lists(pieces, max_size=3).map("".join), max_size=12)
texts = st.lists(
    st.sampled_from(["p1", "Deploy", " ", "\n", "now", "aaa", "Ship", "xx", "É", "7"]), max_size=8
).map("".join)


def alone(patterns: list[str], text: str) -> list[int]:
    """By asking one after another."""
    return [place for place, pattern in enumerate(patterns) if trigger_of(pattern).search(text)]


@given(patterns, texts)
def test_together_they_tell_what_each_tells_alone(patterns: list[str], text: str) -> None:
    assert matching(patterns, text) == alone(patterns, text)


def test_of_none_none_matches() -> None:
    assert matching([], "ship it") == []


def test_more_than_are_kept_compiled_match_too() -> None:
    patterns = [f"word{number}$" for number in range(500)]

    assert matching(patterns, "When did word7 meet WORD499") == [499]


def test_one_that_cannot_be_read_matches_nothing_and_hides_no_other() -> None:
    patterns = ["(", "ship", "(?=look)", "it"]

    assert matching(patterns, "ship it") == [1, 3]


def test_those_too_large_to_be_one_automaton_are_asked_one_by_one() -> None:
    letters = Random(3)
    patterns = ["".join(letters.choices("abcdefg", k=900)) for _ in range(60)] + ["ship"]

    found = matching(patterns, "ship it")

    assert triggers._together(tuple(patterns)) is None
    assert found == [60]
