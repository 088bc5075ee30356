from __future__ import annotations

import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from mnemic.edge.main import app
from mnemic.embedded.layout import remove_home

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def package(root: Path) -> Path:
    return root / "backend" / "mnemic"


@pytest.fixture(scope="session")
def project(root: Path) -> dict[str, Any]:
    """What pyproject.toml says."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def committed(root: Path) -> list[Path]:
    """The files that are or would be committed."""
    # The checkout may belong to another user than the one that runs the tests.
    told = subprocess.run(
        ["git", "-c", f"safe.directory={root}", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    names = told.stdout.decode().split("\0")
    return [path for name in names if name and (path := root / name).is_file()]


@pytest.fixture(scope="session")
def readable(committed: list[Path]) -> dict[Path, str]:
    """The text of every committed file that holds text."""
    texts = {}
    for path in committed:
        try:
            texts[path] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return texts


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a file in a folder of the test's own and gives its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that every user may pass through: root's servers run as another user.

    Data folders are called `data`; they and the rest are gone afterwards.
    """
    made = Path(tempfile.mkdtemp(prefix="mnemic-test-"))
    made.chmod(0o755)
    yield made
    for data in made.rglob("data"):
        remove_home(data)
    shutil.rmtree(made)


@pytest.fixture(scope="session")
def parsed() -> Callable[[list[str]], dict[str, Any]]:
    """Parses the arguments of `mnemic` as the command line does, and runs nothing.

    Gives the command's parameters; raises what a wrong command, option or value raises.
    """
    program = get_command(app())

    def parse(arguments: list[str]) -> dict[str, Any]:
        command, name, context = program, "mnemic", None
        while True:
            context = command.make_context(name, list(arguments), parent=context)
            rest = [*getattr(context, "_protected_args", []), *context.args]
            if not rest or not hasattr(command, "resolve_command"):
                return {"command": context.command_path, **context.params}
            name, command, arguments = command.resolve_command(context, rest)

    return parse
