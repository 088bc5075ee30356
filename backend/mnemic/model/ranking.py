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
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import accumulate, pairwise
from operator import attrgetter
from uuid import UUID

from mnemic.model.ranking_signals import rarity_boost, signals_of, with_assistant, within_one
from mnemic.model.ranking_values import (
    ASSISTANT,
    Alias,
    Candidate,
    Corpus,
    Parts,
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
SMALL_CORPUS = 50
_score_of = attrgetter("score")
# Hundreds are made for each question, and a named tuple's own constructor is Python.
_scored = partial(tuple.__new__, Scored)
_BASE = Parts._fields.index("base")
_NO_COUNT: dict[str, int] = {}

_Column = list[float]
_Count = dict[str, int]
_Session = list[tuple[int, int]]


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
    if meant is None:
        meant = has_cosine(candidates)
    meaning = _meaning_weight(corpus, weights) if meant else 0.0
    sessions = _sessions(candidates)
    arms = _arms(query, candidates, sessions, corpus, weights, meaning)
    around = _around(arms[-1], sessions, weights)
    parts = Parts(*arms, *around, *signals_of(query, candidates, corpus, weights, now))
    scores = [
        base + (neighbour + session + actor + question + name + date + when + bounded)
        for base, neighbour, session, actor, question, name, date, when, bounded in zip(
            *parts[_BASE:], strict=True
        )
    ]
    return [
        _scored((candidate, score, parts, place))
        for place, (candidate, score) in enumerate(zip(candidates, scores, strict=True))
    ]


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
    """The turns of each session in their order, by `seq` and by their place in `candidates`."""
    known: dict[UUID, _Session] = {}
    for place, candidate in enumerate(candidates):
        session_id, seq = candidate.session_id, candidate.seq
        if session_id is None or seq is None:
            continue
        if (session := known.get(session_id)) is None:
            session = known[session_id] = []
        session.append((seq, place))
    for session in known.values():
        session.sort()
    return list(known.values())


def _arms(
    query: QueryWords,
    candidates: Sequence[Candidate],
    sessions: Sequence[_Session],
    corpus: Corpus,
    weights: Weights,
    meaning: float,
) -> tuple[_Column, _Column, _Column, _Column, _Column]:
    """Cosine, nb, pair, lex and base, each of every candidate in their order."""
    nb, pair = _words(query, candidates, sessions, corpus, weights)
    lex = [weights.nb * one + weights.pair * two for one, two in zip(nb, pair, strict=True)]
    cosines = [
        one.cosine
        if type(one.cosine) is float and 0.0 < one.cosine <= 1.0
        else within_one(one.cosine)
        for one in candidates
    ]
    nearer = [cosine - by_words for cosine, by_words in zip(cosines, lex, strict=True)]
    if query.unread:
        nearer = [weights.unread * max(0.0, more) for more in nearer]
    base = [by_words + meaning * more for by_words, more in zip(lex, nearer, strict=True)]
    return cosines, nb, pair, lex, base


def _words(
    query: QueryWords,
    candidates: Sequence[Candidate],
    sessions: Sequence[_Session],
    corpus: Corpus,
    weights: Weights,
) -> tuple[_Column, _Column]:
    """Nb and pair of every candidate; most hold no word of the question and have neither."""
    nb, pair = [0.0] * len(candidates), [0.0] * len(candidates)
    idf = inverse_frequencies(query.stems, corpus)
    total = math.fsum(idf.values())
    if total <= 0.0:
        return nb, pair
    counts = _counts([candidate.stems for candidate in candidates], query.stems)
    if query.aliases:
        for place, candidate in enumerate(candidates):
            _count_aliases(candidate.stems, query.aliases, counts, place)
    undamped = weights.k1 * (1.0 - weights.b)
    average = corpus.average_length if math.isfinite(corpus.average_length) else 1.0
    damping = weights.k1 * weights.b / max(average, 1.0)
    for place, count in counts.items():
        damped = undamped + damping * max(candidates[place].length, 0)
        nb[place] = sum([idf[stem] * f / (f + damped) for stem, f in count.items()]) / total
        pair[place] = sum([idf[stem] for stem in count]) / total
    for before, after in _paired(candidates, sessions, weights):
        if said_before := counts.get(before):
            either = counts.get(after, _NO_COUNT) | said_before
            pair[after] = sum([idf[stem] for stem in either]) / total
    return nb, pair


def _counts(texts: Sequence[str], stems: Sequence[str]) -> dict[int, _Count]:
    """How often the stems occur, for the place of each text that holds any.

    Looked for in all texts at once, as few hold any: a stem, which holds no space itself, stands
    between two. In a text that holds it each space is made two, so that neighbours share none, and
    it is counted there without a step for each.
    """
    counts: dict[int, _Count] = {}
    spaced: dict[int, str] = {}
    whole = f" {' '.join(texts)} "
    begins = list(accumulate((len(text) + 1 for text in texts), initial=0))
    for stem in stems:
        standing = f" {stem} "
        at = whole.find(standing)
        while at >= 0:
            place = bisect_right(begins, at) - 1
            if (text := spaced.get(place)) is None:
                text = spaced[place] = f" {texts[place]} ".replace(" ", "  ")
            counts.setdefault(place, {})[stem] = text.count(standing)
            at = whole.find(standing, begins[place + 1])
    return counts


def _count_aliases(
    stems: str, aliases: Sequence[Alias], counts: dict[int, _Count], place: int
) -> None:
    """A thing that is called by another of its names is there once."""
    words = frozenset(stems.split(" "))
    for alias in aliases:
        if any(words.issuperset(name) for name in alias.others):
            count = counts.setdefault(place, {})
            for stem in alias.asked:
                count.setdefault(stem, 1)


def _meaning_weight(corpus: Corpus, weights: Weights) -> float:
    if with_assistant(corpus) and corpus.average_length > weights.long_mixed_length:
        return weights.cosine_long_mixed
    return weights.cosine


def _paired(
    candidates: Sequence[Candidate], sessions: Sequence[_Session], weights: Weights
) -> Iterator[tuple[int, int]]:
    """The places of each two turns that are read together, the earlier one first."""
    for session in sessions:
        for (earlier, before), (later, after) in pairwise(session):
            if (
                earlier == later - 1
                and _short(candidates[after], weights)
                and _short(candidates[before], weights)
            ):
                yield before, after


def _short(candidate: Candidate, weights: Weights) -> bool:
    return candidate.word_count <= weights.pair_words_max and candidate.role != ASSISTANT


def _around(
    bases: Sequence[float], sessions: Sequence[_Session], weights: Weights
) -> tuple[_Column, _Column]:
    """What its neighbours and the best of the session around it add to each; itself is part of it.

    Each session is gone through once, with the first and the last that are near enough.
    """
    neighbours = [0.0] * len(bases)
    best = [weights.session * base for base in bases]
    near = weights.session_turns
    for session in sessions:
        seqs = [seq for seq, _ in session]
        values = [bases[place] for _, place in session]
        first, end, many = 0, 0, len(seqs)
        for at, (seq, place) in enumerate(session):
            while seqs[first] < seq - near:
                first += 1
            while end < many and seqs[end] <= seq + near:
                end += 1
            neighbour = 0.0
            if at and seqs[at - 1] == seq - 1:
                neighbour += weights.previous * values[at - 1]
            if at + 1 < many and seqs[at + 1] == seq + 1:
                neighbour += weights.next * values[at + 1]
            neighbours[place] = neighbour
            best[place] = weights.session * max(values[first:end])
    return neighbours, best


def surest(scored: Sequence[Scored], weights: Weights = DEFAULT_WEIGHTS) -> float:
    """The best score, as if the one asked about had said half of all; 0 of nothing.

    That is where confidence was measured. Among many an actor is rare, and to be by him adds up to
    three times as much: to what answers, and to all else that he ever said.
    """
    usual = rarity_boost(0.5, weights)
    scores = [
        score if (actor := parts.actor[place]) <= usual else score - (actor - usual)
        for _, score, parts, place in scored
    ]
    return max(scores, default=0.0)


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
            best[own] = max(best[own], hit.score - hit.parts.actor[hit.place])
    return best[False] - best[True] > margin
