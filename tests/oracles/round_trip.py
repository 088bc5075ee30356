"""Oracle 2: what was taken reads back equal and of its types, or the reply says what changed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any

from mnemic.model.normalise import clean_name, comparison_key

__all__ = ["reads_back", "same"]

# Names stand on one line; a predicate is folded; each tag counts once.
NAMES = {"subject", "predicate", "actor", "name", "task_type", "category", "source"}


def same(given: object, kept: object) -> bool:
    """Equal, and of equal types all the way down; a list given for a tuple is that tuple."""
    if isinstance(given, datetime) or isinstance(kept, datetime):
        return given == kept
    if isinstance(given, Mapping):
        return (
            isinstance(kept, Mapping)
            and given.keys() == kept.keys()
            and all(same(inner, kept[key]) for key, inner in given.items())
        )
    if isinstance(given, (list, tuple)):
        return (
            isinstance(kept, (list, tuple))
            and len(given) == len(kept)
            and all(map(same, given, kept))
        )
    if isinstance(given, Enum) or isinstance(kept, Enum):
        return given == kept
    return type(given) is type(kept) and given == kept


def reads_back(name: str, given: Any, kept: Any, notes: tuple[str, ...] = ()) -> bool:
    """Whether the field is kept as given, in its documented form, or as the reply's notes say."""
    if same(given, kept) or any(note.startswith(f"{name} is kept as ") for note in notes):
        return True
    if name in NAMES and isinstance(given, str):
        form = clean_name(given, field=name, chars_max=len(given))
        return same(form, kept) or same(comparison_key(form), kept)
    if name == "tags":
        return same(tuple(dict.fromkeys(given)), kept)
    # A whole number is a number: 1 comes back as 1.0 where a fraction is kept.
    return isinstance(given, int) and isinstance(kept, float) and given == kept
