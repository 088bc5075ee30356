"""How often a cache helped."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CacheCounts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheCounts:
    """Of one process since its start: what was known, what was not, and how much is kept."""

    hits: int = 0
    misses: int = 0
    entries: int = 0
