"""What the vector of a turn is made of."""

from __future__ import annotations

from array import array
from math import hypot, isclose

import pytest

from mnemic.model.turn_vector import (
    BEFORE_CHARS_MAX,
    SHORT_WORDS_MAX,
    TURNS_BEFORE_MAX,
    Said,
    joined,
    said_in_order,
    turn_text,
    turn_texts,
)
from mnemic.store.wording import words_of

BEFORE = [Said("Mira", "Anna sails."), Said("Tom", "Where?"), Said("Mira", "Off Tartu.", "a boat")]
HERE = Said("Tom", "Since when?")


def words(count: int) -> str:
    return " ".join(["word"] * count)


def test_a_short_turn_is_embedded_alone_and_behind_the_two_before_it() -> None:
    assert turn_texts(HERE, BEFORE) == (
        "Tom: Since when?",
        "Tom: Where?\nMira: Off Tartu. [image: a boat]\nTom: Since when?",
    )


def test_there_may_be_one_before_it_or_none() -> None:
    assert turn_texts(HERE, BEFORE[:1])[1:] == ("Mira: Anna sails.\nTom: Since when?",)
    assert turn_texts(HERE, ()) == ("Tom: Since when?",)


@pytest.mark.parametrize(
    ("turn", "is_short"),
    [
        (Said("Tom", words(SHORT_WORDS_MAX)), True),
        (Said("Tom", words(SHORT_WORDS_MAX + 1)), False),
        (Said("Tom", words(SHORT_WORDS_MAX - 1), "boat"), True),
        (Said("Tom", words(SHORT_WORDS_MAX), "boat"), False),
        (Said("Tom", "?"), True),
        (
            Said("Tom", "今日は天気がいいから散歩に行きましょうと彼女は静かに言いました"),
            False,
        ),
    ],
    ids=["20 words", "21 words", "19 and a caption", "20 and a caption", "no word", "unspaced"],
)
def test_a_turn_of_more_words_has_the_vector_of_its_own_text(turn: Said, *, is_short: bool) -> None:
    texts = turn_texts(turn, BEFORE)

    assert turn.is_short == is_short == (len(texts) == 2)
    assert texts[0] == turn_text(*turn)
    counted = words_of(turn.text, turn.caption).word_count
    assert is_short == (counted <= SHORT_WORDS_MAX), "as the database counts them"


def test_of_long_turns_before_it_the_end_counts_and_the_turn_stands_whole() -> None:
    long = Said("Mira", f"{words(10_000)} and that is all")

    _, window = turn_texts(HERE, (long, *BEFORE[:1]))

    assert window.endswith("word and that is all\nMira: Anna sails.\nTom: Since when?")
    assert len(window) == BEFORE_CHARS_MAX + len("\nTom: Since when?")


def test_turns_in_order_stand_behind_each_other_and_behind_what_was_there() -> None:
    talk = [*BEFORE, HERE]

    for split in range(len(talk) + 1):
        before, turns = talk[:split][-TURNS_BEFORE_MAX:], talk[split:]
        wanted = [turn_texts(one, talk[:at]) for at, one in enumerate(talk)][split:]
        assert said_in_order(before, turns) == wanted


def test_one_vector_is_left_as_it_is_and_of_two_the_mean_has_unit_length() -> None:
    own, window = array("f", [1.0, 0.0]), array("f", [0.6, 0.8])

    mean = joined([own, window])

    assert joined([own]) is own
    assert isclose(hypot(*mean), 1.0, abs_tol=1e-6)
    assert isclose(mean[1] / mean[0], 0.5, abs_tol=1e-6), "both count alike"


def test_two_that_have_no_direction_between_them_leave_the_turns_own() -> None:
    own, window = array("f", [1.0, 0.0]), array("f", [-1.0, 0.0])

    assert joined([own, window]) is own
