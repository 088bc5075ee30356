"""How well a ranking finds what answers a question; every measure lies in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Sequence

__all__ = ["hit_at", "mean", "ndcg_at", "percentile", "recall_at", "reciprocal_rank"]


def recall_at(k: int, ranked: Sequence[Hashable], relevant: Collection[Hashable]) -> float:
    """The share of what is relevant that stands among the first `k`. Something must be relevant."""
    return len(set(ranked[:k]).intersection(relevant)) / len(set(relevant))


def hit_at(k: int, ranked: Sequence[Hashable], relevant: Collection[Hashable]) -> float:
    """1 if anything relevant stands among the first `k`, else 0."""
    return float(any(one in relevant for one in ranked[:k]))


def ndcg_at(k: int, ranked: Sequence[Hashable], relevant: Collection[Hashable]) -> float:
    """Discounted gain of the first `k` over that of the best order (Järvelin & Kekäläinen, 2002).

    A relevant item gains 1 / log2(1 + its place, from 1); what stands twice gains once.
    """
    firsts = list(dict.fromkeys(ranked))[:k]
    gain = sum(1 / math.log2(place + 2) for place, one in enumerate(firsts) if one in relevant)
    best = sum(1 / math.log2(place + 2) for place in range(min(k, len(set(relevant)))))
    return gain / best


def reciprocal_rank(ranked: Sequence[Hashable], relevant: Collection[Hashable]) -> float:
    """1 over the place (from 1) of the first relevant item; 0 if there is none."""
    places = (place for place, one in enumerate(ranked, start=1) if one in relevant)
    return 1 / next(places, math.inf)


def mean(values: Iterable[float]) -> float:
    """The mean; 0 of nothing."""
    held = list(values)
    return math.fsum(held) / len(held) if held else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of them do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
