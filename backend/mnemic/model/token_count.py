"""How many tokens a text costs, estimated without a tokenizer and on the safe side."""

from __future__ import annotations

import math
import re
from typing import Protocol

__all__ = ["EstimatedTokens", "TokenCounter"]

SAFETY = 1.3
_PIECES = re.compile(
    r"(?P<latin>[A-Za-z]+)|(?P<digits>[0-9]+)|(?P<space>\s+)"
    r"|(?P<wide>[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff])"
    r"|(?P<letters>[^\W\d_]+)|(?P<other>.)",
    re.DOTALL,
)
_LATIN_CHARACTERS = 6
_OTHER_LETTERS = 3
_DIGITS = 3


class TokenCounter(Protocol):
    """Counts the tokens of a text; an exact tokenizer, or an estimate that errs upwards."""

    def count(self, text: str) -> int:
        """How many tokens `text` costs; never negative, and zero for the empty text alone."""
        ...


class EstimatedTokens:
    """Pieces of a byte-pair tokenizer, guessed by script, times 1.3 for what the guess misses.

    A Latin word costs a token for six letters, other alphabets one for three, digits one for
    three, Chinese, Japanese and Korean one a character, marks one each, runs of spaces one if they
    are longer than a single space or break a line.
    """

    def count(self, text: str) -> int:
        """As the class says, rounded up."""
        tokens = 0
        for match in _PIECES.finditer(text):
            length = match.end() - match.start()
            kind = match.lastgroup
            if kind == "latin":
                tokens += math.ceil(length / _LATIN_CHARACTERS)
            elif kind == "digits":
                tokens += math.ceil(length / _DIGITS)
            elif kind == "letters":
                tokens += math.ceil(length / _OTHER_LETTERS)
            elif kind == "space":
                tokens += 0 if match[0] == " " else 1
            else:
                tokens += 1 if match[0] < "\u0100" else len(match[0].encode()) // 2
        return math.ceil(tokens * SAFETY)
