"""What the command says to arguments that cannot be; no server is needed to say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

COMMANDS = (
    "demo",
    "ingest",
    "remember",
    "recall",
    "context",
    "forget",
    "session end",
    "session pause",
    "session resume",
    "doctor",
    "settings",
    "db init",
    "db upgrade",
    "db downgrade",
    "db current",
    "db check",
    "db sql",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(bare: Any, command: str) -> None:
    ended = bare(*command.split(), "--help")

    assert ended.code == 0
    assert "--json" in ended.out


def test_the_version_is_that_of_the_package(bare: Any) -> None:
    ended = bare("--version")

    assert (ended.code, ended.out) == (0, "mnemic 0.1.0\n")


def test_the_exit_codes_stand_in_the_help(bare: Any) -> None:
    ended = bare("--help")

    shown = " ".join(ended.out.split())
    for line in ("0 done", "2 invalid input", "4 settings or servers", "130 interrupted"):
        assert line in shown


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("recall",), "QUERY"),
        (("recall", "x", "--limit", "-1"), "--limit"),
        (("recall", "x", "--limit", "0"), "--limit"),
        (("recall", "x", "--limit", "many"), "--limit"),
        (("recall", "x", "--type", "visual"), "--type"),
        (("context", "x", "--budget", "0"), "--budget"),
        (("remember", "x", "--importance", "high"), "--importance"),
        (("remember", "x", "--nonsense"), "--nonsense"),
        (("ingest",), "FILE"),
        (("ingest", "x", "--format", "yaml"), "--format"),
        (("nonsense",), "nonsense"),
        (("db", "downgrade"), "REVISION"),
    ],
)
def test_wrong_usage_is_one_line_that_names_the_part(
    bare: Any, arguments: tuple[str, ...], word: str
) -> None:
    said = bare(*arguments)

    assert said.code == 2
    assert said.out == ""
    assert said.err.startswith("Error: ")
    assert word in said.err
    assert "--help" in said.err


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("recall", "x", "--user", "a", "--org", "b"), "org"),
        (("recall", "x", "--user", ""), "user"),
        (("recall", "x", "--project", " "), "project"),
        (("forget", "not-an-id", "--yes"), "ids"),
        (("forget", "7d2f0c1e-0a56-5b7c-9a3e-6d6e656d6963"), "--yes"),
        (("ingest", "/no/such/file"), "files"),
        (("ingest", "/"), "files"),
        (("ingest", "-", "-"), "files"),
        (("db", "sql", "head"), "FROM:TO"),
        (("db", "sql", "0001:nowhere"), "revision"),
        (("db", "downgrade", "base"), "--yes"),
    ],
)
def test_invalid_input_names_its_field_as_text_and_as_json(
    bare: Any, arguments: tuple[str, ...], field: str
) -> None:
    as_text = bare(*arguments)
    as_json = bare(*arguments, "--json")

    told = as_json.document["error"]
    assert (as_text.code, as_json.code) == (2, 2)
    assert as_text.out == ""
    assert as_text.err.startswith(f"Error: {field}: ")
    assert (told["code"], told["field"]) == ("invalid_input", field)
    assert as_json.err == ""


def test_wrong_usage_is_json_too(bare: Any) -> None:
    said = bare("recall", "x", "--limit", "-1", "--json")

    assert said.code == 2
    assert said.document["error"]["code"] == "usage"
    assert said.err == ""


def test_what_follows_two_dashes_is_no_option(bare: Any) -> None:
    said = bare("recall", "--nonsense", "--", "--json")

    assert said.code == 2
    assert said.out == ""
    assert "--nonsense" in said.err


def test_statements_of_the_migrations_need_no_server(bare: Any, tmp_path: Path) -> None:
    ended = bare("db", "sql", "--json")

    assert ended.code == 0
    assert "CREATE TABLE mnemic.turns" in ended.document["sql"]
    assert not (tmp_path / "data").exists()


def test_arguments_cannot_steer_the_terminal(bare: Any) -> None:
    said = bare("ingest", "/no/\x1b[31m\u202ered")

    assert "\\x1b[31m\\u202ered" in said.err
