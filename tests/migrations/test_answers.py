"""Answers that quote a memory are found from it, those of before the step as well."""

from __future__ import annotations

from typing import Any

import asyncpg

from mnemic import FactCreate, MemoryManager
from mnemic.settings import MemorySettings
from mnemic.store.upgrade import downgrade, upgrade
from mnemic.testing import HashingEmbedder, a_fact, a_scope
from mnemic.wiring import Wiring

HOLDING = "SELECT count(*) FROM mnemic.idempotency_keys WHERE answer::text LIKE '%canary%'"
SHOWING = "SELECT count(*) FROM mnemic.idempotency_keys WHERE answer ? 'memory'"
NAMED = "SELECT array_agg(memory_id ORDER BY memory_id) FROM mnemic.answered_memories"


def _spaced(name: str) -> FactCreate:
    return a_fact(subject=f"{name}canary  person")


async def test_what_quotes_a_memory_is_found_after_the_way_down_and_up(
    database: Any, servers: Any, admin: asyncpg.Connection
) -> None:
    settings = MemorySettings(
        database_url=database.app_url,
        redis_url=servers.redis_url,
        database={"require_durable": False},
    )
    scope, other = a_scope(), a_scope()
    text = "I use Vim. I live in Oslo."
    async with MemoryManager(Wiring(settings, embedder=HashingEmbedder())) as memory:
        here = memory.at(scope).semantic
        noted = await memory.store_fact(_spaced("Zan"), scope=scope, idempotency_key="k1")
        shown = await here.store_fact(a_fact(subject="Nilcanary"), idempotency_key="k2")
        told = await memory.remember(
            text, scope=other, tags=["zuzcanary", "zuzcanary"], idempotency_key="k3"
        )
        await memory.remember("I like tea.", scope=other, idempotency_key="k4")
        await memory.forget([(await memory.remember("I like gin.", scope=other)).id], scope=other)
    before = await admin.fetchval(HOLDING), await admin.fetchval(SHOWING)

    downgrade(database.owner_url, "0016")
    between = await admin.fetchval(HOLDING), await admin.fetchval(SHOWING)
    upgrade(database.owner_url)

    assert (before, between) == ((3, 1), (2, 0))
    assert len(told.also) == 1
    assert await admin.fetchval(NAMED) == sorted([noted.id, told.id, *told.also])
    async with MemoryManager(Wiring(settings, embedder=HashingEmbedder())) as memory:
        here = memory.at(scope).semantic
        again = await here.store_fact(a_fact(subject="Nilcanary"), idempotency_key="k2")
        await memory.forget([noted.id, shown.id], scope=scope)
        await memory.forget(told.also, scope=other)
    assert again == shown
    assert await admin.fetchval(HOLDING) == 0
