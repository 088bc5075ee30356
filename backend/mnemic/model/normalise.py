"""What may be held, and how two spellings are compared.

Text is kept as given. Comparison keys are NFKC + casefold + collapsed white space without
zero-width characters; they are never ASCII-stripped and never cut without a digest.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from itertools import count
from typing import Any

from mnemic.errors import InvalidInput, NaiveTimestamp
from mnemic.model.characters import is_blank, without_invisible

__all__ = [
    "checked_json",
    "checked_time",
    "checked_unit",
    "clean_name",
    "clean_text",
    "comparison_key",
    "digest",
    "held_text",
    "is_blank",
    "shown",
]

KEY_BYTES_MAX = 512
MARKS_MAX = 30  # as in a stream-safe text (Unicode Standard Annex 15)
JSON_DEPTH_MAX = 32
JSON_PARTS_MAX = 1_000_000
INTEGER_MAX = 2**63 - 1
NAME_CHARS_MAX = 500
YEAR_MIN, YEAR_MAX = 2, 9_989
SHOWN_CHARS_MAX = 60
_SHOWN_BITS_MAX = 128
_SPACES = re.compile(r"\s+")


def shown(value: object) -> str:
    """The value for a message: printable, on one line and short, whatever it is."""
    if isinstance(value, str):
        text = str.__str__(value)  # of an enumeration's member too
        return repr(text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}…")
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS_MAX:
        # Python itself refuses to print one of more than 4,300 digits.
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, (int, float)):
        return repr(value)
    return f"a {type(value).__name__}"


def held_text(value: object, *, field: str) -> str:
    """The text as given, if a database can hold it: neither NUL nor a lone surrogate in it.

    Of a class of texts, such as an enumeration, it is the plain text.

    Nor are there more than `MARKS_MAX` combining marks in a row: putting them in order takes time
    that grows with the square of their number.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"must be text, not {type(value).__name__}", field=field)
    if "\x00" in value:
        raise InvalidInput("must not hold a NUL character; remove it", field=field)
    try:
        value.encode()
    except UnicodeEncodeError as fault:
        raise InvalidInput(
            f"holds a lone surrogate at character {fault.start}; remove it", field=field
        ) from None
    if (at := _beyond_marks(value)) is not None:
        raise InvalidInput(
            f"holds more than {MARKS_MAX} combining marks in a row at character {at}; remove some",
            field=field,
        )
    return str.__str__(value)


def _beyond_marks(text: str) -> int | None:
    """Where a run of combining marks is too long, if one is."""
    if text.isascii():
        return None
    run = 0
    for at, character in enumerate(text):
        run = run + 1 if unicodedata.combining(character) else 0
        if run > MARKS_MAX:
            return at
    return None


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
    text = held_text(value, field=field)
    if is_blank(text):
        raise InvalidInput("must not be blank; give it visible text", field=field)
    return text


def clean_name(value: object, *, field: str, chars_max: int = NAME_CHARS_MAX) -> str:
    """A label on one line: as `clean_text`, with white space collapsed."""
    return _SPACES.sub(" ", clean_text(value, field=field, chars_max=chars_max)).strip()


def comparison_key(text: str) -> str:
    """The form in which two spellings are the same; long keys end in a digest of the rest."""
    folded = without_invisible(unicodedata.normalize("NFKC", text))
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
        raise InvalidInput(
            f"must be a datetime with a zone, not {type(value).__name__}", field=field
        )
    if value.utcoffset() is None:
        raise NaiveTimestamp(field=field)
    if not YEAR_MIN <= value.year <= YEAR_MAX:
        raise InvalidInput(f"the year must lie between {YEAR_MIN} and {YEAR_MAX}", field=field)
    return value.astimezone(UTC)


def checked_unit(value: object, *, field: str) -> float:
    """A finite number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(f"must be a number from 0 to 1, not {type(value).__name__}", field=field)
    if not 0 <= value <= 1:  # NaN is not either
        raise InvalidInput(f"must be a number from 0 to 1, not {shown(value)}", field=field)
    return float(value)


def checked_json(value: object, *, field: str) -> Any:
    """The value if JSON can hold it exactly: text keys, finite numbers, 64-bit integers, lists.

    A tuple would come back as a list, so it is refused like a set. Raises `InvalidInput` that names
    the path of the first part which cannot be held.
    """
    return _checked_json(value, field, 0, count(1))


def _checked_json(value: object, field: str, depth: int, parts: Iterator[int]) -> Any:
    _refuse_endless(field, depth, next(parts))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return held_text(value, field=field)
    if isinstance(value, int):
        if not -INTEGER_MAX - 1 <= value <= INTEGER_MAX:
            raise InvalidInput("the integer is beyond 64 bits; pass it as text", field=field)
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(f"{value!r} is not a JSON number; pass null or text", field=field)
        return float(value)
    if isinstance(value, Mapping):
        return {
            _json_key(key, field): _checked_json(inner, f"{field}.{_step(key)}", depth + 1, parts)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [
            _checked_json(inner, f"{field}[{place}]", depth + 1, parts)
            for place, inner in enumerate(value)
        ]
    kind = type(value).__name__
    is_list = isinstance(value, (Sequence, AbstractSet))
    remedy = "pass a list" if is_list else "pass text or an object"
    raise InvalidInput(f"{kind} is not a JSON value and would not come back; {remedy}", field=field)


def _refuse_endless(field: str, depth: int, parts: int) -> None:
    # A list that holds one twice, which holds one twice, is small in memory and endless as a text.
    if parts > JSON_PARTS_MAX:
        raise InvalidInput(f"holds more than {JSON_PARTS_MAX} values; split it", field=field)
    if depth > JSON_DEPTH_MAX:
        raise InvalidInput(
            f"is nested deeper than {JSON_DEPTH_MAX} levels; flatten it", field=field
        )


def _json_key(key: object, field: str) -> str:
    if not isinstance(key, str):
        raise InvalidInput(f"the key {shown(key)} is not text; pass text keys", field=field)
    return str.__str__(held_text(key, field=f"{field}.{_step(key)}"))


def _step(key: str) -> str:
    """A key as a part of a path that is shown."""
    return key if len(key) <= SHOWN_CHARS_MAX and key.isprintable() else shown(key)
