from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.model.naming import NAMES_MAX, names_in
from mnemic.model.normalise import comparison_key


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("What happened in NYC?", "NYC"),
        ("the New  York\nCity marathon", "New York City"),
        ("St. Louis's arch", "St. Louis"),
        ("NYC's subway", "NYC"),
        ("Who is STRASSE 9?", "Straße 9"),
        ("我住在静安寺附近", "静安寺"),
    ],
)
def test_a_name_in_a_question_is_found_by_its_comparison_key(text: str, name: str) -> None:
    assert comparison_key(name) in names_in(text)


def test_names_of_five_words_and_parts_of_words_are_none() -> None:
    found = names_in("one two three four five")

    assert "one two three four" in found
    assert "one two three four five" not in found
    assert "tw" not in found


def test_of_a_script_without_spaces_each_piece_of_two_to_eight_letters_may_be_a_name() -> None:
    run = "甲乙丙丁戊己庚辛壬癸"

    pieces = {run[at : at + size] for size in range(2, 9) for at in range(len(run) - size + 1)}

    assert set(names_in(run)) == pieces | {run}


def test_of_too_many_those_of_few_words_come_first() -> None:
    words = [f"w{number}" for number in range(300)]

    found = names_in(" ".join(words))

    assert found[:300] == tuple(words)
    assert found[300:] == tuple(f"{one} {other}" for one, other in pairwise(words))[:200]


@given(st.text(max_size=300))
def test_there_are_never_too_many(text: str) -> None:
    assert len(names_in(text)) <= NAMES_MAX
    assert len(names_in(text * 100)) <= NAMES_MAX
