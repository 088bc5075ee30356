"""The score of recall: one fixed scale for every memory, whichever way it was found.

    idf(t) = ln(1 + (N - df + ½) / (df + ½))                      Z = Σ idf over the query's stems
    nb     = Σ idf(t)·f / (f + k1·(1 - b + b·length/average)) / Z                           [0, 1]
    pair   = Σ idf(t) over the stems in the turn or in the one before / Z                   [0, 1]
    lex    = .7·nb + .3·pair
    base   = .5·max(0, cosine) + .5·lex          .6/.4 where memories are long and roles are mixed,
                                                 lex alone where there are no cosines at all;
                                                 half of what meaning adds, and never less than
                                                 lex, in letters that the model cannot read
    score  = base + .2·base(previous) + .1·base(next) + .4·max(base within ±5 turns, its own too)
           + A·[by the one actor named]           A = .15 + .07·ln(1 / the actor's share of turns)
           + A/2·[by the first of two named]
           - .07·[a question that says nothing about the one who asks]
           + .08·[a name is wanted and one is there]
           + .18·date + .09·[a time is wanted and one is there]
           + importance, confidence, recency: at most ±.015 together, for kinds other than turns

BM25's saturation is Robertson's; the rest was chosen by ablation on two halves of conversations.
A missing neighbour counts 0. Scores are finite for every input.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from operator import attrgetter
from uuid import UUID

from mnemic.model.cues import date_match
from mnemic.model.ranking_values import (
    ASSISTANT,
    TURN,
    USER,
    Alias,
    Candidate,
    Corpus,
    QueryWords,
    Reasons,
    Scored,
    Weights,
)

__all__ = [
    "Candidate",
    "Corpus",
    "QueryWords",
    "Reasons",
    "Scored",
    "Weights",
    "about_other_actor",
    "above_floor",
    "has_cosine",
    "in_order",
    "inverse_frequencies",
    "score",
    "surest",
    "weighed",
]

DEFAULT_WEIGHTS = Weights()
_SHARE_MIN = 1e-6
_NAMED_MAX = 2
_HALF_LIVES_MAX = 1_000.0
SMALL_CORPUS = 50
_NO_SESSION: dict[int, int] = {}
_score_of = attrgetter("score")
# Hundreds are made for each question, and a named tuple's own constructor is Python.
_scored = partial(tuple.__new__, Scored)
_reasons = partial(tuple.__new__, Reasons)

_Arms = tuple[float, float, float, float, float]
_Session = dict[int, int]


def inverse_frequencies(stems: Iterable[str], corpus: Corpus) -> dict[str, float]:
    """ln(1 + (N - df + ½) / (df + ½)) for each stem; positive for every input.

    A small scope says little about how common a word is: with one memory, every word of it would
    count for nothing. So N is at least `SMALL_CORPUS`, as if others without the words stood by.
    """
    documents = max(SMALL_CORPUS, corpus.documents)
    found = {}
    for stem in stems:
        df = min(max(0, corpus.frequencies.get(stem, 0)), documents)
        found[stem] = math.log1p((documents - df + 0.5) / (df + 0.5))
    return found


def score(
    query: QueryWords,
    candidates: Sequence[Candidate],
    corpus: Corpus,
    weights: Weights = DEFAULT_WEIGHTS,
    *,
    now: datetime,
) -> list[Scored]:
    """Every candidate with its score, the best first; ties go to the newer, then to the lower id.

    The order of the candidates does not matter. Neighbours are looked for among the candidates.
    """
    return in_order(weighed(query, candidates, corpus, weights, now=now))


def weighed(
    query: QueryWords,
    candidates: Sequence[Candidate],
    corpus: Corpus,
    weights: Weights = DEFAULT_WEIGHTS,
    *,
    now: datetime,
    meant: bool | None = None,
) -> list[Scored]:
    """Every candidate with its score, in the order of the candidates.

    Turns may be weighed before other kinds are there, if it is told whether any of all has a
    cosine (`meant`); else it is seen here.
    """
    sessions = _sessions(candidates)
    if meant is None:
        meant = has_cosine(candidates)
    meaning = _meaning_weight(corpus, weights) if meant else 0.0
    arms = _arms(query, candidates, sessions, corpus, weights, meaning)
    bases = [arm[-1] for arm in arms]
    signals = _Signals(query, corpus, weights, now)
    scored = []
    for candidate, arm, session in zip(candidates, arms, sessions, strict=True):
        base = arm[-1]
        around = (
            _context(candidate.seq, session, bases, weights)
            if session and candidate.seq is not None
            else (0.0, weights.session * base)
        )
        added = around + signals.of(candidate)
        scored.append(_scored((candidate, base + sum(added), _reasons(arm + added))))
    return scored


def in_order(scored: Iterable[Scored]) -> list[Scored]:
    """The best first; ties go to the newer, then to the lower id."""
    ordered = sorted(scored, key=_score_of, reverse=True)
    if len({one.score for one in ordered}) < len(ordered):
        ordered.sort(key=_order)  # ties are rare, and to tell them apart takes as long as a score
    return ordered


def has_cosine(candidates: Iterable[Candidate]) -> bool:
    """Whether meaning is known of any of them."""
    return any(candidate.cosine is not None for candidate in candidates)


def _order(hit: Scored) -> tuple[float, float, int]:
    return (-hit.score, -hit.candidate.occurred_at.timestamp(), hit.candidate.id.int)


def _sessions(candidates: Sequence[Candidate]) -> list[_Session]:
    """For each candidate, where the turns of its session stand among the candidates, by `seq`."""
    known: dict[UUID, _Session] = {}
    sessions = []
    for place, candidate in enumerate(candidates):
        if candidate.session_id is None or candidate.seq is None:
            sessions.append(_NO_SESSION)
            continue
        session = known.setdefault(candidate.session_id, {})
        session[candidate.seq] = place
        sessions.append(session)
    return sessions


def _arms(
    query: QueryWords,
    candidates: Sequence[Candidate],
    sessions: Sequence[_Session],
    corpus: Corpus,
    weights: Weights,
    meaning: float,
) -> list[_Arms]:
    """Cosine, nb, pair, lex and base of every candidate, in the order of the candidates."""
    idf = inverse_frequencies(query.stems, corpus)
    total = math.fsum(idf.values())
    wanted = [(stem, f" {stem} ") for stem in query.stems]
    counts = [_counts(candidate.stems, wanted) for candidate in candidates]
    if query.aliases:
        for candidate, count in zip(candidates, counts, strict=True):
            _count_aliases(candidate.stems, query.aliases, count)
    undamped = weights.k1 * (1.0 - weights.b)
    average = corpus.average_length if math.isfinite(corpus.average_length) else 1.0
    damping = weights.k1 * weights.b / max(average, 1.0)
    arms = []
    for candidate, count, session in zip(candidates, counts, sessions, strict=True):
        nb = pair = 0.0
        if total > 0.0:
            if count:
                damped = undamped + damping * max(candidate.length, 0)
                nb = sum([idf[stem] * f / (f + damped) for stem, f in count.items()]) / total
            previous = _paired(candidate, candidates, session, weights) if session else None
            if either := count if previous is None else count | counts[previous]:
                pair = sum([idf[stem] for stem in either]) / total
        cosine = candidate.cosine
        if type(cosine) is not float or not 0.0 < cosine <= 1.0:
            cosine = _unit(cosine)
        lex = weights.nb * nb + weights.pair * pair
        nearer = cosine - lex
        base = lex + meaning * (weights.unread * max(0.0, nearer) if query.unread else nearer)
        arms.append((cosine, nb, pair, lex, base))
    return arms


def _counts(stems: str, wanted: Sequence[tuple[str, str]]) -> dict[str, int]:
    """How often each wanted stem occurs; given with a space on both sides too, as it stands there.

    Most texts hold none of them. Of the others each space is made two, so that neighbours share
    none.
    """
    spaced, apart = f" {stems} ", ""
    counts = {}
    for stem, standing in wanted:
        if standing in spaced:
            apart = apart or spaced.replace(" ", "  ")
            counts[stem] = apart.count(standing)
    return counts


def _count_aliases(stems: str, aliases: Sequence[Alias], counts: dict[str, int]) -> None:
    """A thing that is called by another of its names is there once."""
    words = frozenset(stems.split(" "))
    for alias in aliases:
        if any(words.issuperset(name) for name in alias.others):
            for stem in alias.asked:
                counts.setdefault(stem, 1)


def _unit(value: float | None) -> float:
    """The number within [0, 1]; 0 for None, NaN and what is no number."""
    if isinstance(value, (int, float)) and value > 0.0:
        return float(min(value, 1.0))
    return 0.0


def _meaning_weight(corpus: Corpus, weights: Weights) -> float:
    mixed = corpus.role_shares.get(ASSISTANT, 0.0) > 0.0
    if mixed and corpus.average_length > weights.long_mixed_length:
        return weights.cosine_long_mixed
    return weights.cosine


def _paired(
    candidate: Candidate, candidates: Sequence[Candidate], session: _Session, weights: Weights
) -> int | None:
    """The place of the turn before, where the two are read together."""
    if candidate.seq is None or candidate.seq - 1 not in session:
        return None
    place = session[candidate.seq - 1]
    return place if _short(candidate, weights) and _short(candidates[place], weights) else None


def _short(candidate: Candidate, weights: Weights) -> bool:
    return candidate.word_count <= weights.pair_words_max and candidate.role != ASSISTANT


def _context(
    seq: int, session: _Session, bases: Sequence[float], weights: Weights
) -> tuple[float, float]:
    """What the neighbours and the best of the session around it add; itself is part of that."""
    near = weights.session_turns
    around = [bases[session[at]] for at in range(seq - near, seq + near + 1) if at in session]
    previous, following = session.get(seq - 1), session.get(seq + 1)
    neighbour = 0.0
    if previous is not None:
        neighbour += weights.previous * bases[previous]
    if following is not None:
        neighbour += weights.next * bases[following]
    return neighbour, weights.session * max(around)


class _Signals:
    """What the question asks for, weighed once, then added to each candidate."""

    def __init__(self, query: QueryWords, corpus: Corpus, weights: Weights, now: datetime) -> None:
        self._cues = query.cues
        self._weights = weights
        self._now = now
        self._assistant_chat = corpus.role_shares.get(ASSISTANT, 0.0) > 0.0
        self._actor, self._boost, self._share = "", 0.0, 0.0
        self._role = ""
        named = tuple(dict.fromkeys(name.casefold() for name in query.named))
        if named and len(named) <= _NAMED_MAX and not (len(named) > 1 and query.cues.about_both):
            self._actor = named[0]
            shares = corpus.actor_shares.items()
            self._share = sum(share for actor, share in shares if actor.casefold() == named[0])
            self._boost = _rarity_boost(self._share, weights) / len(named)
        elif not named and self._assistant_chat:
            self._role = USER
            self._share = corpus.role_shares.get(USER, 0.0)
            self._boost = _rarity_boost(self._share, weights)
        # Of a memory of nobody in particular the part that chance would give.
        self._by_nobody = self._boost * min(_unit(self._share), 1.0)

    def of(self, candidate: Candidate) -> tuple[float, float, float, float, float, float]:
        """Actor, question, name, date, when, and the bounded signals."""
        cues, weights = self._cues, self._weights
        asks = candidate.ends_with_question and not candidate.first_person
        return (
            self._by_the_asked(candidate) if self._boost else 0.0,
            -weights.question if asks and not self._assistant_chat else 0.0,
            weights.name if cues.wants_name and candidate.has_name else 0.0,
            weights.date * self._dated(candidate.occurred_at) if cues.dates else 0.0,
            weights.when if cues.wants_time and candidate.has_time_expression else 0.0,
            self._bounded(candidate) if candidate.kind != TURN else 0.0,
        )

    def _dated(self, at: datetime) -> float:
        """How well a time fits the dates of the question, or what lies between two of them."""
        inside = any(begins <= at < ends for begins, ends in self._cues.ranges)
        return max(date_match(self._cues.dates, at), 1.0 if inside else 0.0)

    def _by_the_asked(self, candidate: Candidate) -> float:
        """The boost, or what is left of it."""
        if not candidate.actor and not candidate.role:
            return self._by_nobody
        if self._role:
            return self._boost if candidate.role == self._role else 0.0
        return self._boost if candidate.actor.casefold() == self._actor else 0.0

    def _bounded(self, candidate: Candidate) -> float:
        """At most half of each weight up or down; what is not known moves nothing."""
        weights = self._weights
        half_lives = (self._now - candidate.occurred_at) / weights.recency_half_life
        recency = 2.0 ** -min(half_lives, _HALF_LIVES_MAX) if half_lives > 0.0 else 1.0
        bounded = weights.recency * (recency - 0.5)
        if candidate.importance is None and candidate.confidence is None:
            return bounded
        return (
            weights.importance * _centred(candidate.importance)
            + weights.confidence * _centred(candidate.confidence)
            + bounded
        )


def _rarity_boost(share: float, weights: Weights) -> float:
    rarity = -math.log(min(max(_unit(share), _SHARE_MIN), 1.0))
    return weights.actor + weights.actor_rarity * rarity


def _centred(value: float | None) -> float:
    # `isfinite` would make a float of a whole number, which may be too large for one.
    if isinstance(value, (int, float)) and abs(value) < math.inf:
        return _unit(value) - 0.5
    return 0.0


def surest(scored: Sequence[Scored], weights: Weights = DEFAULT_WEIGHTS) -> float:
    """The best score, as if the one asked about had said half of all; 0 of nothing.

    That is where confidence was measured. Among many an actor is rare, and to be by him adds up to
    three times as much: to what answers, and to all else that he ever said.
    """
    usual = _rarity_boost(0.5, weights)
    return max((one.score - max(0.0, one.reasons.actor - usual) for one in scored), default=0.0)


def above_floor(scored: Sequence[Scored], *, floor: float = 0.43) -> list[Scored]:
    """The hits that reach the floor, in the same order."""
    return [hit for hit in scored if hit.score >= floor]


def about_other_actor(
    scored: Sequence[Scored], named: Sequence[str], *, margin: float = 0.1
) -> bool:
    """Whether somebody else's best hit beats the best of the one actor asked about by `margin`.

    Compared without the boost that the question gave to that actor. Always false when none or
    several are named.
    """
    asked = {name.casefold() for name in named}
    if len(asked) != 1:
        return False
    best = {True: 0.0, False: 0.0}
    for hit in scored:
        if hit.candidate.actor:
            own = hit.candidate.actor.casefold() in asked
            best[own] = max(best[own], hit.score - hit.reasons.actor)
    return best[False] - best[True] > margin
