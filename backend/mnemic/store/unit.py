"""Units: one transaction each, with its tenant, and the stores that share it.

`open_unit` begins, sets the tenant for row-level security with `set_config(…, true)`, commits on
success and rolls back on anything else; faults of the driver leave it as ours. Nobody else writes
`commit`. No unit is open while something waits for the network.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar
from uuid import UUID

import asyncpg

from mnemic.errors import ConfigurationError, MnemicError, StoreUnavailable
from mnemic.model.moment import Moment
from mnemic.model.scope import TenantId
from mnemic.settings import DatabaseSettings
from mnemic.store.beginning import Beginning
from mnemic.store.deadline import Deadline
from mnemic.store.embedding_models import EmbeddingModelStore
from mnemic.store.ending import commit, roll_back
from mnemic.store.entities import EntityStore
from mnemic.store.episodes import EpisodeStore
from mnemic.store.fact_ledger import FactLedger
from mnemic.store.facts import FactStore
from mnemic.store.faults import LOST, is_retryable, translated
from mnemic.store.filtered import FilteredStore
from mnemic.store.forgetting import ForgettingStore
from mnemic.store.generations import GenerationStore, counting
from mnemic.store.grants import GrantStore
from mnemic.store.guards import GuardStore
from mnemic.store.jobs import JobStore
from mnemic.store.lifting import LiftingStore
from mnemic.store.lineage import LineageStore
from mnemic.store.per_loop import PerLoop
from mnemic.store.procedures import ProcedureStore
from mnemic.store.retrieval import RetrievalStore
from mnemic.store.scopes import ScopeStore
from mnemic.store.session_setup import (
    prepare_behind_pooler,
    prepare_connection,
    session_settings,
)
from mnemic.store.sessions import SessionStore
from mnemic.store.statement import Statement
from mnemic.store.statistics import StatisticsStore
from mnemic.store.tombstones import TombstoneStore
from mnemic.store.turns import TurnStore
from mnemic.store.vectors import VectorStore

__all__ = ["Database", "Unit"]

T = TypeVar("T")

_NO_TENANT = UUID(int=0)
_ALWAYS = datetime(9999, 1, 1, tzinfo=UTC)
_CLOSE_SECONDS_MAX = 10.0
_BACKOFF_SECONDS = 0.01
_BACKOFF_SECONDS_MAX = 0.5


class Unit:
    """One transaction of one tenant; its statements run one after another.

    Each raises `TimeoutError` after `seconds` without its answer: a server that is stalled says
    nothing, and the driver's own deadline spares the exchanges that it adds to ours. So the driver
    is given none.
    """

    def __init__(
        self,
        connection: asyncpg.Connection,
        tenant: UUID,
        *,
        seconds: float,
        moment: Moment | None = None,
    ) -> None:
        self.connection = connection
        self.tenant = tenant
        self.seconds = seconds
        self.deadline = Deadline(seconds)
        self.moment = moment
        self.keeps_plans = False

    async def fetch(self, statement: Statement, **values: object) -> list[asyncpg.Record]:
        """All rows; the tenant is bound by the unit, never by the caller."""
        sql, arguments = self._bound(statement, values)
        with self.deadline:
            return await self.connection.fetch(sql, *arguments)

    async def fetch_one(self, statement: Statement, **values: object) -> asyncpg.Record | None:
        """The first row, or nothing."""
        sql, arguments = self._bound(statement, values)
        with self.deadline:
            return await self.connection.fetchrow(sql, *arguments)

    def _bound(self, statement: Statement, values: dict[str, object]) -> tuple[str, list[object]]:
        """The statement with its values; of a past moment, over the tables as they were."""
        values["tenant"] = self.tenant
        if self.moment is not None:
            true_at = self.moment.true_at
            statement = statement.past if true_at is None else statement.past_true
            values["known_at"] = self.moment.known_at or _ALWAYS
            values["true_at"] = true_at
        return statement.sql, statement.arguments(values)

    async def execute(self, statement: Statement, **values: object) -> int:
        """Run it; how many rows it touched."""
        values["tenant"] = self.tenant
        with self.deadline:
            status = await self.connection.execute(statement.sql, *statement.arguments(values))
        return int(status.rsplit(" ", 1)[-1]) if status[-1:].isdigit() else 0

    async def execute_many(self, statement: Statement, rows: Sequence[dict[str, object]]) -> None:
        """Run it for each of `rows`, in their order, in one pipelined exchange."""
        given = [statement.arguments({**row, "tenant": self.tenant}) for row in rows]
        with self.deadline:
            await self.connection.executemany(statement.sql, given)

    @cached_property
    def scopes(self) -> ScopeStore:
        """The scope tree."""
        return ScopeStore(self)

    @cached_property
    def sessions(self) -> SessionStore:
        """The life of sessions."""
        return SessionStore(self)

    @cached_property
    def turns(self) -> TurnStore:
        """What was said."""
        return TurnStore(self)

    @cached_property
    def episodes(self) -> EpisodeStore:
        """Experiences."""
        return EpisodeStore(self)

    @cached_property
    def facts(self) -> FactStore:
        """Knowledge and its evidence."""
        return FactStore(self)

    @cached_property
    def ledger(self) -> FactLedger:
        """How statements become facts."""
        return FactLedger(self)

    @cached_property
    def entities(self) -> EntityStore:
        """Names and their aliases."""
        return EntityStore(self)

    @cached_property
    def grants(self) -> GrantStore:
        """Rights to write above one's own scope."""
        return GrantStore(self)

    @cached_property
    def tombstones(self) -> TombstoneStore:
        """Values that were retracted."""
        return TombstoneStore(self)

    @cached_property
    def procedures(self) -> ProcedureStore:
        """Skills."""
        return ProcedureStore(self)

    @cached_property
    def vectors(self) -> VectorStore:
        """Embeddings of every kind."""
        return VectorStore(self)

    @cached_property
    def statistics(self) -> StatisticsStore:
        """Document frequencies."""
        return StatisticsStore(self)

    @cached_property
    def retrieval(self) -> RetrievalStore:
        """Candidates of a recall."""
        return RetrievalStore(self)

    @cached_property
    def filtered(self) -> FilteredStore:
        """Candidates of a recall that only some memories may answer."""
        return FilteredStore(self)

    @cached_property
    def guards(self) -> GuardStore:
        """Idempotency keys and the audit log."""
        return GuardStore(self)

    @cached_property
    def forgetting(self) -> ForgettingStore:
        """Deletion by exact ids."""
        return ForgettingStore(self)

    @cached_property
    def lifting(self) -> LiftingStore:
        """Moves facts from a session to the scope above."""
        return LiftingStore(self)

    @cached_property
    def lineage(self) -> LineageStore:
        """What was made of a memory."""
        return LineageStore(self)

    @cached_property
    def generations(self) -> GenerationStore:
        """How often the tenant was written to."""
        return GenerationStore(self)

    @cached_property
    def models(self) -> EmbeddingModelStore:
        """The registry of embedding models; holds no tenant's data."""
        return EmbeddingModelStore(self)

    @cached_property
    def jobs(self) -> JobStore:
        """What maintenance is due; the only look-up before a tenant is known."""
        return JobStore(self)


class Database:
    """A pool for each running loop and process, made on first use."""

    def __init__(self, url: str, settings: DatabaseSettings) -> None:
        self._url = url.replace("postgresql+asyncpg://", "postgresql://", 1)
        self._settings = settings
        self._session = session_settings(settings)
        self.beginning = Beginning(settings)
        self._pools: PerLoop[asyncio.Future[asyncpg.Pool]] = PerLoop(_terminate)

    @property
    def expects_pooler(self) -> bool:
        """Whether nothing is kept in a session: settings go with each transaction."""
        return self._settings.pgbouncer

    async def _pool(self) -> asyncpg.Pool:
        opening = self._pools.get()
        if opening is None or _failed(opening):
            opening = asyncio.ensure_future(self._open())
            self._pools.put(opening)
        return await asyncio.shield(opening)

    async def _open(self) -> asyncpg.Pool:
        settings = self._settings
        try:
            return await asyncpg.create_pool(
                self._url,
                min_size=0,
                max_size=settings.pool_max,
                timeout=settings.connect_timeout_seconds,
                statement_cache_size=0 if settings.pgbouncer else 256,
                server_settings=None if settings.pgbouncer else self._session,
                init=prepare_behind_pooler if settings.pgbouncer else prepare_connection,
                reset=_leave_as_is,
            )
        except Exception as fault:
            error = translated(fault)
            if error is None:
                raise ConfigurationError(f"MEM_DATABASE_URL cannot be used: {fault}") from fault
            raise error from fault

    @asynccontextmanager
    async def open_unit(
        self,
        tenant: TenantId | None,
        *,
        read_only: bool = False,
        moment: Moment | None = None,
        keep_plans: bool = False,
    ) -> AsyncIterator[Unit]:
        """One transaction of `tenant`; without a tenant, no row of any tenant is visible.

        With a `moment` it reads what was known and true then, and writes nothing. Plans are made
        for the values of each call; with `keep_plans` they may be kept, of the present alone.

        Raises `StoreUnavailable` if no connection is free within
        `database.acquire_timeout_seconds` or the server is away, `OutcomeUnknown` if the
        connection is lost while committing.
        """
        pool = await self._pool()
        connection = await self._acquire(pool)
        reads = read_only or moment is not None
        seconds = self._settings.timeout_seconds
        unit = Unit(connection, tenant or _NO_TENANT, seconds=seconds, moment=moment)
        try:
            try:
                await self.beginning.of(
                    unit, read_only=reads, keep_plans=keep_plans and moment is None
                )
                yield unit
            except BaseException as fault:
                await roll_back(connection, fault)
                raise
            writes = tenant is not None and not reads
            await commit(connection, unit.deadline, first=counting(unit.tenant) if writes else "")
        except Exception as fault:
            error = translated(fault)
            if error is None or error is fault:
                raise
            raise error from fault
        finally:
            unit.deadline.close()
            await self._release(pool, connection)

    async def transact(
        self,
        tenant: TenantId | None,
        work: Callable[[Unit], Awaitable[T]],
        *,
        read_only: bool = False,
        moment: Moment | None = None,
        keep_plans: bool = False,
    ) -> T:
        """`work` in a unit, run again as a whole after a deadlock or a lost race."""
        for attempt in range(self._settings.retry_max + 1):
            try:
                async with self.open_unit(
                    tenant, read_only=read_only, moment=moment, keep_plans=keep_plans
                ) as unit:
                    result = await work(unit)
                    if not read_only and "tombstones" in vars(unit):  # if it was asked
                        await unit.tombstones.hold()
                    return result
            except MnemicError as fault:
                if not is_retryable(fault) or attempt == self._settings.retry_max:
                    raise
            pause = min(_BACKOFF_SECONDS * 2**attempt, _BACKOFF_SECONDS_MAX)
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
        raise AssertionError

    async def _acquire(self, pool: asyncpg.Pool) -> Any:
        try:
            # Not by the pool's own timeout, which runs a task for it: a fifth of a short unit.
            async with asyncio.timeout(self._settings.acquire_timeout_seconds):
                return await pool.acquire()
        except TimeoutError:
            told = (
                "No database connection was free in time; retry, or raise database.pool_max."
                if pool.get_size() >= pool.get_max_size()
                else "No database connection could be opened in time; retry, or see that the "
                "server in MEM_DATABASE_URL answers within database.acquire_timeout_seconds, and "
                "within database.connect_timeout_seconds."
            )
            raise StoreUnavailable(told, pool_max=self._settings.pool_max) from None
        except Exception as fault:
            error = translated(fault)
            raise error or fault from fault

    async def _release(self, pool: asyncpg.Pool, connection: Any) -> None:
        """The connection is the pool's again; one that was lost has left it already.

        The pool shields this from being cancelled; another shield would cost another task.
        """
        with suppress(*LOST):
            await pool.release(connection, timeout=self._settings.acquire_timeout_seconds)

    async def close(self) -> None:
        """The running loop's pool is closed; those of other loops end with them.

        Units under way have ten seconds to end.
        """
        opening = await self._pools.take()
        if opening is not None and not _failed(opening):
            pool = await opening
            try:
                async with asyncio.timeout(_CLOSE_SECONDS_MAX):
                    await pool.close()
            except (*LOST, asyncpg.PostgresError):
                pool.terminate()


def _failed(opening: asyncio.Future[asyncpg.Pool]) -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)


async def _terminate(opening: asyncio.Future[asyncpg.Pool]) -> None:
    """Nothing of the pool is open when its loop ends; nobody is left who could wait for it."""
    opening.cancel()
    if opening.done() and not _failed(opening):
        opening.result().terminate()
        await asyncio.sleep(0)  # the transports close in the loop's next round


async def _leave_as_is(connection: Any) -> None:
    """Units set nothing that outlives their transaction, so there is nothing to reset."""
