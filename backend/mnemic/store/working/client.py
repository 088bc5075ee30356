"""Connections to Valkey: a pool for each running loop and process, one round trip a call.

redis-py's own client keeps its pool behind locks that a cancelled task can leave taken, waits five
seconds by default and tries ten times. Here an exchange has one deadline; its connection goes back
to the pool only with its answer read; and it is tried again once, on a new connection, when the old
one turns out to have been closed. Who waits for a connection is told as soon as one that had it
finds nobody there.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from redis import exceptions as redis_faults
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.maint_notifications import MaintNotificationsConfig

from mnemic.errors import ConfigurationError, StoreUnavailable
from mnemic.settings import WorkingSettings
from mnemic.store.per_loop import PerLoop
from mnemic.store.valkey import SERVED, VERSIONS_MIN, product_of
from mnemic.store.working.faults import Away, translated
from mnemic.store.working.keys import instance_key
from mnemic.store.working.patience import within
from mnemic.store.working.scripts import Script

__all__ = ["BULK", "Features", "ValkeyClient"]

BULK = 10.0  # how many times the usual deadline a call may take that carries a whole scope
_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Features:
    """What the server can do, asked once a pool. `instance` names the data that it holds."""

    fields_expire: bool
    keys_may_expire: bool
    instance: str | None


class _Pool:
    """The connections of one loop."""

    def __init__(self, url: str, settings: WorkingSettings) -> None:
        # Deadlines are held outside: redis-py's cost a task a command, and a busy loop spends them.
        self._maker: ConnectionPool = ConnectionPool.from_url(
            url,
            protocol=3,
            client_name="mnemic-working",
            socket_timeout=None,
            socket_connect_timeout=None,
            retry=Retry(NoBackoff(), 0),
            maint_notifications_config=MaintNotificationsConfig(enabled=False),
        )
        self._idle: list[AbstractConnection] = []
        self.free = asyncio.Semaphore(settings.connections_max)
        self.probing = asyncio.Lock()
        self.features: Features | None = None
        self.era = 0
        self.is_over = False

    def take(self) -> AbstractConnection:
        """The connection used last, else a new one."""
        if self._idle:
            return self._idle.pop()
        return self._maker.connection_class(**self._maker.connection_kwargs)

    def give(self, connection: AbstractConnection) -> None:
        """Its last answer was read: another may use it."""
        self._idle.append(connection)

    async def discard_idle(self) -> None:
        """Connections opened before a fault are closed: it may have been theirs too."""
        idle, self._idle = self._idle, []
        for connection in idle:
            await _disconnect(connection)

    async def end(self) -> None:
        """Idle connections are closed; those in use are, as soon as they have their answer."""
        self.is_over = True
        await self.discard_idle()


class ValkeyClient:
    """Runs commands and scripts. Raises `Away`, `ConfigurationError` and `StoreUnavailable`."""

    def __init__(
        self, url: str, settings: WorkingSettings, *, fields_expire: bool | None = None
    ) -> None:
        """`fields_expire=False` does without the expiry of fields even where the server has it."""
        self._url = url
        self._settings = settings
        self._fields_expire = fields_expire
        self._pools: PerLoop[_Pool] = PerLoop(_Pool.end)
        self.is_away: Callable[[], bool] = lambda: False
        self._era = 0

    def _pool(self) -> _Pool:
        pool = self._pools.get()
        if pool is None:
            try:
                pool = _Pool(self._url, self._settings)
            except ValueError as fault:
                raise ConfigurationError(f"MEM_REDIS_URL cannot be used: {fault}") from None
            self._pools.put(pool)
        return pool

    async def features(self) -> Features:
        """What the server can do. Raises `ConfigurationError` if it is not fit to serve."""
        pool = self._pool()
        if pool.features is None or pool.era != self._era:
            async with pool.probing:
                if pool.features is None or pool.era != self._era:
                    pool.era, pool.features = self._era, None
                    pool.features = await self._probe()
        return pool.features

    def forget_features(self) -> None:
        """Another server may answer from now on: what it can do must be asked again."""
        self._era += 1

    async def run(
        self, script: Script, keys: Sequence[str], *arguments: Any, bulk: bool = False
    ) -> Any:
        """The script's answer, in one round trip once the server knows the script."""
        rest = (len(keys), *keys, *arguments)
        try:
            return await self.call("EVALSHA", script.digest, *rest, bulk=bulk)
        except redis_faults.NoScriptError:
            return await self.call("EVAL", script.text, *rest, bulk=bulk)

    async def call(self, *command: Any, bulk: bool = False, looking: bool = False) -> Any:
        """The answer to one command; NOSCRIPT is left to the caller.

        Only who is `looking` whether the server is back gets through while it is away.
        """
        pool = self._pool()
        seconds = self._settings.timeout_seconds * (BULK if bulk else 1)
        sent = False
        for attempt in range(1, _ATTEMPTS + 1):
            async with _Borrowed(pool, self._settings) as connection:
                if self.is_away() and not looking:
                    raise Away("found to be away", sent=sent)
                was_open = connection.is_connected
                try:
                    if not was_open:
                        async with within(self._settings.connect_timeout_seconds):
                            await connection.connect()  # type: ignore[no-untyped-call]
                    sent = True
                    async with within(seconds):
                        return await _exchanged(connection, command)
                except redis_faults.NoScriptError:
                    raise
                except (redis_faults.RedisError, OSError) as fault:
                    error = translated(fault, sent=sent)
                    if not isinstance(error, Away):
                        raise error from fault
                    await pool.discard_idle()
                    if not was_open or attempt == _ATTEMPTS or isinstance(fault, TimeoutError):
                        raise error from fault
        raise AssertionError

    async def instance(self) -> str | None:
        """The name that the server's data have, given when they have none; nothing if full."""
        key = instance_key(self._settings.namespace)
        named = await self.call("GET", key, looking=True)
        if named is None:
            try:
                await self.call("SET", key, secrets.token_hex(16), "NX", looking=True)
            except StoreUnavailable:
                return None
            named = await self.call("GET", key, looking=True)
        return named.decode() if named else None

    async def _probe(self) -> Features:
        server = _info(await self.call("INFO", "server"))
        memory = _info(await self.call("INFO", "memory"))
        product, version = product_of(server)
        if version < VERSIONS_MIN[product]:
            raise ConfigurationError(
                f"MEM_REDIS_URL: the server is {product} of version {'.'.join(map(str, version))}; "
                f"it must be {SERVED}."
            )
        policy = memory.get("maxmemory_policy", "noeviction")
        if policy.startswith("allkeys-"):
            raise ConfigurationError(
                f"MEM_REDIS_URL: the server's maxmemory-policy is {policy}, which drops working "
                "memory that was acknowledged; set it to noeviction (CONFIG SET maxmemory-policy "
                "noeviction, and in its configuration file)."
            )
        expiry = self._fields_expire
        if expiry is None:
            known = await self.call("COMMAND", "INFO", "HPEXPIRE")
            expiry = bool(known and known[0])
        return Features(
            fields_expire=expiry,
            # Keys that expire are what a `volatile-` policy drops when memory runs out.
            keys_may_expire=policy == "noeviction" or memory.get("maxmemory", "0") == "0",
            instance=await self.instance(),
        )

    async def close(self) -> None:
        """Every connection of the running loop is closed; those of other loops end with them.

        One that a call still uses is closed when the call has its answer.
        """
        pool = await self._pools.take()
        if pool is not None:
            await pool.end()


class _Borrowed:
    """A connection of the pool for the time of a block; a class, since a generator costs more."""

    __slots__ = ("_connection", "_pool", "_settings")

    def __init__(self, pool: _Pool, settings: WorkingSettings) -> None:
        self._pool = pool
        self._settings = settings

    async def __aenter__(self) -> AbstractConnection:
        free = self._pool.free
        try:
            if free.locked():
                async with within(self._settings.acquire_timeout_seconds):
                    await free.acquire()
            else:  # one is free: nobody waits, so nobody needs a deadline
                await free.acquire()
        except TimeoutError:
            raise StoreUnavailable(
                "No connection to Valkey was free in time; retry, or raise "
                "working.connections_max.",
                connections_max=self._settings.connections_max,
            ) from None
        self._connection = self._pool.take()
        return self._connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if _was_answered(fault) and not self._pool.is_over:
                self._pool.give(self._connection)
            else:
                await _disconnect(self._connection)
        finally:
            self._pool.free.release()


def _was_answered(fault: BaseException | None) -> bool:
    """Whether nothing is under way any more: else it would be read as the next command's answer."""
    return (
        fault is None
        or isinstance(fault, redis_faults.NoScriptError)
        or isinstance(fault.__cause__, redis_faults.ResponseError)
    )


async def _exchanged(connection: AbstractConnection, command: tuple[Any, ...]) -> Any:
    await connection.send_packed_command(connection.pack_command(*command), check_health=False)
    return await connection.read_response()


async def _disconnect(connection: AbstractConnection) -> None:
    """Closed without waiting for anything."""
    await connection.disconnect(nowait=True)


def _info(raw: bytes | dict[str, Any]) -> dict[str, str]:
    """The lines of an INFO section."""
    text = raw.decode() if isinstance(raw, bytes) else ""
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {name: value.strip() for name, value in pairs}
