"""The lower bound of a success rate, held against closed forms and exact sums."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.model.reliability import _incomplete_beta, lower_bound, reliability

trials = st.integers(min_value=0, max_value=60)


def exact(a: int, b: int, x: float) -> float:
    """I_x(a, b) of whole numbers is a tail of a binomial distribution; summed in fractions."""
    n, p = a + b - 1, Fraction(x)
    return float(sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(a, n + 1)))


@pytest.mark.parametrize("count", [0, 1, 4, 30, 1_000])
def test_without_failures_or_successes_the_bound_has_a_closed_form(count: int) -> None:
    assert lower_bound(count, 0) == pytest.approx(0.05 ** (1 / (count + 1)), rel=1e-9)
    assert lower_bound(0, count) == pytest.approx(1 - 0.95 ** (1 / (count + 1)), rel=1e-9)


@given(trials, trials)
def test_the_rate_lies_below_the_bound_in_one_case_of_twenty(successes: int, failures: int) -> None:
    bound = lower_bound(successes, failures)

    assert exact(successes + 1, failures + 1, bound) == pytest.approx(0.05, abs=1e-9)


@given(trials, trials, st.floats(min_value=0.001, max_value=0.999))
def test_the_beta_function_is_the_sum_that_it_stands_for(a: int, b: int, x: float) -> None:
    assert _incomplete_beta(a + 1.0, b + 1.0, x) == pytest.approx(exact(a + 1, b + 1, x), abs=1e-11)


@pytest.mark.parametrize(("x", "value"), [(-1.0, 0.0), (0.0, 0.0), (1.0, 1.0), (2.0, 1.0)])
def test_beyond_its_range_the_beta_function_is_at_its_ends(x: float, value: float) -> None:
    assert _incomplete_beta(3.0, 4.0, x) == value


def test_another_quantile_is_another_bound() -> None:
    assert lower_bound(7, 7, quantile=0.5) == pytest.approx(0.5)
    assert lower_bound(7, 7, quantile=0.95) == pytest.approx(1 - lower_bound(7, 7))


def test_counts_below_zero_are_none() -> None:
    assert lower_bound(-3, 2) == lower_bound(0, 2)
    assert lower_bound(2, -3) == lower_bound(2, 0)


def test_very_many_trials_still_give_a_bound_just_below_the_rate() -> None:
    assert lower_bound(90_000, 10_000) == pytest.approx(0.9, abs=0.002)
    assert lower_bound(90_000, 10_000) < 0.9


@pytest.mark.parametrize(
    ("successes", "failures", "value"),
    [(0, 0, 0.5), (4, 0, 0.5), (2, 2, 0.5), (0, 4, 0.5)],
)
def test_under_five_trials_nothing_is_concluded(
    successes: int, failures: int, value: float
) -> None:
    assert reliability(successes, failures) == value


@pytest.mark.parametrize(("successes", "failures"), [(5, 0), (0, 5), (3, 2), (40, 3)])
def test_from_five_trials_on_the_bound_ranks(successes: int, failures: int) -> None:
    assert reliability(successes, failures) == lower_bound(successes, failures)
    assert reliability(successes + 1, failures) > reliability(successes, failures)
