"""`make bench` runs; what it measures is for people to read."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.story
def test_the_benchmark_runs_and_tells_ours_beside_the_bare_drivers(root: Path) -> None:
    ran = subprocess.run(
        [sys.executable, root / "benchmarks" / "run.py", "--turns", "60", "--rounds", "3"],
        check=False,
        capture_output=True,
        text=True,
    )

    assert ran.returncode == 0, ran.stderr
    assert len(re.findall(r"^  recall +p50 +\d+\.\d\d ms", ran.stdout, re.MULTILINE)) == 2
    assert len(re.findall(r"^  ratio \d+\.\d\d", ran.stdout, re.MULTILINE)) == 2
