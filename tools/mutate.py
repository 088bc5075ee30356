"""Breaks the rules of the model in thousands of small ways, and counts what the tests notice.

    mutate.py [PATTERN…]    all mutants, or those whose names match: "mnemic.model.scope*"

Works in `.mutate`, on a copy of the sources under the layout that mutmut wants, with an
interpreter of its own that sees the packages of `.venv`; nothing of the project is changed. Prints
a table of the files, and the survivors to `.mutate/survivors.txt`. The exit status is 1 when fewer
than `KILLED_MIN` of all mutants that were run are killed. A run that was stopped goes on where it
was.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".mutate"
VENV = PLACE / "venv"
LOCK = ROOT / "tools" / "mutate.lock"

KILLED_MIN = 0.85
MUTATED = ("mnemic/model/*", "mnemic/store/_scoping.py")
_TIMED = "test_a_full_set_of_candidates_is_scored_in_milliseconds"
TESTS = (
    "tests/unit",
    "tests/embed/test_vectors.py",
    # A time limit, which a mutant in every call would break.
    f"--deselect=tests/unit/test_ranking_properties.py::{_TIMED}",
)
# So do those of time and memory by the amount of text, and they take longest of all.
_UNMEASURED = 'addopts = ["-m", "not measured", '
ALSO = ("docs", "examples", "migrations", "README.md", "CHANGELOG.md", "LICENSE")
# mutmut's exit codes of the tests: noticed, by a failure, an error, or by taking for ever.
_KILLED = {1, 3, 24, -24, 36, 37, 152, 255}
_SURVIVED = {0}
_UNTESTED = {5, 33}


def main(patterns: list[str]) -> int:
    """The exit status."""
    _make_environment()
    _lay_out()
    _forget_survivors()
    environment = {**os.environ, "PYTHONPATH": str(PLACE / "mutants" / "src")}
    jobs = str(os.cpu_count() or 1)
    command = [str(VENV / "bin" / "mutmut"), "run", "--max-children", jobs, *patterns]
    ran = subprocess.run(command, cwd=PLACE, env=environment, check=False)
    if ran.returncode != 0:
        return ran.returncode
    return 0 if _reported(_outcomes()) >= KILLED_MIN else 1


def _make_environment() -> None:
    """An interpreter with mutmut by its locked digests, and the packages of `.venv` behind it."""
    stamp = VENV / "mutate.lock"
    if stamp.exists() and stamp.read_bytes() == LOCK.read_bytes():
        return
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", VENV], check=True)
    python = VENV / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--require-hashes", "-r", LOCK], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = Path("lib") / version / "site-packages"
    # A path in a .pth file is not searched for further ones: the editable project stays out.
    (VENV / packages / "project.pth").write_text(f"{ROOT / '.venv' / packages}\n", "utf-8")
    shutil.copy(LOCK, stamp)


def _lay_out() -> None:
    """The sources below `src`, the tests and what they read beside them, with their times."""
    # An interpreter that starts before a folder of its path is there never looks into it.
    (PLACE / "mutants" / "src").mkdir(parents=True, exist_ok=True)
    for source, target in (
        (ROOT / "backend", "src"),
        (ROOT / "tests", "tests"),
        *((ROOT / name, name) for name in ALSO),
    ):
        if source.is_dir():
            shutil.rmtree(PLACE / target, ignore_errors=True)
            shutil.copytree(source, PLACE / target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, PLACE / target)
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    found = re.search(r"^\[tool\.pytest\]\n.*?(?=^\[)", project, re.MULTILINE | re.DOTALL)
    pytest_section = found[0].replace("addopts = [", _UNMEASURED) if found else ""
    (PLACE / "pyproject.toml").write_text(
        f"{pytest_section}"
        "[tool.mutmut]\n"
        'source_paths = ["src"]\n'
        f"only_mutate = {json.dumps([f'src/{one}' for one in MUTATED])}\n"
        f"pytest_add_cli_args_test_selection = {json.dumps(TESTS)}\n"
        f"also_copy = {json.dumps(ALSO)}\n"
        "use_git_change_detection = false\n"
        "timeout_multiplier = 10.0\n",
        "utf-8",
    )


def _forget_survivors() -> None:
    """What an earlier run left alive is tried again: there may be new tests."""
    for path in (PLACE / "mutants" / "src").rglob("*.meta"):
        kept = json.loads(path.read_text("utf-8"))
        codes = kept["exit_code_by_key"]
        kept["exit_code_by_key"] = {
            name: code if code in _KILLED else None for name, code in codes.items()
        }
        path.write_text(json.dumps(kept), "utf-8")


def _outcomes() -> dict[str, dict[str, int | None]]:
    """The outcome of each mutant, by file."""
    root = PLACE / "mutants" / "src" / "mnemic"
    found = {}
    for path in sorted(root.rglob("*.meta")):
        codes = json.loads(path.read_text("utf-8"))["exit_code_by_key"]
        if codes:
            found[str(path.relative_to(root).with_suffix(""))] = codes
    return found


def _reported(outcomes: dict[str, dict[str, int | None]]) -> float:
    """The share of the mutants that were killed, of those that were run; with the table printed."""
    total: Counter[str] = Counter()
    survivors = []
    print(f"{'file':32} {'mutants':>8} {'killed':>8} {'survived':>9} {'untested':>9}")
    for name, codes in outcomes.items():
        counted = Counter(_word(code) for code in codes.values())
        total += counted
        survivors += [f"{_word(code)} {key}" for key, code in codes.items() if code not in _KILLED]
        print(_row(name, counted))
    print(_row("all", total))
    (PLACE / "survivors.txt").write_text("\n".join(survivors) + "\n", "utf-8")
    ran = sum(count for word, count in total.items() if word != "not run")
    share = total["killed"] / ran if ran else 0.0
    print(f"{share:.1%} of {ran} mutants killed; at least {KILLED_MIN:.0%} are asked for")
    return share


def _word(code: int | None) -> str:
    if code is None:
        return "not run"
    if code in _SURVIVED:
        return "survived"
    return "killed" if code in _KILLED else "untested" if code in _UNTESTED else f"code {code}"


def _row(name: str, counted: Counter[str]) -> str:
    killed, survived, untested = (counted[word] for word in ("killed", "survived", "untested"))
    return f"{name:32} {counted.total():8} {killed:8} {survived:9} {untested:9}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
