"""How reliable a procedure is, from how often it worked.

The posterior of its success rate under a uniform prior is Beta(1 + successes, 1 + failures); its
5 % quantile is what the rate very probably exceeds. Under five trials nothing is concluded.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

__all__ = ["TRIALS_MIN", "UNTRIED", "lower_bound", "reliability"]

TRIALS_MIN: Final = 5
UNTRIED: Final = 0.5
_QUANTILE: Final = 0.05
_BISECTIONS: Final = 50
_BOUNDS_CACHED_MAX: Final = 4_096  # one takes up to half a millisecond
_FRACTION_TERMS_MAX: Final = 400
_TINY: Final = 1e-300
_EPSILON: Final = 1e-13


def reliability(successes: int, failures: int) -> float:
    """What a procedure is ranked by: its lower bound, or ½ under `TRIALS_MIN` trials."""
    if successes + failures < TRIALS_MIN:
        return UNTRIED
    return lower_bound(successes, failures)


@lru_cache(maxsize=_BOUNDS_CACHED_MAX)
def lower_bound(successes: int, failures: int, quantile: float = _QUANTILE) -> float:
    """The quantile of Beta(1 + successes, 1 + failures), found by bisection, within [0, 1]."""
    a, b = 1.0 + max(0, successes), 1.0 + max(0, failures)
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _incomplete_beta(a, b, middle) < quantile:
            low = middle
        else:
            high = middle
    return low


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b) (DLMF 8.17.22, by Lentz's method)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1.0 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1.0 / _apart(1.0 - (a + b) * x / (a + 1.0))
    total = d
    for m in range(1, _FRACTION_TERMS_MAX):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1.0 / _apart(1.0 + even * d), _apart(1.0 + even / c)
        total *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1.0 / _apart(1.0 + odd * d), _apart(1.0 + odd / c)
        total *= d * c
        if abs(d * c - 1.0) < _EPSILON:
            break
    return total


def _apart(value: float) -> float:
    """The value, kept away from zero."""
    return value if abs(value) > _TINY else _TINY
