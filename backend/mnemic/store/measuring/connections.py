"""How many connections the servers have, counted by the servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from redis.asyncio import Redis

__all__ = ["ConnectionCounter", "connection_counter"]

_COUNT = """
    SELECT count(*) FROM pg_catalog.pg_stat_activity a
     WHERE a.datname = current_database() AND a.backend_type = 'client backend'
"""


class ConnectionCounter:
    """Counts over connections of its own, which are among those that it counts."""

    def __init__(self, postgres: asyncpg.Connection, valkey: Redis) -> None:
        self._postgres = postgres
        self._valkey = valkey

    async def counts(self) -> tuple[int, int]:
        """Those of the database, and those of Valkey."""
        told = await self._valkey.execute_command("INFO", "clients")  # type: ignore[no-untyped-call]
        return int(await self._postgres.fetchval(_COUNT)), int(told["connected_clients"])


@asynccontextmanager
async def connection_counter(admin_url: str, redis_url: str) -> AsyncIterator[ConnectionCounter]:
    """`admin_url` is the administrator's, who sees everybody's connections."""
    postgres = await asyncpg.connect(admin_url)
    try:
        async with Redis.from_url(redis_url, single_connection_client=True) as valkey:
            yield ConnectionCounter(postgres, valkey)
    finally:
        await postgres.close()
