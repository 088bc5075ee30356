"""What may be held, and how two spellings are compared.

Text is kept as given. Comparison keys are NFKC + casefold + collapsed white space without
zero-width characters; they are never ASCII-stripped and never cut without a digest.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from itertools import count
from typing import Any

from mnemic.errors import InvalidInput, NaiveTimestamp

__all__ = [
    "checked_json",
    "checked_time",
    "checked_unit",
    "clean_name",
    "clean_text",
    "comparison_key",
    "digest",
    "is_blank",
]

KEY_BYTES_MAX = 512
JSON_DEPTH_MAX = 32
JSON_PARTS_MAX = 1_000_000
INTEGER_MAX = 2**63 - 1
_YEAR_MIN, _YEAR_MAX = 1, 9_990
_INVISIBLE = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u00ad\u180e]")
_SPACES = re.compile(r"\s+")


def is_blank(text: str) -> bool:
    """Whether nothing visible is left: white space of any script, zero-width and control marks."""
    return all(
        character.isspace() or unicodedata.category(character) in {"Cf", "Cc", "Zs", "Zl", "Zp"}
        for character in text
    )


def clean_text(value: object, *, field: str, chars_max: int) -> str:
    """The text as given, if it can be held.

    Raises `InvalidInput` for what is not text, is blank, is longer than `chars_max` characters, or
    holds NUL or a lone surrogate.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"must be text, not {type(value).__name__}", field=field)
    if len(value) > chars_max:
        raise InvalidInput(
            f"is {len(value)} characters long; the most is {chars_max}. Split it", field=field
        )
    if "\x00" in value:
        raise InvalidInput("must not hold a NUL character; remove it", field=field)
    try:
        value.encode()
    except UnicodeEncodeError as fault:
        raise InvalidInput(
            f"holds a lone surrogate at character {fault.start}; remove it", field=field
        ) from None
    if is_blank(value):
        raise InvalidInput("must not be blank", field=field)
    return value


def clean_name(value: object, *, field: str, chars_max: int = 500) -> str:
    """A label on one line: as `clean_text`, with white space collapsed."""
    return _SPACES.sub(" ", clean_text(value, field=field, chars_max=chars_max)).strip()


def comparison_key(text: str) -> str:
    """The form in which two spellings are the same; long keys end in a digest of the rest."""
    folded = unicodedata.normalize("NFKC", text)
    folded = _INVISIBLE.sub("", folded)
    folded = unicodedata.normalize("NFKC", folded.casefold())
    folded = _SPACES.sub(" ", folded).strip()
    raw = folded.encode()
    if len(raw) <= KEY_BYTES_MAX:
        return folded
    mark = blake2b(raw, digest_size=16).hexdigest()
    return f"{raw[: KEY_BYTES_MAX - 40].decode(errors='ignore')}…{mark}"


def digest(*parts: str) -> bytes:
    """sha256 over length-prefixed parts, so that two lists of parts never share one."""
    state = sha256()
    for part in parts:
        raw = part.encode()
        state.update(len(raw).to_bytes(8, "big"))
        state.update(raw)
    return state.digest()


def checked_time(value: object, *, field: str) -> datetime:
    """The instant in UTC. Raises `NaiveTimestamp` without a zone, `InvalidInput` otherwise."""
    if not isinstance(value, datetime):
        raise InvalidInput(f"must be a datetime, not {type(value).__name__}", field=field)
    if value.utcoffset() is None:
        raise NaiveTimestamp(field=field)
    if not _YEAR_MIN < value.year < _YEAR_MAX:
        raise InvalidInput(f"the year must lie between {_YEAR_MIN} and {_YEAR_MAX}", field=field)
    return value.astimezone(UTC)


def checked_unit(value: object, *, field: str) -> float:
    """A finite number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput("must be a number from 0 to 1", field=field)
    if not math.isfinite(value) or not 0 <= value <= 1:
        raise InvalidInput(f"must be a number from 0 to 1, not {value!r}", field=field)
    return float(value)


def checked_json(value: object, *, field: str) -> Any:
    """The value if JSON can hold it exactly: text keys, finite numbers, 64-bit integers.

    Raises `InvalidInput` that names the path of the first part which cannot be held.
    """
    return _checked_json(value, field, 0, count(1))


def _checked_json(value: object, field: str, depth: int, parts: Iterator[int]) -> Any:
    _refuse_endless(field, depth, next(parts))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _json_text(value, field)
    if isinstance(value, int):
        if abs(value) > INTEGER_MAX:
            raise InvalidInput("the integer is beyond 64 bits; pass it as text", field=field)
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(f"{value!r} is not a JSON number; pass null or text", field=field)
        return value
    if isinstance(value, Mapping):
        return {
            _json_key(key, field): _checked_json(inner, f"{field}.{key}", depth + 1, parts)
            for key, inner in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [
            _checked_json(inner, f"{field}[{place}]", depth + 1, parts)
            for place, inner in enumerate(value)
        ]
    raise InvalidInput(f"{type(value).__name__} is not a JSON value", field=field)


def _refuse_endless(field: str, depth: int, parts: int) -> None:
    # A list that holds one twice, which holds one twice, is small in memory and endless as a text.
    if parts > JSON_PARTS_MAX:
        raise InvalidInput(f"holds more than {JSON_PARTS_MAX} values", field=field)
    if depth > JSON_DEPTH_MAX:
        raise InvalidInput(f"is nested deeper than {JSON_DEPTH_MAX} levels", field=field)


def _json_text(value: str, field: str) -> str:
    if "\x00" in value:
        raise InvalidInput("must not hold a NUL character; remove it", field=field)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput("holds a lone surrogate; remove it", field=field) from None
    return value


def _json_key(key: object, field: str) -> str:
    if not isinstance(key, str):
        raise InvalidInput(f"the key {key!r} is not text", field=field)
    return _json_text(key, field)
