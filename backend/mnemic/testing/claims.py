"""How a check says what it found: by `AssertionError`, with both sides of it."""

from __future__ import annotations

from collections.abc import Awaitable

from mnemic.errors import MnemicError

__all__ = ["equal", "no", "refused", "yes"]


def equal(found: object, expected: object, what: str = "") -> None:
    """Raises `AssertionError` unless they are equal and of one type."""
    if found != expected or type(found) is not type(expected):
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")


def yes(found: object, what: str = "") -> None:
    """Raises `AssertionError` unless it is true."""
    equal(found, expected=True, what=what)


def no(found: object, what: str = "") -> None:
    """Raises `AssertionError` unless it is false."""
    equal(found, expected=False, what=what)


async def refused(
    error: type[MnemicError], call: Awaitable[object], *, field: str | None = None
) -> None:
    """Raises `AssertionError` unless the call raises that error, of that field."""
    try:
        answer = await call
    except error as fault:
        if field is not None:
            equal(getattr(fault, "field", None), field, "field of the refusal")
        return
    raise AssertionError(f"{error.__name__} expected, but the call gave {answer!r}")
