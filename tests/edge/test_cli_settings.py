"""`mnemic settings`: each value, where it came from, and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def rows(ended: Any) -> dict[str, tuple[Any, str]]:
    return {one["name"]: (one["value"], one["origin"]) for one in ended.document["settings"]}


def test_each_value_says_where_it_came_from(bare: Any, tmp_path: Path) -> None:
    file = tmp_path / "mnemic.toml"
    file.write_text("[recall]\nlimit_max = 50\nlimit_default = 7\n[context]\nbudget_tokens = 400\n")
    bare.environment |= {
        "MEM_SETTINGS_FILE": str(file),
        "MEM_RECALL__LIMIT_DEFAULT": "9",
        "MEM_DATABASE": '{"pool_max": 3}',
        "mem_database__retry_max": "2",
    }

    told = rows(bare("settings", "--json"))

    assert told["recall.limit_default"] == (9, "environment variable MEM_RECALL__LIMIT_DEFAULT")
    assert told["recall.limit_max"] == (50, f"file {file}")
    assert told["context.budget_tokens"] == (400, f"file {file}")
    assert told["database.pool_max"] == (3, "environment variable MEM_DATABASE")
    assert told["database.retry_max"] == (2, "environment variable mem_database__retry_max")
    assert told["recall.neighbours"] == (2, "default")
    assert told["maintenance.idle_after"] == ("PT30M", "default")


def test_secrets_and_passwords_are_masked(bare: Any) -> None:
    bare.environment |= {
        "MEM_DATABASE_URL": "postgresql://mnemic_app:s3cret@db/x?sslpassword=s3cret&host=/run",
        "MEM_DATABASE_OWNER_URL": "postgresql://mnemic_owner@db/x",
        "MEM_REDIS_URL": "redis://:s3cret@cache:6379/0",
        "MEM_EMBEDDING__API_KEY": "s3cret",
        "MEM_EMBEDDING__BASE_URL": "https://me:s3cret@models/v1",
    }

    plain = bare("settings")
    told = rows(bare("settings", "--json"))

    assert "s3cret" not in plain.out + plain.err
    assert told["database_url"][0] == ("postgresql://mnemic_app:***@db/x?sslpassword=***&host=/run")
    assert told["database_owner_url"][0] == "postgresql://mnemic_owner@db/x"
    assert told["redis_url"][0] == "redis://:***@cache:6379/0"
    assert told["embedding.api_key"][0] == "***"
    assert told["embedding.base_url"][0] == "https://me:***@models/v1"


def test_each_wrong_value_is_told_with_its_origin_and_remedy(bare: Any) -> None:
    bare.environment |= {
        "MEM_RECALL__LIMIT_MAX": "5000",
        "MEM_RECALL__LIMIT_MAXX": "5",
        "MEM_CONTEXT__BUDGET_TOKENS": "many",
        "MEM_DATABASE_URL": "mysql://me:s3cret@db/x",
    }

    plain = bare("settings")
    problems = bare("recall", "x", "--json").document["error"]["problems"]

    by_name = {one["name"]: one for one in problems}
    assert plain.code == 4
    assert plain.out == ""
    assert "s3cret" not in plain.err + str(problems)
    assert by_name["recall.limit_max"]["problem"] == "must be at most 1000"
    assert by_name["recall.limit_max"]["origin"] == "environment variable MEM_RECALL__LIMIT_MAX"
    assert by_name["recall.limit_maxx"]["remedy"] == "did you mean recall.limit_max?"
    assert by_name["context.budget_tokens"]["problem"] == "must be a whole number"
    assert "postgresql://" in by_name["database_url"]["problem"]
    assert len(plain.err.splitlines()) == 4


def test_a_port_that_is_part_of_a_password_is_not_told(bare: Any) -> None:
    bare.environment |= {"MEM_DATABASE_URL": "postgresql://me:s3cret/word@db:5432/x"}

    refused = bare("recall", "x")

    assert refused.code == 4
    assert "the port must be a number" in refused.err
    assert "s3cret" not in refused.err


def test_two_values_that_do_not_fit_each_other_are_told(bare: Any) -> None:
    bare.environment |= {"MEM_RECALL__LIMIT_MAX": "5", "MEM_RECALL__LIMIT_DEFAULT": "6"}

    ended = bare("settings")

    assert ended.code == 4
    assert "recall.limit_default must not exceed recall.limit_max" in ended.err


def test_an_exchange_that_would_end_before_its_statement_is_refused(bare: Any) -> None:
    refused = bare("settings", MEM_DATABASE__STATEMENT_TIMEOUT_MS="12000")
    taken = bare("settings", MEM_DATABASE__STATEMENT_TIMEOUT_MS="11999")

    assert (refused.code, taken.code) == (4, 0)
    assert "database.timeout_seconds must be longer" in refused.err
    assert "database.statement_timeout_ms (12000 ms); raise the first, or lower" in refused.err


def test_a_settings_file_that_cannot_be_read_is_told(bare: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("recall = [\n")

    missing = bare("settings", MEM_SETTINGS_FILE=str(tmp_path / "none.toml"))
    unread = bare("settings", "--json", MEM_SETTINGS_FILE=str(broken))
    not_json = bare("settings", MEM_RECALL="{")

    assert (missing.code, unread.code, not_json.code) == (4, 4, 4)
    assert "which is not a file" in missing.err
    assert "is not TOML" in unread.document["error"]["message"]
    assert "recall" in not_json.err


def test_a_variable_that_sets_nothing_is_told(bare: Any) -> None:
    bare.environment |= {"MEM_RECAL__LIMIT_MAX": "5", "MEM_WHATEVER": "1"}

    ended = bare("settings")
    told = bare("settings", "--json").document

    assert ended.code == 0
    assert "MEM_RECAL__LIMIT_MAX is set but is no setting" in ended.err
    assert "did you mean MEM_RECALL__LIMIT_MAX?" in ended.err
    assert told["unknown_variables"] == ["MEM_RECAL__LIMIT_MAX", "MEM_WHATEVER"]


def test_every_command_warns_of_a_variable_that_is_misspelt(mnemic: Any) -> None:
    mnemic.environment |= {"MEM_DATABSE_URL": "postgresql://db/x", "MEM_WHATEVER": "1"}

    ended = mnemic("recall", "anything", "--json")
    silent = mnemic("recall", "anything", "--json", MEM_DATABSE_URL="", MEM_LOG_LEVEL="error")

    (told,) = (json.loads(line) for line in ended.err.splitlines())
    assert told["event"] == "settings.misspelt"
    assert (told["variable"], told["meant"]) == ("MEM_DATABSE_URL", "MEM_DATABASE_URL")
    assert (ended.code, ended.document["hits"]) == (0, [])
    assert silent.err == ""


def test_a_command_of_another_edge_tells_the_same(bare: Any) -> None:
    ended = bare("mcp", MEM_RECALL__LIMIT_MAX="5000")

    assert ended.code == 4
    assert ended.err.startswith("Error: recall.limit_max (environment variable")
    assert "must be at most 1000" in ended.err
