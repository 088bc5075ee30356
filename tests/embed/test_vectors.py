"""What a vector must be before it is kept, compared, or brought to another model's scale."""

from __future__ import annotations

import math
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import EmbedderUnavailable, EmbeddingMismatch, InvalidInput
from mnemic.model.embedding import (
    CosineScale,
    ModelSignature,
    checked_vector,
    cosine,
    encodable,
)

numbers = st.floats(min_value=-1e100, max_value=1e100)
raw_vectors = st.lists(numbers, min_size=3, max_size=3).filter(lambda v: math.hypot(*v) > 1e-3)


def test_a_signature_reads_as_one_word() -> None:
    signature = ModelSignature("all-MiniLM-L6-v2-int8", "8199be6f.1", 384)

    key = signature.key

    assert key == "all-MiniLM-L6-v2-int8@8199be6f.1/384"


def test_a_vector_is_brought_to_unit_length_as_float32() -> None:
    values = [3, 0.0, -4.0]

    vector = checked_vector(values, dimensions=3)

    assert vector == array("f", [0.6, 0.0, -0.8])
    assert vector.itemsize == 4


@given(raw_vectors)
def test_every_usable_vector_keeps_its_direction(values: list[float]) -> None:
    vector = checked_vector(values, dimensions=3)

    assert math.hypot(*vector) == pytest.approx(1, abs=1e-6)
    norm = math.hypot(*values)
    assert list(vector) == pytest.approx([value / norm for value in values], abs=1e-6)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0, 2.0],
        [1.0, 2.0, 3.0, 4.0],
        [math.nan, 1.0, 1.0],
        [math.inf, 1.0, 1.0],
        [math.nan, math.inf, 1.0],
        [1.0, 1.0, -math.inf],
        [1.7e308, 1.7e308, 1.7e308],
        [10**400, 1, 1],
        [0.0, 0.0, 0.0],
        [-0.0, 0, 0.0],
        [1e-7, 0.0, 0.0],
        [5e-324, 5e-324, 5e-324],
        [True, False, True],
        ["1", 1.0, 1.0],
        [None, 1.0, 1.0],
        [1 + 2j, 1.0, 1.0],
    ],
)
def test_a_vector_without_a_usable_direction_is_refused(values: list[Any]) -> None:
    with pytest.raises(EmbedderUnavailable) as caught:
        checked_vector(values, dimensions=3)

    assert caught.value.retryable


def test_a_vector_of_another_length_names_the_setting() -> None:
    with pytest.raises(EmbedderUnavailable, match=r"embedding\.dimensions") as caught:
        checked_vector([1.0] * 768, dimensions=384)

    assert caught.value.context == {"expected": 384, "got": 768}


@given(raw_vectors, raw_vectors)
def test_a_cosine_lies_between_minus_one_and_one(one: list[float], other: list[float]) -> None:
    left, right = checked_vector(one, dimensions=3), checked_vector(other, dimensions=3)

    value = cosine(left, right)

    assert -1 <= value <= 1
    assert cosine(left, left) <= 1
    assert value == cosine(right, left)
    assert cosine(left, left) == pytest.approx(1, abs=1e-6)


def test_a_cosine_is_what_geometry_says() -> None:
    east = checked_vector([1.0, 0.0], dimensions=2)
    north_east = checked_vector([5.0, 5.0], dimensions=2)
    west = checked_vector([-2.0, 0.0], dimensions=2)

    cosines = [cosine(east, east), cosine(east, north_east), cosine(east, west)]

    assert cosines == pytest.approx([1, math.sqrt(0.5), -1])


def test_vectors_of_two_lengths_are_not_compared() -> None:
    short = checked_vector([1.0, 0.0], dimensions=2)
    long = checked_vector([1.0, 0.0, 0.0], dimensions=3)

    with pytest.raises(EmbeddingMismatch):
        cosine(short, long)


@given(st.floats(min_value=-1, max_value=1))
def test_the_default_scale_changes_nothing(value: float) -> None:
    scaled = CosineScale().apply(value)

    assert scaled == value


def test_another_models_scale_is_brought_to_the_default_ones() -> None:
    scale = CosineScale.of([0.7, 0.8, 0.9, 0.8])

    lifted = [scale.apply(0.8), scale.apply(0.8 + scale.deviation), scale.apply(-1)]

    reference = CosineScale()
    assert scale.mean == pytest.approx(0.8)
    assert scale.deviation == pytest.approx(math.sqrt(0.005))
    assert lifted == pytest.approx([reference.mean, reference.mean + reference.deviation, -1])


@pytest.mark.parametrize(
    ("cosines", "field"),
    [([], "cosines"), ([0.4, 0.4], "deviation"), ([0.4], "deviation"), ([math.nan, 1], "cosines")],
)
def test_a_scale_needs_cosines_that_differ(cosines: list[float], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        CosineScale.of(cosines)

    assert caught.value.field == field


def test_a_lone_surrogate_becomes_a_question_mark() -> None:
    text = "half \ud83d and whole \U0001f355"

    sendable = encodable(text)

    assert sendable == "half ? and whole \U0001f355"
