"""`mnemic doctor`: what is fit, what is not, and what helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import asyncpg
import pytest


def verdicts(ended: Any) -> dict[str, str]:
    return {one["check"]: one["verdict"] for one in ended.document["findings"]}


def finding(ended: Any, check: str) -> dict[str, str]:
    (found,) = [one for one in ended.document["findings"] if one["check"] == check]
    return found


@pytest.fixture
def on(mnemic: Any, database: Any) -> Any:
    """The command on a database of its own, which the test may spoil."""
    mnemic.environment |= {
        "MEM_DATABASE_URL": database.app_url,
        "MEM_DATABASE_OWNER_URL": database.owner_url,
    }
    return mnemic


def test_servers_that_are_fit_pass_every_check(on: Any) -> None:
    ended = on("doctor", "--json")

    told = verdicts(ended)
    assert ended.code == 0
    assert {check for check, verdict in told.items() if verdict != "ok"} == {"durability"}
    assert {
        "PostgreSQL",
        "extensions",
        "role",
        "schema",
        "row security",
        "catalogue",
        "indexes",
        "Valkey",
        "eviction",
        "embedder",
        "vectors",
    } <= set(told)
    assert "18." in finding(ended, "PostgreSQL")["detail"]
    assert "vector 0.8" in finding(ended, "extensions")["detail"]
    assert finding(ended, "role")["detail"].startswith("mnemic_app")
    assert "8199be6f" in finding(ended, "embedder")["detail"]


def test_a_server_that_flushes_nothing_fails_unless_that_is_wanted(on: Any) -> None:
    refused = on("doctor", MEM_DATABASE__REQUIRE_DURABLE="true")
    wanted = on("doctor")

    assert refused.code == 1
    assert "fail  durability" in refused.out
    assert "fsync off" in refused.out
    assert "1 to repair" in refused.out
    assert wanted.code == 0
    assert "warn  durability" in wanted.out


def test_servers_that_are_away_fail_their_checks_and_the_rest_goes_on(bare: Any) -> None:
    bare.environment |= {
        "MEM_DATABASE_URL": "postgresql://mnemic_app:s3cret@127.0.0.1:1/mnemic",
        "MEM_REDIS_URL": "redis://:s3cret@127.0.0.1:1/0",
    }

    ended = bare("doctor", "--json")

    assert ended.code == 1
    assert verdicts(ended) == {"PostgreSQL": "fail", "Valkey": "fail", "embedder": "ok"}
    assert all(one["remedy"] for one in ended.document["findings"] if one["verdict"] == "fail")
    assert "s3cret" not in ended.out + ended.err


def test_a_missing_schema_is_told_with_its_remedy(mnemic: Any, empty_database: Any) -> None:
    mnemic.environment["MEM_DATABASE_URL"] = empty_database.app_url

    ended = mnemic("doctor", "--json")

    assert ended.code == 1
    assert finding(ended, "schema")["verdict"] == "fail"
    assert "db upgrade" in finding(ended, "schema")["remedy"]
    assert "row security" not in verdicts(ended)


def test_a_database_of_ones_own_beside_an_embedded_valkey_is_not_taken_for_an_embedded_one(
    bare: Any, empty_database: Any
) -> None:
    bare.environment["MEM_DATABASE_URL"] = empty_database.app_url

    ended = bare("doctor", "--json", MEM_DATABASE__REQUIRE_DURABLE="false")

    assert ended.code == 1
    assert verdicts(ended)["Valkey"] == "ok"
    assert finding(ended, "schema")["verdict"] == "fail"


def test_a_missing_database_is_told_with_its_remedy(mnemic: Any, servers: Any) -> None:
    mnemic.environment["MEM_DATABASE_URL"] = servers.postgres_url("mnemic_app", "no_such_database")

    ended = mnemic("doctor", "--json")

    assert ended.code == 1
    assert "db init" in finding(ended, "PostgreSQL")["remedy"]


@pytest.mark.parametrize(("role", "power"), [("admin_url", "superuser"), ("owner_url", "owns")])
def test_a_role_that_no_policy_holds_fails(on: Any, database: Any, role: str, power: str) -> None:
    on.environment["MEM_DATABASE_URL"] = getattr(database, role)

    ended = on("doctor", "--json")

    assert ended.code == 1
    assert finding(ended, "role")["verdict"] == "fail"
    assert power in finding(ended, "role")["detail"]
    assert "mnemic_app" in finding(ended, "role")["remedy"]


def test_a_table_without_its_wall_fails(
    on: Any, owner: asyncpg.Connection, run_now: Callable[..., Any]
) -> None:
    run_now(owner.execute("ALTER TABLE mnemic.facts NO FORCE ROW LEVEL SECURITY"))

    ended = on("doctor", "--json")

    assert "facts" in finding(ended, "row security")["detail"]
    assert finding(ended, "row security")["verdict"] == "fail"
    assert finding(ended, "catalogue")["verdict"] == "fail"


def test_an_unfinished_index_fails(
    on: Any, admin: asyncpg.Connection, run_now: Callable[..., Any]
) -> None:
    run_now(
        admin.execute(
            "UPDATE pg_index SET indisvalid = false "
            "WHERE indexrelid = 'mnemic.facts_subject_idx'::regclass"
        )
    )

    ended = on("doctor", "--json")

    assert "facts_subject_idx" in finding(ended, "indexes")["detail"]
    assert "REINDEX INDEX CONCURRENTLY" in finding(ended, "indexes")["remedy"]


def test_a_server_that_evicts_memories_fails(on: Any, servers: Any, run_now: Any) -> None:
    from redis.asyncio import Redis  # noqa: PLC0415 - only this test speaks to it

    async def set_policy(policy: str) -> None:
        async with Redis.from_url(servers.redis_url) as client:
            await client.config_set("maxmemory-policy", policy)

    run_now(set_policy("allkeys-lru"))
    try:
        ended = on("doctor", "--json")
    finally:
        run_now(set_policy("noeviction"))

    assert finding(ended, "eviction")["verdict"] == "fail"
    assert "noeviction" in finding(ended, "eviction")["remedy"]


def test_vectors_of_another_model_fail(
    on: Any, admin: asyncpg.Connection, run_now: Callable[..., Any]
) -> None:
    on("remember", "Deploys are frozen on Fridays")
    run_now(admin.execute("UPDATE mnemic.embedding_models SET signature = 'other@1/384'"))

    ended = on("doctor", "--json")

    assert finding(ended, "vectors")["verdict"] == "fail"
    assert "other@1/384" in finding(ended, "vectors")["detail"]


def test_vectors_that_are_to_be_made_are_counted(
    on: Any, admin: asyncpg.Connection, run_now: Callable[..., Any]
) -> None:
    on("remember", "Deploys are frozen on Fridays")
    before = finding(on("doctor", "--json"), "vectors")
    run_now(admin.execute("UPDATE mnemic.facts SET needs_vector = true"))

    after = finding(on("doctor", "--json"), "vectors")

    assert (before["verdict"], before["detail"]) == ("ok", "made with the model that is set")
    assert after["verdict"] == "warn"
    assert "1 missing, 0 turns to be embedded anew" in after["detail"]
    assert "embed_missing" in after["remedy"]


def test_a_model_that_cannot_be_had_fails(on: Any) -> None:
    ended = on("doctor", "--json", MEM_EMBEDDING__MODEL="no-such-model")

    assert finding(ended, "embedder")["verdict"] == "fail"


def test_a_data_folder_that_cannot_be_used_fails_and_the_rest_goes_on(bare: Any) -> None:
    ended = bare("doctor", "--json", MEM_EMBEDDED__DATA_DIR="/dev/null/data")

    told = verdicts(ended)
    assert ended.code == 1
    assert told["embedded servers"] == "fail"
    assert told["embedder"] == "ok"


def test_a_variable_that_sets_nothing_is_a_warning(bare: Any) -> None:
    bare.environment |= {
        "MEM_DATABASE_URL": "postgresql://mnemic_app@127.0.0.1:1/mnemic",
        "MEM_REDIS_URL": "redis://127.0.0.1:1/0",
        "MEM_RECAL__LIMIT_MAX": "5",
    }

    ended = bare("doctor", "--json")

    assert finding(ended, "settings")["verdict"] == "warn"
    assert "MEM_RECALL__LIMIT_MAX" in finding(ended, "settings")["remedy"]
