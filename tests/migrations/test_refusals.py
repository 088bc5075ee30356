"""What a migration refuses to touch, each with the remedy."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from mnemic.errors import ConfigurationError, InvalidInput, SchemaMismatch, StoreUnavailable
from mnemic.store import migrating
from mnemic.store.upgrade import check, current, downgrade, sql, upgrade


async def _executed(url: str, script: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(script)
    finally:
        await connection.close()


async def test_a_newer_database_is_refused(database: Any) -> None:
    await _executed(database.owner_url, "UPDATE mnemic.alembic_version SET version_num = '9999'")

    for ask in (upgrade, current, check):
        with pytest.raises(
            SchemaMismatch, match=r"9999, newer than this release's .*upgrade mnemic"
        ):
            ask(database.owner_url)
    with pytest.raises(SchemaMismatch, match="9999"):
        downgrade(database.owner_url, "base")


async def test_a_version_table_of_somebody_else_is_refused(database: Any) -> None:
    await _executed(
        database.owner_url, "UPDATE mnemic.alembic_version SET version_num = '3f2a9c11d0e4'"
    )

    with pytest.raises(SchemaMismatch, match=r"none of mnemic's; choose another database"):
        upgrade(database.owner_url)


async def test_a_schema_with_tables_of_somebody_else_is_refused(empty_database: Any) -> None:
    await _executed(empty_database.owner_url, "CREATE TABLE mnemic.theirs (id int)")

    with pytest.raises(SchemaMismatch, match="choose another database"):
        upgrade(empty_database.owner_url)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("DROP SCHEMA mnemic", "the schema mnemic is missing"),
        ("DROP EXTENSION vector", "an extension"),
        ("DROP EXTENSION btree_gin", "an extension"),
        (
            "UPDATE pg_extension SET extversion = '0.7.0' WHERE extname = 'vector'",
            "ALTER EXTENSION",
        ),
    ],
)
async def test_a_database_that_was_not_set_up_is_refused_with_the_remedy(
    empty_database: Any, broken: str, said: str
) -> None:
    await _executed(empty_database.admin_url, broken)

    with pytest.raises(ConfigurationError, match=said) as caught:
        upgrade(empty_database.owner_url)

    assert "mnemic db init" in str(caught.value) or "ALTER EXTENSION" in str(caught.value)


async def test_a_role_that_may_not_migrate_is_refused(database: Any) -> None:
    with pytest.raises(ConfigurationError, match="logs in as mnemic_app; it must log in as"):
        upgrade(database.app_url)


def test_a_missing_url_names_the_setting() -> None:
    with pytest.raises(ConfigurationError, match="MEM_DATABASE_OWNER_URL"):
        upgrade(None)


async def test_a_server_that_is_away_is_unavailable(database: Any, servers: Any) -> None:
    with pytest.raises(StoreUnavailable, match="MEM_DATABASE_OWNER_URL"):
        upgrade("postgresql://mnemic_owner@/mnemic?host=/nowhere")
    with pytest.raises(ConfigurationError, match="does not exist; run `mnemic db init`"):
        upgrade(servers.postgres_url("mnemic_owner", "no_such_database"))
    with pytest.raises(ConfigurationError, match="refuses the role"):
        upgrade(servers.postgres_url("no_such_role", database.name))


def test_a_revision_that_there_is_not_is_refused(template: str, servers: Any) -> None:
    url = servers.postgres_url("mnemic_owner", template)

    with pytest.raises(InvalidInput, match=r"no revision 0815; there are base, head and 0001"):
        upgrade(url, "0815")
    with pytest.raises(InvalidInput, match="0815"):
        sql("base", "0815")


async def test_a_revision_that_lies_the_other_way_is_refused(database: Any) -> None:
    with pytest.raises(InvalidInput, match="0001 lies the other way"):
        upgrade(database.owner_url, "0001")
    downgrade(database.owner_url, "0005")
    with pytest.raises(InvalidInput, match="the database is at 0005; head lies the other way"):
        downgrade(database.owner_url, "head")

    assert downgrade(database.owner_url, "0005").current == "0005"


async def test_a_half_migrated_database_is_not_served(database: Any) -> None:
    downgrade(database.owner_url, "0005")

    with pytest.raises(SchemaMismatch, match="mnemic db upgrade"):
        current(database.app_url)


async def test_a_database_at_two_revisions_is_refused(database: Any) -> None:
    await _executed(
        database.owner_url, "INSERT INTO mnemic.alembic_version (version_num) VALUES ('0003')"
    )

    with pytest.raises(SchemaMismatch, match="at 2 revisions at once"):
        upgrade(database.owner_url)


async def test_an_upgrade_that_waits_too_long_for_another_says_so(
    empty_database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "LOCK_WAIT_SECONDS_MAX", 0.3)
    other = await asyncpg.connect(empty_database.owner_url)
    await other.execute("SELECT pg_advisory_lock($1)", migrating._LOCK)

    with pytest.raises(StoreUnavailable, match="another upgrade of this database is running"):
        await asyncio.to_thread(upgrade, empty_database.owner_url)

    await other.close()
    monkeypatch.undo()
    assert upgrade(empty_database.owner_url).is_head
