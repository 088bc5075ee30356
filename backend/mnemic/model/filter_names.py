"""What a filter may name: the fields, and paths of keys into the metadata."""

from __future__ import annotations

import re
from difflib import get_close_matches

from mnemic.errors import InvalidInput
from mnemic.model.filter_fields import FIELDS, METADATA
from mnemic.model.filter_values import TEXT_CHARS_MAX
from mnemic.model.normalise import held_text, shown

__all__ = ["JOINTS", "Path", "field_of", "path_of", "path_text"]

KEYS_MAX = 16
NAME_CHARS = 60
JOINTS = ("and", "or", "not")
Path = tuple[str, ...]

_SHOWN_FIELDS = ", ".join([*(name for name in FIELDS if name != METADATA), "metadata.<path>"])
_PATH_PART = re.compile(r"((?:[^.\\]|\\.)*)(\.|\Z)", re.DOTALL)


def field_of(key: object, at: str) -> tuple[str, Path]:
    """The field that a key names, and the path of keys below `metadata.`."""
    if not isinstance(key, str):
        raise InvalidInput(f"the field {shown(key)} is not text; pass text keys", field=at)
    name, dot, rest = str.__str__(key).partition(".")
    if name == METADATA and dot:
        return METADATA, path_of(held_text(rest, field=at), at)
    if name in FIELDS and name != METADATA and not dot:
        return name, ()
    near = get_close_matches(name[:NAME_CHARS], [*FIELDS, *JOINTS], 1)
    hint = f"; did you mean {near[0]}{'.<path>' if near[0] == METADATA else ''}?" if near else "."
    raise InvalidInput(f"{shown(key)} is no field{hint} Use one of {_SHOWN_FIELDS}", field=at)


def path_of(text: str, at: str) -> Path:
    """The keys of a path: parted by dots, a dot or backslash in a key behind a backslash."""
    if len(text) > TEXT_CHARS_MAX:
        raise InvalidInput(f"a path must have at most {TEXT_CHARS_MAX} characters", field=at)
    keys: list[str] = []
    position = 0
    while True:
        found = _PATH_PART.match(text, position)
        if found is None or len(keys) == KEYS_MAX:
            raise InvalidInput(
                f"{shown(text)} must be at most {KEYS_MAX} keys parted by dots; in a key write "
                "\\. for a dot and \\\\ for a backslash",
                field=at,
            )
        keys.append(re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL))
        position = found.end()
        if not found[2]:
            return tuple(keys)


def path_text(keys: tuple[str, ...]) -> str:
    """The path as a filter writes it."""
    texts = [held_text(key, field="filters") for key in keys]
    return ".".join(text.replace("\\", "\\\\").replace(".", "\\.") for text in texts)
