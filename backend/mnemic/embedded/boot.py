"""Runs one module of this package by itself: `python -I boot.py guard …`.

Importing `mnemic` brings in the whole service. Here its packages are stand-ins that know where
their files are and nothing else, so that a guard is small and starts at once.
"""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path
from types import ModuleType


def command(module: str, *arguments: str) -> list[str]:
    """What to execute to run a module of this package, isolated from environment and folder."""
    return [_python(), "-I", __file__, module, *arguments]


def _python() -> str:
    # Where Python is embedded in another program, sys.executable is that program.
    if Path(sys.executable or "").name.startswith("python"):
        return sys.executable
    return shutil.which("python3", path=f"{sys.prefix}/bin") or "python3"


def _run(module: str, *arguments: str) -> int | None:
    here = Path(__file__).resolve().parent
    for name, folder in (("mnemic", here.parent), ("mnemic.embedded", here)):
        stand_in = ModuleType(name)
        stand_in.__path__ = [str(folder)]
        sys.modules[name] = stand_in
    main = importlib.import_module(f"mnemic.embedded.{module}").main
    status: int | None = main(*arguments)
    return status


if __name__ == "__main__":
    sys.exit(_run(*sys.argv[1:]))
