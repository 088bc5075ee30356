"""An index of nearest neighbours for one tenant alone: built, found again, and taken away.

`promoted_indexes` says what is wanted, the catalogue what is there; only an index that both call
valid is asked. Every step may be broken off: the next worker finds what was left of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from mnemic.model.scope import TenantId
from mnemic.store.owning import Owner
from mnemic.store.placement import PromotedIndex, promoted_indexes
from mnemic.store.vectors import KINDS

__all__ = [
    "TABLES",
    "Model",
    "Promotions",
    "build_statement",
    "index_name",
    "leaf_of",
    "own_partition",
]

TABLES = {kind: f"{kind}_vectors" for kind in KINDS}
M = 16
EF_CONSTRUCTION = 64
_TENANT_DIGITS = 20  # with the names of the longest table and of a model, 63 bytes are all

_MODEL = "SELECT id, dimensions FROM mnemic.embedding_models WHERE state = 'live'"

_LEAF = """
SELECT c.relname::text FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
 WHERE h.inhparent = to_regclass('mnemic.' || $1) AND c.relname = $2
"""

_BEYOND = "SELECT tenant_id FROM mnemic.tenants_beyond($1, $2)"

_COUNT = """
SELECT count(*) FROM (SELECT FROM mnemic.{table}
                       WHERE tenant_id = $1 AND model_id = $2 LIMIT $3) v
"""

_WANTED = """
INSERT INTO mnemic.promoted_indexes (tenant_id, table_name, model_id, index_name, state)
VALUES ($1, $2, $3, $4, 'building')
ON CONFLICT (tenant_id, table_name, model_id)
DO UPDATE SET index_name = excluded.index_name, state = 'building', valid_since = NULL
"""

_VALID = """
UPDATE mnemic.promoted_indexes SET state = 'valid', valid_since = $4
 WHERE tenant_id = $1 AND table_name = $2 AND model_id = $3
"""

_DROPPING = """
UPDATE mnemic.promoted_indexes SET state = 'dropping', valid_since = NULL
 WHERE tenant_id = $1 AND table_name = $2 AND model_id = $3
"""

_GONE = """
DELETE FROM mnemic.promoted_indexes WHERE tenant_id = $1 AND table_name = $2 AND model_id = $3
"""

_ROWS = "SELECT table_name, model_id, index_name, state FROM mnemic.promoted_indexes"

# Built beside the writers, who wait for nothing. The cast is part of the index: the column holds
# vectors of any model, and so of any length.
_BUILD = """
CREATE INDEX CONCURRENTLY {name} ON mnemic.{leaf}
  USING hnsw (CAST(embedding AS halfvec({dimensions})) halfvec_ip_ops)
  WITH (m = {m}, ef_construction = {ef_construction})
  WHERE tenant_id = '{tenant}' AND model_id = {model}
"""


@dataclass(frozen=True, slots=True)
class Model:
    """The model whose vectors answer: its number, and how long its vectors are."""

    id: int
    dimensions: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """A row of the register."""

    table: str
    model: int
    index: str
    state: str


def own_partition(table: str, tenant: TenantId) -> str:
    """The name of the tenant's own partition, whether or not there is one."""
    return f"{table}_{UUID(str(tenant)).hex}"


def index_name(leaf: str, tenant: TenantId, model: int) -> str:
    """The name of the tenant's index on a partition, at most 63 bytes of it."""
    digits = UUID(str(tenant)).hex
    # The tenant's own partition names it already.
    apart = "" if leaf.endswith(digits) else f"_{digits[:_TENANT_DIGITS]}"
    return f"{leaf}{apart}_{model:x}_idx"


async def leaf_of(connection: Any, table: str, tenant: TenantId) -> str:
    """The partition that holds the tenant's vectors: its own, else the one that others share."""
    own = await connection.fetchval(_LEAF, table, own_partition(table, tenant))
    return own or f"{table}_default"


def build_statement(name: str, leaf: str, tenant: TenantId, model: Model) -> str:
    """What makes the tenant's index; none of its values can be bound, and all are ours."""
    return _BUILD.format(
        name=name,
        leaf=leaf,
        dimensions=int(model.dimensions),
        m=M,
        ef_construction=EF_CONSTRUCTION,
        tenant=UUID(str(tenant)),
        model=int(model.id),
    )


class Promotions:
    """Makes and drops indexes as the owner; alone in the database, see `as_owner`."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    async def model(self) -> Model | None:
        """The live model, if there is one."""
        row = await self._owner.connection.fetchrow(_MODEL)
        return Model(row["id"], row["dimensions"]) if row is not None else None

    async def beyond(self, rows: int, *, limit: int) -> list[TenantId]:
        """Tenants that hold more memories than `rows`, of whatever kind."""
        found = await self._owner.connection.fetch(_BEYOND, rows, limit)
        return [TenantId(row["tenant_id"]) for row in found]

    async def indexes(self) -> tuple[PromotedIndex, ...]:
        """Every tenant's index that is there, valid or not."""
        return await promoted_indexes(self._owner.connection)

    async def wanted(self, tenant: TenantId) -> list[Wanted]:
        """What the register says of the tenant."""
        async with self._owner.transaction(tenant) as connection:
            return [Wanted(*row) for row in await connection.fetch(_ROWS)]

    async def count(self, tenant: TenantId, table: str, model: int, *, most: int) -> int:
        """How many vectors of the model the tenant has; counted up to `most`."""
        async with self._owner.transaction(tenant) as connection:
            found: int = await connection.fetchval(_COUNT.format(table=table), tenant, model, most)
        return found

    async def name(self, tenant: TenantId, table: str, model: Model) -> str:
        """What the tenant's index of the table is called, whether or not there is one."""
        leaf = await leaf_of(self._owner.connection, table, tenant)
        return index_name(leaf, tenant, model.id)

    async def is_valid(self, tenant: TenantId, name: str) -> bool:
        """Whether both the register and the catalogue say so."""
        return any(
            one.index == name and one.state == "valid" for one in await self.wanted(tenant)
        ) and any(one.name == name and one.is_valid for one in await self.indexes())

    async def build(self, tenant: TenantId, table: str, model: Model, *, at: datetime) -> None:
        """The tenant has a valid index of the table's vectors, and the register says so.

        What another worker left unfinished is dropped and built again; what it finished is taken.
        """
        connection = self._owner.connection
        leaf = await leaf_of(connection, table, tenant)
        name = index_name(leaf, tenant, model.id)
        key = (tenant, table, model.id)
        there = {one.name: one.is_valid for one in await self.indexes()}
        async with self._owner.transaction(tenant):
            await connection.execute(_WANTED, *key, name)
        if there.get(name) is False:
            await self.drop(name)
        if not there.get(name):
            await connection.execute(build_statement(name, leaf, tenant, model))
        async with self._owner.transaction(tenant):
            await connection.execute(_VALID, *key, at)

    async def demote(self, tenant: TenantId, table: str, model: int, name: str) -> None:
        """The tenant has no such index, and the register does not know of it.

        Nobody asks the index from the moment at which the register says so.
        """
        key = (tenant, table, model)
        async with self._owner.transaction(tenant) as connection:
            await connection.execute(_DROPPING, *key)
        await self.drop(name)
        async with self._owner.transaction(tenant) as connection:
            await connection.execute(_GONE, *key)

    async def drop(self, name: str) -> None:
        """The index is gone; who reads it meanwhile reads it to the end."""
        await self._owner.connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS mnemic.{name}")
