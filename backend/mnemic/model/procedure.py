"""Skills: steps that led to an outcome, with the ledger of how often they did."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, NewType
from uuid import UUID

from mnemic.model.trust import Trust

__all__ = ["Procedure", "ProcedureCreate", "ProcedureId", "Standing", "Step"]

ProcedureId = NewType("ProcedureId", UUID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step, as it is told to whoever follows it."""

    action: str
    expected: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureCreate:
    """A way of doing something, as the caller tells it."""

    name: str
    steps: tuple[Step, ...]
    task_type: str = "general"
    trigger_pattern: str | None = None
    preconditions: tuple[str, ...] = ()
    avoid_conditions: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    trust: Trust = Trust.USER
    source: str = "caller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A way of doing something, as it is kept."""

    id: ProcedureId
    scope_id: UUID
    name: str
    task_type: str
    trigger_pattern: str | None
    steps: tuple[Step, ...]
    version: int
    preconditions: tuple[str, ...]
    avoid_conditions: tuple[str, ...]
    success_count: int
    failure_count: int
    last_used: datetime | None
    recorded_at: datetime
    trust: Trust
    source: str
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()


class Standing(NamedTuple):
    """What a procedure is weighed by when it may fit, without the rest of it."""

    success_count: int
    failure_count: int
    preconditions: tuple[str, ...]
    avoid_conditions: tuple[str, ...]
