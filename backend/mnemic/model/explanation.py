"""How a question was searched, and why a memory did not come back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

__all__ = ["Arm", "ArmHit", "Explanation", "KindSearch", "RecallStage", "WhyNot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmHit:
    """A memory that an arm found: its place, from 1, and what the arm measured.

    The cosine for vectors, the rank of the full text for words, nothing for the newest.
    """

    id: UUID
    place: int
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """What one arm found among the memories of a kind, best first.

    `near` (vectors), `words` (full text), both again as `actor_near` and `actor_words` among what
    the actor named has said, `entity` (another name of a thing), `time` (what happened when it was
    asked for), and `newest` of those that pass a filter, where vectors are too few.
    """

    kind: str
    name: str
    hits: tuple[ArmHit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSearch:
    """How the memories of a kind were searched.

    `plan` is "exact": every vector of the `rows` in question was compared; "filtered": so were
    those of the `rows` that pass, which were found first; or "none": no memory of the kind can
    pass.
    """

    kind: str
    plan: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a question was searched: the plan for each kind, and what each arm found."""

    searches: tuple[KindSearch, ...]
    arms: tuple[Arm, ...]

    def places(self, identity: UUID) -> dict[str, int]:
        """The place of a memory in each arm that found it."""
        return {arm.name: hit.place for arm in self.arms for hit in arm.hits if hit.id == identity}


class RecallStage(StrEnum):
    """Where a memory was dropped, in the order in which it can be."""

    RETURNED = "returned"
    """It came back."""
    TOMBSTONE = "tombstone"
    """It was retracted, and its value is refused."""
    STATUS = "status"
    """It is not live: superseded, retired or archived."""
    TYPE = "type"
    """Its type was not asked for."""
    FILTER = "filter"
    """It does not pass the filter."""
    ARMS = "arms"
    """No arm found it, and it does not stand beside what one found."""
    FLOOR = "floor"
    """It scores below the floor."""
    LIMIT = "limit"
    """Better ones fill the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """The first stage that dropped a memory, and what is known of it there.

    `score` and `place` (from 1, among all that were scored and pass) are missing for what was never
    scored. `ranks` are its places in each arm, had that gone on: an arm that is missing would not
    find it at all.
    """

    id: UUID
    kind: str
    stage: RecallStage
    detail: str
    score: float | None = None
    place: int | None = None
    ranks: Mapping[str, int] = field(default_factory=dict)

    @property
    def returned(self) -> bool:
        """Whether it came back after all."""
        return self.stage is RecallStage.RETURNED
