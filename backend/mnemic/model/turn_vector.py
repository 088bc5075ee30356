"""What the vector of a turn is made of; whoever embeds turns asks here.

A short turn says little by itself ("Yes, in May."), so half of its vector is that of a window: what
was said right before it in its session, and itself. A longer turn has the vector of its own text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from operator import mul
from typing import Final, NamedTuple

from mnemic.model.embedding import NORM_MIN, Vector, checked_vector
from mnemic.model.words import words_in

__all__ = [
    "RECIPE",
    "SHORT_WORDS_MAX",
    "TURNS_BEFORE_MAX",
    "WINDOW_SHARE",
    "Said",
    "joined",
    "said_in_order",
    "turn_text",
    "turn_texts",
    "window_text",
]

RECIPE: Final = 1
"""The number of all that is said here: vectors that were made by another are made anew.

Some of it stands in the database too, where a vector goes with the turns that it took in (migration
0021). Whoever changes a number here changes it there, by a migration.
"""

SHORT_WORDS_MAX: Final = 20
"""A turn of more words, its caption's among them, says enough by itself."""

TURNS_BEFORE_MAX: Final = 2
WINDOW_SHARE: Final = 0.5

BEFORE_CHARS_MAX: Final = 800
"""Of what was said before, the end: a model reads a text from its beginning and may not come to the
turn itself, 256 tokens in the default one."""


class Said(NamedTuple):
    """What of a turn is embedded."""

    actor: str
    text: str
    caption: str | None = None

    @property
    def is_short(self) -> bool:
        """Whether it has no more words than a short turn; the others are not read."""
        said = self.text if self.caption is None else f"{self.text}\n{self.caption}"
        return sum(1 for _ in islice(words_in(said), SHORT_WORDS_MAX + 1)) <= SHORT_WORDS_MAX


def turn_text(actor: str, text: str, caption: str | None) -> str:
    """A turn alone: who, what, and what a picture shows."""
    image = f" [image: {caption}]" if caption else ""
    return f"{actor}: {text}{image}"


def window_text(said: Sequence[Said]) -> str:
    """Several turns of a session, in their order: the last, and the end of those before it."""
    *before, turn = (turn_text(*one) for one in said)
    return "\n".join(("\n".join(before)[-BEFORE_CHARS_MAX:], turn)) if before else turn


def turn_texts(turn: Said, before: Sequence[Said]) -> tuple[str, ...]:
    """What is embedded of a turn: its own text, and that of its window if it has one.

    `before` are the turns right before it, in order, of which the last `TURNS_BEFORE_MAX` count;
    a turn that is not short takes none.
    """
    near = before[-TURNS_BEFORE_MAX:]
    if not near or not turn.is_short:
        return (turn_text(*turn),)
    return turn_text(*turn), window_text((*near, turn))


def said_in_order(before: Sequence[Said], turns: Sequence[Said]) -> list[tuple[str, ...]]:
    """What is embedded of each of `turns`, said one after the other behind `before`."""
    said = (*before, *turns)
    return [
        turn_texts(turn, said[max(0, at - TURNS_BEFORE_MAX) : at])
        for at, turn in enumerate(turns, start=len(before))
    ]


def joined(vectors: Sequence[Vector]) -> Vector:
    """The vector of a memory, from those of its texts as `turn_texts` has them."""
    if len(vectors) == 1:
        return vectors[0]
    own, window = vectors
    mean = [
        (1.0 - WINDOW_SHARE) * one + WINDOW_SHARE * other
        for one, other in zip(own, window, strict=True)
    ]
    # Two that point away from each other have no direction between them.
    if math.sqrt(sum(map(mul, mean, mean))) < NORM_MIN:
        return own
    return checked_vector(mean, dimensions=len(mean))
