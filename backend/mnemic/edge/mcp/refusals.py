"""What a model is told when a call fails: a code, what is wrong, what to do. Never a trace."""

from __future__ import annotations

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from mnemic.errors import (
    ConfigurationError,
    Conflict,
    Forbidden,
    InvalidInput,
    MnemicError,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)

__all__ = ["refusal", "refused_arguments"]

FAULTS_MAX = 10
PATH_CHARS_MAX = 100

# The first class that fits counts.
_REMEDIES: tuple[tuple[type[MnemicError], str], ...] = (
    (InvalidInput, "Correct the argument and call again."),
    (NotFound, "Use ids that recall, get_context or remember returned in this scope."),
    (Conflict, "Recall what is there now; give other content another idempotency_key."),
    (Forbidden, "Leave it: this scope may not change it."),
    (ConfigurationError, "Tell the operator to run `mnemic doctor`; calling again will not help."),
    (
        OutcomeUnknown,
        "It may have been kept. Call again with the same idempotency_key, or else recall first.",
    ),
    (Unavailable, "Call again in a few seconds."),
)


def refusal(fault: MnemicError) -> ToolError | None:
    """The fault in words that a model can act on; nothing for one that nobody foresaw."""
    for kind, remedy in _REMEDIES:
        if isinstance(fault, kind):
            return ToolError(f"{fault.code}: {fault}\n{remedy}")
    return None


def refused_arguments(fault: ValidationError) -> ToolError:
    """Which arguments are wrong, and how; the values themselves are not repeated."""
    faults = fault.errors(include_url=False, include_context=False, include_input=False)
    told = "; ".join(f"{_path(one['loc'])}: {one['msg']}" for one in faults[:FAULTS_MAX])
    if len(faults) > FAULTS_MAX:
        told += f"; and {len(faults) - FAULTS_MAX} more"
    return ToolError(f"{InvalidInput.code}: {told}\nCorrect the arguments and call again.")


def _path(location: tuple[int | str, ...]) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return ascii("".join(parts).removeprefix("."))[1:-1][:PATH_CHARS_MAX]
