"""An experience: a finished session, or a task with its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NewType
from uuid import UUID

from mnemic.model.trust import Trust

__all__ = ["Episode", "EpisodeCreate", "EpisodeDraft", "EpisodeId", "Outcome"]

EpisodeId = NewType("EpisodeId", UUID)


class Outcome(StrEnum):
    """How it went. "completed" is read as success."""

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeCreate:
    """Something that happened, as the caller tells it; `importance_score` lies in [0, 1].

    Without an outcome it is read from the text; without an importance it is scored.
    """

    task_description: str
    occurred_at: datetime
    task_type: str = "conversation"
    outcome: Outcome | None = None
    outcome_details: str | None = None
    actions: tuple[dict[str, Any], ...] = ()
    context_summary: str | None = None
    lessons_learned: tuple[str, ...] = ()
    duration_seconds: float | None = None
    tokens_used: int | None = None
    importance_score: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    trust: Trust = Trust.USER
    source: str = "caller"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeDraft:
    """What a Thinker makes of a finished session."""

    title: str
    summary: str
    key_topics: tuple[str, ...]
    user_intents: tuple[str, ...]
    tools_used: tuple[str, ...]
    agents_used: tuple[str, ...]
    outcome: Outcome
    importance_score: float
    lessons_learned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """Something that happened, as it is kept."""

    id: EpisodeId
    scope_id: UUID
    title: str
    summary: str
    key_topics: tuple[str, ...]
    user_intents: tuple[str, ...]
    tools_used: tuple[str, ...]
    agents_used: tuple[str, ...]
    task_type: str
    task_description: str
    outcome: Outcome
    outcome_details: str | None
    actions: tuple[dict[str, Any], ...]
    context_summary: str | None
    lessons_learned: tuple[str, ...]
    duration_seconds: float | None
    tokens_used: int | None
    importance_score: float
    message_count: int
    started_at: datetime | None
    ended_at: datetime | None
    occurred_at: datetime
    recorded_at: datetime
    session_id: UUID | None
    trust: Trust
    source: str
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
