from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import asyncpg
import pytest
import structlog
from chaos_load import Clean, Load, clean_runs
from chaos_postgres import Cluster, Victim
from wire_embedder import FixedEmbedder
from wire_rows import RowReader
from wire_verbs import VERBS

from mnemic import MemoryManager
from mnemic.embedded import EmbeddedServers
from mnemic.settings import MemorySettings
from mnemic.wiring import Wiring

pytestmark = pytest.mark.chaos

KILLS = 50
WRITERS = 6
READERS = 3
# As many WAL pages as can be stay in the server's own memory, for as long as can be.
LAZY = {
    "synchronous_commit": "off",
    "wal_writer_delay": "10000",
    "wal_writer_flush_after": "2GB",
    "wal_buffers": "64MB",
}
log = structlog.get_logger("chaos")


@asynccontextmanager
async def _memory(
    cluster: Cluster, servers: EmbeddedServers, *, durable: bool
) -> AsyncIterator[MemoryManager]:
    settings = MemorySettings(
        database_url=cluster.url(),
        redis_url=servers.redis_url,
        database={"pool_max": WRITERS, "require_durable": durable, "acquire_timeout_seconds": 5},
    )
    async with MemoryManager(Wiring(settings, embedder=FixedEmbedder())) as memory:
        yield memory


@asynccontextmanager
async def _readers(cluster: Cluster, number: int = READERS) -> AsyncIterator[list[RowReader]]:
    async with AsyncExitStack() as stack:
        made = []
        for _ in range(number):
            connection = await asyncpg.connect(cluster.url("postgres"))
            stack.push_async_callback(connection.close)
            made.append(await RowReader(connection).open())
        yield made


async def _cleans(cluster: Cluster, memory: MemoryManager) -> dict[str, Clean]:
    async with _readers(cluster, 1) as readers:
        return await clean_runs(memory, readers[0], list(VERBS.values()))


async def test_a_killed_postgres_loses_nothing_that_was_acknowledged(
    cluster: Cluster, servers: EmbeddedServers, chance: random.Random, times: int
) -> None:
    await cluster.start()
    async with _memory(cluster, servers, durable=True) as memory:
        cleans = await _cleans(cluster, memory)
        load = Load(memory, list(VERBS.values()), chance)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(WRITERS):
                tasks.create_task(load.write())
            for _ in range(KILLS * times):
                await load.acknowledged(load.counts()["acknowledged"] + chance.randrange(1, 12))
                await asyncio.sleep(chance.uniform(0.0, 0.1))
                if await cluster.kill(chance.choice(list(Victim)), chance):
                    await cluster.start()
                await cluster.answers()
            load.over = True

        async with _readers(cluster) as readers:
            wrong = await load.broken_promises(readers, cleans)

    log.info("killed postgres", kills=KILLS * times, lost=len(wrong), **load.counts())
    assert wrong == []
    assert load.counts()["acknowledged"] > KILLS


async def test_the_control_without_synchronous_commit_loses(
    cluster: Cluster, servers: EmbeddedServers, chance: random.Random
) -> None:
    await cluster.start(**LAZY)
    async with _memory(cluster, servers, durable=False) as memory:
        cleans = await _cleans(cluster, memory)
        async with _readers(cluster, 1) as readers:
            await readers[0]._admin.execute("CHECKPOINT")
        load = Load(memory, [VERBS["store_fact"], VERBS["record_episode"]], chance)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(WRITERS):
                tasks.create_task(load.write())
            await load.acknowledged(100)
            await cluster.kill(Victim.ALL, chance)
            load.over = True
        await cluster.start()

        async with _readers(cluster) as readers:
            wrong = await load.broken_promises(readers, cleans, completes=False)

    lost = [one for one in wrong if "acknowledged and is lost" in one]
    log.info("control", lost=len(lost), **load.counts())
    assert lost
