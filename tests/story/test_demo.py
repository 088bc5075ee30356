"""The demo on servers of its own, from nothing: as a newcomer runs it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mnemic.embedded.guard import holders
from mnemic.embedded.layout import home_of, remove_home

pytestmark = pytest.mark.story

PROGRAM = Path(sys.executable).with_name("mnemic")
PATIENCE_SECONDS = 180
NOBODY = ("--reuid=65534", "--regid=65534", "--clear-groups")
# What may differ between two runs: whether something was new, and how long it took.
VOLATILE = {"seconds", "took_ms", "turns_added", "turns_known", "episode_created"}
VOLATILE |= {"episodes_created", "score", "reasons", "confidence", "bounded"}

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A data folder to be; nothing may be left running in it afterwards."""
    place = Path(tempfile.mkdtemp(prefix="mnemic-demo-"))
    place.chmod(0o755)
    data = place / "data"
    yield data
    until = time.monotonic() + PATIENCE_SECONDS
    locks = [data / f"{name}.lock" for name in ("guard", "postgres", "valkey")]
    while any(holders(str(lock)) for lock in locks if lock.exists()):
        assert time.monotonic() < until, "servers were left running"
        time.sleep(0.05)
    if (data / "state.json").exists():
        shutil.rmtree(home_of(data), ignore_errors=True)
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def start(folder: Path) -> Start:
    """Starts a command line in a process group of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEM_")}

    def run(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=kept | {"MEM_EMBEDDED__DATA_DIR": str(folder)},
            start_new_session=True,
        )

    return run


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert "Traceback" not in err, err
    return process.returncode, out, err


@pytest.fixture(scope="module")
def firsts(start: Start) -> list[dict[str, Any]]:
    """What the very first two runs show, which start at the same moment on an empty disk."""
    both = [start(str(PROGRAM), "demo", "--json") for _ in range(2)]
    results = [ended(one) for one in both]
    assert [(code, err) for code, _, err in results] == [(0, ""), (0, "")]
    return [json.loads(out) for _, out, _ in results]


@pytest.fixture(scope="module")
def first(firsts: list[dict[str, Any]]) -> dict[str, Any]:
    """What one of the first two runs shows."""
    return firsts[0]


def test_the_first_two_runs_do_the_whole_job_once_between_them(
    firsts: list[dict[str, Any]],
) -> None:
    one, other = firsts

    assert one["embedded"] is True
    assert one["ingest"]["turns_added"] + other["ingest"]["turns_added"] == 85
    assert one["ingest"]["episodes_created"] + other["ingest"]["episodes_created"] == 6
    assert all(session["title"] for session in one["ingest"]["sessions"])
    assert len(one["facts"]) == 3
    steps = {"servers", "schema", "ingest", "facts", "tiers", "recall", "context"}
    assert set(one["seconds"]) == steps
    assert lasting(one) == lasting(other)


def test_each_tier_is_shown_at_work(first: dict[str, Any]) -> None:
    tiers = first["tiers"]

    assert tiers["working"] == {
        "branch": "release-1.6",
        "current_step": "rehearse the migration",
        "progress": 0.4,
    }
    assert tiers["episodic"]["episodes"] == 6
    assert tiers["semantic"]["facts"] == ["The ledger keeps its data in PostgreSQL."]
    assert (tiers["procedural"]["success_count"], tiers["procedural"]["on_friday"]) == (4, [])


def test_the_questions_find_the_turns_that_answer_them(first: dict[str, Any]) -> None:
    examples = Path(__file__).parents[2] / "examples"
    lines = map(json.loads, (examples / "conversation.ndjson").read_text().splitlines())
    told = {one["id"]: one["text"] for one in lines if one["type"] == "turn"}
    asked = {
        one["question"]: told[one["turn"]]
        for one in json.loads((examples / "questions.json").read_text())
    }

    answers = {one["query"]: [hit["text"] for hit in one["hits"]] for one in first["recall"]}

    assert len(answers) == 4
    for question, texts in answers.items():
        assert any(asked[question] in text for text in texts), question
    assert all(hit["why"] for one in first["recall"] for hit in one["hits"])


def test_the_prompt_section_keeps_its_budget(first: dict[str, Any]) -> None:
    section = first["context"]

    assert 0 < section["tokens"] <= section["budget"] == 300
    assert "Deploys are frozen on Fridays" in section["text"]


def test_after_a_run_that_is_killed_the_next_shows_the_same(
    first: dict[str, Any], start: Start
) -> None:
    killed = start(str(PROGRAM), "demo")
    assert killed.stdout is not None
    killed.stdout.readline()
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()

    code, out, err = ended(start(str(PROGRAM), "demo", "--json"))

    again = json.loads(out)
    assert (code, err) == (0, "")
    assert (again["ingest"]["turns_added"], again["ingest"]["turns_known"]) == (0, 85)
    assert lasting(again) == lasting(first)


def test_every_command_that_is_proposed_works(first: dict[str, Any], start: Start) -> None:
    code, out, err = ended(start(str(PROGRAM), "demo"))

    proposed = re.findall(
        r"^   (\S*mnemic .+)$", out.partition("What to try next:")[2], re.MULTILINE
    )
    assert (code, err, len(proposed)) == (0, "", 5)
    for line in proposed:
        returned, shown, said = ended(start(*shlex.split(line)))
        assert (returned, said) == (0, ""), line
        assert shown, line


def test_the_commands_for_the_database_act_on_the_embedded_servers(
    first: dict[str, Any], start: Start
) -> None:
    results = [
        ended(start(str(PROGRAM), "db", *words, "--json"))
        for words in (("init",), ("upgrade",), ("current",), ("check",))
    ]

    init, upgrade, current, check = (json.loads(out) for _, out, _ in results)
    assert [(code, err) for code, _, err in results] == [(0, "")] * 4
    assert init == {"database": "mnemic", "database_created": False}
    assert (upgrade["steps"], upgrade["current"]) == (0, first["revision"])
    assert (current["is_head"], check["ok"]) == (True, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take the network away, or be another")
@pytest.mark.parametrize("lacking", ["network", "privileges"])
def test_nothing_but_its_own_files_is_needed(lacking: str) -> None:
    alone = {"network": ["unshare", "--net"], "privileges": ["setpriv", *NOBODY]}[lacking]
    same = f"import sys; sys.exit(sys.version != {sys.version!r})"
    if subprocess.run([*alone, sys.executable, "-c", same], check=False).returncode:
        pytest.skip(f"{alone[0]} cannot start this interpreter here")
    with tempfile.TemporaryDirectory(prefix="mnemic-alone-") as home:
        Path(home).chmod(0o777)

        ran = subprocess.run(
            [*alone, str(PROGRAM), "demo", "--json"],
            env={"PATH": os.defpath, "HOME": home},
            cwd=home,
            capture_output=True,
            check=False,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        remove_home(Path(home, ".local", "share", "mnemic"))

    assert (ran.returncode, ran.stderr) == (0, "")
    told = json.loads(ran.stdout)
    assert told["data_dir"] == f"{home}/.local/share/mnemic"
    assert told["ingest"]["episodes_created"] == 6
    assert "frozen on Fridays" in told["context"]["text"]


def lasting(value: Any) -> Any:
    """The parts of a document that every run shows alike."""
    if isinstance(value, dict):
        return {key: lasting(inner) for key, inner in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [lasting(inner) for inner in value]
    return value
