"""*Scores* are finite, bounded and fall; ties have one order; the limit is an upper bound."""

from __future__ import annotations

import math

from mnemic.model.recall import Hit, Recall

__all__ = ["SCORE_MAX", "SCORE_MIN", "assert_ranked"]

# The parts of the formula at their largest: base and what stands around it, the actor, a name, a
# date and a time, and what kinds other than turns add.
SCORE_MAX = 1 + 0.2 + 0.1 + 0.4 + (0.15 + 0.07 * math.log(1e6)) + 0.08 + 0.18 + 0.09 + 0.015
SCORE_MIN = -0.07 - 0.015


def assert_ranked(found: Recall) -> None:
    """Everything that a caller may rely on in the order of an answer."""
    assert len(found.hits) <= found.limit
    assert len({hit.id for hit in found.hits}) == len(found.hits)
    for hit in found.hits:
        assert math.isfinite(hit.score)
        assert SCORE_MIN <= hit.score <= SCORE_MAX
        assert all(math.isfinite(part) for part in hit.reasons)
    assert [_order(hit) for hit in found.hits] == sorted(_order(hit) for hit in found.hits)
    assert 0.0 <= found.confidence <= 1.0


def _order(hit: Hit) -> tuple[float, float, int]:
    """The best first; of equal ones the newer, then the lower id."""
    return (-hit.score, -hit.occurred_at.timestamp(), hit.id.int)
