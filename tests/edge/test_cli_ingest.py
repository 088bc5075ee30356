"""`mnemic ingest`: what is added, what is told, and with which exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE_SECONDS = 120

Write = Callable[..., Path]


def turn(session: str, number: int, text: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "turn",
        "session": session,
        "actor": "User",
        "text": text,
        "at": f"2026-03-02T09:{number // 60:02}:{number % 60:02}Z",
        **more,
    }


def test_the_example_is_ingested_once_whatever_is_run_again(mnemic: Any) -> None:
    first = mnemic("ingest", str(EXAMPLES / "conversation.ndjson"))
    second = mnemic("ingest", str(EXAMPLES / "conversation.ndjson"))

    summary = first.out.splitlines()[0]
    again = second.out.splitlines()[0]
    assert (first.code, first.err, second.code, second.err) == (0, "", 0, "")
    assert "6 sessions · 85 turns added, 0 already there · 6 new episodes" in summary
    assert "6 sessions · 0 turns added, 85 already there · 0 new episodes" in again
    assert "recall --project ledger 'QUESTION'" in first.out.splitlines()[-1]


def test_the_hint_finds_what_was_ingested(mnemic: Any) -> None:
    mnemic("ingest", str(EXAMPLES / "conversation.ndjson"))
    questions = json.loads((EXAMPLES / "questions.json").read_text())

    found = {
        one["question"]: mnemic(
            "recall", "--project", "ledger", one["question"], "--limit", "3", "--json"
        ).document["hits"]
        for one in questions[:4]
    }

    told = {
        json.loads(line)["id"]: json.loads(line)["text"]
        for line in (EXAMPLES / "conversation.ndjson").read_text().splitlines()
        if '"turn"' in line
    }
    for one in questions[:4]:
        assert any(told[one["turn"]] in hit["text"] for hit in found[one["question"]])


def test_bad_lines_are_told_by_number_and_the_rest_is_kept(mnemic: Any, ndjson: Write) -> None:
    path = ndjson(turn("s", 0, "Kept"), "{broken", {"type": "turn"}, turn("s", 1, "Kept as well"))

    ended = mnemic("ingest", str(path))
    told = mnemic("ingest", str(path), "--json").document["files"][0]

    first, second = ended.err.splitlines()
    assert ended.code == 0
    assert first.startswith(f"{path}:2: ")
    assert second.startswith(f"{path}:3: session: ")
    assert "2 turns added" in ended.out
    assert "2 bad lines" in ended.out
    assert [one["line"] for one in told["bad_lines"]] == [2, 3]
    assert told["ingested"]["turns_known"] == 2


def test_strict_writes_nothing_when_a_line_is_bad(mnemic: Any, ndjson: Write) -> None:
    path = ndjson(turn("s", 0, "Good"), "{broken")

    refused = mnemic("ingest", str(path), "--strict", "--json")
    found = mnemic("recall", "Good", "--json").document

    assert refused.code == 1
    assert refused.document["files"][0]["ingested"] is None
    assert found["searched"] == 0


def test_a_file_of_which_nothing_can_be_read_is_invalid_input(mnemic: Any, ndjson: Write) -> None:
    bad = ndjson("no form at all", name="bad.txt")
    good = ndjson(turn("s", 0, "Kept"), name="good.ndjson")

    ended = mnemic("ingest", str(bad), str(good))

    assert ended.code == 2
    assert f"{bad}:1: " in ended.err
    assert f"{bad}: nothing could be read" in ended.err
    assert ended.out.startswith(f"{good}: 1 session · 1 turn added")


def test_sessions_kept_open_are_ended_by_a_later_run(mnemic: Any, ndjson: Write) -> None:
    path = str(ndjson(turn("s", 0, "To be continued")))

    opened = mnemic("ingest", path, "--keep-open", "--json").document["files"][0]["ingested"]
    closed = mnemic("ingest", path, "--json").document["files"][0]["ingested"]

    assert (opened["episodes_created"], opened["sessions"][0]["episode_id"]) == (0, None)
    assert (closed["episodes_created"], closed["turns_known"]) == (1, 1)


def test_new_turns_of_an_ended_session_are_told_with_the_remedy(mnemic: Any, ndjson: Write) -> None:
    mnemic("ingest", str(ndjson(turn("s", 0, "All is said"))))

    path = ndjson(turn("s", 0, "All is said"), turn("s", 1, "One"), turn("s", 2, "Two"))
    ended = mnemic("ingest", str(path))
    strict = mnemic("ingest", str(path), "--strict")

    assert (ended.code, strict.code) == (0, 1)
    assert ended.err == (
        f"{path}: session s has ended, so 2 new turns stayed out; "
        "put what is new into a session of another name\n"
    )
    assert "0 turns added, 1 already there" in ended.out


def test_an_edited_turn_is_told_by_its_line(mnemic: Any, ndjson: Write) -> None:
    mnemic("ingest", str(ndjson(turn("s", 0, "As said", id="a"))), "--keep-open")

    path = ndjson(turn("s", 0, "As wished", id="a"))
    ended = mnemic("ingest", str(path))

    assert ended.err.startswith(f"{path}:1: session s: the turn is kept with another text")


def test_a_plain_transcript_comes_in_by_standard_input(mnemic: Any) -> None:
    text = "[2026-03-02 09:00:00] User: Where do we keep backups?\n"

    unnamed = mnemic("ingest", "-", stdin=text)
    named = mnemic("ingest", "-", "--name", "from a pipe", "--json", stdin=text)

    (session,) = named.document["files"][0]["ingested"]["sessions"]
    assert unnamed.code == 2
    assert "standard input:1: " in unnamed.err
    assert (session["name"], session["turns_added"]) == ("from a pipe", 1)


def test_a_format_that_is_named_is_the_one_that_is_read(mnemic: Any, ndjson: Write) -> None:
    path = ndjson(turn("s", 0, "Kept"))

    wrong = mnemic("ingest", str(path), "--format", "locomo")
    right = mnemic("ingest", str(path), "--format", "ndjson")

    assert (wrong.code, right.code) == (2, 0)


def test_a_locomo_file_keeps_its_speakers_and_dates(mnemic: Any, tmp_path: Path) -> None:
    spoken = [
        {"speaker": "Ada", "dia_id": "D1:1", "text": "I adopted a grey cat in the shelter"},
        {"speaker": "Bo", "dia_id": "D1:2", "text": "How lovely, what is its name?"},
    ]
    conversation = {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": spoken,
    }
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([{"sample_id": "conv-1", "conversation": conversation}]))

    ended = mnemic("ingest", str(path), "--json").document["files"][0]
    (project,) = {one["scope"].get("project") for one in ended["ingested"]["sessions"]}
    options = ("--project", project) if project else ()
    found = mnemic("recall", "What did Ada adopt?", *options, "--json").document["hits"]

    assert (ended["bad_lines"], ended["ingested"]["turns_added"]) == ([], 2)
    turns = [hit for hit in found if hit["kind"] == "turn"]
    assert turns[0]["text"] == "Ada: I adopted a grey cat in the shelter"
    assert turns[0]["occurred_at"].startswith("2023-05-08T13:56")


def test_only_the_first_of_many_bad_lines_are_shown(mnemic: Any, ndjson: Write) -> None:
    path = ndjson(turn("s", 0, "Kept"), *["{broken"] * 1_100)

    shown = mnemic("ingest", str(path))
    told = mnemic("ingest", str(path), "--json").document["files"][0]

    assert len(shown.err.splitlines()) == 21
    assert shown.err.splitlines()[-1].startswith(f"{path}: 1080 more bad lines")
    assert (told["bad_line_count"], len(told["bad_lines"])) == (1_100, 1_000)


def test_facts_are_stored_beside_the_sessions(mnemic: Any, ndjson: Write) -> None:
    fact = {"type": "fact", "subject": "deploys", "predicate": "frozen_on", "object": "Friday"}
    path = str(ndjson({**fact, "project": "ledger"}))

    first = mnemic("ingest", path)
    second = mnemic("ingest", path)
    found = mnemic("recall", "--project", "ledger", "When are deploys frozen?")

    assert "1 fact added, 0 already there" in first.out
    assert "0 facts added, 1 already there" in second.out
    assert "deploys frozen on Friday" in found.out


def test_the_settings_bound_what_is_kept(mnemic: Any, ndjson: Write) -> None:
    path = ndjson(turn("s", 0, "x" * 101), turn("s", 1, "short enough"))

    ended = mnemic("ingest", str(path), MEM_LIMITS__TEXT_CHARS_MAX="100")

    assert ended.err.startswith(f"{path}:1: text: is 101 characters long; the most is 100")
    assert "1 turn added" in ended.out


def test_an_organisation_and_an_agent_are_scopes_too(mnemic: Any, ndjson: Write) -> None:
    path = str(ndjson(turn("s", 0, "We keep backups for thirty days", project="ledger")))

    ended = mnemic("ingest", path, "--org", "acme", "--agent-type", "coder", "--json")

    (session,) = ended.document["files"][0]["ingested"]["sessions"]
    assert session["scope"] == {
        "organisation": "acme",
        "agent_type": "coder",
        "session": "s",
    }


def test_a_database_that_is_too_busy_is_told_with_how_to_go_on(
    mnemic: Any, ndjson: Write, database: Any, admin: Any, run_now: Callable[..., Any]
) -> None:
    mnemic.environment |= {
        "MEM_DATABASE_URL": database.app_url,
        "MEM_DATABASE__LOCK_TIMEOUT_MS": "10",
    }
    path = str(ndjson(turn("s", 0, "Kept")))
    run_now(admin.execute("BEGIN; LOCK TABLE mnemic.turns IN ACCESS EXCLUSIVE MODE"))

    busy = mnemic("ingest", path)
    run_now(admin.execute("ROLLBACK"))
    done = mnemic("ingest", path)

    assert busy.code == 5
    assert "What was begun is kept; the same command, run again, completes it." in busy.err
    assert "1 turn added" in done.out


def test_a_run_that_is_killed_is_completed_by_the_next(installed: Any, ndjson: Write) -> None:
    path = str(
        ndjson(*[turn(f"s{n // 500}", n, f"Remark number {n} of many") for n in range(1_000)])
    )
    master, terminal = pty.openpty()
    running = installed.start("ingest", path, stdout=subprocess.DEVNULL, stderr=terminal)
    os.close(terminal)

    _wait_for(master, re.compile(rb"\b[1-9]\d*/1002"))
    running.kill()
    running.wait(PATIENCE_SECONDS)
    os.close(master)
    done = installed("ingest", path, "--json").document["files"][0]["ingested"]
    again = installed("ingest", path, "--json").document["files"][0]["ingested"]

    assert done["turns_known"] > 0
    assert done["turns_added"] > 0
    assert done["turns_known"] + done["turns_added"] == 1_000
    assert done["episodes_created"] == 2
    assert (again["turns_known"], again["turns_added"], again["episodes_created"]) == (1_000, 0, 0)


def test_a_progress_bar_moves_for_a_person_and_leaves_standard_output_alone(
    installed: Any, ndjson: Write
) -> None:
    path = str(ndjson(turn("s", 0, "Kept"), turn("s", 1, "Kept as well")))
    master, terminal = pty.openpty()

    running = installed.start("ingest", path, stdout=subprocess.PIPE, stderr=terminal)
    os.close(terminal)
    shown = _wait_for(master, re.compile(rb"3/3"))
    out, _ = running.communicate(timeout=PATIENCE_SECONDS)
    os.close(master)

    assert b"Ingesting" in shown
    assert out.startswith(f"{path}: 1 session · 2 turns added".encode())


def _wait_for(master: int, pattern: re.Pattern[bytes]) -> bytes:
    """Reads a terminal until it shows the pattern; fails when the program ends without it."""
    shown = b""
    while not pattern.search(shown):
        try:
            chunk = os.read(master, 4_096)
        except OSError:  # the program has closed its end
            chunk = b""
        assert chunk, shown.decode(errors="replace")
        shown += chunk
    return shown
