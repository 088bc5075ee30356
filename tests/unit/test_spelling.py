from __future__ import annotations

import pytest

from mnemic.model.spelling import may_be_misspelt, nearest_spelling

TERMS = {"barcelona": 3, "receiv": 5, "restaur": 2, "receipt": 9, "москв": 4, "cat": 50, "cast": 1}


@pytest.mark.parametrize(
    ("word", "term"),
    [
        ("barcelonna", "barcelona"),
        ("bracelona", "barcelona"),
        ("reciev", "receiv"),
        ("restuar", "restaur"),
        ("масква", "москв"),
        ("масквы", "москв"),
        ("мосва", None),
        ("zanzibar", None),
        ("barceloneta", "barcelona"),
        ("barcelonetas", None),
        ("cats", "cast"),
        ("acst", "cast"),
        ("catt", "cast"),
        ("barclna", "barcelona"),
        ("barrccelona", "barcelona"),
        ("bracelinu", None),  # two letters changed beside those that are swapped
    ],
)
def test_a_word_is_read_as_the_nearest(word: str, term: str | None) -> None:
    assert nearest_spelling(word, TERMS) == term


def test_of_words_that_are_as_near_the_most_frequent_is_meant() -> None:
    assert nearest_spelling("lime", {"line": 1, "lima": 7, "dime": 7}) == "dime"


@pytest.mark.parametrize(
    ("word", "may"), [("tea", False), ("2023", False), ("b2b4", False), ("cats", True)]
)
def test_short_words_and_numbers_are_taken_as_they_are(word: str, *, may: bool) -> None:
    assert may_be_misspelt(word) is may
