"""`mnemic demo` on servers that are set."""

from __future__ import annotations

from typing import Any


def test_the_demo_upgrades_and_uses_the_servers_that_are_set(
    mnemic: Any, empty_database: Any
) -> None:
    mnemic.environment |= {
        "MEM_DATABASE_URL": empty_database.app_url,
        "MEM_DATABASE_OWNER_URL": empty_database.owner_url,
    }

    ended = mnemic("demo")

    assert (ended.code, ended.err) == (0, "")
    assert "as set in MEM_DATABASE_URL and MEM_REDIS_URL" in ended.out
    assert "6 sessions, 85 turns added" in ended.out
    assert "The data lies in" not in ended.out


def test_the_demo_tells_which_server_is_embedded_and_which_is_set(
    bare: Any, empty_database: Any
) -> None:
    bare.environment |= {
        "MEM_DATABASE_URL": empty_database.app_url,
        "MEM_DATABASE_OWNER_URL": empty_database.owner_url,
        "MEM_DATABASE__REQUIRE_DURABLE": "false",
    }

    ended = bare("demo")

    assert (ended.code, ended.err) == (0, "")
    assert "PostgreSQL as set in MEM_DATABASE_URL, Valkey embedded, in" in ended.out
    assert "6 sessions, 85 turns added" in ended.out
    assert "The data lies in" not in ended.out


def test_the_demo_will_not_migrate_without_the_owner(mnemic: Any, empty_database: Any) -> None:
    mnemic.environment["MEM_DATABASE_URL"] = empty_database.app_url
    del mnemic.environment["MEM_DATABASE_OWNER_URL"]

    ended = mnemic("demo", "--json")

    assert ended.code == 4
    assert ended.document["error"]["code"] == "schema_mismatch"
    assert "mnemic db upgrade" in ended.document["error"]["message"]
