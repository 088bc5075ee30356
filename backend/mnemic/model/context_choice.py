"""Which memories a prompt section may show, under which title, and in which order they get in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mnemic.model.confidence import ConfidenceMap
from mnemic.model.context import (
    CATEGORIES,
    EPISODES,
    FACTS,
    FACTS_FOUND,
    PROCEDURES,
    PROCEDURES_APPROVED,
    TURNS,
    ContextItem,
    Omission,
)
from mnemic.model.episode import Episode
from mnemic.model.fact import Fact
from mnemic.model.procedure import Procedure
from mnemic.model.recall import Hit
from mnemic.model.trust import Trust
from mnemic.model.turn import Turn

__all__ = ["Choice", "Sources", "choose", "standing"]

BELOW_FLOOR = "below the floor"
TOO_MANY = "more episodes than are shown"
_TITLE_OF = dict(CATEGORIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What was read for a prompt section: hits and procedures that fit, best first; facts."""

    hits: Sequence[Hit]
    facts: Sequence[Fact]
    procedures: Sequence[Procedure]
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Items that may get in, the best first under each title, and those that may not."""

    known: tuple[ContextItem, ...]
    found: tuple[ContextItem, ...]
    refused: tuple[Omission, ...]


def standing(fact: Fact) -> float:
    """How much a fact is worth without a question: confidence x ln(1 + reinforcements)."""
    return fact.confidence * math.log1p(fact.reinforcement_count)


def choose(
    sources: Sources,
    *,
    episodes_max: int,
    episode_confidence_min: float,
    confidence: ConfidenceMap = ConfidenceMap(),  # noqa: B008 - frozen
) -> Choice:
    """What may be shown of the sources.

    Facts by what they are worth, then by id; of episodes at most `episodes_max`, and none whose
    score says with less than `episode_confidence_min` that the question is answered by it.
    """
    best = sorted(sources.facts, key=lambda fact: (-standing(fact), fact.id.int))
    relevant: list[ContextItem] = []
    episodes: list[ContextItem] = []
    turns: list[ContextItem] = []
    refused: list[Omission] = []
    for hit in sources.hits:
        memory = hit.memory
        if isinstance(memory, Fact):
            relevant.append(_of_fact(memory, FACTS_FOUND))
        elif isinstance(memory, Turn):
            turns.append(_dated(hit, TURNS, memory.text))
        elif isinstance(memory, Episode):
            item = _dated(hit, EPISODES, memory.summary)
            if confidence.of(hit.score) < episode_confidence_min:
                refused.append(Omission(item.section, item.text, BELOW_FLOOR))
            elif len(episodes) == episodes_max:
                refused.append(Omission(item.section, item.text, TOO_MANY))
            else:
                episodes.append(item)
    ways = [_of_procedure(one) for one in sources.procedures]
    approved = [one for one in ways if one.section == PROCEDURES_APPROVED]
    others = [one for one in ways if one.section == PROCEDURES]
    return Choice(
        known=tuple(_of_fact(fact, _TITLE_OF.get(fact.category, FACTS)) for fact in best),
        found=(*approved, *relevant, *episodes, *turns, *others),
        refused=tuple(refused),
    )


def _of_fact(fact: Fact, title: str) -> ContextItem:
    return ContextItem(
        section=title,
        text=fact.content,
        says=fact.content,
        id=fact.id,
        kind="fact",
        trust=fact.trust,
        source=fact.source,
    )


def _of_procedure(procedure: Procedure) -> ContextItem:
    """An instruction only if a person or the operator stands behind it."""
    steps = "; ".join(step.action for step in procedure.steps)
    text = f"{procedure.name}: {steps}"
    return ContextItem(
        section=PROCEDURES_APPROVED if procedure.trust <= Trust.APPROVED else PROCEDURES,
        text=text,
        says=text,
        id=procedure.id,
        kind="procedure",
        trust=procedure.trust,
        source=procedure.source,
    )


def _dated(hit: Hit, title: str, says: str) -> ContextItem:
    return ContextItem(
        section=title,
        text=f"{hit.occurred_at.date().isoformat()} {hit.text}",
        says=says,
        id=hit.id,
        kind=hit.kind,
        trust=hit.trust,
        source=hit.source,
    )
