"""Oracle 16: a filter that PostgreSQL applies finds what the same filter finds in memory."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from mnemic import Episode, Outcome

__all__ = ["browsed"]


def browsed(
    episodes: Iterable[Episode],
    *,
    limit: int,
    since: datetime | None = None,
    outcome: Outcome | None = None,
    task_type: str | None = None,
) -> list[Episode]:
    """The newest of the episodes that fit, as the documentation of each filter says."""
    fit = [
        one
        for one in episodes
        if (since is None or one.occurred_at >= since)
        and (outcome is None or one.outcome is outcome)
        and (task_type is None or one.task_type == task_type)
    ]
    fit.sort(key=lambda one: (one.occurred_at, one.id), reverse=True)
    return fit[:limit]
