"""Each planted defect makes a test fail: a check that has never failed proves nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import structlog

sys.path.insert(0, str(Path(__file__).parent))

from planted_defects import DEFECTS, Defect

AT_ONCE = 2
SECONDS_MAX = 300
log = structlog.get_logger("planted")


def _is_caught(told: str, caught_by: tuple[str, ...]) -> bool:
    """Whether one of these tests failed; one that broke while it was set up catches nothing."""
    failed = re.findall(r"^FAILED ([^\s\[]+)", told, re.MULTILINE)
    return any(one == name or one.startswith(f"{name}::") for one in failed for name in caught_by)


@pytest.mark.parametrize(
    ("told", "is_caught"),
    [
        ("FAILED tests/unit/test_a.py::test_b - assert 1 == 2", True),
        ("FAILED tests/unit/test_a.py::test_b[1-x y] - assert 1 == 2", True),
        ("FAILED tests/unit/test_c.py::test_whichever", True),
        ("FAILED tests/unit/test_a.py::test_b_and_more - assert 1 == 2", False),
        ("FAILED tests/unit/test_d.py::test_b - assert 1 == 2", False),
        ("ERROR tests/unit/test_a.py::test_b - OSError", False),
    ],
)
def test_only_the_failure_of_a_named_test_catches_a_defect(told: str, *, is_caught: bool) -> None:
    named = ("tests/unit/test_a.py::test_b", "tests/unit/test_c.py")

    assert _is_caught(f"=== short test summary info ===\n{told}\n1 failed", named) is is_caught


def test_the_page_tells_how_many_are_planted(request: pytest.FixtureRequest) -> None:
    page = (request.config.rootpath / "docs/reliability.md").read_text(encoding="utf-8")

    published = re.findall(r"\*\*(\d+) planted, (\d+) caught\.\*\*", page)

    assert published == [(str(len(DEFECTS)),) * 2]


def _run(root: Path, defect: Defect) -> str:
    """Why the defect was not caught; empty if it was."""
    command = [
        *(sys.executable, "-m", "pytest", "-x", "-q", "-p", "planted_plugin"),
        *("-p", "no:cacheprovider", "--plant", defect.name, *defect.caught_by),
    ]
    try:
        with TemporaryDirectory() as folder:  # pytest keeps the files of a test that failed
            Path(folder).chmod(0o711)  # servers that root starts run as another user
            ran = subprocess.run(
                command,
                cwd=root,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), "TMPDIR": folder},
                capture_output=True,
                text=True,
                timeout=SECONDS_MAX,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return f"{defect.name}: the tests take longer than {SECONDS_MAX} s"
    if ran.returncode and _is_caught(ran.stdout, defect.caught_by):
        return ""
    return f"{defect.name}: {ran.stdout[-600:]}{ran.stderr[-300:]}"


def test_every_planted_defect_is_caught(request: pytest.FixtureRequest) -> None:
    root = request.config.rootpath

    with ThreadPoolExecutor(AT_ONCE) as pool:
        missed = [told for told in pool.map(lambda one: _run(root, one), DEFECTS.values()) if told]

    log.info("planted", defects=len(DEFECTS), caught=len(DEFECTS) - len(missed))
    assert missed == []
