"""Work on tables rather than rows: a connection as the role that owns them.

Indexes and partitions are made by the owner alone. It is held to the policies as everybody is, so
it names a tenant for whatever it reads or writes of one. One such worker is at it in a database at
a time: two would wait for each other's tables.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
from pydantic import SecretStr

from mnemic.errors import ConfigurationError, StoreUnavailable
from mnemic.model.scope import TenantId
from mnemic.store.connecting import open_connection
from mnemic.store.faults import translated
from mnemic.store.roles import OWNER_ROLE

__all__ = ["LOCK", "OWNER_SETTING", "Owner", "as_owner"]

OWNER_SETTING = "MEM_DATABASE_OWNER_URL"
LOCK = 0x6D6E656D_706C6163
_LOCK_POLL_SECONDS = 0.1

_PATH = """
SELECT string_agg(DISTINCT quote_ident(n.nspname), ', ')
  FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
 WHERE e.extname IN ('vector', 'pg_trgm', 'btree_gin')
"""


class Owner:
    """A connection as `mnemic_owner`, with no timeouts but those that a step sets for itself."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    @asynccontextmanager
    async def transaction(self, tenant: TenantId) -> AsyncIterator[Any]:
        """One transaction that sees the rows of the tenant."""
        async with self.connection.transaction():
            await self.connection.execute(
                f"SELECT set_config('mnemic.tenant_id', '{tenant}', true)"
            )
            yield self.connection


@asynccontextmanager
async def as_owner(
    url: str | SecretStr | None, *, memory_mb: int, wait_seconds: float
) -> AsyncIterator[Owner]:
    """The only such worker of the database, for as long as the block runs.

    `memory_mb` is what building an index may use. Raises `ConfigurationError` without a `url` or if
    it logs in as somebody else, `StoreUnavailable` if another worker is at it for longer than
    `wait_seconds`, or if the server is away.
    """
    if url is None:
        raise ConfigurationError(f"set {OWNER_SETTING} to a URL that logs in as {OWNER_ROLE}")
    connection = await open_connection(
        url,
        setting=OWNER_SETTING,
        direct=True,
        application_name="mnemic-placement",
        lock_timeout="0",
        statement_timeout="0",
        idle_in_transaction_session_timeout="0",
        # What nobody waits for any more is broken off, and begun anew by the next worker.
        client_connection_check_interval="500",
        maintenance_work_mem=f"{memory_mb}MB",
        # Workers would take a core each of a server that serves meanwhile, and shared memory, of
        # which a container has little.
        max_parallel_maintenance_workers="0",
    )
    try:
        await _become_owner(connection)
        await connection.execute(
            "SELECT set_config('search_path', $1, false)", await connection.fetchval(_PATH)
        )
        await _alone(connection, wait_seconds)
        yield Owner(connection)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as fault:
        raise translated(fault) or fault from fault
    finally:
        await _closed(connection)


async def _become_owner(connection: asyncpg.Connection) -> None:
    if await connection.fetchval("SELECT current_user = $1", OWNER_ROLE):
        return
    if not await connection.fetchval("SELECT pg_has_role(current_user, $1, 'SET')", OWNER_ROLE):
        role = await connection.fetchval("SELECT current_user::text")
        raise ConfigurationError(
            f"{OWNER_SETTING} logs in as {role}; it must log in as {OWNER_ROLE}"
        )
    await connection.execute(f"SET ROLE {OWNER_ROLE}")


async def _alone(connection: asyncpg.Connection, seconds: float) -> None:
    """Asked again and again: a statement that waits has a snapshot, for which a build waits."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                if await connection.fetchval("SELECT pg_try_advisory_lock($1)", LOCK):
                    return
                await asyncio.sleep(_LOCK_POLL_SECONDS)
    except TimeoutError:
        raise StoreUnavailable(
            "another promotion or move of this database is running; try again when it is done"
        ) from None


async def _closed(connection: asyncpg.Connection) -> None:
    """Closed even if it is in the middle of something: then the server is not asked."""
    if connection.is_in_transaction() or connection.is_closed():
        connection.terminate()
        return
    await connection.close(timeout=5)
