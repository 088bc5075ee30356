from __future__ import annotations

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


@given(st.text(max_size=300))
def test_there_are_never_too_many(text: str) -> None:
    assert len(names_in(text)) <= NAMES_MAX
    assert len(names_in(text * 100)) <= NAMES_MAX
