"""What `make` sets up: at once the second time, repaired after a kill, by one at a time.

The real tools run in a small project of the test's own, which needs no package and no network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

PATIENCE_SECONDS = 60.0
PROJECT = """
[build-system]
requires = []
build-backend = "tiny"
backend-path = ["backend"]
[project]
name = "mnemic"
version = "1"
"""
# An in-tree build backend: an editable wheel that says nothing but where the sources are.
BACKEND = """
import pathlib, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    info, name = "mnemic-1.dist-info", "mnemic-1-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        wheel.writestr("mnemic.pth", str(pathlib.Path(__file__).parent))
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: mnemic\\nVersion: 1\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""
# Locked for an interpreter that there is not, so that nothing is fetched.
LOCK = f'nothing==1 ; python_version < "3" --hash=sha256:{"0" * 64}\n'


def small_project(root: Path, place: Path) -> Path:
    """A folder with the real tools and a small project; its path has a space."""
    folder = place / "a clone"
    (folder / "backend").mkdir(parents=True)
    shutil.copytree(root / "tools", folder / "tools")
    shutil.copy(root / "Makefile", folder)
    (folder / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (folder / "requirements.lock").write_text(LOCK, encoding="utf-8")
    (folder / "backend" / "tiny.py").write_text(BACKEND, encoding="utf-8")
    (folder / "backend" / "small.py").write_text("", encoding="utf-8")
    return folder


def environment(**more: str) -> dict[str, str]:
    """No home, and the interpreter below this virtual environment's."""
    base = Path(getattr(sys, "_base_executable", sys.executable)).parent
    return {"PATH": f"{base}{os.pathsep}{os.defpath}", "HOME": "/nonexistent", **more}


def set_up(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["tools/setup", *arguments],
        cwd=folder,
        env=environment(**more),
        check=False,
        capture_output=True,
        text=True,
    )


def begin(folder: Path) -> subprocess.Popen[str]:
    """A set-up that has begun to make `.venv`."""
    begun = subprocess.Popen(
        ["tools/setup"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + PATIENCE_SECONDS
    while not (folder / ".venv" / "pyvenv.cfg").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    return begun


def works(folder: Path) -> bool:
    """Whether the interpreter of `.venv` finds the project."""
    program = [folder / ".venv" / "bin" / "python", "-I", "-c", "import small"]
    return subprocess.run(program, check=False, capture_output=True).returncode == 0


@pytest.fixture
def clone(root: Path, tmp_path: Path) -> Path:
    """A clone in which nothing was set up yet."""
    return small_project(root, tmp_path)


@pytest.fixture(scope="module")
def ready(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone that is set up; a test that spoils it sets it up again."""
    folder = small_project(root, tmp_path_factory.mktemp("ready"))
    assert set_up(folder).returncode == 0
    return folder


def test_the_second_time_nothing_is_done_or_said(ready: Path) -> None:
    log = ready / ".venv" / "setup.log"
    before = (log.stat().st_mtime_ns, works(ready))

    again = set_up(ready, PIP_INDEX_URL="http://127.0.0.1:9/")

    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert (log.stat().st_mtime_ns, works(ready)) == before
    assert before[1]


def test_a_changed_project_is_installed_again_and_its_packages_are_not(ready: Path) -> None:
    with (ready / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("# changed\n")

    changed = set_up(ready)

    assert changed.stdout.splitlines() == [
        "setup: installing mnemic itself, editable",
        "setup: ready: .venv",
    ]
    assert works(ready)


def test_an_interpreter_that_is_gone_is_replaced(ready: Path) -> None:
    for name in ("python", "python3"):
        (ready / ".venv" / "bin" / name).unlink()

    repaired = set_up(ready)

    assert repaired.returncode == 0
    assert "setup: making .venv" in repaired.stdout
    assert works(ready)


def test_what_was_killed_half_way_is_begun_anew(clone: Path) -> None:
    begun = begin(clone)
    os.killpg(begun.pid, signal.SIGKILL)
    begun.communicate()
    (clone / ".venv" / "bin" / "stray").write_text("half made", encoding="utf-8")

    repaired = set_up(clone)

    assert begun.returncode == -signal.SIGKILL
    assert repaired.returncode == 0, repaired.stderr
    assert works(clone)
    assert not (clone / ".venv" / "bin" / "stray").exists()


def test_of_two_at_once_one_makes_it_and_the_other_waits(clone: Path) -> None:
    first = begin(clone)

    second = set_up(clone)

    told, _ = first.communicate(timeout=PATIENCE_SECONDS)
    assert (first.returncode, second.returncode) == (0, 0)
    assert told.endswith("setup: ready: .venv\n")
    assert second.stdout == "setup: another set-up of this folder is at work; waiting for it\n"
    assert works(clone)


def test_a_clone_that_was_moved_is_set_up_anew(ready: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(ready, moved, symlinks=True)

    remade = set_up(moved)

    assert "setup: making .venv" in remade.stdout
    assert works(moved)


def test_packages_that_cannot_be_had_are_told_with_the_remedy(clone: Path) -> None:
    (clone / "requirements.lock").write_text(LOCK.partition(";")[0] + LOCK.partition('"3"')[2])

    failed = set_up(clone, PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull)

    assert failed.returncode == 1
    assert "No matching distribution found for nothing==1" in failed.stderr
    assert "PIP_FIND_LINKS" in failed.stderr
    assert not (clone / ".venv" / ".mnemic-stamp.json").exists()


def test_an_environment_of_somebody_else_is_neither_emptied_nor_removed(clone: Path) -> None:
    venv.create(clone / ".venv", with_pip=False)
    (clone / ".venv" / "theirs").touch()

    refused, cleaned = set_up(clone), set_up(clone, "clean")

    assert (refused.returncode, cleaned.returncode) == (1, 0)
    assert "was not made by make and has no working pip" in refused.stderr
    assert "kept: .venv" in cleaned.stdout
    assert (clone / ".venv" / "theirs").exists()


def test_clean_removes_what_was_made_here_and_nothing_else(clone: Path) -> None:
    (clone / ".venv").mkdir()
    (clone / ".venv" / ".made-by-mnemic-setup").touch()
    (clone / ".venv" / "lib").mkdir()
    for made in (".mypy_cache/x", "backend/__pycache__/x.pyc", ".coverage", ".coverage.host.1"):
        (clone / made).parent.mkdir(exist_ok=True)
        (clone / made).touch()
    (clone / ".env").touch()
    (clone / "notes").mkdir()

    cleaned = set_up(clone, "clean")

    left = {path.name for path in clone.iterdir()}
    assert (cleaned.returncode, cleaned.stderr) == (0, "")
    assert left == {
        ".env",
        "Makefile",
        "backend",
        "notes",
        "pyproject.toml",
        "requirements.lock",
        "tools",
    }
    assert {path.name for path in (clone / "backend").iterdir()} == {"small.py", "tiny.py"}


def test_without_a_fitting_interpreter_it_says_what_to_do(clone: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    for name in ("sh", "dirname", "env"):
        (bare / name).symlink_to(shutil.which(name) or name)

    nothing = set_up(clone, PATH=str(bare))
    wrong = set_up(clone, PYTHON="/bin/false")

    assert (nothing.returncode, wrong.returncode) == (1, 1)
    assert "no CPython from 3.11 to 3.14 was found" in nothing.stderr
    assert "make PYTHON=" in nothing.stderr
    assert "PYTHON is '/bin/false'" in wrong.stderr


def test_a_named_interpreter_is_used(ready: Path) -> None:
    base = Path(getattr(sys, "_base_executable", sys.executable))

    named = set_up(ready, PYTHON=str(base))

    told = json.loads((ready / ".venv" / ".mnemic-stamp.json").read_text(encoding="utf-8"))
    assert named.returncode == 0
    assert told["python"] == f"{sys.version_info[0]}.{sys.version_info[1]}"


LEFTOVERS = """
import runpy, sys
module = runpy.run_path(sys.argv[1])
run = module["run"]
run.__globals__["GRACE_SECONDS"] = float(sys.argv[2])
sys.exit(run(sys.argv[3:]))
"""


def left_by(
    root: Path, script: str, *, grace: float = 0.2, **more: str
) -> subprocess.CompletedProcess[str]:
    """What tools/leftovers.py says after a shell script."""
    tool = [sys.executable, "-I", "-c", LEFTOVERS, root / "tools" / "leftovers.py", str(grace)]
    return subprocess.run(
        [*tool, "sh", "-c", script],
        env={"PATH": os.defpath, **more},
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )


def test_a_process_that_detached_itself_is_found_and_ended(root: Path) -> None:
    ran = left_by(root, "(setsid sh -c 'sleep 331 & exec sleep 332' </dev/null >/dev/null 2>&1 &)")

    assert ran.returncode == 1
    assert re.findall(r"left behind: process \d+ \((.*)\)", ran.stderr) == [
        "sleep 332",
        "sleep 331",
    ]


def test_files_and_sockets_that_are_left_are_told_and_removed(root: Path) -> None:
    ran = left_by(root, 'touch "$TMPDIR/data"; mkdir "$TMPDIR/pytest-of-x"; echo "$TMPDIR"')

    assert ran.returncode == 1
    folder = Path(ran.stdout.strip())
    assert ran.stderr == f"left behind: {folder}/data\n"
    assert not folder.exists()


def test_what_ends_in_time_is_not_left_behind(root: Path) -> None:
    ran = left_by(root, "sleep 0.3 & exit 7", grace=PATIENCE_SECONDS, TMPDIR="/tmp")

    assert (ran.returncode, ran.stderr) == (7, "")
