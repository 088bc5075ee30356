"""How far a memory may be believed; data, never prompt wording."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

__all__ = ["Trust", "derived_trust"]


class Trust(IntEnum):
    """The lower the number, the more trusted."""

    OPERATOR = 0
    APPROVED = 1
    USER = 2
    INFERRED = 3
    EXTERNAL = 4
    IMPORTED = 5


def derived_trust(sources: Iterable[Trust]) -> Trust:
    """What is made from other memories is as trusted as the least trusted of them."""
    return max(sources, default=Trust.INFERRED)
