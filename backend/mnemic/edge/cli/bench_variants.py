"""What `mnemic bench retrieval --ablate` turns off in the score, and what it tries beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeAlias

from mnemic.model.ranking_values import Weights
from mnemic.model.turn import TurnCreate
from mnemic.model.turn_vector import WINDOW_SHARE, Said, turn_text, turn_texts, window_text
from mnemic.think.sentences import sentences_of

__all__ = ["ALONE", "OFF", "ON", "VIEWS", "Join", "Lend", "Variant", "View"]

Session: TypeAlias = Sequence[TurnCreate]
View: TypeAlias = Callable[[Session, int], tuple[str, ...]]
"""What is embedded of the turn at a place of its session; of several texts the nearest counts."""

ALONE = "alone"
SHORT = "short with two before"
WEIGHTS = Weights()
STORED: Mapping[str, float] = {ALONE: 1.0 - WINDOW_SHARE, SHORT: WINDOW_SHARE}
"""What a stored vector is made of."""


class Join(StrEnum):
    """How the views of a turn become one cosine."""

    MEAN = "mean"
    """Their vectors are added by their shares, as one stored vector would be."""
    MAX = "max"
    """The nearest counts, each times its share."""
    SUM = "sum"
    """Their cosines are added by their shares."""


class Lend(StrEnum):
    """Which words of the two turns before count in a turn as if it held them once."""

    NONE = "none"
    NAMES = "names"
    """Capitalised ones, for a turn that says he, she, it or they and has no name."""
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The score with something changed."""

    name: str
    weights: Weights = WEIGHTS
    views: Mapping[str, float] = field(default_factory=lambda: STORED)
    join: Join = Join.MEAN
    lend: Lend = Lend.NONE
    unnamed: bool = True
    """Whether the question is embedded without the names that it holds."""


def _said(turn: TurnCreate) -> Said:
    return Said(turn.actor, turn.text, turn.caption)


def _window(before: int) -> View:
    def view(session: Session, at: int) -> tuple[str, ...]:
        return (window_text(list(map(_said, session[max(0, at - before) : at + 1]))),)

    return view


def _window_if_short(session: Session, at: int) -> tuple[str, ...]:
    """As it is stored beside the turn alone."""
    return turn_texts(_said(session[at]), list(map(_said, session[:at])))[-1:]


def _answer(session: Session, at: int) -> tuple[str, ...]:
    """The turn behind the question that it answers, if the turn before is one."""
    asked = at > 0 and session[at - 1].text.rstrip().endswith("?")
    return (window_text(list(map(_said, session[at - asked : at + 1]))),)


def _sentences(session: Session, at: int) -> tuple[str, ...]:
    here = session[at]
    return (turn_text(*_said(here)), *(f"{here.actor}: {one}" for one in sentences_of(here.text)))


_PERSONS = {
    "i": "{}",
    "i'm": "{} is",
    "i've": "{} has",
    "i'll": "{} will",
    "i'd": "{} would",
    "my": "{}'s",
    "me": "{}",
    "mine": "{}'s",
    "myself": "{}",
}


def _told(session: Session, at: int) -> tuple[str, ...]:
    """The turn as somebody else would tell it: the speaker by name instead of I and my."""
    here = session[at]
    words = here.text.replace("\u2019", "'").split(" ")
    told = (
        form.format(here.actor) if (form := _PERSONS.get(word.casefold())) else word
        for word in words
    )
    return (" ".join(told),)


VIEWS: dict[str, View] = {
    ALONE: lambda session, at: (turn_text(*_said(session[at])),),
    "with two before": _window(2),
    "with one before": _window(1),
    SHORT: _window_if_short,
    "with its question": _answer,
    "sentences": _sentences,
    "told by name": _told,
}


def _off(what: str, /, **changed: Any) -> Variant:
    return Variant(name=f"without {what}", weights=replace(WEIGHTS, **changed))


OFF = (
    _off("meaning", cosine=0.0, cosine_long_mixed=0.0),
    _off("words", cosine=1.0, cosine_long_mixed=1.0),
    _off("the pair of turns", nb=1.0, pair=0.0),
    _off("the turns beside", previous=0.0, next=0.0),
    _off("the session around", session=0.0),
    _off("who spoke", actor=0.0, actor_rarity=0.0),
    _off("questions lowered", question=0.0),
    _off("a name where one is asked", name=0.0),
    _off("dates", date=0.0),
    _off("a time where one is asked", when=0.0),
    Variant(name="without the window if short", views={ALONE: 1.0}),
    Variant(name="names left in the vector", unnamed=False),
)
"""Each signal of the score taken away."""


def _mixed(name: str, view: str, share: float, join: Join = Join.MEAN) -> Variant:
    """`share` of the view; beside a mean the turn alone has the rest, else all."""
    alone = 1.0 if join is Join.MAX else 1.0 - share
    return Variant(name=name, views={ALONE: alone, view: share}, join=join)


ON = (
    _mixed("window of three, mean .6/.4", "with two before", 0.4),
    _mixed("window of three, mean .7/.3", "with two before", 0.3),
    _mixed("window of three, cosines .7/.3", "with two before", 0.3, Join.SUM),
    _mixed("window of three, the nearer", "with two before", 1.0, Join.MAX),
    _mixed("window of two, mean .6/.4", "with one before", 0.4),
    _mixed("window if short, mean .6/.4", SHORT, 0.4),
    _mixed("window alone if short", SHORT, 1.0),
    _mixed("window of its question, .6/.4", "with its question", 0.4),
    _mixed("sentences, the nearest", "sentences", 1.0, Join.MAX),
    _mixed("told by name, mean .5/.5", "told by name", 0.5),
    _mixed("told by name, the nearer", "told by name", 1.0, Join.MAX),
    Variant(name="names lent to he, she, it, they", lend=Lend.NAMES),
    Variant(name="all words lent", lend=Lend.ALL),
)
"""What the score does not have, tried one by one."""
