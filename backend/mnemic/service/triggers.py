"""Trigger patterns of procedures: which of many match a text, told in one pass over it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import re2

__all__ = ["matching", "trigger_of"]

PATTERN_MEMORY_MAX = 1 << 20
PATTERNS_CACHED_MAX = 128
TOGETHER_MEMORY_MAX = 4 << 20
TOGETHER_CACHED_MAX = 32


class _Together(NamedTuple):
    """Patterns as one automaton, with their places among those given."""

    automaton: Any
    places: tuple[int, ...]


@lru_cache(maxsize=PATTERNS_CACHED_MAX)
def trigger_of(pattern: str) -> Any:
    """The pattern as it is matched: by RE2, in any case. Raises `re2.error`."""
    return re2.compile(pattern, _options(PATTERN_MEMORY_MAX))


def matching(patterns: Sequence[str], text: str) -> list[int]:
    """The places of the patterns that match somewhere in the text, in their order."""
    together = _together(tuple(patterns))
    if together is not None:
        return [together.places[one] for one in sorted(together.automaton.Match(text) or ())]
    return [place for place, pattern in enumerate(patterns) if _matches(pattern, text)]


@lru_cache(maxsize=TOGETHER_CACHED_MAX)
def _together(patterns: tuple[str, ...]) -> _Together | None:
    """Nothing if they are too many or too large to go through any text in that memory."""
    made = re2.Set.SearchSet(_options(TOGETHER_MEMORY_MAX))
    places = []
    for place, pattern in enumerate(patterns):
        try:
            made.Add(pattern)
        except re2.error:  # taken by a release that read another syntax
            continue
        places.append(place)
    try:
        made.Compile()
    except re2.error:
        return None
    return _Together(made, tuple(places))


def _matches(pattern: str, text: str) -> bool:
    try:
        return trigger_of(pattern).search(text) is not None
    except re2.error:  # taken by a release with a larger bound
        return False


def _options(memory_max: int) -> re2.Options:
    options = re2.Options()
    options.max_mem = memory_max
    options.log_errors = False
    options.case_sensitive = False
    return options
