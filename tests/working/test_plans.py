"""The statements of working memory use their indexes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from mnemic.embedded import EmbeddedServers
from mnemic.store.statement import Statement
from mnemic.store.working import rows

TENANT, SCOPE, OTHER = (uuid4() for _ in range(3))
FILL = """
    INSERT INTO mnemic.working_memory (tenant_id, id, scope_id, scope_type, key, key_digest, value,
                                       expires_at)
    SELECT $1, gen_random_uuid(), CASE WHEN n % 50 = 0 THEN $2::uuid ELSE $3::uuid END, 'session',
           'k' || n, sha256(convert_to('k' || n, 'UTF8')), '1', now() + n * interval '1 second'
      FROM generate_series(1, 5000) AS n
"""


@pytest.fixture
async def busy(working_url: str, servers: EmbeddedServers) -> AsyncIterator[asyncpg.Connection]:
    """5,000 rows of one tenant, thrown away afterwards."""
    connection = await asyncpg.connect(servers.postgres_url("postgres", "working"))
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("SET LOCAL session_replication_role = replica")
    await connection.execute(FILL, TENANT, SCOPE, OTHER)
    await connection.execute("ANALYZE mnemic.working_memory")
    await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
    yield connection
    await transaction.rollback()
    await connection.close()


async def plan_of(connection: asyncpg.Connection, statement: Statement, **values: Any) -> str:
    """The plan, with the values bound."""
    arguments = statement.arguments({"tenant": TENANT, "scopes": [SCOPE], **values})
    told = await connection.fetch(f"EXPLAIN {statement.sql}", *arguments)
    return "\n".join(row[0] for row in told)


async def test_one_key_is_found_by_its_digest(busy: asyncpg.Connection) -> None:
    plan = await plan_of(busy, rows.GET, digest=b"0" * 32)

    assert "working_memory_key" in plan
    assert "key_digest =" in plan
    assert "Seq Scan" not in plan


async def test_the_keys_of_a_scope_are_found_by_the_scope(busy: asyncpg.Connection) -> None:
    plan = await plan_of(busy, rows.KNOWN)

    assert "working_memory_key" in plan
    assert "Seq Scan" not in plan


async def test_what_has_expired_is_found_by_its_time(busy: asyncpg.Connection) -> None:
    before = await busy.fetchval("SELECT now() + interval '20 seconds'")

    plan = await plan_of(busy, rows.PURGE, before=before, limit=10)

    assert "working_memory_expires_idx" in plan
    assert "Seq Scan" not in plan
