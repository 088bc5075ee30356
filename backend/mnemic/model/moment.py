"""The moment of which something is asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = ["Moment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What was true at `as_of`, of what was known at `known_at`; without either, as it is now.

    Both with one time are what was answered then: an answer that is not asked of any moment gives
    what is live, and so does this.
    """

    as_of: datetime | None = None
    known_at: datetime | None = None

    @property
    def true_at(self) -> datetime | None:
        """When it must have been true, unless what was live is asked for."""
        return None if self.as_of == self.known_at else self.as_of
