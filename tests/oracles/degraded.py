"""*Degradation visible*: with a part away, an answer never reads like an empty memory."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from mnemic.errors import Unavailable
from mnemic.model.context import Context
from mnemic.model.recall import Recall
from mnemic.model.receipt import Receipt, VectorState
from mnemic.model.working import WorkingStatus

__all__ = ["answer_or_fault", "tells"]


async def answer_or_fault(call: Awaitable[Any]) -> Any:
    """What the call gives, or the `Unavailable` that it raises; other faults are raised."""
    try:
        return await call
    except Unavailable as fault:
        return fault


def tells(answer: Any) -> bool:
    """Whether the answer says that a part is away."""
    if isinstance(answer, Unavailable):
        return bool(str(answer))
    if isinstance(answer, Recall | Context):
        return bool(answer.degraded) and all(answer.degraded)
    if isinstance(answer, Receipt):
        return answer.vector is VectorState.PENDING
    if isinstance(answer, WorkingStatus):
        return answer.degraded
    return False
