"""No transaction is open while something waits for the network: seen from outside, in each verb."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from mnemic import MemoryManager, Scope
from mnemic.model.embedding import Vector
from mnemic.settings import MemorySettings
from mnemic.testing import TickingClock, a_conversation
from mnemic.wiring import Wiring

TALK = ["The rota is weekly.", "Understood."]
STEPS = "Deploy\n1. Tag"

Verb = Callable[[MemoryManager, Scope], Awaitable[object]]

VERBS: dict[str, Verb] = {
    "append": lambda memory, scope: memory.sessions.append(
        a_conversation(TALK), scope=scope.session("t")
    ),
    "end": lambda memory, scope: memory.sessions.end(scope=scope.session("s")),
    "semantic": lambda memory, scope: memory.remember("Fridays are quiet.", scope=scope),
    "episodic": lambda memory, scope: memory.remember(
        "It went well.", scope=scope, memory_type="episodic"
    ),
    "procedural": lambda memory, scope: memory.remember(
        STEPS, scope=scope, memory_type="procedural"
    ),
    "recall": lambda memory, scope: memory.recall("rota", scope=scope),
    "context": lambda memory, scope: memory.context("rota", scope=scope),
}


class Watching:
    """Embeds, and looks from outside at what the database holds open meanwhile."""

    def __init__(self, inner: object, outside: asyncpg.Connection) -> None:
        self.inner = inner
        self.signature = inner.signature  # type: ignore[attr-defined]
        self.outside = outside
        self.calls = 0
        self.open_transactions = 0

    async def embed(self, texts: list[str]) -> list[Vector]:
        self.calls += 1
        self.open_transactions += await self.outside.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE usename = 'mnemic_app'"
            " AND datname = current_database() AND xact_start IS NOT NULL"
        )
        found: list[Vector] = await self.inner.embed(texts)  # type: ignore[attr-defined]
        return found

    async def close(self) -> None:
        """The model stays open for others."""


@pytest.mark.parametrize("verb", VERBS)
async def test_no_transaction_is_open_while_text_is_embedded(
    verb: str,
    settings: MemorySettings,
    memory: MemoryManager,
    embedder: object,
    seen: asyncpg.Connection,
    scope: Scope,
) -> None:
    await memory.sessions.append(a_conversation(TALK), scope=scope.session("s"))
    watching = Watching(embedder, seen)

    async with MemoryManager(Wiring(settings, clock=TickingClock(), embedder=watching)) as watched:
        await VERBS[verb](watched, scope)

    assert watching.calls >= 1
    assert watching.open_transactions == 0
