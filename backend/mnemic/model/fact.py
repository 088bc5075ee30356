"""Semantic knowledge: (subject, predicate, object) with confidence and two time axes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NewType
from uuid import UUID

from mnemic.model.trust import Trust

__all__ = ["Fact", "FactCreate", "FactId"]

FactId = NewType("FactId", UUID)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactCreate:
    """A statement, as the caller tells it; `confidence` lies in [0, 1].

    `content` is the sentence to show; by default the three parts joined. `valid_from` and
    `valid_to` say when it is true in the world.
    """

    subject: str
    predicate: str
    object: str
    content: str | None = None
    confidence: float = 0.5
    category: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    trust: Trust = Trust.USER
    source: str = "caller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A statement, as it is kept."""

    id: FactId
    scope_id: UUID
    subject: str
    predicate: str
    object: str
    content: str
    category: str
    confidence: float
    reinforcement_count: int
    first_learned: datetime
    last_reinforced: datetime
    valid_from: datetime | None
    valid_to: datetime | None
    recorded_at: datetime
    retired_at: datetime | None
    status: str
    pinned: bool
    status_reason: str | None = None
    verified_at: datetime | None = None
    verification: str | None = None
    trust: Trust
    source: str
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
