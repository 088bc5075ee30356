from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest
import structlog
from wire_embedder import FixedEmbedder

from mnemic import MemoryManager, Scope
from mnemic.embedded import EmbeddedServers
from mnemic.settings import MemorySettings
from mnemic.store import roles
from mnemic.wiring import Wiring

pytestmark = pytest.mark.chaos

KILLS = 8
NAME = "chaos_service"
log = structlog.get_logger("chaos")


@pytest.fixture
async def database_url(
    servers: EmbeddedServers, named_database: Callable[[str], Awaitable[str]]
) -> str:
    await named_database(NAME)
    return servers.postgres_url(roles.APP_ROLE, NAME)


@pytest.fixture
async def admin(servers: EmbeddedServers, database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(servers.postgres_url("postgres", NAME))
    yield connection
    await connection.close()


async def _killed_after(acknowledged: int, told: dict[str, str]) -> list[tuple[int, UUID]]:
    """What a service acknowledged before its SIGKILL, in the middle of whatever came next."""
    program = Path(__file__).parent / "chaos_service.py"
    service = await asyncio.create_subprocess_exec(
        *(sys.executable, str(program), json.dumps(told)),
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert service.stdout is not None
    lines = [await service.stdout.readline() for _ in range(acknowledged)]
    service.kill()
    lines += (await service.stdout.read()).splitlines()
    await service.wait()
    return [(number, UUID(identity)) for number, identity in map(json.loads, lines)]


async def test_a_killed_service_loses_nothing_that_it_acknowledged(
    servers: EmbeddedServers,
    database_url: str,
    admin: asyncpg.Connection,
    chance: random.Random,
    times: int,
) -> None:
    urls = {"database_url": database_url, "redis_url": servers.redis_url}
    kept = 0
    settings = MemorySettings(**urls, database={"require_durable": False})
    async with MemoryManager(Wiring(settings, embedder=FixedEmbedder())) as memory:
        for number in range(KILLS * times):
            scope = Scope.user(f"killed-{number}").project("x")
            told = await _killed_after(
                chance.randrange(1, 40), {**urls, "user": scope.tenant.external_id}
            )
            values = await memory.at(scope).working.get_all()
            rows = await admin.fetch(
                "SELECT f.id, EXISTS (SELECT FROM mnemic.fact_evidence e WHERE e.fact_id = f.id)"
                "  AND EXISTS (SELECT FROM mnemic.fact_vectors v WHERE v.memory_id = f.id)"
                "  AND EXISTS (SELECT FROM mnemic.audit_log a WHERE a.subject_id = f.id) AS whole"
                "  FROM mnemic.facts f WHERE f.tenant_id = $1",
                scope.tenant.id,
            )
            kept += len(told)

            assert {identity for _, identity in told} <= {row["id"] for row in rows}
            assert all(row["whole"] for row in rows)
            for key in ("durable", "plain"):
                assert [values[f"{key}-{one}"] for one, _ in told] == [one for one, _ in told]
    log.info("killed service", kills=KILLS * times, acknowledged=kept, lost=0)
