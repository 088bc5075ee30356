"""What was said: the unit that retrieval ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NewType
from uuid import UUID

from mnemic.model.trust import Trust

__all__ = ["ROLES", "Turn", "TurnCreate", "TurnId"]

TurnId = NewType("TurnId", UUID)

ROLES = ("user", "assistant", "system", "tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCreate:
    """One utterance, as a transcript tells it.

    `caption` describes an attached picture; it is searched with the text. `external_id` is the
    caller's own name of the turn, unique in its session: a second write of it adds nothing.
    """

    text: str
    occurred_at: datetime
    actor: str
    role: str = "user"
    caption: str | None = None
    external_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    trust: Trust = Trust.USER
    source: str = "transcript"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One utterance, as it is kept; `seq` counts from 0 within its session."""

    id: TurnId
    scope_id: UUID
    session_id: UUID
    seq: int
    role: str
    actor: str
    text: str
    caption: str | None
    occurred_at: datetime
    recorded_at: datetime
    trust: Trust
    source: str
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
