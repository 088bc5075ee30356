"""What a write answers: proof of what is kept, where, and how safely."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

__all__ = ["Durability", "Receipt", "VectorState"]


class Durability(StrEnum):
    """What the acknowledgement means when a machine dies."""

    COMMITTED = "committed"
    VALKEY = "valkey"
    PROCESS = "process"
    NONE = "none"


class VectorState(StrEnum):
    """Whether the memory can be found by meaning yet."""

    READY = "ready"
    PENDING = "pending"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """An acknowledged write. `created` is false when it only repeated what was known.

    `also` names what the same call wrote beside `id`. `refused` says that one item of a batch was
    forgotten here before, and so was left out. `key` names a working value. `notes` say what is
    kept in another form than it came, or not at all.
    """

    id: UUID
    kind: str
    version: int
    durability: Durability
    vector: VectorState
    created: bool = True
    also: tuple[UUID, ...] = ()
    refused: bool = False
    key: str | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The receipt as JSON values."""
        return {
            "id": str(self.id),
            "kind": self.kind,
            "version": self.version,
            "durability": self.durability.value,
            "vector": self.vector.value,
            "created": self.created,
            "also": [str(one) for one in self.also],
            "refused": self.refused,
            "key": self.key,
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Receipt:
        """The receipt that `to_json` gave."""
        return cls(
            id=UUID(values["id"]),
            kind=values["kind"],
            version=values["version"],
            durability=Durability(values["durability"]),
            vector=VectorState(values["vector"]),
            created=values["created"],
            also=tuple(UUID(one) for one in values["also"]),
            refused=values["refused"],
            key=values.get("key"),
            notes=tuple(values.get("notes", ())),
        )
