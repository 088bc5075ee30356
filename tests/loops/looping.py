"""A manager that starts at once, a job that touches every server, and how a process runs them."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import uvloop

from mnemic import MemoryManager, Scope
from mnemic.model.embedding import ModelSignature, Vector
from mnemic.settings import MemorySettings
from mnemic.testing import a_conversation
from mnemic.wiring import Wiring

__all__ = ["LOOPS", "Hashed", "a_manager", "job", "logins", "told"]

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


class Hashed:
    """A vector of 32 signed counts of hashed words; belongs to no loop."""

    signature = ModelSignature("hashed-words", "1", 32)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        values = [1e-3] * self.signature.dimensions
        for word in text.casefold().split():
            mark = blake2b(word.encode(), digest_size=2).digest()
            values[mark[0] % len(values)] += 1.0 if mark[1] & 1 else -1.0
        return array("f", values)

    async def close(self) -> None:
        """Nothing is open."""


def a_manager(settings: MemorySettings, **parts: Any) -> MemoryManager:
    """Not open yet."""
    return MemoryManager(Wiring(settings, **{"embedder": Hashed(), **parts}))


async def job(memory: MemoryManager, who: str) -> list[str]:
    """Writes and reads through PostgreSQL and Valkey; the texts that `who` is told."""
    scope = Scope.user(who)
    talk = scope.session("talk")
    await memory.at(talk).working.set("step", who)
    await memory.sessions.append(a_conversation([f"The tea of {who} is green."]), scope=talk)
    await memory.sessions.end(scope=talk)
    await memory.remember(f"The milk of {who} is white.", scope=scope)
    await memory.at(scope).working.set("step", who)
    assert await memory.at(scope).working.get("step") == who
    found = await memory.recall("tea milk", scope=scope, floor=0.0)
    return sorted({hit.text for hit in found.hits if hit.kind != "episode"})


def told(who: str) -> list[str]:
    """What `job` finds."""
    return [f"The milk of {who} is white.", f"User: The tea of {who} is green."]


async def logins(memory: MemoryManager) -> set[int]:
    """The server processes that answer this loop: two units at once, so two of them."""
    database = memory._tools.database
    async with database.open_unit(None) as one, database.open_unit(None) as other:
        return {await unit.connection.fetchval("SELECT pg_backend_pid()") for unit in (one, other)}
