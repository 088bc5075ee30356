"""What the score adds for who said it, when, and what a question asks for; see `ranking`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from mnemic.model.cues import Cues, date_match
from mnemic.model.ranking_values import (
    ASSISTANT,
    TURN,
    USER,
    Candidate,
    Corpus,
    QueryWords,
    Weights,
)

__all__ = ["rarity_boost", "signals_of", "with_assistant", "within_one"]

_SHARE_MIN = 1e-6
_NAMED_MAX = 2
_HALF_LIVES_MAX = 1_000.0

_Column = list[float]


def signals_of(
    query: QueryWords,
    candidates: Sequence[Candidate],
    corpus: Corpus,
    weights: Weights,
    now: datetime,
) -> tuple[_Column, _Column, _Column, _Column, _Column, _Column]:
    """Actor, question, name, date, when and the bounded signals, each of every candidate."""
    cues = query.cues
    question = name = date = when = [0.0] * len(candidates)
    if not with_assistant(corpus):
        question = [
            -weights.question if one.ends_with_question and not one.first_person else 0.0
            for one in candidates
        ]
    if cues.wants_name:
        name = [weights.name if one.has_name else 0.0 for one in candidates]
    if cues.dates:
        date = [weights.date * _fit(cues, one.occurred_at) for one in candidates]
    if cues.wants_time:
        when = [weights.when if one.has_time_expression else 0.0 for one in candidates]
    bounded = [0.0 if one.kind == TURN else _bounded(one, weights, now) for one in candidates]
    return _by_the_asked(query, candidates, corpus, weights), question, name, date, when, bounded


def with_assistant(corpus: Corpus) -> bool:
    """Whether an assistant speaks in the scope."""
    return corpus.role_shares.get(ASSISTANT, 0.0) > 0.0


def _by_the_asked(
    query: QueryWords, candidates: Sequence[Candidate], corpus: Corpus, weights: Weights
) -> _Column:
    """The boost of what the one asked about said, or what is left of it."""
    named = tuple(dict.fromkeys(name.casefold() for name in query.named))
    actor = role = ""
    parts = 1
    if named and len(named) <= _NAMED_MAX and not (len(named) > 1 and query.cues.about_both):
        actor, parts = named[0], len(named)
        shares = corpus.actor_shares.items()
        share = sum(share for one, share in shares if one.casefold() == actor)
    elif not named and with_assistant(corpus):
        role, share = USER, corpus.role_shares.get(USER, 0.0)
    else:
        return [0.0] * len(candidates)
    boost = rarity_boost(share, weights) / parts
    # Of a memory of nobody in particular the part that chance would give.
    by_nobody = boost * within_one(share)
    return [
        by_nobody
        if not one.actor and not one.role
        else boost
        if (one.role == role if role else one.actor.casefold() == actor)
        else 0.0
        for one in candidates
    ]


def _fit(cues: Cues, at: datetime) -> float:
    """How well a time fits the dates of the question, or what lies between two of them."""
    inside = any(begins <= at < ends for begins, ends in cues.ranges)
    return max(date_match(cues.dates, at), 1.0 if inside else 0.0)


def _bounded(candidate: Candidate, weights: Weights, now: datetime) -> float:
    """At most half of each weight up or down; what is not known moves nothing."""
    half_lives = (now - candidate.occurred_at) / weights.recency_half_life
    recency = 2.0 ** -min(half_lives, _HALF_LIVES_MAX) if half_lives > 0.0 else 1.0
    bounded = weights.recency * (recency - 0.5)
    if candidate.importance is None and candidate.confidence is None:
        return bounded
    return (
        weights.importance * _centred(candidate.importance)
        + weights.confidence * _centred(candidate.confidence)
        + bounded
    )


def rarity_boost(share: float, weights: Weights) -> float:
    """What it counts that the one asked about said it, by his share of all turns."""
    rarity = -math.log(max(within_one(share), _SHARE_MIN))
    return weights.actor + weights.actor_rarity * rarity


def _centred(value: float | None) -> float:
    if type(value) is float and 0.0 <= value <= 1.0:  # as the store has it
        return value - 0.5
    # `isfinite` would make a float of a whole number, which may be too large for one.
    if isinstance(value, (int, float)) and abs(value) < math.inf:
        return within_one(value) - 0.5
    return 0.0


def within_one(value: float | None) -> float:
    """The number within [0, 1]; 0 for None, NaN and what is no number."""
    if isinstance(value, (int, float)) and value > 0.0:
        return float(min(value, 1.0))
    return 0.0
