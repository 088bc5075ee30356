"""What PostgreSQL holds of a tenant, told so that two tellings can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import asyncpg

from mnemic import MemoryManager, Scope

# Values that are the same whenever the same is done: no ids, digests, times, vectors. How many
# writes there were (`tenant_generations`) is told by chance and by those that changed nothing.
_PLAIN = (
    "SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE "
    "  format_type(a.atttypid, a.atttypmod) !~ '^(uuid|bytea|timestamp|tsvector|halfvec)'"
    "  AND (c.relname, a.attname) NOT IN (('audit_log', 'transaction_id'),"
    "  ('idempotency_keys', 'answer'), ('tenants', 'external_id'), ('grants', 'principal_key'),"
    "  ('working_memory', 'version'), ('working_heads', 'floor'), ('working_heads', 'fence'),"
    "  ('working_heads', 'restored'), ('memory_history', 'before')))"
    "  AS plain"
    "  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
    " WHERE c.relnamespace = 'mnemic'::regnamespace AND c.relkind IN ('r', 'p')"
    "   AND NOT c.relispartition AND NOT a.attisdropped AND c.relname <> 'tenant_generations'"
    "   AND EXISTS (SELECT FROM pg_attribute t"
    "                WHERE t.attrelid = c.oid AND t.attname = 'tenant_id')"
    " GROUP BY 1 ORDER BY 1"
)


@dataclass(frozen=True, slots=True)
class Rows:
    """`exact` differs when anything does; `shape` not for ids, digests and times."""

    exact: dict[str, str]
    shape: dict[str, str]

    def differing(self, other: Rows, *, but: str = "") -> dict[str, tuple[str, str]]:
        """Which tables differ in shape, and how; `but` is one that does not count."""
        names = {*self.shape, *other.shape} - {but}
        both = {name: (self.shape.get(name, ""), other.shape.get(name, "")) for name in names}
        return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


class RowReader:
    """Reads with a connection that sees through every wall."""

    def __init__(self, admin: asyncpg.Connection) -> None:
        self._admin = admin
        self._sql = ""

    async def open(self) -> RowReader:
        parts = []
        for name, plain in await self._admin.fetch(_PLAIN):
            columns = ", ".join(f"t.{one}" for one in plain or ()) or "''"
            parts.append(
                f"SELECT '{name}' AS name, md5(string_agg(t::text, '|' ORDER BY t::text)) AS exact,"
                f" string_agg(row({columns})::text, '|' ORDER BY row({columns})::text) AS shape"
                f"  FROM mnemic.{name} t WHERE t.tenant_id = $1"
            )
        self._sql = " UNION ALL ".join(parts)
        return self

    async def of(self, scope: Scope, memory: MemoryManager) -> Rows:
        """Everything of the tenant, and what working memory shows in `scope`."""
        found: list[Any] = await self._admin.fetch(self._sql, scope.tenant.id)
        held = await memory.at(scope).working.get_all()
        filled = [row for row in found if row["exact"] is not None]
        working = sorted(map(repr, held.values()))
        return Rows(
            exact={row["name"]: row["exact"] for row in filled} | {"working": repr(held)},
            shape={row["name"]: row["shape"] for row in filled} | {"working": repr(working)},
        )
