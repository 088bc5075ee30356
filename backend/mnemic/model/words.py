"""One tokeniser for memories and questions: letters and digits of any script.

Text is compared after NFKC and casefold, so that composed and decomposed spellings are one. Latin
words lose their accents; in every other script a combining mark stays with its letter. Scripts
that put no space between words give pairs of characters, a single character when it is alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from mnemic.model.characters import without_invisible

__all__ = ["WORD_CHARS_MAX", "Token", "normal_form", "tokens_of", "words_in"]

WORD_CHARS_MAX = 128
_MARKS_BELOW = 0x20000

_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u02bc\u2018`", "'"))
_ENDINGS = ("'s", "'re", "'ve", "'ll", "'d", "'m")
_CONTRACTION = "n't"
# Thai, Lao, Burmese, Khmer, kana, Han, Hangul: written without spaces, or with few.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0eff\u1000-\u1049\u1050-\u109f\u1780-\u17d3"
    "\u17dc-\u17ff\u3005-\u3007\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af"
)
_UNSPACED_START = re.compile(f"[{_UNSPACED}]")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+(?:'[A-Za-z]+)*")
# Latin letters, and the Cyrillic letter io, which is mostly written without its dots.
_MARKED_LETTER = re.compile("([a-z]|\u0435(?=\u0308))[\u0300-\u036f]+")


class Token(NamedTuple):
    """A word where it stands in the normal form; `unspaced` is a run of several words."""

    start: int
    end: int
    word: str
    possessive: bool
    capital: bool
    unspaced: bool


def normal_form(text: str) -> str:
    """NFKC without invisible characters and with one kind of apostrophe; case is kept."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", without_invisible(text))
    return text.translate(_APOSTROPHES)


def words_in(text: str) -> Iterator[str]:
    """All words of a text, folded and in order; English endings after an apostrophe are dropped."""
    normal = normal_form(text)
    for hit in _word_pattern(ascii_only=normal.isascii()).finditer(normal):
        yield from _parts(hit.group())


def tokens_of(normal: str) -> Iterator[Token]:
    """The words of a text in normal form with their places, `'s` taken off."""
    for hit in _word_pattern(ascii_only=normal.isascii()).finditer(normal):
        raw = hit.group()
        unspaced = _UNSPACED_START.match(raw) is not None
        word = raw if unspaced else _folded(raw)
        bare = word.removesuffix("'s")
        yield Token(*hit.span(), bare, bare != word, raw[0].isupper(), unspaced)


@lru_cache(maxsize=2)
def _word_pattern(*, ascii_only: bool) -> re.Pattern[str]:
    if ascii_only:
        return _ASCII_WORD
    marks = "".join(
        mark
        for mark in map(chr, range(_MARKS_BELOW))
        if unicodedata.category(mark) in {"Mn", "Mc", "Me"}
    )
    letter = rf"(?:[^\W_{_UNSPACED}]|[{marks}])"
    return re.compile(rf"[{_UNSPACED}]+|{letter}+(?:'{letter}+)*")


def _parts(raw: str) -> Iterable[str]:
    if _UNSPACED_START.match(raw):
        return (raw[at : at + 2] for at in range(max(1, len(raw) - 1)))
    word = _folded(raw)
    if "'" not in word or word.endswith(_CONTRACTION):
        return (word,)
    ending = next((ending for ending in _ENDINGS if word.endswith(ending)), "")
    return filter(None, word.removesuffix(ending).split("'"))


def _folded(raw: str) -> str:
    """Casefolded and cut to `WORD_CHARS_MAX`; Latin letters without their accents."""
    word = raw[:WORD_CHARS_MAX].casefold()
    if word.isascii():
        return word
    bare = _MARKED_LETTER.sub(r"\1", unicodedata.normalize("NFKD", word))
    return unicodedata.normalize("NFKC", bare)[:WORD_CHARS_MAX]
