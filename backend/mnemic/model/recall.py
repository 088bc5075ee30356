"""What a recall answers: hits with their reasons, and what was missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from mnemic.model.episode import Episode
from mnemic.model.explanation import Explanation
from mnemic.model.fact import Fact
from mnemic.model.filters import Filter
from mnemic.model.procedure import Procedure
from mnemic.model.ranking_values import Reasons
from mnemic.model.route import Leg
from mnemic.model.trust import Trust
from mnemic.model.turn import Turn

__all__ = [
    "KINDS_BY_TYPE",
    "Hit",
    "MemoryItem",
    "Recall",
    "RecallQuery",
    "kinds_of",
    "text_of",
]

_SHOWN_MIN = 0.005

MemoryItem = Turn | Episode | Fact | Procedure

KINDS_BY_TYPE: dict[str, tuple[str, ...]] = {
    "episodic": ("turn", "episode"),
    "semantic": ("fact",),
    "procedural": ("procedure",),
}
"""Which kinds of memory the memory types of the plan stand for."""


def kinds_of(memory_types: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds of the types, each once, in a fixed order."""
    return tuple(
        kind for name, kinds in KINDS_BY_TYPE.items() if name in memory_types for kind in kinds
    )


def text_of(memory: MemoryItem) -> str:
    """What to show of a memory."""
    if isinstance(memory, Turn):
        image = f" [image: {memory.caption}]" if memory.caption else ""
        return f"{memory.actor}: {memory.text}{image}"
    if isinstance(memory, Episode):
        return f"{memory.title}: {memory.summary}"
    if isinstance(memory, Fact):
        return memory.content
    return f"{memory.name}: {'; '.join(step.action for step in memory.steps)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """A question, checked."""

    text: str
    limit: int
    kinds: tuple[str, ...]
    floor: float
    filters: Filter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory that may answer, on the fixed scale, with the parts of its score.

    Its places (from 1) in the arms that found it: among the nearest vectors and the best words, of
    all and of the actor asked about; among what has the words that misspelt ones were taken for;
    among what calls a thing by another name; among what happened when it was asked for.
    `rerank` is what the host's own reranker gave it, if it was asked.
    """

    kind: str
    memory: MemoryItem
    score: float
    reasons: Reasons
    near_place: int | None = None
    words_place: int | None = None
    actor_near_place: int | None = None
    actor_words_place: int | None = None
    spelling_place: int | None = None
    entity_place: int | None = None
    time_place: int | None = None
    rerank: float | None = None

    @property
    def id(self) -> UUID:
        """The id of the memory."""
        return self.memory.id

    @property
    def text(self) -> str:
        """What to show of the memory."""
        return text_of(self.memory)

    @property
    def trust(self) -> Trust:
        """How far it may be believed."""
        return self.memory.trust

    @property
    def source(self) -> str:
        """Where it came from."""
        return self.memory.source

    @property
    def occurred_at(self) -> datetime:
        """When it happened; for knowledge, when it was last confirmed."""
        memory = self.memory
        if isinstance(memory, Fact):
            return memory.last_reinforced
        return memory.recorded_at if isinstance(memory, Procedure) else memory.occurred_at

    @property
    def _around(self) -> float:
        """What its conversation adds; a memory of another kind stands for itself."""
        return self.reasons.neighbour + self.reasons.session if self.kind == "turn" else 0.0

    @property
    def why(self) -> tuple[str, ...]:
        """The parts of the score that moved it, the strongest first, in words."""
        reasons = self.reasons
        parts = [
            (reasons.cosine, f"meaning {reasons.cosine:.2f}"),
            (reasons.lex, f"words {reasons.lex:.2f}"),
            (self._around, "what was said around it"),
            (reasons.actor, "said by who was asked about"),
            (reasons.name, "holds a name"),
            (reasons.date, "from the date asked for"),
            (reasons.when, "says when"),
        ]
        ranked = sorted(parts, key=lambda part: -part[0])
        return tuple(word for value, word in ranked if value > _SHOWN_MIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The answer to a question.

    `confidence` is the share of such answers whose question this memory can answer (0 to 1).
    `degraded` names what could not be searched; `notes` says why fewer came back than asked for;
    `explanation`, if it was asked for, how it was searched;
    `route` which way each search for nearest vectors went. `lasts` is whether the same question
    has this answer again while nothing is written; else it is not kept.
    """

    hits: tuple[Hit, ...]
    confidence: float
    low_confidence: bool
    about_other_actor: bool
    searched: int
    limit: int
    took: timedelta
    degraded: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    explanation: Explanation | None = None
    route: tuple[Leg, ...] = ()
    lasts: bool = True

    @property
    def returned(self) -> int:
        """How many hits came back."""
        return len(self.hits)
