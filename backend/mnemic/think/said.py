"""A session as sentences, each with its speaker, its terms and its weight in the session."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from mnemic.think import cues
from mnemic.think.protocol import SessionRecord
from mnemic.think.sentences import is_question, sentences_of
from mnemic.think.vocabulary import terms_of

__all__ = ["Said", "Weights", "said_in"]

NOTE = "note"
TERMS_FULL = 5
_BONUS = 0.5
_HALF_BONUS = 0.25
_QUESTION_MALUS = 0.4
_ROLE_FACTOR = {"user": 1.0, NOTE: 1.0, "assistant": 0.9, "tool": 0.3, "system": 0.1}


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence; `place` is its turn, counted from 0, notes after the last turn."""

    place: int
    speaker: str
    role: str
    text: str
    terms: tuple[str, ...]

    @property
    def plain(self) -> str:
        """The text with straight apostrophes, as the cues are written."""
        return self.text.replace("\u2019", "'")


def said_in(session: SessionRecord) -> list[Said]:
    """All sentences in order; notes of the scratchpad stand after the turns."""
    return list(_said(session))


def _said(session: SessionRecord) -> Iterator[Said]:
    for place, turn in enumerate(session.turns):
        for text in sentences_of(turn.text):
            yield Said(place, turn.actor, turn.role, text, _terms(text))
    for place, note in enumerate(session.scratchpad, start=len(session.turns)):
        for text in sentences_of(note):
            yield Said(place, "Note", NOTE, text, _terms(text))


def _terms(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(terms_of(text)))


class Weights:
    """How much each term weighs in a session: the more turns share it, the more.

    A term in `d` of `n` turns weighs ln(1 + d) / ln(1 + n), from 0 to 1.
    """

    def __init__(self, said: list[Said]) -> None:
        turns_of: Counter[str] = Counter()
        last_seen: dict[str, int] = {}
        places = 0
        before = -1
        for one in said:
            places += one.place != before
            before = one.place
            for term in one.terms:
                if last_seen.get(term) != one.place:
                    last_seen[term] = one.place
                    turns_of[term] += 1
        self._turns_of = turns_of
        self._scale = math.log1p(max(1, places))

    def of(self, term: str) -> float:
        """The weight of one term."""
        return math.log1p(self._turns_of[term]) / self._scale

    def mean(self, one: Said) -> float:
        """The mean weight of a sentence's terms, less when it has fewer than five of them."""
        if not one.terms:
            return 0.0
        mean = math.fsum(map(self.of, one.terms)) / len(one.terms)
        return mean * min(1.0, len(one.terms) / TERMS_FULL)

    def salience(self, one: Said) -> float:
        """How well a sentence stands for the session.

        `mean`, plus ½ for a decision or a lesson and ¼ for a wish to keep something in mind, less
        0.4 for a question, times a factor of its speaker's role.
        """
        value, plain = self.mean(one), one.plain
        if cues.is_decision(plain) or cues.is_lesson(plain):
            value += _BONUS
        if cues.is_signal(plain):
            value += _HALF_BONUS
        if is_question(one.text):
            value -= _QUESTION_MALUS
        return value * _ROLE_FACTOR.get(one.role, 1.0)
