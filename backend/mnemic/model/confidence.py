"""How likely a memory can answer at all, from the score of its best hit.

A map belongs to one model of embeddings: another spreads its scores otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mnemic.errors import InvalidInput

__all__ = ["ConfidenceMap"]

_EXPONENT_MAX = 700.0
_STEPS_MAX = 50
_RIDGE = 1e-5
_SETTLED = 1e-9
_CHANCE_MIN = 1e-12


@dataclass(frozen=True, slots=True)
class ConfidenceMap:
    """confidence = sigmoid(slope · best score - offset), from 0 to 1; the score as of `surest`.

    The default is the default model's: fitted on questions that a conversation answers and on those
    of other conversations, as many of each, so that .7 means seven of ten can be answered.
    """

    slope: float = 10.9
    offset: float = 7.6

    def __post_init__(self) -> None:
        if not math.isfinite(self.slope) or self.slope <= 0:
            raise InvalidInput("must be a finite number above 0", field="slope")
        if not math.isfinite(self.offset):
            raise InvalidInput("must be a finite number", field="offset")

    def of(self, top: float) -> float:
        """The confidence of the best score; 0 of what is no number."""
        if not math.isfinite(top):
            return 0.0
        exponent = self.offset - self.slope * top
        return 1.0 / (1.0 + math.exp(max(-_EXPONENT_MAX, min(exponent, _EXPONENT_MAX))))

    def score_of(self, confidence: float) -> float:
        """The best score that has this confidence, which lies between 0 and 1."""
        odds = min(max(confidence, _CHANCE_MIN), 1.0 - _CHANCE_MIN)
        return (math.log(odds / (1.0 - odds)) + self.offset) / self.slope

    @classmethod
    def fitted(cls, own: Sequence[float], foreign: Sequence[float]) -> ConfidenceMap | None:
        """The map that fits best scores of questions that can be answered, and of foreign ones.

        Logistic regression by Newton's steps (ridge 1e-5); both kinds weigh alike, however many
        they are. None where the better scores do not belong to the questions that can be answered.
        """
        if not own or not foreign:
            return None
        rows = [(top, 1.0, 0.5 / len(own)) for top in own]
        rows += [(top, 0.0, 0.5 / len(foreign)) for top in foreign]
        slope = bias = 0.0
        for _ in range(_STEPS_MAX):
            step_slope, step_bias = _newton(rows, slope, bias)
            slope, bias = slope + step_slope, bias + step_bias
            if abs(step_slope) + abs(step_bias) < _SETTLED:
                break
        return cls(slope, -bias) if math.isfinite(slope) and slope > 0 else None


def _newton(
    rows: Sequence[tuple[float, float, float]], slope: float, bias: float
) -> tuple[float, float]:
    """One step down the penalised logistic loss, kept within what a sigmoid can tell apart."""
    gradient = [-_RIDGE * slope, 0.0]
    curve = [_RIDGE, 0.0, 1e-12]
    for top, answered, weight in rows:
        margin = max(-_EXPONENT_MAX, min(slope * top + bias, _EXPONENT_MAX))
        chance = 1.0 / (1.0 + math.exp(-margin))
        error, spread = weight * (answered - chance), weight * chance * (1.0 - chance)
        gradient[0] += error * top
        gradient[1] += error
        curve[0] += spread * top * top
        curve[1] += spread * top
        curve[2] += spread
    determinant = curve[0] * curve[2] - curve[1] * curve[1]
    if determinant <= 0.0:
        return 0.0, 0.0
    return (
        (gradient[0] * curve[2] - gradient[1] * curve[1]) / determinant,
        (gradient[1] * curve[0] - gradient[0] * curve[1]) / determinant,
    )
