"""The title of a session, in its own words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mnemic.think.protocol import SessionRecord
from mnemic.think.sentences import sentences_of
from mnemic.think.vocabulary import EMPTY_WORDS

__all__ = ["date_of", "title_of"]

WORDS_MIN, WORDS_MAX = 5, 10
WORD_CHARS_MAX = 40
UNSPACED_PER_WORD = 2
LEADS_MAX = 6
_SCRIPTS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_UNSPACED = re.compile(f"[{_SCRIPTS}]")
_UNSPACED_PIECES = re.compile(
    f"(?:[{_SCRIPTS}]{{1,8}}|[^{_SCRIPTS}]+?(?=[{_SCRIPTS}]|\\Z))[\u3001\uff0c\uff1a\uff1b]?"
)
_LEAD = re.compile(
    r"(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|morning|ok|okay|so|well|now|today|also"
    r"|and|then|yes|please|thanks|first|important)\b[\s,.!:]*"
    r"|(?:can|could|would|will) you (?:please )?"
    r"|help (?:me|us) (?:to |with )?"
    r"|(?:i|we)(?:'d| would) like (?:you )?to "
    r"|(?:i|we) (?:want|need|have|plan|am trying|are trying) to "
    r"|(?:i am|i'm|we are|we're|let's|let us) "
    r"|how (?:do|can|should) (?:i|we) )",
    re.IGNORECASE,
)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_CLAUSE_MARKS = (",", ";", ":", "\u2013", "\u2014", "\u3001", "\uff0c", "\uff1a", "\uff1b")
_CLAUSE_WORDS = frozenset(
    {"because", "since", "so", "which", "and", "but", "when", "if", "where", "while", "or", "until"}
)
_TRAILING = " .,;:!?-\u2013\u2014\u2026\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f"


class _Piece(NamedTuple):
    glue: str
    text: str
    size: int


def title_of(session: SessionRecord, opening: str, topics: Sequence[str]) -> str:
    """Five to ten words: of the task, else of the opening, without courtesies in front.

    A longer one ends at a clause where it can; a shorter one is filled with topics, then with the
    date. No word is cut: words over 40 characters are left out. In scripts without spaces two
    characters count as a word.
    """
    told = next(sentences_of(session.task or ""), opening)
    title = _first_words(list(_pieces(_without_lead(told))))
    if title.partition(" ")[0].isalpha():
        title = title[:1].upper() + title[1:]
    for topic in topics:
        if size_of(title) >= WORDS_MIN:
            break
        if topic.casefold() not in title.casefold():
            joint = "" if not title else ", " if ": " in title else ": "
            longer = f"{title}{joint}{topic}"
            title = longer if size_of(longer) <= WORDS_MAX else title
    if size_of(title) < WORDS_MIN:
        title = f"{title}: session of {date_of(session)}" if title else _untitled(session)
    return title


def size_of(text: str) -> int:
    """The number of words; two characters of a script without spaces are one."""
    return sum(_size(word) for word in text.split())


def date_of(session: SessionRecord) -> str:
    """The day of the first turn, or "an unknown day" when nothing was said."""
    if not session.turns:
        return "an unknown day"
    day = session.turns[0].occurred_at
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _untitled(session: SessionRecord) -> str:
    return f"Untitled session of {date_of(session)}"


def _without_lead(sentence: str) -> str:
    text = sentence.replace("\u2019", "'").strip()
    for _ in range(LEADS_MAX):
        found = _LEAD.match(text)
        if found is None:
            break
        text = text[found.end() :].lstrip()
    return text.strip(_TRAILING) or sentence.strip(_TRAILING)


def _pieces(text: str) -> Iterator[_Piece]:
    for word in text.split():
        if _UNSPACED.search(word):
            glue = " "
            for found in _UNSPACED_PIECES.finditer(word):
                if len(found[0]) <= WORD_CHARS_MAX:
                    yield _Piece(glue, found[0], _size(found[0]))
                    glue = ""
        elif len(word) <= WORD_CHARS_MAX:
            yield _Piece(" ", word, 1)


def _size(word: str) -> int:
    unspaced = len(_UNSPACED.findall(word))
    return max(1, -(-unspaced // UNSPACED_PER_WORD))


def _first_words(pieces: list[_Piece]) -> str:
    size, taken = 0, 0
    while taken < len(pieces) and size + pieces[taken].size <= WORDS_MAX:
        size += pieces[taken].size
        taken += 1
    if taken < len(pieces):
        taken = _last_clause(pieces, taken) or _without_loose_end(pieces, taken)
    return "".join(piece.glue + piece.text for piece in pieces[:taken]).strip(_TRAILING)


def _last_clause(pieces: list[_Piece], taken: int) -> int:
    """Where the last clause ends that leaves a title of at least five words; 0 when none does."""
    size, end = 0, 0
    for place in range(taken):
        size += pieces[place].size
        following = pieces[place + 1].text.lower()
        if size >= WORDS_MIN and (
            pieces[place].text.endswith(_CLAUSE_MARKS) or following in _CLAUSE_WORDS
        ):
            end = place + 1
    return end


def _without_loose_end(pieces: list[_Piece], taken: int) -> int:
    """Function words at the end point at something that was cut off."""
    while taken > WORDS_MIN and pieces[taken - 1].text.lower() in EMPTY_WORDS:
        taken -= 1
    return taken
