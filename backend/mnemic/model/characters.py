"""Characters that nobody sees, and texts made of nothing else."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["INVISIBLE", "is_blank", "without_invisible"]

INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""What Unicode lets a renderer leave out, as the inside of a set of a regular expression."""

_BLANK_PATTERN = "\u2800"
# Controls that are no white space, a pattern without dots, and what anchors a gloss.
_UNSHOWN = "\x01-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u2800\ufff9-\ufffb"
# The tags after a black flag tell England's from Scotland's; anywhere else nobody sees them.
_HIDDEN = re.compile(
    f"(?P<flag>\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f)|[{INVISIBLE}{_UNSHOWN}]+"
)
_UNSEEN = re.compile(f"[{INVISIBLE}]")


def without_invisible(text: str) -> str:
    """The text without what nobody sees: zero-width and bidi marks, controls, fillers, tags."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(lambda found: found["flag"] or "", text)


def is_blank(text: str) -> bool:
    """Whether nothing visible is left: white space of any script, invisible and control marks."""
    return all(
        character.isspace()
        or character == _BLANK_PATTERN
        or unicodedata.category(character) in {"Cf", "Cc", "Zs", "Zl", "Zp"}
        or _UNSEEN.match(character)
        for character in text
    )
