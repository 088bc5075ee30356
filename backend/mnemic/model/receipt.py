"""What a write answers: proof of what is kept, where, and how safely."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

__all__ = ["Durability", "Receipt", "VectorState"]


class Durability(StrEnum):
    """What the acknowledgement means when a machine dies."""

    COMMITTED = "committed"
    VALKEY = "valkey"
    PROCESS = "process"


class VectorState(StrEnum):
    """Whether the memory can be found by meaning yet."""

    READY = "ready"
    PENDING = "pending"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """An acknowledged write. `created` is false when it only repeated what was known."""

    id: UUID
    kind: str
    version: int
    durability: Durability
    vector: VectorState
    created: bool = True
    key: str | None = None
