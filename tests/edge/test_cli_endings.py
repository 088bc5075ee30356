"""How a run ends when something happens to it: no traceback, a fitting code, a clean output."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from typing import Any

import pytest

from mnemic.edge.cli import recall as recall_module
from mnemic.edge.cli.endings import EXIT_CODES, exit_code_of
from mnemic.errors import MnemicError

PATIENCE_SECONDS = 120


def every_error(kind: type[MnemicError] = MnemicError) -> list[type[MnemicError]]:
    return [kind, *(below for one in kind.__subclasses__() for below in every_error(one))]


@pytest.mark.parametrize("kind", every_error())
def test_every_error_has_an_exit_code_of_its_class(kind: type[MnemicError]) -> None:
    fault = kind.__new__(kind)

    code = exit_code_of(fault)

    assert code in {1, 2, 3, 4, 5}
    assert (code == 1) == (not issubclass(kind, tuple(EXIT_CODES)))


def test_the_installed_command_does_the_main_job(installed: Any) -> None:
    kept = installed("remember", "-", "--json", stdin="Deploys are frozen on Fridays")
    found = installed("recall", "When are deploys frozen?")

    assert (kept.code, kept.err, found.code, found.err) == (0, "", 0, "")
    assert kept.document["created"] is True
    assert "Deploys are frozen on Fridays" in found.out


def test_a_lone_surrogate_in_an_argument_is_refused(installed: Any) -> None:
    ended = installed("recall", b"lone \xff byte", "--json")

    assert ended.code == 2
    assert ended.document["error"]["field"] == "query"


def test_a_reader_that_goes_away_is_no_error(installed: Any) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)

    running = installed.start("db", "sql", stdout=write_end, stderr=subprocess.PIPE)
    os.close(write_end)
    _, err = running.communicate(timeout=PATIENCE_SECONDS)

    assert (running.returncode, err) == (141, b"")


def test_a_full_disk_behind_standard_output_is_told(installed: Any) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        running = installed.start("settings", stdout=full, stderr=subprocess.PIPE)
        _, err = running.communicate(timeout=PATIENCE_SECONDS)

    assert running.returncode == 1
    assert err == b"Error: the result cannot be written: No space left on device\n"


def test_an_interrupt_ends_quietly_with_130(installed: Any) -> None:
    master, terminal = pty.openpty()
    running = installed.start("ingest", "-", stdin=subprocess.PIPE, stderr=terminal)
    os.close(terminal)
    shown = b""
    while b"Reading" not in shown:
        shown += os.read(master, 4_096)

    running.send_signal(signal.SIGINT)
    running.wait(PATIENCE_SECONDS)
    running.stdin.close()
    os.close(master)

    assert running.returncode == 130
    assert b"Traceback" not in shown


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that fails as nobody has foreseen."""

    def fail(*_arguments: object) -> None:
        message = "nobody has foreseen this"
        raise ZeroDivisionError(message)

    monkeypatch.setattr(recall_module, "with_memory", fail)


def test_the_unexpected_is_one_message_and_says_how_to_see_more(bare: Any, broken: None) -> None:
    plain = bare("recall", "x")
    as_json = bare("recall", "x", "--json")

    assert (plain.code, plain.out) == (1, "")
    assert plain.err == (
        "Error: unexpected ZeroDivisionError: nobody has foreseen this\n"
        "To see where it happened, run it again with MEM_DEBUG=1\n"
    )
    assert as_json.document["error"]["code"] == "internal"


@pytest.mark.parametrize("how", ["option", "variable"])
def test_where_the_unexpected_happened_is_shown_on_demand(
    bare: Any, broken: None, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bare, "tracebacks_expected", True)
    arguments = ("--debug", "recall", "x") if how == "option" else ("recall", "x")
    changed = {} if how == "option" else {"MEM_DEBUG": "1"}

    ended = bare(*arguments, **changed)

    assert ended.code == 1
    assert "Traceback" in ended.err
    assert "in fail" in ended.err


def test_an_embedder_that_is_away_is_told_and_logged_beside_the_result(
    mnemic: Any, database: Any
) -> None:
    mnemic.environment |= {
        "MEM_DATABASE_URL": database.app_url,
        "MEM_EMBEDDING__PROVIDER": "openai",
        "MEM_EMBEDDING__MODEL": "some-model",
        "MEM_EMBEDDING__BASE_URL": "http://127.0.0.1:1/v1",
        "MEM_EMBEDDING__API_KEY": "none",
        "MEM_EMBEDDING__RETRY_MAX": "0",
    }

    kept = mnemic("remember", "Deploys are frozen on Fridays")
    found = mnemic("recall", "When are deploys frozen?", "--json")
    quiet = mnemic("--log-level", "error", "recall", "When are deploys frozen?")

    assert "The embedder is away" in kept.out
    assert found.document["degraded"] == ["vectors: the embedder is unavailable"]
    assert found.document["hits"]
    assert {json.loads(line)["event"] for line in found.err.splitlines()} == {
        "embedding_unavailable"
    }
    assert quiet.err == "Incomplete: vectors: the embedder is unavailable\n"


def on_terminal(installed: Any, *arguments: str, types: bytes = b"") -> tuple[int, str]:
    """Runs the command for a person: the exit code, and all that the terminal showed."""
    master, terminal = pty.openpty()
    running = installed.start(*arguments, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    os.write(master, types)
    shown = b""
    try:
        while chunk := os.read(master, 4_096):
            shown += chunk
    except OSError:  # the program has closed its end
        pass
    os.close(master)
    return running.wait(PATIENCE_SECONDS), shown.decode()


def test_a_terminal_shows_tables_and_no_control_of_a_memory(installed: Any) -> None:
    installed("remember", "-", stdin="Deploys are \x1b]0;owned\x07frozen on Fridays")

    recalled, hits = on_terminal(installed, "recall", "When are deploys frozen?")
    told, settings = on_terminal(installed, "settings")

    assert (recalled, told) == (0, 0)
    assert "score" in hits
    assert "frozen on Fridays" in hits
    assert "\x1b]0;owned" not in hits
    assert "setting" in settings
    assert "recall.limit_max" in settings


def test_a_person_is_asked_before_anything_is_forgotten(installed: Any) -> None:
    kept = installed("remember", "Deploys are frozen on Fridays", "--json").document["id"]

    refused, said = on_terminal(installed, "forget", kept, types=b"n\n")
    agreed, _ = on_terminal(installed, "forget", kept, types=b"y\n")
    gone = installed("forget", kept, "--yes")

    assert refused == 1
    assert "Delete this memory of user person-" in said
    assert "Nothing was deleted." in said
    assert (agreed, gone.code) == (0, 3)
