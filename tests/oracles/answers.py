"""Oracle 1: whatever is asked, the answer is a reply or a precise error, never an inner fault.

Oracle 3 goes with every refusal: the same call with harmless input is answered.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

from mnemic import InvalidInput, MnemicError

__all__ = ["Answer", "answer_of", "is_precise", "refused"]

# Every remedy says what to do, or what the value must be.
_REMEDY = re.compile(
    r"\b(must|most|pass|remove|split|shorten|leave|give|use|flatten|keep|write|delete|raise"
    r"|correct|swap)\b",
    re.IGNORECASE,
)
MESSAGE_CHARS_MAX = 600


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply, or the error in its place."""

    reply: Any = None
    error: MnemicError | None = None

    @property
    def refusal(self) -> InvalidInput | None:
        """The error, if it says that the input cannot be held."""
        return self.error if isinstance(self.error, InvalidInput) else None


async def answer_of(call: Awaitable[Any] | Any) -> Answer:
    """What the call answers. Fails for a fault of a driver, of Python, or one nobody foresaw."""
    try:
        reply = await call if isinstance(call, Awaitable) else call
    except MnemicError as error:
        if error.code == "internal":
            raise AssertionError(f"an inner fault: {error}") from error
        return Answer(error=error)
    return Answer(reply)


def is_precise(refusal: InvalidInput, names: set[str]) -> bool:
    """Whether the refusal names one of the fields, says what to do, and can be shown."""
    told = str(refusal)
    first = re.split(r"[.\[]", refusal.field, maxsplit=1)[0]
    told.encode()
    return (
        first in names
        and told.startswith(refusal.field)
        and _REMEDY.search(told) is not None
        and len(told) <= MESSAGE_CHARS_MAX
    )


async def refused(call: Awaitable[Any], *, field: str, control: Awaitable[Any]) -> InvalidInput:
    """The call is refused by the name of the field; the control is answered all the same."""
    answer, controlled = await answer_of(call), await answer_of(control)
    assert answer.refusal is not None, f"{field} was taken: {answer}"
    assert is_precise(answer.refusal, {re.split(r"[.\[]", field, maxsplit=1)[0]}), answer.refusal
    assert answer.refusal.field == field
    assert controlled.error is None, f"the harmless twin failed: {controlled.error}"
    return answer.refusal
