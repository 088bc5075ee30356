"""Sentences of what somebody wrote: whole, on one line, without code and quoted lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mnemic.model.normalise import is_blank

__all__ = ["is_question", "sentences_of"]

_FENCE = "```"
_BULLET = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s+")
# Tried where a run of marks begins and never backtracked into: linear in runs of any length.
_BREAK = re.compile(
    r"(?<![.!?\u2026])[.!?\u2026]++[\"'\u201d\u2019)\]]*+\s"
    r"|[\u3002\uff01\uff1f]+[\u300d\u300f\u201d]?"
)
_WORD_BEFORE = re.compile(r"(?:^|[\s(\[\"'])(\S{1,12})\Z")
_ABBREVIATIONS = frozenset(
    {"e.g.", "i.e.", "etc.", "vs.", "cf.", "dr.", "mr.", "mrs.", "ms.", "no.", "st.", "approx."}
)
_INITIAL = re.compile(r"[A-Z]\.")
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")


def sentences_of(text: str) -> Iterator[str]:
    """Each sentence with its white space collapsed; linear in the length of the text.

    Fenced code, lines quoted with `>` and list marks are left out. A line ends a sentence.
    """
    fenced = False
    for line in text.split("\n"):
        fence = line.count(_FENCE)
        if fence % 2:
            fenced = not fenced
        if fenced or fence:
            continue
        flat = " ".join(line.split())
        if flat and not flat.startswith(">"):
            bullet = _BULLET.match(flat)
            yield from _split(flat[bullet.end() :] if bullet else flat)


def is_question(sentence: str) -> bool:
    """Whether the sentence asks: its last mark is a question mark."""
    return sentence.rstrip("\"'\u201d\u2019) ").endswith(_QUESTION_MARKS)


def _split(line: str) -> Iterator[str]:
    start = 0
    for found in _BREAK.finditer(line):
        if _ends(line, found):
            if not is_blank(sentence := line[start : found.end()].strip()):
                yield sentence
            start = found.end()
    if not is_blank(rest := line[start:].strip()):
        yield rest


def _ends(line: str, found: re.Match[str]) -> bool:
    """Not before a small letter, nor after an abbreviation or an initial."""
    following = line[found.end() : found.end() + 1]
    if following.islower():
        return False
    before = _WORD_BEFORE.search(line[max(0, found.start() - 12) : found.start() + 1])
    if before is None:
        return True
    return before[1].lower() not in _ABBREVIATIONS and not _INITIAL.fullmatch(before[1])
