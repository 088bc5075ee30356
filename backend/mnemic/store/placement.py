"""Which tenants have an index or partitions of their own: read from the catalogue, by any role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from mnemic.store.owning import LOCK

__all__ = ["Partition", "Placement", "PromotedIndex", "partitions", "placement", "promoted_indexes"]

# A tenant's index is told by its predicate: names are cut short.
_INDEXES = r"""
SELECT k.relname::text AS name, c.relname::text AS leaf,
       coalesce((SELECT p.relname::text FROM pg_inherits h JOIN pg_class p ON p.oid = h.inhparent
                  WHERE h.inhrelid = c.oid), '') AS table_name,
       CAST(substring(d.text FROM 'tenant_id = ''([0-9a-f-]{36})''') AS uuid) AS tenant,
       CAST(substring(d.text FROM 'model_id = ''?(\d+)') AS int) AS model,
       i.indisvalid AND i.indisready AS is_valid, pg_relation_size(k.oid) AS bytes,
       coalesce(s.idx_scan, 0) AS scans
  FROM pg_index i
  JOIN pg_class k ON k.oid = i.indexrelid JOIN pg_am m ON m.oid = k.relam AND m.amname = 'hnsw'
  JOIN pg_class c ON c.oid = i.indrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'mnemic'
 CROSS JOIN LATERAL (SELECT pg_get_expr(i.indpred, i.indrelid) AS text) d
  LEFT JOIN pg_stat_user_indexes s ON s.indexrelid = k.oid
 WHERE i.indpred IS NOT NULL ORDER BY 1
"""

# A table of vectors that is no partition is one that a move has left unfinished.
_PARTITIONS = r"""
SELECT c.relname::text AS name, substring(c.relname FROM '^(.+_vectors)_') AS table_name,
       CAST(substring(c.relname FROM '_([0-9a-f]{32})$') AS uuid) AS tenant,
       c.relispartition AS is_attached
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'mnemic'
 WHERE c.relkind = 'r' AND c.relname ~ '_vectors_[0-9a-f]{32}$' ORDER BY 1
"""

_AT_IT = """
SELECT EXISTS (SELECT FROM pg_locks
                WHERE locktype = 'advisory' AND objsubid = 1 AND granted
                  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                  AND classid = CAST($1 AS bigint) >> 32
                  AND objid = CAST($1 AS bigint) & 4294967295)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotedIndex:
    """A tenant's own index of one table's vectors of one model; `scans` since statistics began."""

    name: str
    leaf: str
    table_name: str
    tenant: UUID
    model: int
    is_valid: bool
    bytes: int
    scans: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A tenant's own table of vectors; until it is attached nobody reads it."""

    name: str
    table_name: str
    tenant: UUID
    is_attached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """All of them, and whether a worker is at it now."""

    indexes: tuple[PromotedIndex, ...]
    partitions: tuple[Partition, ...]
    is_changing: bool


async def promoted_indexes(connection: Any) -> tuple[PromotedIndex, ...]:
    """Every tenant's own index, valid or not, by name."""
    return tuple(PromotedIndex(**row) for row in await connection.fetch(_INDEXES))


async def partitions(connection: Any) -> tuple[Partition, ...]:
    """Every tenant's own partition, and those that are to become one, by name."""
    return tuple(Partition(**row) for row in await connection.fetch(_PARTITIONS))


async def placement(connection: Any) -> Placement:
    """What there is, and whether it is changing."""
    return Placement(
        indexes=await promoted_indexes(connection),
        partitions=await partitions(connection),
        is_changing=await connection.fetchval(_AT_IT, LOCK),
    )
