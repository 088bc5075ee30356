from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from mnemic.errors import ConfigurationError, SchemaMismatch
from mnemic.settings import MemorySettings
from mnemic.store.readiness import refuse_unfit
from mnemic.store.unit import Database


async def _ask(url: str, **options: Any) -> None:
    served = Database(url, MemorySettings().database)
    try:
        await refuse_unfit(served, **options)
    finally:
        await served.close()


async def test_the_serving_role_may_serve(database: Any) -> None:
    await _ask(database.app_url, require_durable=False)


async def test_a_server_that_may_lose_a_commit_is_refused(database: Any) -> None:
    with pytest.raises(ConfigurationError, match="fsync is off: an acknowledged write may be lost"):
        await _ask(database.app_url)


@pytest.mark.parametrize("role", ["owner_url", "admin_url"])
async def test_a_role_that_sees_through_policies_is_refused(database: Any, role: str) -> None:
    with pytest.raises(ConfigurationError, match="let MEM_DATABASE_URL log in as mnemic_app"):
        await _ask(getattr(database, role), require_durable=False)


async def test_a_database_without_the_schema_is_refused(empty_database: Any) -> None:
    with pytest.raises(SchemaMismatch, match="mnemic db upgrade"):
        await _ask(empty_database.app_url, require_durable=False)


async def test_a_schema_that_is_behind_is_refused(database: Any, owner: asyncpg.Connection) -> None:
    await owner.execute("UPDATE mnemic.alembic_version SET version_num = '0009'")

    with pytest.raises(SchemaMismatch, match="the schema is at 0009"):
        await _ask(database.app_url, require_durable=False)


async def test_a_schema_of_a_later_release_is_refused(
    database: Any, owner: asyncpg.Connection
) -> None:
    await owner.execute("UPDATE mnemic.alembic_version SET version_num = '9999'")

    with pytest.raises(SchemaMismatch):
        await _ask(database.app_url, require_durable=False)
