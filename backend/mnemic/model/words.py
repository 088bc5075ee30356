"""One tokeniser for memories and questions: letters and digits of any script.

Text is compared after NFKC and casefold, so that composed and decomposed spellings are one. Latin
and Greek words lose their accents, Arabic ones their vowel signs and their lengthening, Hebrew ones
their points; in every other script a combining mark stays with its letter. Digits of all scripts
are one. Scripts that put no space between words give pairs of characters, a single character when
it is alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from mnemic.model.characters import without_invisible

__all__ = [
    "WORD_CHARS_MAX",
    "Token",
    "normal_form",
    "single_characters",
    "telling_words",
    "tokens_of",
    "words_in",
]

WORD_CHARS_MAX = 128
_MARKS_BELOW = 0x20000

_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u02bc\u2018`", "'"))
_ENDINGS = ("'s", "'re", "'ve", "'ll", "'d", "'m")
_CONTRACTION = "n't"
# Thai, Lao, Burmese, Khmer, kana, Han, Hangul: written without spaces, or with few.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecf\u0eda-\u0eff\u1000-\u103f\u1050-\u109f\u1780-\u17d3"
    "\u17dc-\u17df\u17ea-\u17ff\u3005-\u3007\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af"
)
_UNSPACED_START = re.compile(f"[{_UNSPACED}]")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_HAN_RANGES = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_HAN = re.compile(f"[{_HAN_RANGES}]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_SYLLABLE = re.compile(f"[{_HAN_RANGES}\uac00-\ud7af]")
# Pronouns, particles and question words of Chinese, and whatever Japanese writes in hiragana.
_FUNCTION = re.compile(
    "[的了是我你您他她它们們这這那在和与與吗嗎呢吧啊么麼什哪谁誰怎嘛呀之\u3041-\u309f]"
)
_KOREAN_WORD = re.compile(
    "([\uac00-\ud7af])"
    "(?:은|는|이|가|을|를|에|의|로|와|과|도|만|께|랑|나|야|에서|에게|에는|에도|으로|로는|까지|부터|보다|처럼|한테"
    "|이랑|하고|마다|마저|조차|밖에|이나|이라|라고|이야|들이|들은|들을|에서는|으로는|이라고|에게서)"
)
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+(?:'[A-Za-z]+)*")
# Latin and Greek letters, and the Cyrillic letter io, which is mostly written without its dots.
_MARKED_LETTER = re.compile("([a-z\u03b1-\u03c9]|\u0435(?=\u0308))[\u0300-\u036f]+")
# What is put in or left out at will in Arabic and Hebrew; hamza and madda are letters of their own.
_POINTS = re.compile(
    "[\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06ed\u0591-\u05c7]"
)
_LETTERS = {
    0x06A9: "\u0643",  # Persian kaf
    0x06CC: "\u064a",  # Persian yeh
    0x06C1: "\u0647",  # Urdu heh
}


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


def single_characters(text: str) -> Iterator[str]:
    """Each Han character and Korean syllable, once, that a text has in pairs only.

    With them a memory is found by one character too.
    """
    if text.isascii():
        return
    seen: dict[str, None] = {}
    for hit in _UNSPACED_RUN.finditer(normal_form(text)):
        if len(hit.group()) > 1:
            seen.update(dict.fromkeys(_SYLLABLE.findall(hit.group())))
    yield from seen


def telling_words(text: str, seen: Container[str] | None = None) -> Iterator[str]:
    """The words of a question, as `words_in` gives them, with the single characters that tell.

    Pairs are cut without regard to where words end, so that most of those that no memory has are
    accidents of the wording. With `seen`, those that some memory has, the others are left out where
    they overlap one of these, hold a particle, or follow the beginning of a Korean word.
    """
    normal = normal_form(text)
    for hit in _word_pattern(ascii_only=normal.isascii()).finditer(normal):
        raw = hit.group()
        if _UNSPACED_START.match(raw):
            yield from _telling_pairs(_one_form(raw), seen)
        else:
            yield from _parts(raw)


def _telling_pairs(run: str, seen: Container[str] | None) -> Iterator[str]:
    pairs = [run[at : at + 2] for at in range(max(1, len(run) - 1))]
    singles = [(at, one) for at, one in enumerate(run) if _HAN.match(one)]
    known = {at for at, pair in enumerate(pairs) if seen is None or pair in seen}
    covered: set[int] = set()
    taken = -2
    for at, pair in enumerate(pairs):
        if at in known:
            yield pair
        elif (
            taken < at - 1  # of unknown ones that overlap, every second
            and not known.intersection((at - 1, at + 1))
            and _FUNCTION.search(pair) is None
            and (at == 0 or _HANGUL.match(pair) is None)
        ):
            taken = at
            covered |= {at, at + 1}
            yield pair
    if len(run) > 1:
        yield from (one for at, one in singles if seen is None or one in seen or at not in covered)
        if korean := _KOREAN_WORD.fullmatch(run):
            yield korean[1]


def _parts(raw: str) -> Iterable[str]:
    if _UNSPACED_START.match(raw):
        raw = _one_form(raw)
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
    composed = _POINTS.sub("", unicodedata.normalize("NFKC", bare))
    return _one_form(composed)[:WORD_CHARS_MAX] or word


def _one_form(word: str) -> str:
    """Letters and digits that are written in several ways, in one of them."""
    return word if word.isascii() else word.translate(_one_forms())


@lru_cache(maxsize=1)
def _one_forms() -> dict[int, str]:
    digits = {
        code: str(digit)
        for code in range(0x80, _MARKS_BELOW)
        if (digit := unicodedata.decimal(chr(code), None)) is not None
    }
    return digits | _LETTERS
