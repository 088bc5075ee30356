"""The bare drivers, doing what the product does and nothing else.

What is sent is not written down a second time: `Recorder` notes the transactions, statements and
values of one call of the product, and `BarePostgres` sends just those.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import asyncpg
import orjson
from redis.asyncio import Redis

from mnemic.model.moment import Moment
from mnemic.model.scope import Scope, TenantId
from mnemic.settings import DatabaseSettings, WorkingSettings
from mnemic.store.session_setup import prepare_connection, session_settings
from mnemic.store.statement import Statement
from mnemic.store.unit import Database, Unit
from mnemic.store.working import scripts
from mnemic.store.working.keys import GATE, key_field, scope_keys
from mnemic.store.working.place import Limits
from mnemic.store.working.stamps import NODE_STEP, stamp_at

__all__ = ["BarePostgres", "BareValkey", "Recorder", "Transaction", "bare_postgres", "bare_valkey"]

T = TypeVar("T")
_VALUE_HEAD = 32  # version, expiry and state stand before the JSON of a value


@dataclass(frozen=True, slots=True)
class Transaction:
    """What one unit sent: how it began, and its statements with their values."""

    begin: str
    statements: tuple[tuple[str, list[object]], ...]


class _NotingUnit(Unit):
    """A unit that notes what it fetches; it changes nothing."""

    def __init__(self, inner: Unit, sent: list[tuple[str, list[object]]]) -> None:
        super().__init__(inner.connection, inner.tenant, seconds=inner.seconds, moment=inner.moment)
        self.keeps_plans = inner.keeps_plans
        self._sent = sent

    def _note(self, statement: Statement, values: dict[str, object]) -> None:
        given = statement.arguments({**values, "tenant": self.tenant})
        self._sent.append((statement.sql, given))

    async def fetch(self, statement: Statement, **values: object) -> list[asyncpg.Record]:
        self._note(statement, values)
        return await super().fetch(statement, **values)

    async def fetch_one(self, statement: Statement, **values: object) -> asyncpg.Record | None:
        self._note(statement, values)
        return await super().fetch_one(statement, **values)


class Recorder(Database):
    """A database that notes every transaction of the calls that it serves; reads alone."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.transactions: list[Transaction] = []

    async def transact(
        self,
        tenant: TenantId | None,
        work: Callable[[Unit], Awaitable[T]],
        *,
        read_only: bool = False,
        moment: Moment | None = None,
        keep_plans: bool = False,
    ) -> T:
        """As `Database.transact`, noted."""
        sent: list[tuple[str, list[object]]] = []

        begin = ""

        async def noted(unit: Unit) -> T:
            nonlocal begin
            begin = self._inner.beginning.text(unit, read_only=read_only)
            return await work(_NotingUnit(unit, sent))

        answer = await self._inner.transact(
            tenant, noted, read_only=read_only, moment=moment, keep_plans=keep_plans
        )
        self.transactions.append(Transaction(begin, tuple(sent)))
        return answer


class BarePostgres:
    """asyncpg on a connection of its own, with the session settings and codecs of the product."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def replay(self, transactions: Sequence[Transaction]) -> list[list[tuple[Any, ...]]]:
        """The transactions, begun and committed as ours are; the rows of each as plain tuples."""
        answers = []
        for one in transactions:
            await self._connection.execute(one.begin)
            for sql, values in one.statements:
                rows = await self._connection.fetch(sql, *values)
                answers.append([tuple(row) for row in rows])
            await self._connection.execute("COMMIT")
        return answers


class BareValkey:
    """redis-py's asyncio client on a connection of its own: the same commands, keys and bytes."""

    def __init__(
        self,
        client: Redis,
        scope: Scope,
        settings: WorkingSettings,
        clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._clock = clock
        keys = scope_keys(settings.namespace, scope)
        self._values = keys.values
        self._keys = (keys.values, keys.heads, keys.notes)
        limits = Limits.of(settings)
        # What a script of working memory is told after the id and the time: see `lua/entry.lua`.
        self._bounds = (
            1,
            1,
            int(settings.tombstone_ttl.total_seconds() * 1_000),
            limits.keys_max,
            limits.bytes_max,
            limits.notes_max,
            limits.ttl_ms,
        )
        self._stamp = 0

    async def get(self, key: str) -> Any:
        """The value of the key, which is there."""
        _gate, raw = await self._client.execute_command(  # type: ignore[no-untyped-call]
            "HMGET", self._values, GATE, key_field(key)
        )
        return orjson.loads(raw[_VALUE_HEAD:])

    async def set(self, key: str, value: object) -> bytes:
        """The key holds the value; the first word of the script's answer."""
        now_ms = int(self._clock().timestamp() * 1_000)
        self._stamp = max(self._stamp + NODE_STEP, stamp_at(now_ms))
        answer = await self._client.execute_command(  # type: ignore[no-untyped-call]
            "EVALSHA",
            scripts.SET.digest,
            len(self._keys),
            *self._keys,
            f"{self._stamp:016x}{0:016x}",
            now_ms,
            *self._bounds,
            key_field(key),
            "",
            0,
            orjson.dumps(value),
        )
        return bytes(answer[0])


@asynccontextmanager
async def bare_postgres(url: str, settings: DatabaseSettings) -> AsyncIterator[BarePostgres]:
    """A connection as the role that serves."""
    connection = await asyncpg.connect(url, server_settings=session_settings(settings))
    try:
        await prepare_connection(connection)
        yield BarePostgres(connection)
    finally:
        await connection.close()


@asynccontextmanager
async def bare_valkey(
    url: str, scope: Scope, settings: WorkingSettings, clock: Callable[[], datetime]
) -> AsyncIterator[BareValkey]:
    """A connection to the values of that scope, written at the times that `clock` tells."""
    async with Redis.from_url(url, protocol=3, single_connection_client=True) as client:
        yield BareValkey(client, scope, settings, clock)
