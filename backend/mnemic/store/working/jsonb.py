"""Values as `jsonb` gives them back: equal, and of the type they had.

`jsonb` keeps numbers as decimals: `1e17` would come back as an integer. So floats are written out
with a fraction, which it keeps. The order of an object's keys is the one thing that it does not.
"""

from __future__ import annotations

import re
from decimal import Decimal

import orjson

__all__ = ["body_of_jsonb", "jsonb_of_body"]

_EXPONENT = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?[eE][-+]?\d+')


def jsonb_of_body(body: bytes) -> str:
    """The JSON text, every float with a fraction and without an exponent."""
    return _EXPONENT.sub(_written_out, body).decode()


def _written_out(match: re.Match[bytes]) -> bytes:
    token = match[0]
    if token.startswith(b'"'):
        return token
    digits = format(Decimal(token.decode()), "f").encode()
    return digits if b"." in digits else digits + b".0"


def body_of_jsonb(text: str) -> bytes:
    """The JSON that `jsonb` printed, as it was given."""
    return orjson.dumps(orjson.loads(text))
