"""Valkey's faults in the words of the error tree."""

from __future__ import annotations

import re

from redis import exceptions as redis_faults

from mnemic.errors import ConfigurationError, MnemicError, StoreUnavailable

__all__ = ["Away", "foreign", "translated"]

_NOT_SERVING = (
    redis_faults.BusyLoadingError,
    redis_faults.ReadOnlyError,
    redis_faults.MasterDownError,
    redis_faults.TryAgainError,
)
_Faults = tuple[type[Exception], ...]
_BY_KIND: tuple[tuple[_Faults, type[MnemicError], str], ...] = (
    (
        (
            redis_faults.AuthenticationError,
            redis_faults.AuthorizationError,
            redis_faults.NoPermissionError,
        ),
        ConfigurationError,
        "MEM_REDIS_URL: the server refuses this user, or its password, or one of the commands.",
    ),
    (
        (redis_faults.MovedError, redis_faults.AskError),
        ConfigurationError,
        "MEM_REDIS_URL leads to a node of a cluster; name a server that holds every key.",
    ),
    (
        (redis_faults.OutOfMemoryError,),
        StoreUnavailable,
        "Valkey's memory is full; nothing was changed. Raise its maxmemory, or delete keys.",
    ),
)


# What a script cannot do with what it has read: not what it was stopped by, nor what it lacks.
_FOREIGN = re.compile(
    r"WRONGTYPE|hash value is not an? (?:integer|float)|value is not an integer|"
    r"attempt to (?:compare|perform arithmetic on|concatenate|index) |malformed|"
    r"bad argument #\d+ to '(?:format|max|min|floor|sub|match)'"
)


class Away(Exception):
    """The server cannot be reached, or does not serve now; `sent`: the command may have run."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


def foreign() -> MnemicError:
    """What is raised where the server holds under our keys what we did not write."""
    return MnemicError(
        "Valkey holds something under Mnemic's keys that Mnemic did not write; the scope may be "
        "changed in part. Keep other writers out of mnemic:*, or set MEM_WORKING__NAMESPACE to a "
        "name that they do not use, and delete what they wrote."
    )


def translated(fault: Exception, *, sent: bool) -> Exception:
    """The fault in our words; `sent` says whether the command had left before it."""
    if isinstance(fault.__cause__, redis_faults.RedisError):
        fault = fault.__cause__  # refused while connecting
    if isinstance(fault, _NOT_SERVING):
        return Away(str(fault), sent=False)
    for kinds, error, words in _BY_KIND:
        if isinstance(fault, kinds):
            return error(words)
    if isinstance(fault, (redis_faults.ConnectionError, redis_faults.TimeoutError, OSError)):
        return Away(type(fault).__name__, sent=sent)
    if isinstance(fault, redis_faults.ResponseError):
        return _refused(str(fault))
    return fault


def _refused(words: str) -> MnemicError:
    if words.startswith("MISCONF"):
        return StoreUnavailable(
            "Valkey refuses writes because it cannot save to its disk; nothing was changed."
        )
    if _FOREIGN.search(words):
        return foreign()
    return MnemicError(f"Valkey answered with an error: {words}")
