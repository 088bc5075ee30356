"""What is derived is made again after its tables were taken down and put up."""

from __future__ import annotations

from typing import Any

import asyncpg

from mnemic import MemoryManager
from mnemic.model.turn_vector import SHORT_WORDS_MAX
from mnemic.settings import MemorySettings
from mnemic.store.upgrade import downgrade, upgrade
from mnemic.testing import HashingEmbedder, a_conversation, a_scope
from mnemic.wiring import Wiring

LACKING = """
    SELECT (SELECT count(*) FROM mnemic.turns WHERE needs_vector OR NOT stats_counted)
         + (SELECT count(*) FROM mnemic.facts
             WHERE status = 'live' AND (needs_vector OR NOT stats_counted))
         + (SELECT count(*) FROM mnemic.episodes WHERE needs_vector OR NOT stats_counted)
"""


async def test_on_the_way_down_a_vector_goes_that_holds_more_than_its_turn(
    database: Any, servers: Any, admin: asyncpg.Connection
) -> None:
    """The release before would forget a turn and leave what took it in."""
    settings = MemorySettings(
        database_url=database.app_url,
        redis_url=servers.redis_url,
        database={"require_durable": False},
    )
    scope = a_scope()
    session = scope.session("s")
    async with MemoryManager(Wiring(settings, embedder=HashingEmbedder())) as memory:
        told = await memory.sessions.append(
            a_conversation(["The lease is red.", "Noted.", "word " * (SHORT_WORDS_MAX + 1)]),
            scope=session,
        )

    downgrade(database.owner_url, "0020")
    left = await admin.fetch("SELECT memory_id FROM mnemic.turn_vectors")
    due = await admin.fetch("SELECT id FROM mnemic.turns WHERE needs_vector")
    past = await admin.fetchval("SELECT bool_and(embedded_at = recorded_at) FROM mnemic.turns")
    upgrade(database.owner_url)

    assert {row["memory_id"] for row in left} == {told[0].id, told[2].id}
    assert past is not False, "what is made again was near from the beginning"
    assert [row["id"] for row in due] == [told[1].id]
    async with MemoryManager(Wiring(settings, embedder=HashingEmbedder())) as memory:
        await memory.maintenance.embed_missing()
    assert await admin.fetchval("SELECT count(*) FROM mnemic.turn_vectors") == 3
    assert await admin.fetchval(LACKING) == 3, "words are counted later"


async def test_vectors_and_counts_come_back_after_the_way_down_and_up(
    database: Any, servers: Any, admin: asyncpg.Connection
) -> None:
    settings = MemorySettings(
        database_url=database.app_url,
        redis_url=servers.redis_url,
        database={"require_durable": False},
    )
    scope = a_scope()
    async with MemoryManager(Wiring(settings, embedder=HashingEmbedder())) as memory:
        session = scope.session("s")
        await memory.sessions.append(a_conversation(["The lease is red.", "Noted."]), scope=session)
        await memory.sessions.end(scope=session)
        await memory.remember("I use Vim.", scope=scope)
        await memory.maintenance.count_terms()
    before = await admin.fetchval(LACKING)

    downgrade(database.owner_url, "0006")
    upgrade(database.owner_url)

    between = await admin.fetchval(LACKING)
    async with MemoryManager(Wiring(settings, embedder=HashingEmbedder())) as memory:
        await memory.maintenance.embed_missing()
        await memory.maintenance.count_terms()
        found = await memory.recall("Vim", scope=scope, floor=0.0)
    assert (before, between) == (0, 4)
    assert await admin.fetchval(LACKING) == 0
    assert found.searched == 4
    assert found.hits[0].near_place is not None
