"""Which known actors a question names, and the question without their names."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from mnemic.model.words import Token, normal_form, tokens_of

__all__ = ["ACTORS_MAX", "Unnamed", "names_in", "without_names"]

ACTORS_MAX = 10_000
_NAME_WORDS_MAX = 6
_THING_WORDS_MAX = 4
_NAME_LETTERS_MAX = 8
NAMES_MAX = 500
_ACTOR_LISTS_CACHED_MAX = 256
# Names that are words of every question too: taken as names only where they are written as names.
_ORDINARY_WORDS = """
    a i an am are art at be been can could did do does had has have he her him his how in is it
    june april august may march me my no of on or our she so that the them they this to us was we
    were what when where which who whose why will with would you your mark bill grace hope rose
    joy faith dawn
"""
_ORDINARY = frozenset(_ORDINARY_WORDS.split())
# What a longer name may begin with without being a name by itself.
_TITLE_WORDS = "agent assistant bot client customer dr miss mr mrs ms prof professor sir team user"
_NO_FIRST_NAMES = _ORDINARY.union(_TITLE_WORDS.split())


class Unnamed(NamedTuple):
    """A question without its names: they/their for the embedder, nothing for its words."""

    embed_text: str
    rest: str
    named: tuple[str, ...]


class _Span(NamedTuple):
    start: int
    end: int
    actor: str
    possessive: bool


class _Names(NamedTuple):
    spaced: dict[tuple[str, ...], str]
    firsts: frozenset[str]
    unspaced: tuple[str, ...]


def without_names(normal: str, actors: Sequence[str]) -> Unnamed:
    """The names of `actors` taken out of a text in normal form.

    A name is found as whole words in either case, by its first word too where only one actor has
    it, and with `'s`. In scripts without spaces it is found anywhere. At most `ACTORS_MAX` actors
    are looked for.
    """
    names = _names(tuple(actors[:ACTORS_MAX]))
    spoken: list[str] = []
    rest: list[str] = []
    named: dict[str, None] = {}
    end = 0
    for span in _spans(normal, names):
        between = normal[end : span.start]
        spoken += (between, "their" if span.possessive else "they")
        rest += (between, " ")
        named[span.actor] = None
        end = span.end
    return Unnamed("".join([*spoken, normal[end:]]), "".join([*rest, normal[end:]]), tuple(named))


def names_in(text: str) -> tuple[str, ...]:
    """Whatever may be a name in a question, as comparison keys: runs of up to four words.

    Of scripts without spaces every piece of two to eight letters. At most `NAMES_MAX`; those of few
    words come first.
    """
    # As `comparison_key` folds a text, but once for all of its pieces.
    folded = unicodedata.normalize("NFKC", normal_form(text).casefold())
    folded = " ".join(folded.split())
    tokens = list(tokens_of(folded))
    found: dict[str, None] = {}
    for width in range(1, _THING_WORDS_MAX + 1):
        for first, last in zip(tokens, tokens[width - 1 :], strict=False):
            if len(found) >= NAMES_MAX:
                return tuple(found)
            end = last.end - 2 * last.possessive
            found[folded[first.start : end]] = None
    for token in tokens:
        if token.unspaced:
            run = folded[token.start : token.end]
            for size in range(2, _NAME_LETTERS_MAX + 1):
                pieces = (run[at : at + size] for at in range(len(run) - size + 1))
                found.update(dict.fromkeys(pieces))
    return tuple(found)[:NAMES_MAX]


@lru_cache(maxsize=_ACTOR_LISTS_CACHED_MAX)
def _names(actors: tuple[str, ...]) -> _Names:
    """The actor of each name by its words; a first name that two share is nobody's."""
    full: dict[tuple[str, ...], str] = {}
    owners: dict[str, set[str]] = {}
    unspaced: list[str] = []
    for actor in actors:
        tokens = list(tokens_of(normal_form(actor)))[:_NAME_WORDS_MAX]
        if not any(token.word[0].isalpha() for token in tokens):
            continue  # "42" is a number in every question
        if any(token.unspaced for token in tokens):
            unspaced.append(actor)
            continue
        full.setdefault(tuple(token.word for token in tokens), actor)
        owners.setdefault(tokens[0].word, set()).add(actor)
    for first, having in owners.items():
        if len(having) == 1 and first not in _NO_FIRST_NAMES:
            full.setdefault((first,), *having)
    firsts = frozenset(words[0] for words in full)
    return _Names(full, firsts, tuple(sorted(unspaced, key=lambda actor: (-len(actor), actor))))


def _spans(normal: str, names: _Names) -> list[_Span]:
    """Where an actor is named, in order; the longest name at each place, none inside another."""
    tokens = list(tokens_of(normal))
    spans = [span for actor in names.unspaced for span in _written_in(normal, actor)]
    at = 0
    while at < len(tokens):
        width = _width(tokens, at, names.spaced) if tokens[at].word in names.firsts else 0
        if width:
            words = tuple(token.word for token in tokens[at : at + width])
            spans.append(_span(normal, tokens[at], tokens[at + width - 1], names.spaced[words]))
        at += width or 1
    spans.sort(key=lambda span: (span.start, -span.end))
    kept: list[_Span] = []
    for span in spans:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def _width(tokens: Sequence[Token], at: int, spaced: dict[tuple[str, ...], str]) -> int:
    """How many words of a name stand at a place; 0 when none does."""
    for width in range(min(_NAME_WORDS_MAX, len(tokens) - at), 0, -1):
        words = tuple(token.word for token in tokens[at : at + width])
        if words in spaced and (width > 1 or _meant(tokens[at], at)):
            return width
    return 0


def _meant(token: Token, at: int) -> bool:
    """Whether an ordinary word stands for a name: with a capital inside a sentence, or with 's."""
    return token.word not in _ORDINARY or token.possessive or (token.capital and at > 0)


def _span(normal: str, first: Token, last: Token, actor: str) -> _Span:
    """From the first to the last word; the apostrophe of "James' car" belongs to the name."""
    bare = normal[last.end : last.end + 1] == "'" and last.word.endswith("s")
    return _Span(first.start, last.end + bare, actor, last.possessive or bare)


def _written_in(normal: str, actor: str) -> list[_Span]:
    name = normal_form(actor)
    spans, at = [], normal.find(name)
    while at >= 0:
        spans.append(_Span(at, at + len(name), actor, possessive=False))
        at = normal.find(name, at + len(name))
    return spans
