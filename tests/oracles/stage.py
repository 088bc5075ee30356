"""A front door on a database of its own, and a look at what is really stored behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from mnemic import MemoryManager, MemorySettings, Receipt, Scope
from mnemic.embedded import EmbeddedServers
from mnemic.model.embedding import Embedder
from mnemic.model.recall import MemoryItem
from mnemic.service.tools import Tools
from mnemic.store import roles
from mnemic.store.unit import Unit
from mnemic.testing import HashingEmbedder, TickingClock
from mnemic.wiring import Wiring
from oracles.doors import Kept

_TABLES = """
    SELECT c.relname FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
     WHERE n.nspname = 'mnemic' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
     ORDER BY c.relname
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """The front door, and a connection that sees through every wall."""

    memory: MemoryManager
    seen: asyncpg.Connection
    counting: str
    settings: MemorySettings
    clock: TickingClock

    def __repr__(self) -> str:
        return "Stage"  # in what a failing property prints

    @property
    def tools(self) -> Tools:
        """What the verbs of the front door are handed."""
        return self.memory._tools

    def another(
        self, *, embedder: Embedder | None = None, **sections: dict[str, Any]
    ) -> MemoryManager:
        """A further front door on the same servers, not yet open, with some settings changed."""
        changed = {
            name: getattr(self.settings, name).model_copy(update=values)
            for name, values in sections.items()
        }
        settings = self.settings.model_copy(update=changed)
        wiring = Wiring(settings, clock=self.clock, embedder=embedder or HashingEmbedder())
        return MemoryManager(wiring)

    async def stored(self, scope: Scope) -> dict[str, Any]:
        """Everything that is kept of the tenant: rows by table, and the scope's working memory."""
        rows = await self.seen.fetch(self.counting, scope.tenant.id)
        kept: dict[str, Any] = {row["name"]: row["count"] for row in rows if row["count"]}
        return kept | {"working": await self.memory.at(scope).working.record()}

    async def kept(self, receipt: Receipt | Kept, scope: Scope) -> Any:
        """The memory that a receipt tells of."""

        async def read(unit: Unit) -> Sequence[MemoryItem]:
            if receipt.kind == "fact":
                return await unit.facts.by_ids(scope, [receipt.id], live_only=False)
            return list(
                (await unit.retrieval.hits.by_ids(scope, [(receipt.kind, receipt.id)])).values()
            )

        found = await self.tools.transact(scope.tenant.id, read, read_only=True)
        assert len(found) == 1, f"{receipt} tells of what is not there"
        return found[0]


@asynccontextmanager
async def standing(servers: EmbeddedServers, template: str, name: str) -> AsyncIterator[Stage]:
    """A stage on a copy of the migrated database, thrown away afterwards."""
    async with AsyncExitStack() as stack:
        admin = await asyncpg.connect(servers.postgres_url())
        stack.push_async_callback(admin.close)
        await admin.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        stack.push_async_callback(admin.execute, f"DROP DATABASE {name} WITH (FORCE)")
        await roles.init(servers.postgres_url(), database=name)
        seen = await asyncpg.connect(servers.postgres_url("postgres", name))
        stack.push_async_callback(seen.close)
        yield await stack.enter_async_context(_on(servers, name, seen))


@asynccontextmanager
async def _on(
    servers: EmbeddedServers, name: str, seen: asyncpg.Connection
) -> AsyncIterator[Stage]:
    tables = [row["relname"] for row in await seen.fetch(_TABLES)]
    counting = " UNION ALL ".join(
        f"SELECT '{table}' AS name, count(*) AS count FROM mnemic.{table} WHERE tenant_id = $1"
        for table in tables
    )
    settings = MemorySettings(
        database_url=servers.postgres_url(roles.APP_ROLE, name),
        database_owner_url=servers.postgres_url(roles.OWNER_ROLE, name),
        redis_url=servers.redis_url,
        context={"deadline_ms": 60_000},
        # A run looks at every tenant of the database, those of other tests among them.
        maintenance={"tenants_max": 10_000},
        database={"require_durable": False, "acquire_timeout_seconds": 20},
        working={"timeout_seconds": 5, "connect_timeout_seconds": 5},
    )
    clock = TickingClock()
    wiring = Wiring(settings, clock=clock, embedder=HashingEmbedder())
    async with MemoryManager(wiring) as memory:
        yield Stage(memory, seen, counting, settings, clock)
