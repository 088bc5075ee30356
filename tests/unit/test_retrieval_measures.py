from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.model.retrieval_measures import (
    hit_at,
    mean,
    ndcg_at,
    percentile,
    recall_at,
    reciprocal_rank,
)

RANKED = ("a", "b", "c", "d", "e")


@pytest.mark.parametrize(
    ("k", "relevant", "wanted"),
    [(2, {"a", "c"}, 0.5), (3, {"a", "c"}, 1.0), (5, {"z"}, 0.0), (1, {"a"}, 1.0), (0, {"a"}, 0.0)],
)
def test_recall_is_the_share_of_the_relevant_that_is_found(
    k: int, relevant: set[str], wanted: float
) -> None:
    assert recall_at(k, RANKED, relevant) == wanted


def test_one_relevant_item_is_a_hit() -> None:
    assert hit_at(2, RANKED, {"b", "z"}) == 1.0
    assert hit_at(1, RANKED, {"b", "z"}) == 0.0


def test_a_gain_is_discounted_by_its_place() -> None:
    found = ndcg_at(3, RANKED, {"a", "c"})

    assert found == pytest.approx((1 + 1 / math.log2(4)) / (1 + 1 / math.log2(3)))
    assert ndcg_at(2, RANKED, {"a", "b", "c"}) == 1.0


def test_the_first_relevant_place_counts() -> None:
    assert reciprocal_rank(RANKED, {"c", "e"}) == 1 / 3
    assert reciprocal_rank(RANKED, {"z"}) == 0.0


def test_a_percentile_is_one_of_the_values() -> None:
    values = [5.0, 1.0, 3.0, 2.0, 4.0]

    assert percentile(values, 0.5) == 3.0
    assert percentile(values, 0.95) == 5.0
    assert percentile([7.0], 0.01) == 7.0


def test_the_mean_of_nothing_is_nothing() -> None:
    assert mean([]) == 0.0
    assert mean([1.0, 0.0]) == 0.5


@given(
    ranked=st.lists(st.integers(0, 20), max_size=30),
    relevant=st.sets(st.integers(0, 20), min_size=1),
    k=st.integers(0, 40),
)
def test_every_measure_is_a_share(ranked: list[int], relevant: set[int], k: int) -> None:
    figures = [
        recall_at(k, ranked, relevant),
        hit_at(k, ranked, relevant),
        ndcg_at(k, ranked, relevant) if k else 0.0,
        reciprocal_rank(ranked, relevant),
    ]

    assert all(0 <= one <= 1 + 1e-12 for one in figures)
    assert recall_at(k, ranked, relevant) <= hit_at(k, ranked, relevant)
