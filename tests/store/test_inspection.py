"""The facts for `mnemic doctor`, asked as the role that serves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import asyncpg

from mnemic.store.connecting import connected
from mnemic.store.inspection import Inspection, Shortcoming, inspect, shortcomings


async def _inspected(url: str) -> Inspection:
    async with connected(url, setting="MEM_DATABASE_URL") as connection:
        return await inspect(connection)


def _said(inspection: Inspection) -> list[Shortcoming]:
    return shortcomings(inspection.server, inspection.role, inspection.revision)


async def test_the_serving_role_sees_a_database_that_is_whole(database: Any) -> None:
    found = await _inspected(database.app_url)

    assert found.server.version_number >= 160_000
    assert found.server.database == database.name
    assert found.server.database_bytes > 1_000_000
    assert found.server.extensions.keys() >= {"vector", "pg_trgm", "btree_gin"}
    assert found.role.name == "mnemic_app"
    assert (found.role.owns, found.role.excess_rights, found.role.member_of) == ((), (), ())
    assert found.revision.is_head
    assert found.invalid_indexes == ()
    assert found.violations == ()


async def test_every_table_and_partition_is_listed_with_its_walls(database: Any) -> None:
    found = await _inspected(database.app_url)

    with_tenant = [table for table in found.tables if table.has_tenant]
    partitions = [table.name for table in found.tables if table.is_partition]
    assert all(table.row_security and table.is_forced for table in with_tenant)
    assert all("tenant_isolation" in table.policies for table in with_tenant)
    assert len(with_tenant) > 35
    assert "turn_vectors_default" in partitions


async def test_the_functions_are_listed_with_their_owner_and_path(database: Any) -> None:
    found = await _inspected(database.app_url)

    assert {function.search_path for function in found.functions} == {"pg_catalog, mnemic, pg_temp"}
    assert {(function.owner, function.is_definer) for function in found.functions} == {
        ("mnemic_lookup", True),
        ("mnemic_owner", False),  # what keeps and forgets history, as whoever writes
    }


async def test_a_throwaway_server_is_not_fit_to_serve(database: Any) -> None:
    found = await _inspected(database.app_url)

    said = _said(found)
    sound = replace(found.server, fsync=True, synchronous_commit="on")

    assert {shortcoming.remedy for shortcoming in said} <= {
        "set fsync = on",
        "set synchronous_commit = on",
    }
    assert shortcomings(sound, found.role, found.revision) == []


async def test_a_role_that_sees_through_policies_is_named_with_the_remedy(database: Any) -> None:
    for url in (database.admin_url, database.owner_url):
        found = await _inspected(url)

        sound = replace(found.server, fsync=True, synchronous_commit="on")
        (said,) = shortcomings(sound, found.role, found.revision)

        assert said.remedy == "let MEM_DATABASE_URL log in as mnemic_app"
        assert "turns" in found.role.owns
        assert "TRUNCATE on turns" in found.role.excess_rights


async def test_old_versions_are_named_with_their_remedies(database: Any) -> None:
    found = await _inspected(database.app_url)
    old = replace(
        found.server,
        version="15.4",
        version_number=150_004,
        extensions={"vector": "0.7.4"},
        fsync=True,
        synchronous_commit="on",
    )

    said = shortcomings(old, found.role, found.revision)
    missing = shortcomings(replace(old, extensions={}), found.role, found.revision)

    assert [shortcoming.what for shortcoming in said] == [
        "PostgreSQL is 15.4",
        "pgvector is 0.7.4",
    ]
    assert missing[1].remedy == "run `mnemic db init`"


async def test_a_database_without_tables_is_sent_to_the_upgrade(empty_database: Any) -> None:
    found = await _inspected(empty_database.app_url)

    sound = replace(found.server, fsync=True, synchronous_commit="on")
    (said,) = shortcomings(sound, found.role, found.revision)

    assert found.tables == ()
    assert said.remedy == "run `mnemic db upgrade`"


async def test_an_unfinished_index_is_listed(database: Any, admin: asyncpg.Connection) -> None:
    await admin.execute(
        "UPDATE pg_index SET indisvalid = false"
        " WHERE indexrelid = 'mnemic.turns_scope_idx'::regclass"
    )

    found = await _inspected(database.app_url)

    assert found.invalid_indexes == ("turns_scope_idx",)
