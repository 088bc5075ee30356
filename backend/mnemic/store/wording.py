"""Stems of a text and of a question, by one rule, and their full-text forms for PostgreSQL.

English, Russian and Arabic words lose their stop words and are stemmed; the words of other
languages stay as they are. See `model.words` for what a word is.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any

import snowballstemmer

from mnemic.model.cues import (
    CUE_CHARS_MAX,
    cues_of,
    ends_with_question,
    first_person,
    has_name,
    has_time_expression,
)
from mnemic.model.matching import Matching
from mnemic.model.naming import names_in, without_names
from mnemic.model.ranking_values import Alias, QueryWords
from mnemic.model.words import normal_form, single_characters, telling_words, words_in

__all__ = [
    "QueryWords",
    "Words",
    "match_text",
    "names_text",
    "query_of",
    "stems_of",
    "tsquery_text",
    "tsvector_text",
    "words_of",
]

STEMMED_CHARS_MAX = 40
STEMS_CACHED_MAX = 65_536
LEXEME_BYTES_MAX = 2_000
LEXEMES_BYTES_MAX = 900_000
POSITION_MAX = 16_383
POSITIONS_MAX = 255
QUERY_STEMS_MAX = 1_000
NAMES_MAX = 50
# PostgreSQL's own costs beside the letters: alignment, the count and each of the positions.
_LEXEME_BYTES = 8
_POSITION_BYTES = 2

_STOP_WORDS = frozenset(
    files("mnemic.store").joinpath("stop_words.txt").read_text(encoding="utf-8").split()
)
_stemmers = threading.local()


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What is noted about a text when it is written.

    `stems` are its content words in order, repeats included, and `length` their number; behind them
    stand the single characters of scripts without spaces, which do not count. `word_count` counts
    all words. The flags are about the text itself, not its caption.
    """

    stems: tuple[str, ...]
    length: int
    word_count: int
    ends_with_question: bool
    first_person: bool
    has_name: bool
    has_time_expression: bool

    @property
    def text(self) -> str:
        """The stems joined by spaces: the form in which the database keeps them."""
        return " ".join(self.stems)


def words_of(text: str, caption: str | None = None) -> Words:
    """The words of a text and of the caption of its picture; linear in their length."""
    said = text if caption is None else f"{text}\n{caption}"
    words = list(words_in(said))
    stems = tuple(filter(None, map(_stem, words)))
    singles = tuple(filter(None, map(_stem, single_characters(said))))
    head = normal_form(text[:CUE_CHARS_MAX])
    return Words(
        stems=stems + singles,
        length=len(stems),
        word_count=len(words),
        ends_with_question=ends_with_question(text),
        first_person=first_person(head),
        has_name=has_name(head),
        has_time_expression=has_time_expression(head),
    )


def stems_of(text: str) -> tuple[str, ...]:
    """The stems alone, as `words_of` has them; what a text gives away beside takes as long."""
    return tuple(filter(None, map(_stem, (*words_in(text), *single_characters(text)))))


def query_of(
    text: str,
    *,
    actors: Sequence[str],
    terms_max: int,
    things: Sequence[Sequence[str]] = (),
    seen: Container[str] | None = None,
) -> QueryWords:
    """A question, with the actors it names taken out of its words.

    When nothing but names is asked, their words stay. Of more than `terms_max` stems the longest
    are kept (long words are rare ones), in the order of the question. `things` have several names,
    as comparison keys; `seen` are the stems that some memory has, if that is known.
    """
    normal = normal_form(text)
    unnamed = without_names(normal, actors)
    stems = _unique_stems(unnamed.rest, seen) or _unique_stems(normal)
    longest = sorted(stems, key=lambda stem: (-len(stem), stem))[: max(0, terms_max)]
    kept = frozenset(longest)
    return QueryWords(
        text=text,
        embed_text=unnamed.embed_text,
        stems=tuple(stem for stem in stems if stem in kept),
        named=unnamed.named,
        cues=cues_of(unnamed.embed_text),
        aliases=tuple(_aliases(text, kept, things)) if things else (),
    )


def _aliases(text: str, stems: frozenset[str], things: Sequence[Sequence[str]]) -> Iterator[Alias]:
    """What the question calls by one of several names; nothing that is a name of an actor."""
    said = frozenset(names_in(text))
    for names in things:
        others = tuple(filter(None, (_unique_stems(name) for name in names if name not in said)))
        for name in names:
            asked = _unique_stems(name) if name in said else ()
            if asked and others and stems.issuperset(asked):
                yield Alias(asked, others)


def _unique_stems(text: str, seen: Container[str] | None = None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(_stem, telling_words(text, seen)))))


@lru_cache(maxsize=STEMS_CACHED_MAX)
def _stem(word: str) -> str:
    """The stem of a folded word; empty for a stop word."""
    if word in _STOP_WORDS:
        return ""
    language = _language(word)
    if language is None or len(word) > STEMMED_CHARS_MAX:
        return word
    return str(_stemmer(language).stemWord(word)) or word


def _language(word: str) -> str | None:
    """By the script of the first letter; None for digits and for every other script."""
    first = word[0]
    if "a" <= first <= "z":
        return "english"
    if "\u0400" <= first <= "\u04ff":
        return "russian"
    return "arabic" if "\u0600" <= first <= "\u06ff" else None


def _stemmer(language: str) -> Any:
    """This thread's stemmer: one keeps the word it works on, so two threads would mix theirs."""
    found = getattr(_stemmers, language, None)
    if found is None:
        found = snowballstemmer.stemmer(language)
        setattr(_stemmers, language, found)
    return found


def tsvector_text(words: Words) -> str:
    """The stems as PostgreSQL reads a tsvector: `'green':1,7 'tea':2`.

    Never more than it takes: stems past `LEXEMES_BYTES_MAX` are left out, the earlier ones kept.
    """
    positions: dict[str, list[int]] = {}
    size = 0
    for place, stem in enumerate(words.stems, start=1):
        lexeme = _lexeme(stem)
        known = positions.get(lexeme)
        if known is None:
            size += len(lexeme.encode()) + _LEXEME_BYTES
            if not lexeme or size > LEXEMES_BYTES_MAX:
                continue
            known = positions[lexeme] = []
        if not known or (place <= POSITION_MAX and len(known) < POSITIONS_MAX):
            known.append(min(place, POSITION_MAX))
            size += _POSITION_BYTES
    return " ".join(f"{lexeme}:{','.join(map(str, at))}" for lexeme, at in positions.items())


def tsquery_text(stems: Iterable[str]) -> str | None:
    """Any of the stems, as PostgreSQL reads a tsquery: `'green' | 'tea'`; None without stems.

    Every stem is quoted, so none of its characters is an operator. At most `QUERY_STEMS_MAX`
    stems and `LEXEMES_BYTES_MAX` bytes; the first ones are kept.
    """
    kept: list[str] = []
    size = 0
    for lexeme in dict.fromkeys(map(_lexeme, stems)):
        size += len(lexeme.encode())
        if size > LEXEMES_BYTES_MAX or len(kept) == QUERY_STEMS_MAX:
            break
        if lexeme:
            kept.append(lexeme)
    return " | ".join(kept) or None


def match_text(matching: Matching) -> str | None:
    """What has any of its stems, and any of those beside, as PostgreSQL reads a tsquery.

    None without stems.
    """
    either, beside = tsquery_text(matching.stems), tsquery_text(matching.beside)
    return f"({either}) & ({beside})" if either and beside else either


def names_text(words: QueryWords) -> str | None:
    """Any other name of what the question names, each with all of its words, as a tsquery.

    None without one.
    """
    names = dict.fromkeys(name for alias in words.aliases for name in alias.others)
    quoted = (" & ".join(filter(None, map(_lexeme, name))) for name in names)
    return " | ".join(f"({name})" for name in islice(filter(None, quoted), NAMES_MAX)) or None


def _lexeme(stem: str) -> str:
    """Quoted and at most `LEXEME_BYTES_MAX` bytes; empty when nothing that can be kept is left."""
    raw = stem.replace("\x00", "").encode(errors="ignore")[:LEXEME_BYTES_MAX]
    kept = raw.decode(errors="ignore")
    return "'" + kept.replace("\\", "\\\\").replace("'", "''") + "'" if kept else ""
