"""Which scripts a text is written in, as far as it matters to a model of meaning."""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["is_mostly", "scripts_in"]

_SCRIPTS = {
    name: re.compile(f"[{ranges}]")
    for name, ranges in {
        "Latin": "A-Za-z\u00c0-\u024f\u1e00-\u1eff",
        "Greek": "\u0370-\u03ff\u1f00-\u1fff",
        "Cyrillic": "\u0400-\u052f",
        "Armenian": "\u0530-\u058f",
        "Hebrew": "\u0590-\u05ff",
        "Arabic": "\u0600-\u06ff\u0750-\u077f",
        "Devanagari": "\u0900-\u097f",
        "Bengali": "\u0980-\u09ff",
        "Tamil": "\u0b80-\u0bff",
        "Thai": "\u0e00-\u0e7f",
        "Georgian": "\u10a0-\u10ff",
        "Kana": "\u3041-\u30ff",
        "Han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af",
        "Hangul": "\u1100-\u11ff\uac00-\ud7af",
    }.items()
}
_SCRIPT_CHARS_MAX = 20_000


def is_mostly(text: str, scripts: Collection[str]) -> bool:
    """Whether at least half of its letters belong to one of the scripts."""
    if text.isascii() and "Latin" in scripts:
        return True
    letters = [one for one in text[:_SCRIPT_CHARS_MAX] if one.isalpha()]
    known = [_SCRIPTS[name] for name in scripts if name in _SCRIPTS]
    return 2 * sum(any(one.match(letter) for one in known) for letter in letters) >= len(letters)


def scripts_in(text: str) -> tuple[str, ...]:
    """The names of the scripts of a text in normal form, in a fixed order; a rare one has none.

    Only its first characters are looked at.
    """
    head = text[:_SCRIPT_CHARS_MAX]
    if head.isascii():
        return ("Latin",) if _SCRIPTS["Latin"].search(head) else ()
    return tuple(name for name, letters in _SCRIPTS.items() if letters.search(head))
