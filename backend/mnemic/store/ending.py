"""How transactions end: committed, rolled back, or given up with their connection."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg

from mnemic.errors import OutcomeUnknown, StoreUnavailable
from mnemic.store.deadline import Deadline
from mnemic.store.faults import LOST, tells_outcome

__all__ = ["commit", "roll_back"]

_ROLLBACK_SECONDS_MAX = 1.0


async def commit(connection: Any, deadline: Deadline, *, first: str = "") -> None:
    """It is in the database, with what is to be done `first`, which goes in the same message.

    Raises `OutcomeUnknown` if nobody can tell whether it is.
    """
    try:
        with deadline:
            status = await connection.execute(f"{first}COMMIT")
    except (*LOST, asyncpg.PostgresError) as fault:
        if tells_outcome(fault):
            await roll_back(connection, fault)
            raise
        _give_up(connection)
        raise OutcomeUnknown from fault
    except BaseException as fault:
        await roll_back(connection, fault)  # cancelled: nothing of it may stay open
        raise
    if status != "COMMIT":
        raise StoreUnavailable("The transaction was rolled back by the server.", status=status)


async def roll_back(connection: Any, why: BaseException) -> None:
    """The connection has no open transaction, or is closed."""
    if isinstance(why, OSError):  # TimeoutError is one: whoever does not answer cannot be told
        _give_up(connection)
        return
    ending = asyncio.ensure_future(connection.execute("ROLLBACK"))
    ending.add_done_callback(_ended)
    try:
        async with asyncio.timeout(_ROLLBACK_SECONDS_MAX):
            await asyncio.shield(ending)
    except BaseException:  # noqa: BLE001 - whatever stands in the way, no transaction stays open
        _give_up(connection)


def _give_up(connection: Any) -> None:
    """Closed without a word; the server rolls back what it has not committed."""
    with suppress(Exception):
        connection.terminate()


def _ended(ending: asyncio.Future[Any]) -> None:
    """Its fault was heard, even if whoever waited for it was cancelled meanwhile."""
    if not ending.cancelled():
        ending.exception()
