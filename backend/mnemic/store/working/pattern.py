"""Patterns over keys, in time that grows with the length of the keys alone.

`*` is any run of characters, `?` one of them, `[a-z]` one of a set, `[!a-z]` or `[^a-z]` one
outside of it; a backslash takes the next character as it is. A `[` that no `]` closes is itself.
All states that the pattern can be in are the bits of one integer, so that no input makes it go back
(Baeza-Yates and Gonnet, "A New Approach to Text Searching", 1992).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mnemic.errors import InvalidInput

__all__ = ["key_matcher"]

STEPS_MAX = 1_000  # beyond the literal beginning
PATTERN_CHARS_MAX = 25_000  # a key of 10 kB, every character behind a backslash

_Test = Callable[[str], bool]


def key_matcher(pattern: Any) -> Callable[[str], bool]:
    """Whether a key matches the pattern as a whole. Raises `InvalidInput`."""
    if not isinstance(pattern, str):
        raise InvalidInput(f"must be text, not {type(pattern).__name__}", field="pattern")
    if len(pattern) > PATTERN_CHARS_MAX:
        raise InvalidInput(
            f"is {len(pattern)} characters long; the most is {PATTERN_CHARS_MAX}", field="pattern"
        )
    if not pattern.isascii():
        _refuse_surrogates(pattern)
    prefix, rest = _literal_beginning(pattern)
    if not rest:
        return lambda key: key == prefix
    steps = _steps(rest)
    if len(steps) > STEPS_MAX:
        raise InvalidInput(
            f"has {len(steps)} parts after its first wildcard; the most is {STEPS_MAX}",
            field="pattern",
        )
    if steps == [None]:
        return lambda key: key.startswith(prefix)
    machine = _Machine(steps)
    return lambda key: key.startswith(prefix) and machine.accepts(key[len(prefix) :])


def _refuse_surrogates(pattern: str) -> None:
    try:
        pattern.encode()
    except UnicodeEncodeError as fault:
        raise InvalidInput(
            f"holds a lone surrogate at character {fault.start}, as no key does; remove it",
            field="pattern",
        ) from None


def _literal_beginning(pattern: str) -> tuple[str, str]:
    """The characters before the first wildcard, and the pattern from there on."""
    taken: list[str] = []
    place = 0
    while place < len(pattern) and pattern[place] not in "*?[":
        if pattern[place] == "\\" and place + 1 < len(pattern):
            place += 1
        taken.append(pattern[place])
        place += 1
    return "".join(taken), pattern[place:]


def _steps(pattern: str) -> list[str | _Test | None]:
    """The parts: a character, a test of one, or nothing for a run of any."""
    steps: list[str | _Test | None] = []
    place = 0
    while place < len(pattern):
        mark = pattern[place]
        place += 1
        if mark == "*":
            if not steps or steps[-1] is not None:
                steps.append(None)
        elif mark == "?":
            steps.append(_any)
        elif mark == "[" and (end := _end_of_set(pattern, place)) is not None:
            steps.append(_set(pattern[place:end]))
            place = end + 1
        else:
            if mark == "\\" and place < len(pattern):
                mark = pattern[place]
                place += 1
            steps.append(mark)
    return steps


def _any(_: str) -> bool:
    return True


def _end_of_set(pattern: str, start: int) -> int | None:
    """Where the `]` stands that closes the set; one that stands first belongs to it."""
    place = start + (pattern[start : start + 1] in ("!", "^"))
    first = place
    while place < len(pattern):
        if pattern[place] == "]" and place > first:
            return place
        place += 2 if pattern[place] == "\\" else 1
    return None


def _set(inside: str) -> _Test:
    negated = inside[0] in "!^"
    ranges: list[tuple[str, str]] = []
    characters = _unescaped(inside[negated:])
    place = 0
    while place < len(characters):
        low, is_plain = characters[place]
        if place + 2 < len(characters) and characters[place + 1] == ("-", True) and is_plain:
            high = characters[place + 2][0]
            ranges.append((min(low, high), max(low, high)))
            place += 3
        else:
            ranges.append((low, low))
            place += 1
    return lambda character: negated != any(low <= character <= high for low, high in ranges)


def _unescaped(inside: str) -> list[tuple[str, bool]]:
    """The characters of a set, and whether each stood without a backslash."""
    characters: list[tuple[str, bool]] = []
    place = 0
    while place < len(inside):
        if inside[place] == "\\" and place + 1 < len(inside):
            place += 1
            characters.append((inside[place], False))
        else:
            characters.append((inside[place], True))
        place += 1
    return characters


class _Machine:
    """All states of a pattern at once; bit n is set when the first n steps have matched."""

    def __init__(self, steps: list[str | _Test | None]) -> None:
        self._runs = sum(1 << place for place, step in enumerate(steps) if step is None)
        self._anywhere = sum(1 << place for place, step in enumerate(steps) if step is _any)
        self._tests = [
            (1 << place, step)
            for place, step in enumerate(steps)
            if callable(step) and step is not _any
        ]
        self._literals: dict[str, int] = {}
        for place, step in enumerate(steps):
            if isinstance(step, str):
                self._literals[step] = self._literals.get(step, 0) | 1 << place
        self._known: dict[str, int] = {}
        self._accepting = 1 << len(steps)

    def accepts(self, text: str) -> bool:
        """Whether the whole text matches."""
        runs = self._runs
        state = 1 | (1 & runs) << 1
        for character in text:
            matching = self._known.get(character)
            if matching is None:
                matching = self._matching(character)
            state = (state & matching) << 1 | state & runs
            state |= (state & runs) << 1
            if not state:
                return False
        return bool(state & self._accepting)

    def _matching(self, character: str) -> int:
        """The steps that take the character."""
        found = self._anywhere | self._literals.get(character, 0)
        for bit, test in self._tests:
            if test(character):
                found |= bit
        self._known[character] = found
        return found
