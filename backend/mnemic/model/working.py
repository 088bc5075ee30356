"""What an agent holds while it works: variables, where the task stands, notes, checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from mnemic.errors import InvalidInput
from mnemic.model.normalise import INTEGER_MAX, checked_json, checked_unit, clean_text

__all__ = [
    "TaskState",
    "WorkingCheckpoint",
    "WorkingConflict",
    "WorkingRecord",
    "WorkingStatus",
]

STEP_CHARS_MAX = 2_000
STATUS_CHARS_MAX = 200
DESCRIPTION_CHARS_MAX = 20_000


@dataclass(frozen=True, slots=True)
class TaskState:
    """Where the current task stands.

    `current_step` is its name or number, `status` a word of the caller's own ("in_progress",
    "blocked", "done", …), `progress` goes from 0 to 1. Raises `InvalidInput` for what cannot be
    held: see `checked_json` for `metadata`.
    """

    current_step: str | int | None = None
    status: str = "in_progress"
    progress: float = 0.0
    description: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _check_step(self.current_step)
        clean_text(self.status, field="status", chars_max=STATUS_CHARS_MAX)
        if self.description != "":
            clean_text(self.description, field="description", chars_max=DESCRIPTION_CHARS_MAX)
        if not isinstance(self.metadata, Mapping):
            raise InvalidInput("must be an object with text keys", field="metadata")
        object.__setattr__(self, "progress", checked_unit(self.progress, field="progress"))
        object.__setattr__(self, "metadata", checked_json(self.metadata, field="metadata"))

    def to_json(self) -> dict[str, Any]:
        """The state as a JSON object."""
        return {
            "current_step": self.current_step,
            "status": self.status,
            "progress": self.progress,
            "description": self.description,
            "metadata": dict(self.metadata),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TaskState:
        """The state that `to_json` gave."""
        return cls(**values)


def _check_step(step: object) -> None:
    if step is None:
        return
    if isinstance(step, int) and not isinstance(step, bool):
        if abs(step) > INTEGER_MAX:
            raise InvalidInput(
                "the integer is beyond 64 bits; pass it as text", field="current_step"
            )
        return
    clean_text(step, field="current_step", chars_max=STEP_CHARS_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingConflict:
    """Two processes wrote the same thing without knowing of each other; the newer one stayed.

    `kept` says whose: "ours" is what this process wrote, "theirs" what it found. `key` is nothing
    for the task state, and for a note that was written before others emptied the scope.
    """

    key: str | None
    kept: str
    found_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingStatus:
    """Where a scope's working memory stands, as this process sees it.

    `place` is "valkey", "postgres" or "local", and "null" where nothing is kept. While `degraded`,
    the store is away, or writes of this scope are held in this process alone: `pending` of them.
    `epoch` counts how often that began. `conflicts` were found in this scope while merging;
    `recent_conflicts` are the last of them. `resets` counts how often the store came back without
    what it had held. `undo_checkpoint` restores what the last `restore_checkpoint` of this process
    replaced.
    """

    place: str
    degraded: bool
    epoch: int
    pending: int = 0
    conflicts: int = 0
    recent_conflicts: tuple[WorkingConflict, ...] = ()
    resets: int = 0
    undo_checkpoint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingCheckpoint:
    """A checkpoint that can be restored; `reason` is "checkpoint", or "undo" of a restore."""

    id: UUID
    created_at: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingRecord:
    """Everything that a scope holds."""

    values: Mapping[str, Any]
    task_state: TaskState | None
    scratchpad: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is held at all."""
        return not self.values and self.task_state is None and not self.scratchpad
