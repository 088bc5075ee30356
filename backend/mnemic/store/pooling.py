"""How the pooler before the server, if there is one, shares the server's connections."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import Any

import asyncpg
from pydantic import SecretStr

from mnemic.store.connecting import connected, is_pooled
from mnemic.store.faults import LOST

__all__ = ["Pooling", "pooling_of"]

_WAIT_SECONDS_MAX = 2.0
_ATTEMPTS_MAX = 3
_BACKEND = "SELECT pg_backend_pid()"


class Pooling(StrEnum):
    """How long one client has a connection of the server for itself."""

    NONE = "none"
    SESSION = "session"
    TRANSACTION = "transaction"
    STATEMENT = "statement"
    UNKNOWN = "unknown"


async def pooling_of(url: str | SecretStr, *, setting: str) -> Pooling:
    """How the pooler at `url` pools; `UNKNOWN` when it is too busy to tell, within two seconds.

    Raises `StoreUnavailable` or `ConfigurationError` as `open_connection` does.
    """
    async with connected(url, setting=setting) as first:
        if not await is_pooled(first):
            return Pooling.NONE
        for _ in range(_ATTEMPTS_MAX):
            async with connected(url, setting=setting) as second:
                found = await _compared(first, second)
            if found is not Pooling.SESSION:
                return found
        return Pooling.SESSION


async def _compared(first: Any, second: Any) -> Pooling:
    """Who gets the server that `first` has just used, while `second` is in a transaction.

    `SESSION` when `first` has it again: by right in that mode, by chance in the other.
    """
    used = await first.fetchval(_BACKEND)
    try:
        async with asyncio.timeout(_WAIT_SECONDS_MAX):
            await second.execute("BEGIN")
            taken = await second.fetchval(_BACKEND)
    except TimeoutError:
        second.terminate()  # closing would wait for the server that it does not get
        return Pooling.UNKNOWN
    except (asyncpg.PostgresConnectionError, *LOST):
        return Pooling.STATEMENT  # in this mode a pooler hangs up on whoever begins a transaction
    if taken == used:
        return Pooling.TRANSACTION
    try:
        async with asyncio.timeout(_WAIT_SECONDS_MAX):
            again = await first.fetchval(_BACKEND)
    except TimeoutError:
        first.terminate()
        return Pooling.UNKNOWN
    return Pooling.SESSION if again == used else Pooling.TRANSACTION
