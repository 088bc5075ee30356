"""What the best score says of how likely the answer is here."""

from __future__ import annotations

import math
import random

import pytest

from mnemic import ConfidenceMap, InvalidInput


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        (7.6 / 10.9, 0.5),
        (0.775, 0.7),
        (0.57, 0.2),
        (math.nan, 0.0),
        (math.inf, 0.0),
        (1e300, 1.0),
        (-1e300, 0.0),
    ],
)
def test_confidence_is_the_chance_that_the_answer_is_here(top: float, expected: float) -> None:
    assert ConfidenceMap().of(top) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("slope", "offset", "told"),
    [
        (0.0, 1.0, "slope: must be a finite number above 0"),
        (-1.0, 1.0, "slope: must be a finite number above 0"),
        (math.nan, 1.0, "slope: must be a finite number above 0"),
        (math.inf, 1.0, "slope: must be a finite number above 0"),
        (1.0, math.nan, "offset: must be a finite number"),
        (1.0, math.inf, "offset: must be a finite number"),
    ],
)
def test_what_is_no_rising_map_is_refused(slope: float, offset: float, told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ConfidenceMap(slope, offset)

    assert str(refused.value) == told


def test_the_map_that_made_the_answers_is_found_again() -> None:
    numbers = random.Random(7)
    truth = ConfidenceMap(9.0, 5.0)
    own: list[float] = []
    foreign: list[float] = []
    while len(own) < 4_000 or len(foreign) < 4_000:
        top = numbers.gauss(5.0 / 9.0, 0.4)
        (own if numbers.random() < truth.of(top) else foreign).append(top)

    found = ConfidenceMap.fitted(own[:4_000], foreign[:4_000])

    assert found is not None
    assert found.slope == pytest.approx(truth.slope, rel=0.05)
    assert found.offset == pytest.approx(truth.offset, rel=0.05)


def test_both_kinds_weigh_alike_however_many_there_are() -> None:
    own, foreign = [0.6, 0.8, 1.0, 0.5], [0.2, 0.4, 0.7, 0.3]

    even, lopsided = ConfidenceMap.fitted(own, foreign), ConfidenceMap.fitted(own, foreign * 9)

    assert even is not None
    assert lopsided is not None
    assert lopsided.slope == pytest.approx(even.slope, rel=0.01)
    assert lopsided.offset == pytest.approx(even.offset, rel=0.01)


def test_where_scores_tell_little_the_map_rises_little() -> None:
    # Of the answers at 1 three of five were there, of those at 0 two of five: odds of 3:2 and 2:3.
    found = ConfidenceMap.fitted([1.0, 1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0, 0.0])

    assert found is not None
    assert found.slope == pytest.approx(2 * math.log(1.5), rel=1e-3)
    assert found.offset == pytest.approx(math.log(1.5), rel=1e-3)


def test_kinds_that_nothing_mixes_give_a_map_all_the_same() -> None:
    found = ConfidenceMap.fitted([1.0, 1.1], [0.1, 0.2])

    assert found is not None
    assert found.of(1.0) > 0.9
    assert found.of(0.2) < 0.1


@pytest.mark.parametrize(
    ("own", "foreign"), [([], [0.1]), ([0.1], []), ([0.2, 0.3], [0.8, 0.9]), ([0.5], [0.5])]
)
def test_scores_that_tell_nothing_give_no_map(own: list[float], foreign: list[float]) -> None:
    assert ConfidenceMap.fitted(own, foreign) is None


@pytest.mark.parametrize("top", [-0.5, 0.0, 0.43, 0.77, 1.4, 2.0])
def test_a_confidence_tells_its_score(top: float) -> None:
    known = ConfidenceMap()

    assert known.score_of(known.of(top)) == pytest.approx(top)


def test_what_is_certain_has_a_score_too() -> None:
    assert ConfidenceMap().score_of(0.0) < -1.0
    assert ConfidenceMap().score_of(1.0) > 3.0
