"""A Python to run a script of this package with."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def script(path: str) -> list[str]:
    """Command that runs `path` isolated from the environment and the working folder."""
    return [_python(), "-I", path]


def _python() -> str:
    # Where Python is embedded in another program, sys.executable is that program.
    if Path(sys.executable or "").name.startswith("python"):
        return sys.executable
    return shutil.which("python3", path=f"{sys.prefix}/bin") or "python3"
