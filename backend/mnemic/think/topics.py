"""The topics of a session: names, terms of the trade, and things that were spoken of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mnemic.model.words import normal_form
from mnemic.think.said import Said
from mnemic.think.vocabulary import WEAK_WORDS, term_of

__all__ = ["topics_of"]

TOPICS_MIN, TOPICS_MAX = 3, 7
CHARS_MIN, CHARS_MAX = 3, 40
_NAME_FACTOR = 1.5
_PAIR_FACTOR = 1.9
_PAIR_TURNS_MIN = 2
SPEAKER_WORDS_MAX = 1_000
_ROLES = frozenset({"user", "assistant", "note"})
_WORD = re.compile(r"[^\W_](?:[\w'+#./-]*[\w+#])?")
_NOT_A_THING = re.compile(r"(?:ly|n't|'\w+)\Z|\d[\d.,:/-]*\Z|\Ahttps?")
_UNSPACED_RUN = re.compile("[\u3400-\u9fff]+|[\u30a0-\u30ff]+|[\u0e00-\u0e7f]+")
_UNSPACED_CHARS_MAX = 8
# The commonest function characters of Chinese part its runs into things.
_FUNCTION = re.compile(
    "[\u7684\u4e86\u5728\u662f\u548c\u6211\u4f60\u4ed6\u5979\u4eec\u5417\u5462\u5427\u5c31\u4e5f"
    "\u90fd\u4e0d\u5f88\u6709\u8fd9\u90a3\u4e2a\u8981\u4e0e\u7528\u628a\u88ab\u5bf9\u4ece\u5230]"
)


@dataclass(slots=True)
class _Topic:
    """A candidate: in how many turns it is, and how it is written."""

    first: int
    parts: tuple[str, ...]
    turns: int = 0
    last: int = -1
    name: bool = False
    shown: Counter[str] = field(default_factory=Counter)

    def see(self, place: int, surface: str, *, name: bool) -> None:
        if self.last != place:
            self.last = place
            self.turns += 1
        self.name = self.name or name
        self.shown[surface] += 1

    @property
    def weight(self) -> float:
        factor = _PAIR_FACTOR if len(self.parts) > 1 else _NAME_FACTOR if self.name else 1.0
        return self.turns * factor

    @property
    def surface(self) -> str:
        """The commonest spelling, of several the first."""
        return max(self.shown, key=self.shown.__getitem__)


def topics_of(said: Sequence[Said]) -> tuple[str, ...]:
    """Up to seven topics, the weightiest first; at least three if so many things are named.

    A word weighs the number of turns it is in, a name or identifier half as much again, and a pair
    of words that stands together in two turns nearly twice as much, in the place of both. Beyond
    three, only what is a name or comes up in two turns is a topic. Numbers, adverbs, words without
    a topic of their own and the speakers themselves are none.
    """
    candidates = _candidates(said)
    pairs = [
        topic
        for topic in candidates.values()
        if len(topic.parts) > 1 and topic.turns >= _PAIR_TURNS_MIN
    ]
    covered = {part for pair in pairs for part in pair.parts}
    kept = [
        topic
        for topic in candidates.values()
        if len(topic.parts) == 1 and topic.parts[0] not in covered
    ]
    ranked = sorted([*kept, *pairs], key=lambda topic: (-topic.weight, topic.first))
    found = [
        topic.surface
        for rank, topic in enumerate(ranked)
        if rank < TOPICS_MIN or topic.name or topic.turns > 1
    ]
    return tuple(found[:TOPICS_MAX])


def _candidates(said: Sequence[Said]) -> dict[tuple[str, ...], _Topic]:
    speakers = _called(one.speaker for one in said)
    found: dict[tuple[str, ...], _Topic] = {}
    for one in said:
        if one.role not in _ROLES:
            continue
        for parts, surface, name in _things(one.text, speakers):
            topic = found.setdefault(parts, _Topic(len(found), parts))
            topic.see(one.place, surface, name=name)
    return found


def _called(speakers: Iterable[str]) -> frozenset[str]:
    """What speakers are called: their names, each word of them, and its beginnings."""
    names = dict.fromkeys(speakers)
    words = [word.casefold() for name in names for word in name.split()][:SPEAKER_WORDS_MAX]
    return frozenset(word[:end] for word in words for end in range(CHARS_MIN, len(word) + 1))


def _things(sentence: str, speakers: frozenset[str]) -> Iterator[tuple[tuple[str, ...], str, bool]]:
    """The things of a sentence, alone and in pairs: key, spelling, and whether it is a name."""
    text = normal_form(sentence)
    before: tuple[int, str, str] | None = None
    for place, found in enumerate(_WORD.finditer(text)):
        word = found[0]
        if _UNSPACED_RUN.search(word):
            for run in _runs(word):
                yield (run,), run, False
            before = None
            continue
        folded = word.casefold()
        if not _is_thing(word, folded, speakers):
            before = None
            continue
        key = term_of(folded)
        yield (key,), word, _is_name(word, first=place == 0)
        if before is not None and text[before[0] : found.start()] == " ":
            yield (before[1], key), f"{before[2]} {word}", False
        before = (found.end(), key, word)


def _is_thing(word: str, folded: str, speakers: frozenset[str]) -> bool:
    return (
        CHARS_MIN <= len(word) <= CHARS_MAX
        and folded not in WEAK_WORDS
        and folded not in speakers
        and _NOT_A_THING.search(folded) is None
    )


def _is_name(word: str, *, first: bool) -> bool:
    """A capital inside it or inside the sentence, or letters mixed with digits."""
    tail = word[1:]
    mixed = any(mark.isdigit() or mark == "_" for mark in word)
    return mixed or not tail.islower() or (word[0].isupper() and not first)


def _runs(word: str) -> Iterator[str]:
    for run in _UNSPACED_RUN.findall(word):
        for piece in _FUNCTION.split(run):
            if 1 < len(piece) <= _UNSPACED_CHARS_MAX:
                yield piece
