"""The life of a session: active, paused, ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

__all__ = ["Session", "SessionState"]


class SessionState(StrEnum):
    """Where a session is in its life; an ended one never starts again."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session as it is kept; its id is the id of its scope."""

    id: UUID
    scope_id: UUID
    name: str
    state: SessionState
    started_at: datetime
    last_active_at: datetime
    ended_at: datetime | None
    episode_id: UUID | None
    turn_count: int
