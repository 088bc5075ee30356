"""Which words of a question full text is asked for: few enough to rank what has them.

What costs is not the index but each row that it gives, since its words are read to be ranked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Matching", "match_stems"]


class Matching(NamedTuple):
    """What has any of the stems, and of `beside`, unless that is empty, any too."""

    stems: tuple[str, ...]
    beside: tuple[str, ...] = ()


def match_stems(
    stems: Sequence[str],
    frequencies: Mapping[str, int],
    *,
    documents: int,
    turns: int,
    documents_max: int,
    wanted: int,
) -> Matching:
    """The rarest stems whose summed document frequency stays within `documents_max`.

    The rarest one that occurs is always among them, so that a question of common words still
    finds something. Match with these, rank with all.

    If that one alone goes beyond, what has another stem of the question too ranks above what has
    not. So of turns the others are asked for beside it, if by chance alone `wanted` of the `turns`
    among the `documents` would have both:
    df · turns / documents · min(1, Σ df of the others / documents) ≥ wanted.
    """
    chosen: list[str] = []
    common: list[tuple[int, str]] = []
    total = 0
    for df, stem in sorted((max(0, frequencies.get(stem, 0)), stem) for stem in set(stems)):
        if total and total + df > documents_max:
            common.append((df, stem))
        else:
            total += df
            chosen.append(stem)
    if total > documents_max and documents:
        share = min(1.0, sum(df for df, _ in common) / documents)
        if total * share * turns / documents >= wanted:
            return Matching(tuple(chosen), tuple(stem for _, stem in common))
    return Matching(tuple(chosen))
