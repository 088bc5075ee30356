"""A database with a manager in front of it, and calls that have the same answers in a replay.

Time and new ids come from the call that runs, so that the same call, made alone in another
database, is told the same. An embedder of hashed words stands in for the model.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import count
from typing import Any
from uuid import UUID, uuid5

import asyncpg

from mnemic.embedded import EmbeddedServers
from mnemic.errors import EmbedderUnavailable, MnemicError
from mnemic.manager import MemoryManager
from mnemic.model.embedding import ModelSignature, Vector
from mnemic.model.scope import Scope
from mnemic.settings import MemorySettings
from mnemic.store.roles import OWNER_ROLE
from mnemic.wiring import Wiring
from proof.canaries import shown, shown_error
from proof.walls import Walls

__all__ = ["TABLES", "TIERS", "Answer", "Call", "HashingEmbedder", "World", "open_world"]

TIERS = ("episodic", "semantic", "procedural", "working")
# Far ahead of every server's own clock, so that nothing expires but by the calls' time.
START = datetime(2040, 3, 2, 9, 0, tzinfo=UTC)
_IDS = UUID("5d1f4b5e-6c0e-4e0a-8f37-6b6c3f0f7c11")
_numbers = count(1)

TABLES = """
    SELECT c.relname::text AS name,
           bool_or(a.attname = 'scope_id') AS has_scope, bool_or(a.attname = 'id') AS has_id
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
     WHERE c.relnamespace = 'mnemic'::regnamespace AND c.relkind IN ('r', 'p')
       AND NOT c.relispartition
     GROUP BY c.relname HAVING bool_or(a.attname = 'tenant_id')
     ORDER BY 1
"""
"""Every table that has a tenant."""

OWN_PARTITIONS = """
    SELECT relname::text AS name FROM pg_catalog.pg_class
     WHERE relnamespace = 'mnemic'::regnamespace AND relkind = 'r'
       AND relname ~ '_vectors_[0-9a-f]{32}$'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a public method; `verb` is its name behind the manager, a handle or a tier."""

    number: int
    verb: str
    scope: Scope | None
    at: datetime
    values: dict[str, Any] = field(default_factory=dict)
    without_embedder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back: a value or an error, with everything in it that can be read."""

    call: Call
    value: Any
    fault: Exception | None
    text: str


@dataclass(slots=True)
class _Running:
    call: Call
    ids: int = 0


_running: ContextVar[_Running | None] = ContextVar("_running", default=None)


class HashingEmbedder:
    """A vector of 32 signed counts of hashed words; two texts with common words are alike."""

    signature = ModelSignature("hashed-words", "1", 32)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        running = _running.get()
        if running is not None and running.call.without_embedder:
            raise EmbedderUnavailable
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        values = [1e-3] * self.signature.dimensions
        for word in text.casefold().split():
            mark = blake2b(word.strip(".,:;!?").encode(), digest_size=2).digest()
            values[mark[0] % len(values)] += 1.0 if mark[1] & 1 else -1.0
        return array("f", values)

    async def close(self) -> None:
        """Nothing is open."""


class World:
    """Runs calls; `made` holds the ids that each call made."""

    def __init__(self, admin: asyncpg.Connection) -> None:
        self.admin = admin
        self.made: dict[int, list[UUID]] = {}
        self.memory: MemoryManager

    def now(self) -> datetime:
        """The moment of the call that runs; it stands still while it runs."""
        running = _running.get()
        return START if running is None else running.call.at

    def new_id(self) -> UUID:
        """An id that follows from the number of the call."""
        running = _running.get()
        if running is None:
            raise AssertionError("an id is made outside any call")
        running.ids += 1
        made = uuid5(_IDS, f"{running.call.number};{running.ids}")
        self.made.setdefault(running.call.number, []).append(made)
        return made

    async def run(self, call: Call) -> Answer:
        """The answer; a fault that is none of the error tree is one as well."""
        _running.set(_Running(call))
        value, fault = None, None
        try:
            value = await perform(self.memory, call)
        except MnemicError as refusal:
            fault = refusal
        finally:
            _running.set(None)
        text = shown(value) if fault is None else shown_error(fault)
        return Answer(call=call, value=value, fault=fault, text=text)


async def perform(memory: MemoryManager, call: Call) -> Any:
    """The call, made as a host would make it."""
    handle, _, name = call.verb.rpartition(".")
    if handle in TIERS and call.scope is not None:
        return await getattr(getattr(memory.at(call.scope), handle), name)(**call.values)
    owner = getattr(memory, handle) if handle else memory
    scoped = {} if call.scope is None else {"scope": call.scope}
    return await getattr(owner, name)(**scoped, **call.values)


async def open_world(
    servers: EmbeddedServers, database: str, walls: Walls, stack: AsyncExitStack
) -> World:
    """The database without any tenant's row, served by the role of `walls`."""
    admin = await asyncpg.connect(servers.postgres_url(database=database))
    stack.push_async_callback(admin.close)
    await _empty(admin)
    world = World(admin)
    settings = MemorySettings.model_validate(
        {
            "database_url": servers.postgres_url(walls.role, database),
            "database_owner_url": servers.postgres_url(OWNER_ROLE, database),
            "redis_url": servers.redis_url,
            "context": {"deadline_ms": 60_000},
            "maintenance": {"move_lock_seconds": 30},
            "database": {"acquire_timeout_seconds": 30, "require_durable": False},
            "working": {"namespace": f"{database}-{next(_numbers)}"},
        }
    )
    wiring = Wiring(settings, clock=world.now, new_id=world.new_id, embedder=HashingEmbedder())
    world.memory = await stack.enter_async_context(MemoryManager(wiring))
    return world


async def _empty(admin: asyncpg.Connection) -> None:
    """No row of any tenant is left; a thousand times faster than another database."""
    tables = await admin.fetch(TABLES)
    await admin.execute("SET session_replication_role = replica")
    await admin.execute(";".join(f"DELETE FROM mnemic.{table['name']}" for table in tables))
    await admin.execute("RESET session_replication_role")
    for own in await admin.fetch(OWN_PARTITIONS):
        await admin.execute(f"DROP TABLE mnemic.{own['name']}")
