"""How the nearest vectors were found: all of them compared, or by an index that is nearly exact."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Leg", "Plan"]


class Plan(StrEnum):
    """What finds the nearest vectors of a leg."""

    EXACT = "exact"
    """Every visible vector is compared."""
    HNSW = "hnsw"
    """The tenant's own index is asked, and what it gives is compared exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One search for nearest vectors: of a kind of memory, or of the turns of the actor named.

    `rows` is about how many were visible to it, as the counts of words have it; `why` says what
    decided the plan.
    """

    name: str
    plan: Plan
    rows: int
    why: str
