"""A tenant's vectors in partitions of its own, and back, while it is served.

The rows are copied beside those who read and write, and copied again where they changed. Then one
transaction holds the table for itself, brings the copy level, and puts it in the place of the
rows; whoever asks meanwhile waits for it. It is given a bound, and changes nothing when it does
not end within it. Every step may be broken off: the next worker goes on with what it finds.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg

from mnemic.errors import StoreUnavailable
from mnemic.model.scope import Tenant, TenantId
from mnemic.store.owning import Owner
from mnemic.store.placement import Partition, partitions
from mnemic.store.promoting import TABLES, Model, Wanted, build_statement, index_name, own_partition

__all__ = ["DEDICATED", "SHARED", "Partitions"]

DEDICATED, SHARED = "dedicated", "shared"
BATCH_ROWS = 5_000
PASSES_MAX = 5
# Shorter than a deadlock takes to be found: then it is this that gives way, and never a caller.
LOCK_TIMEOUT_MS = 500
ATTEMPTS_MAX = 120
_PAUSE_SECONDS = 0.25

_NOUNS = {table: f"{kind}s" for kind, table in TABLES.items()}

_WISH = "SELECT isolation FROM mnemic.tenants"
_WISHED = """
INSERT INTO mnemic.tenants (tenant_id, kind, external_id, isolation) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant_id) DO UPDATE SET isolation = excluded.isolation
"""

_COLUMNS = """
SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum),
       string_agg(quote_ident(attname), ', ' ORDER BY attnum)
         FILTER (WHERE attname NOT IN ('tenant_id', 'model_id', 'memory_id'))
  FROM pg_attribute
 WHERE attrelid = to_regclass('mnemic.' || $1) AND attnum > 0 AND NOT attisdropped
"""
_HAS_KEYS = """
SELECT EXISTS (SELECT FROM pg_constraint
                WHERE conrelid = to_regclass('mnemic.' || $1) AND contype = 'f')
"""

# As the partition that others share, but for the foreign keys, which the table brings when it takes
# the partition in. The check spares a look at each row then.
_MAKE = """
CREATE TABLE mnemic.{name} (
  LIKE mnemic.{table} INCLUDING STORAGE,
  CONSTRAINT {name}_pkey PRIMARY KEY (tenant_id, model_id, memory_id),
  CONSTRAINT {name}_own_check CHECK (tenant_id = '{tenant}')
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
CREATE INDEX {name}_exact_idx ON mnemic.{name} (tenant_id, model_id, scope_id{actor})
  INCLUDE (memory_id, embedding);
ALTER TABLE mnemic.{name} ENABLE ROW LEVEL SECURITY;
ALTER TABLE mnemic.{name} FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON mnemic.{name}
  USING (tenant_id = (SELECT nullif(current_setting('mnemic.tenant_id', true), '')::uuid))
  WITH CHECK (tenant_id = (SELECT nullif(current_setting('mnemic.tenant_id', true), '')::uuid));
"""

_COPY = """
WITH part AS MATERIALIZED (
  SELECT {columns} FROM mnemic.{table}
   WHERE tenant_id = $1 AND (model_id, memory_id) > ($2, $3)
   ORDER BY model_id, memory_id LIMIT $4
), put AS (
  INSERT INTO mnemic.{name} AS o ({columns}) SELECT {columns} FROM part
  ON CONFLICT (tenant_id, model_id, memory_id)
  DO UPDATE SET ({values}) = ROW ({given})
   WHERE ({held}) IS DISTINCT FROM ({given})
  RETURNING 1)
SELECT model_id, memory_id, (SELECT count(*) FROM put) AS changed FROM part
 ORDER BY model_id DESC, memory_id DESC LIMIT 1
"""
_FORGET = """
DELETE FROM mnemic.{name} o
 WHERE o.tenant_id = $1
   AND NOT EXISTS (SELECT FROM mnemic.{table} v
                    WHERE v.tenant_id = $1 AND v.model_id = o.model_id
                      AND v.memory_id = o.memory_id)
"""
_MOVED = (
    "UPDATE mnemic.promoted_indexes SET index_name = $3 WHERE table_name = $1 AND model_id = $2"
)
_UNKNOWN = "DELETE FROM mnemic.promoted_indexes WHERE table_name = $1"


class Partitions:
    """Moves tenants as the owner; alone in the database, see `as_owner`."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._connection = owner.connection

    async def wish(self, tenant: Tenant, isolation: str) -> None:
        """How the tenant is to be kept stands in its row."""
        async with self._owner.transaction(tenant.id):
            await self._connection.execute(
                _WISHED, tenant.id, tenant.kind.value, tenant.external_id, isolation
            )

    async def wished(self, tenant: TenantId) -> str:
        """How the tenant is to be kept."""
        async with self._owner.transaction(tenant):
            return await self._connection.fetchval(_WISH) or SHARED

    async def all(self) -> tuple[Partition, ...]:
        """Every partition of a tenant's own, and what moves have left."""
        return await partitions(self._connection)

    async def set_apart(
        self, tenant: TenantId, table: str, *, model: Model | None, seconds: float
    ) -> bool:
        """The tenant's vectors stand in a partition of its own; whether they were moved now.

        The table is held for at most `seconds`. Raises `StoreUnavailable` if that is not enough,
        or if it is not to be had; then nothing has changed for those who read and write.
        """
        name = own_partition(table, tenant)
        there = {one.name: one.is_attached for one in await self.all()}
        if there.get(name):
            return False
        if name in there and await self._connection.fetchval(_HAS_KEYS, name):
            await self.drop(table, tenant)  # left behind by a move back
            del there[name]
        if name not in there:
            await self._make(name, table, tenant)
        await self._copy_until_level(name, table, tenant)
        index = await self._index(name, table, tenant, model)
        await self._connection.execute(f"VACUUM (ANALYZE) mnemic.{name}")
        async with self._held(tenant, table, seconds):
            await self._copy(name, table, tenant, after=None, limit=None)
            await self._connection.execute(_FORGET.format(name=name, table=table), tenant)
            await self._connection.execute(
                f"DELETE FROM mnemic.{table}_default WHERE tenant_id = $1", tenant
            )
            await self._connection.execute(
                f"ALTER TABLE mnemic.{table} ATTACH PARTITION mnemic.{name}"
                f" FOR VALUES IN ('{tenant}');"
                f"ALTER TABLE mnemic.{name} DROP CONSTRAINT {name}_own_check"
            )
            if index is not None:
                await self._connection.execute(_MOVED, table, index.model, index.index)
        if index is not None:
            old = index_name(f"{table}_default", tenant, index.model)
            await self._connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS mnemic.{old}")
        return True

    async def put_back(self, tenant: TenantId, table: str, *, seconds: float) -> bool:
        """The tenant's vectors stand among those of others again; as `set_apart`.

        All of them are written while the table is held: nobody can put them there before.
        """
        name = own_partition(table, tenant)
        there = {one.name: one.is_attached for one in await self.all()}
        if there.get(name):
            async with self._held(tenant, table, seconds):
                await self._connection.execute(
                    f"ALTER TABLE mnemic.{table} DETACH PARTITION mnemic.{name}"
                )
                columns, _ = await self._connection.fetchrow(_COLUMNS, table)
                await self._connection.execute(
                    f"INSERT INTO mnemic.{table} ({columns}) SELECT {columns} FROM mnemic.{name}"
                )
                await self._connection.execute(_UNKNOWN, table)
        if name in there:
            await self.drop(table, tenant)
        return bool(there.get(name))

    async def drop(self, table: str, tenant: TenantId) -> None:
        """What a move left is gone: a table that nobody reads."""
        name = own_partition(table, tenant)
        async for attempt in _attempts():
            async with attempt, self._owner.transaction(tenant):
                await self._connection.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
                # Its foreign keys stand in that table too.
                await self._connection.execute(
                    f"LOCK TABLE mnemic.{_NOUNS[table]} IN ACCESS EXCLUSIVE MODE;"
                    f"DROP TABLE IF EXISTS mnemic.{name}"
                )

    async def _make(self, name: str, table: str, tenant: TenantId) -> None:
        actor = ", actor_id" if table == TABLES["turn"] else ""
        await self._connection.execute(
            _MAKE.format(name=name, table=table, tenant=UUID(str(tenant)), actor=actor)
        )

    async def _copy_until_level(self, name: str, table: str, tenant: TenantId) -> None:
        """The copy is as the rows are, but for what was written during the last pass."""
        for _ in range(PASSES_MAX):
            after, changed = None, 0
            while True:
                last = await self._copy(name, table, tenant, after=after, limit=BATCH_ROWS)
                if last is None:
                    break
                after = (last["model_id"], last["memory_id"])
                changed += last["changed"]
            async with self._owner.transaction(tenant):
                await self._connection.execute(_FORGET.format(name=name, table=table), tenant)
            if changed < BATCH_ROWS:
                break

    async def _copy(
        self,
        name: str,
        table: str,
        tenant: TenantId,
        *,
        after: tuple[int, UUID] | None,
        limit: int | None,
    ) -> Any:
        """Up to `limit` rows behind the key `after` are in the copy as they are; the last one."""
        columns, values = await self._connection.fetchrow(_COLUMNS, table)
        names = values.split(", ")
        statement = _COPY.format(
            name=name,
            table=table,
            columns=columns,
            values=values,
            held=", ".join(f"o.{one}" for one in names),
            given=", ".join(f"excluded.{one}" for one in names),
        )
        key = after or (-1, UUID(int=0))
        async with self._owner.transaction(tenant):
            return await self._connection.fetchrow(statement, tenant, *key, limit)

    async def _index(
        self, name: str, table: str, tenant: TenantId, model: Model | None
    ) -> Wanted | None:
        """The copy has an index of neighbours if the rows have a valid one; then which."""
        if model is None:
            return None
        async with self._owner.transaction(tenant):
            row = await self._connection.fetchrow(
                "SELECT state FROM mnemic.promoted_indexes WHERE table_name = $1 AND model_id = $2",
                table,
                model.id,
            )
        if row is None or row["state"] != "valid":
            return None
        made = index_name(name, tenant, model.id)
        await self._connection.execute(f"DROP INDEX IF EXISTS mnemic.{made}")
        await self._connection.execute(
            build_statement(made, name, tenant, model).replace(" CONCURRENTLY", "")
        )
        return Wanted(table, model.id, made, "valid")

    @asynccontextmanager
    async def _held(self, tenant: TenantId, table: str, seconds: float) -> AsyncIterator[None]:
        """One transaction that has the table for itself, for at most `seconds`."""
        connection = self._connection
        async for attempt in _attempts():
            transaction = connection.transaction()
            async with attempt:
                await transaction.start()
                try:
                    await connection.execute(
                        f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS};"
                        f"SELECT set_config('mnemic.tenant_id', '{tenant}', true)"
                    )
                    # The table itself first, not its partitions alone: who had read which there are
                    # before he waits would look where the rows are no more. A partition that is
                    # taken in refers to the memories, whose writers wait too.
                    await connection.execute(
                        f"LOCK TABLE mnemic.{_NOUNS[table]} IN SHARE ROW EXCLUSIVE MODE;"
                        f"LOCK TABLE mnemic.{table} IN ACCESS EXCLUSIVE MODE"
                    )
                except BaseException:
                    await transaction.rollback()
                    raise
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            await transaction.rollback()
            raise StoreUnavailable(
                f"the move would hold {table} for longer than {seconds:g} s, and was undone; allow "
                "more at a quiet hour, with --lock-seconds"
            ) from None
        except BaseException:
            await transaction.rollback()
            raise
        await transaction.commit()


class _Attempt:
    """One attempt at locks that others hold; their refusal is swallowed, and tried again."""

    def __init__(self) -> None:
        self.is_refused = False

    async def __aenter__(self) -> None:
        self.is_refused = False

    async def __aexit__(self, kind: object, fault: BaseException | None, trace: object) -> bool:
        del kind, trace
        self.is_refused = isinstance(
            fault, (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
        )
        return self.is_refused


async def _attempts() -> AsyncIterator[_Attempt]:
    """Attempts until one is not refused. Raises `StoreUnavailable` after `ATTEMPTS_MAX`."""
    for _ in range(ATTEMPTS_MAX):
        attempt = _Attempt()
        yield attempt
        if not attempt.is_refused:
            return
        await asyncio.sleep(_PAUSE_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
    raise StoreUnavailable("the tables are too busy to be moved now; try again later")
