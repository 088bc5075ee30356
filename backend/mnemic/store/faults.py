"""Driver faults in the words of the error tree; the one place that knows SQLSTATEs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from mnemic.errors import (
    ConfigurationError,
    Conflict,
    Forbidden,
    InvalidInput,
    MnemicError,
    NotFound,
    OutcomeUnknown,
    SchemaMismatch,
    StoreUnavailable,
    Unavailable,
)
from mnemic.store.connecting import refuses_settings

__all__ = [
    "BEHIND_A_POOLER",
    "LOST",
    "Raced",
    "after_landing",
    "is_retryable",
    "tells_outcome",
    "translated",
]

BEHIND_A_POOLER = (
    "MEM_DATABASE_URL leads to a pooler, which drops the settings of a session; set "
    "MEM_DATABASE__PGBOUNCER=true"
)

# Each statement looks first whether a row is there already, so meeting one that is unique (23505)
# is a lost race: the winner's row must be read again, not that the call failed.
_RETRYABLE = frozenset({"40001", "40P01", "23505"})

# Classes of what a server says when the connection, or it, ends: but for 57014, which cancels.
_ENDINGS = ("08", "57P", "58", "XX")

# How a lost connection shows; the driver's own state may be left between two messages by it.
LOST = (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.InternalClientError)

_BY_STATE: dict[str, tuple[type[MnemicError], str]] = {
    "23505": (Conflict, "The same memory was written at the same moment."),
    "23503": (NotFound, "What this refers to does not exist in this scope."),
    "42501": (Forbidden, "The database refused: the row belongs to another tenant or role."),
    "42P01": (SchemaMismatch, ""),
    "42703": (SchemaMismatch, ""),
    "42883": (SchemaMismatch, ""),
    "3F000": (SchemaMismatch, ""),
    "3D000": (ConfigurationError, "The database does not exist; run `mnemic db init`."),
    "28P01": (ConfigurationError, "The password in MEM_DATABASE_URL is wrong."),
    "28000": (ConfigurationError, "The role in MEM_DATABASE_URL may not log in."),
    "55000": (StoreUnavailable, "The database takes no connections now."),
    "57014": (StoreUnavailable, "The statement took longer than database.statement_timeout_ms."),
    "55P03": (StoreUnavailable, "A lock was not free within database.lock_timeout_ms."),
    "25006": (StoreUnavailable, "The database is read-only now."),
    "40001": (StoreUnavailable, "Too many writers at once; nothing was changed."),
    "40P01": (StoreUnavailable, "Too many writers at once; nothing was changed."),
}


class Raced(Conflict):
    """Others change the same memory at this moment; retry.

    They changed what this unit had read: it is to be run again as a whole.
    """


@contextmanager
def after_landing(then: str = "retry with the same idempotency key") -> Iterator[None]:
    """What is still to be done when a write has landed; failing, it does not undo it.

    `Unavailable` would say that nothing was changed, so it becomes `OutcomeUnknown`; `then` is
    the remedy.
    """
    try:
        yield
    except OutcomeUnknown:
        raise
    except Unavailable as fault:
        raise OutcomeUnknown(
            f"The write has landed, but not all that belongs to it; {then}.", reason=str(fault)
        ) from fault


def tells_outcome(fault: BaseException) -> bool:
    """Whether a fault of COMMIT says that nothing was committed.

    A server that is ending, or that found its own state broken, may have committed before.
    """
    if not isinstance(fault, asyncpg.PostgresError):
        return False
    return not (fault.sqlstate or "08").startswith(_ENDINGS)


def is_retryable(fault: MnemicError) -> bool:
    """Whether the transaction that failed with it is to be run again as a whole."""
    cause = fault.__cause__
    if isinstance(cause, asyncpg.PostgresError):
        return cause.sqlstate in _RETRYABLE
    return isinstance(fault, Raced)


def translated(fault: Exception) -> MnemicError | None:
    """The fault in our words, or nothing when it is not the driver's."""
    if isinstance(fault, MnemicError):
        return fault
    if isinstance(fault, asyncpg.PostgresError):
        return _server_fault(fault)
    if isinstance(fault, asyncpg.DataError):
        return InvalidInput("the database cannot hold this value", field="value")
    if isinstance(fault, TimeoutError) and fault.errno is None:  # with a number it is the network's
        return StoreUnavailable(
            "The database did not answer within database.timeout_seconds; nothing was changed.",
            reason=type(fault).__name__,
        )
    if isinstance(fault, LOST):
        return StoreUnavailable(reason=type(fault).__name__)
    return None


def _server_fault(fault: asyncpg.PostgresError) -> MnemicError:
    if refuses_settings(fault):
        return ConfigurationError(BEHIND_A_POOLER)
    state = fault.sqlstate or ""
    known = _BY_STATE.get(state)
    if known is not None:
        error, detail = known
        return error(detail or None, sqlstate=state)
    if state.startswith(("22", "23")):
        return InvalidInput("the database cannot hold this value", field="value", sqlstate=state)
    if state.startswith(("08", "53", "57", "58")):
        return StoreUnavailable(sqlstate=state)
    return MnemicError("The database answered with an error.", sqlstate=state)
