"""Each planted defect makes a test fail: a check that has never failed proves nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import structlog

sys.path.insert(0, str(Path(__file__).parent))

from planted_defects import DEFECTS, Defect

AT_ONCE = 2
SECONDS_MAX = 300
log = structlog.get_logger("planted")


def _run(root: Path, defect: Defect) -> str:
    """Why the defect was not caught; empty if it was."""
    try:
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-x", "-q", "-p", "planted_plugin"),
                *("-p", "no:cacheprovider", "--plant", defect.name, *defect.caught_by),
            ],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{defect.name}: the tests take longer than {SECONDS_MAX} s"
    # Failed, not broken: an error while collecting or setting up catches nothing.
    if ran.returncode and re.search("^FAILED tests/", ran.stdout, re.MULTILINE):
        return ""
    return f"{defect.name}: {ran.stdout[-600:]}{ran.stderr[-300:]}"


def test_every_planted_defect_is_caught(request: pytest.FixtureRequest) -> None:
    root = request.config.rootpath

    with ThreadPoolExecutor(AT_ONCE) as pool:
        missed = [told for told in pool.map(lambda one: _run(root, one), DEFECTS.values()) if told]

    log.info("planted", defects=len(DEFECTS), caught=len(DEFECTS) - len(missed))
    assert missed == []
    assert len(DEFECTS) >= 20
