"""Words that are spelt nearly alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["may_be_misspelt", "nearest_spelling"]

_LETTERS_MIN = 4
_LONG = 6
_EDITS_SHORT, _EDITS_LONG = 1, 2


def may_be_misspelt(word: str) -> bool:
    """Whether it is long enough to be known again, and no number."""
    return len(word) >= _LETTERS_MIN and word.isalpha()


def nearest_spelling(word: str, terms: Mapping[str, int]) -> str | None:
    """The term that takes the fewest letters changed, added, left out or swapped; None if far.

    One letter in a short word, two in one of six or more. Of several the most frequent, by the
    counts of `terms`, then the first in the alphabet.
    """
    edits_max = _EDITS_LONG if len(word) >= _LONG else _EDITS_SHORT
    found = [
        (edits, -terms[term], term)
        for term in _possible(word, terms, edits_max)
        if (edits := _edits(word, term)) <= edits_max
    ]
    return min(found)[-1] if found else None


def _possible(word: str, terms: Iterable[str], edits_max: int) -> Iterable[str]:
    """Those worth a closer look: of like length, with nearly the same letters."""
    letters = frozenset(word)
    return (
        term
        for term in terms
        if abs(len(term) - len(word)) <= edits_max
        and may_be_misspelt(term)
        and len(letters.symmetric_difference(term)) <= 2 * edits_max
    )


def _edits(one: str, other: str) -> int:
    """How many letters must be changed, added, left out or swapped with the next."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        earlier, before, row = before, row, [at]
        for place, wanted in enumerate(other, start=1):
            cost = min(
                before[place] + 1, row[place - 1] + 1, before[place - 1] + (letter != wanted)
            )
            if at > 1 and place > 1 and letter == other[place - 2] and one[at - 2] == wanted:
                cost = min(cost, earlier[place - 2] + 1)
            row.append(cost)
    return row[-1]
