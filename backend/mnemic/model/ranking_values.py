"""What the recall scorer takes and gives; the formula is in `ranking`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple
from uuid import UUID

from mnemic.model.cues import Cues

__all__ = [
    "ASSISTANT",
    "TURN",
    "USER",
    "Alias",
    "Candidate",
    "Corpus",
    "Parts",
    "QueryWords",
    "Reasons",
    "Scored",
    "Weights",
    "candidate_of",
]

TURN = "turn"
USER = "user"
ASSISTANT = "assistant"


class Alias(NamedTuple):
    """A thing that a question names by the stems `asked`, and the stems of its other names."""

    asked: tuple[str, ...]
    others: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWords:
    """A question, read once.

    `embed_text` is what the embedder gets: the question with known names replaced by they/their.
    `stems` are its content words without those names, each once. `named` are the known actors it
    names, in order, as they were given. `aliases` are things it names that have other names, and
    `respelt` its words that nobody wrote here, with those they were taken for. `unread` is a
    question in letters that the model of meaning does not know.
    """

    text: str
    embed_text: str
    stems: tuple[str, ...]
    named: tuple[str, ...] = ()
    cues: Cues = field(default_factory=Cues)
    aliases: tuple[Alias, ...] = ()
    respelt: tuple[tuple[str, str], ...] = ()
    unread: bool = False


class Candidate(NamedTuple):
    """A memory that may answer, with what was noted about it when it was written.

    `stems` is the space-joined text that the database keeps, `length` their number and
    `word_count` the number of all words. `cosine` is on the scale of the reference model, None
    when the memory has no vector. `actor` is who said it, or whom a fact is about; empty for a
    memory of nobody in particular. Other kinds than turns have no session and no `seq`, and
    bring `importance` and `confidence` from 0 to 1 instead. A recall makes some 200 of these, and
    a frozen dataclass takes five times as long to make.
    """

    id: UUID
    stems: str
    length: int
    word_count: int
    occurred_at: datetime
    kind: str = TURN
    cosine: float | None = None
    session_id: UUID | None = None
    seq: int | None = None
    actor: str = ""
    role: str = ""
    ends_with_question: bool = False
    first_person: bool = False
    has_name: bool = False
    has_time_expression: bool = False
    importance: float | None = None
    confidence: float | None = None


candidate_of = partial(tuple.__new__, Candidate)
"""A candidate of all its fields, in their order; a named tuple's own constructor is Python."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Statistics of the visible scopes; none of them needs to be exact.

    `frequencies` counts the documents that hold a stem; `actor_shares` and `role_shares` are the
    parts (0 to 1) of the scope's turns by each actor and each role.
    """

    documents: int = 0
    average_length: float = 0.0
    frequencies: Mapping[str, int] = field(default_factory=dict)
    actor_shares: Mapping[str, float] = field(default_factory=dict)
    role_shares: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Every constant of the score. Measured once, never fitted to the questions reported on."""

    k1: float = 1.2
    b: float = 0.75
    nb: float = 0.7
    pair: float = 0.3
    pair_words_max: int = 60
    cosine: float = 0.5
    cosine_long_mixed: float = 0.6
    long_mixed_length: float = 30.0
    unread: float = 0.5
    previous: float = 0.2
    next: float = 0.1
    session: float = 0.4
    session_turns: int = 5
    actor: float = 0.15
    actor_rarity: float = 0.07
    question: float = 0.07
    name: float = 0.08
    date: float = 0.18
    when: float = 0.09
    importance: float = 0.01
    confidence: float = 0.01
    recency: float = 0.01
    recency_half_life: timedelta = timedelta(days=30)


class Reasons(NamedTuple):
    """What a score is made of.

    The score is the sum from `base` on; `cosine`, `nb`, `pair` and `lex` explain `base` and lie in
    [0, 1].
    """

    cosine: float
    nb: float
    pair: float
    lex: float
    base: float
    neighbour: float
    session: float
    actor: float
    question: float
    name: float
    date: float
    when: float
    bounded: float


class Parts(NamedTuple):
    """`Reasons` of many that were weighed together, by their places: a list for each.

    Hundreds are weighed for each question, and few are told why.
    """

    cosine: Sequence[float]
    nb: Sequence[float]
    pair: Sequence[float]
    lex: Sequence[float]
    base: Sequence[float]
    neighbour: Sequence[float]
    session: Sequence[float]
    actor: Sequence[float]
    question: Sequence[float]
    name: Sequence[float]
    date: Sequence[float]
    when: Sequence[float]
    bounded: Sequence[float]

    def of(self, place: int) -> Reasons:
        """Those of one."""
        return Reasons(*(values[place] for values in self))


class Scored(NamedTuple):
    """A candidate with its score on the fixed scale, and why: what stands at `place` of `parts`.

    Made of many at once: two that tell the same are equal only if those with them were the same.
    """

    candidate: Candidate
    score: float
    parts: Parts
    place: int

    @property
    def reasons(self) -> Reasons:
        """What the score is made of."""
        return self.parts.of(self.place)
