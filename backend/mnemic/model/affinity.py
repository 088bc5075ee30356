"""Which tools suit and which fail, as facts tell it."""

from __future__ import annotations

from collections.abc import Iterable

from mnemic.model.fact import Fact
from mnemic.model.normalise import comparison_key

__all__ = ["CATEGORIES", "PREDICATES", "affinities"]

AFFINITY, AVOIDANCE = "tool_affinity", "tool_avoidance"
PREFERS, AVOIDS = "prefers_tool", "avoids_tool"
CATEGORIES = (AFFINITY, AVOIDANCE)
PREDICATES = (PREFERS, AVOIDS)


def affinities(facts: Iterable[Fact]) -> dict[str, float]:
    """By tool, the object of a fact: its confidence, or minus that if the tool is to be avoided.

    Of several facts about one tool, in whatever spelling, the surest counts; of equally sure ones
    the one against it, then the lowest id. The strongest come first, then by name.
    """
    best: dict[str, Fact] = {}
    for fact in sorted(facts, key=_precedence):
        best.setdefault(comparison_key(fact.object), fact)
    found = {fact.object: _sign(fact) * fact.confidence for fact in best.values()}
    return dict(sorted(found.items(), key=lambda one: (-abs(one[1]), one[0])))


def _precedence(fact: Fact) -> tuple[float, int, int]:
    return (-fact.confidence, _sign(fact), fact.id.int)


def _sign(fact: Fact) -> int:
    """The predicate tells more than the category that somebody filed the fact under."""
    if fact.predicate in PREDICATES:
        return 1 if fact.predicate == PREFERS else -1
    return -1 if fact.category == AVOIDANCE else 1
