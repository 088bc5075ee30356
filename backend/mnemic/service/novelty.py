"""How new an experience is to those who have it."""

from __future__ import annotations

from collections.abc import Sequence

from mnemic.model.embedding import Vector
from mnemic.model.scope import Scope
from mnemic.service.tools import Tools

__all__ = ["NOVELTY_WEIGHT", "with_novelty"]

NOVELTY_WEIGHT = 0.1


async def with_novelty(
    tools: Tools, importance: float, vectors: Sequence[Vector] | None, *, scope: Scope
) -> float:
    """The importance of an episode, 0 to 1, a tenth of it for being unlike all that is known.

    `importance` is the Thinker's and `vectors` hold the episode's. Novelty is 1 less the cosine
    to the nearest episode that is visible from `scope`, 1 where there is none. Without a vector it
    is not known, and changes nothing. Rounded to three digits.
    """
    if not vectors:
        return importance
    model = await tools.live_model()
    nearest = await tools.transact(
        scope.tenant.id,
        lambda unit: unit.vectors.nearest(scope, "episode", vectors[0], model=model.id),
        read_only=True,
    )
    novelty = 1.0 - min(1.0, max(0.0, nearest or 0.0))
    return round((1 - NOVELTY_WEIGHT) * importance + NOVELTY_WEIGHT * novelty, 3)
