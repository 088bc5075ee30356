"""One connection for administration, with the driver's faults in our words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
from pydantic import SecretStr

from mnemic.errors import ConfigurationError, MnemicError, StoreUnavailable
from mnemic.store.dsn import driver_dsn

__all__ = ["connected", "connection_fault", "is_pooled", "open_connection", "refuses_settings"]

_CONNECT_SECONDS_MAX = 10.0

_REMEDIES: dict[type[BaseException], str] = {
    asyncpg.InvalidPasswordError: "the password in {setting} is wrong",
    asyncpg.InvalidAuthorizationSpecificationError: (
        "the server refuses the role in {setting}; check its name, LOGIN and pg_hba.conf"
    ),
    asyncpg.InvalidCatalogNameError: (
        "the database in {setting} does not exist; run `mnemic db init`"
    ),
    asyncpg.InsufficientPrivilegeError: (
        "the role in {setting} may not connect to the database; run `mnemic db init`"
    ),
    asyncpg.ClientConfigurationError: "{setting} is not a usable database URL",
    ValueError: "{setting} is not a usable database URL",
}


async def open_connection(
    url: str | SecretStr,
    *,
    setting: str,
    database: str | None = None,
    direct: bool = False,
    **session: str,
) -> asyncpg.Connection:
    """A connection that the caller closes; `setting` is where the URL came from, for the errors.

    Its statements are unnamed, so that a pooler may stand between. With `direct` none may: what
    outlives a transaction (locks, settings) is then this connection's own. Raises
    `StoreUnavailable` if the server cannot be reached, `ConfigurationError` if it answers but
    refuses, or a pooler stands where none may.
    """
    try:
        connection: asyncpg.Connection = await asyncpg.connect(
            driver_dsn(url),
            database=database,
            timeout=_CONNECT_SECONDS_MAX,
            server_settings=session or None,
            statement_cache_size=0,
        )
    except Exception as fault:
        error = connection_fault(fault, setting=setting)
        if error is None:
            raise
        raise error from fault
    try:
        has_pooler = direct and await is_pooled(connection)
    except BaseException:  # who is cancelled meanwhile leaves no connection either
        connection.terminate()
        raise
    if has_pooler:
        await connection.close()
        raise _pooled(setting)
    return connection


@asynccontextmanager
async def connected(
    url: str | SecretStr, *, setting: str, database: str | None = None, direct: bool = False
) -> AsyncIterator[Any]:
    """A connection for as long as the block runs; see `open_connection`."""
    connection = await open_connection(url, setting=setting, database=database, direct=direct)
    try:
        yield connection
    finally:
        await connection.close()


async def is_pooled(connection: Any) -> bool:
    """Whether a pooler stands before the server.

    A server tells a client its own process id when it logs in; a pooler makes one up, for one of
    its clients has many servers.
    """
    own: int = await connection.fetchval("SELECT pg_backend_pid()")
    told: int = connection.get_server_pid()
    return told != own


def refuses_settings(fault: BaseException) -> bool:
    """Whether a pooler refuses what a session is to be set to."""
    return isinstance(fault, asyncpg.ProtocolViolationError) and "startup parameter" in str(fault)


def _pooled(setting: str) -> ConfigurationError:
    return ConfigurationError(
        f"{setting} leads to a pooler; name the server itself, for locks and settings of a whole "
        "session are lost behind one"
    )


def connection_fault(fault: BaseException, *, setting: str) -> MnemicError | None:
    """Why no connection came about, or nothing if that is not the driver's fault."""
    if isinstance(fault, MnemicError):
        return fault
    if refuses_settings(fault):
        return _pooled(setting)
    for kind, remedy in _REMEDIES.items():
        if isinstance(fault, kind):
            return ConfigurationError(remedy.format(setting=setting))
    if isinstance(fault, (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        return StoreUnavailable(
            f"the database in {setting} cannot be reached: {str(fault) or type(fault).__name__}"
        )
    return None
