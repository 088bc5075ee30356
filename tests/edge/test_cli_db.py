"""`mnemic db`: roles and revisions, on servers that are set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import asyncpg
import pytest

HEAD_WORD = "this release's"


@pytest.fixture
def on(mnemic: Any) -> Callable[[Any], Any]:
    """The command with the URLs of another database."""

    def switch(database: Any) -> Any:
        mnemic.environment |= {
            "MEM_DATABASE_URL": database.app_url,
            "MEM_DATABASE_OWNER_URL": database.owner_url,
        }
        return mnemic

    return switch


def test_an_empty_database_goes_up_down_and_up_again(
    on: Callable[[Any], Any], empty_database: Any
) -> None:
    mnemic = on(empty_database)

    before = mnemic("db", "current", "--json").document
    differs = mnemic("db", "check", "--json")
    up = mnemic("db", "upgrade")
    again = mnemic("db", "upgrade", "--json").document
    same = mnemic("db", "check")
    down = mnemic("db", "downgrade", "base", "--yes", "--json").document
    partly = mnemic("db", "upgrade", "0003", "--json").document

    count = len(before["pending"])
    assert (before["current"], before["is_head"]) == (None, False)
    assert (differs.code, differs.document["ok"]) == (1, False)
    assert before["database"] == empty_database.owner_url
    assert up.out == (
        f"{empty_database.owner_url} stands at {before['head']}: {count} revisions done.\n"
    )
    assert (again["steps"], again["is_head"]) == (0, True)
    assert (same.code, "as this release expects it" in same.out) == (0, True)
    assert (down["current"], down["steps"]) == (None, count)
    assert (partly["current"], partly["steps"]) == ("0003", 3)


def test_the_database_is_named_without_its_password(mnemic: Any, shared_database: Any) -> None:
    owner_url = shared_database.owner_url
    mnemic.environment["MEM_DATABASE_OWNER_URL"] = owner_url.replace("owner@", "owner:s3cret@")

    current = mnemic("db", "current")
    check = mnemic("db", "check", "--json")

    shown = owner_url.replace("owner@", "owner:***@")
    assert current.out.startswith(f"{shown} stands at ")
    assert check.document["database"] == shown


def test_the_serving_role_may_ask_where_the_database_stands(mnemic: Any) -> None:
    del mnemic.environment["MEM_DATABASE_OWNER_URL"]

    current = mnemic("db", "current")
    refused = mnemic("db", "upgrade", "--json")

    assert HEAD_WORD in current.out
    assert refused.code == 4
    assert "MEM_DATABASE_OWNER_URL" in refused.document["error"]["message"]


def test_a_check_names_what_somebody_has_altered(
    on: Callable[[Any], Any], database: Any, owner: asyncpg.Connection, run_now: Callable[..., Any]
) -> None:
    run_now(owner.execute("ALTER TABLE mnemic.turns NO FORCE ROW LEVEL SECURITY"))

    ended = on(database)("db", "check")

    assert ended.code == 1
    assert "broken: mnemic.turns " in ended.out


def test_init_sets_up_a_database_twice_and_says_nothing_secret(
    mnemic: Any, servers: Any, run_now: Callable[..., Any]
) -> None:
    mnemic.environment |= {
        "MEM_DATABASE_URL": "postgresql://mnemic_app:s3cret-app@db/cli_made",
        "MEM_DATABASE_OWNER_URL": "postgresql://mnemic_owner:s3cret-owner@db/cli_made",
    }
    admin = ("--admin-url", servers.postgres_url(), "--database", "cli_made")

    made = mnemic("db", "init", *admin, "--json")
    again = mnemic("db", "init", *admin)
    printed = mnemic("db", "init", "--sql", "--database", "cli_made")
    run_now(_drop(servers.postgres_url(), "cli_made"))

    assert made.document == {"database": "cli_made", "database_created": True}
    assert "cli_made was there" in again.out
    assert "mnemic_app" in printed.out
    assert "SCRAM-SHA-256$" in printed.out
    for ended in (made, again, printed):
        assert ended.code == 0
        assert "s3cret" not in ended.out + ended.err


def test_init_needs_an_administrator_when_a_server_is_set(mnemic: Any) -> None:
    ended = mnemic("db", "init", "--json")

    assert (ended.code, ended.document["error"]["field"]) == (2, "--admin-url")


def test_a_password_of_another_role_is_left_out_and_told(mnemic: Any) -> None:
    mnemic.environment["MEM_DATABASE_URL"] = "postgresql://somebody:s3cret@db/x"

    ended = mnemic("db", "init", "--sql")

    assert ended.code == 0
    assert ended.err == (
        "MEM_DATABASE_URL does not log in as mnemic_app; its password is left out of this.\n"
    )
    assert "PASSWORD" not in ended.out


@pytest.mark.parametrize("command", ["upgrade", "current", "check"])
def test_a_server_that_is_away_is_unavailable(bare: Any, command: str) -> None:
    bare.environment["MEM_DATABASE_OWNER_URL"] = "postgresql://mnemic_owner:pw@127.0.0.1:1/mnemic"

    ended = bare("db", command, "--json")

    assert ended.code == 5
    assert ended.document["error"]["code"] == "store_unavailable"
    assert "pw" not in ended.out.replace("cannot", "")


async def _drop(url: str, name: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await connection.close()
