"""The command: as the installed program in a process of its own, and, quicker, in this one."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import structlog

# importlib mode does not find the modules beside the tests.
sys.path.append(str(Path(__file__).parents[1]))

from mnemic.edge.cli.endings import run_app
from mnemic.edge.main import app
from mnemic.embedded import EmbeddedServers
from mnemic.embedded.layout import remove_home

PROGRAM = Path(sys.executable).with_name("mnemic")
PATIENCE_SECONDS = 120
_people = count(1)


@dataclass(frozen=True)
class Ended:
    """How a run of the command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document of standard output."""
        return json.loads(self.out)


class Installed:
    """The installed program, with an environment of its own."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.environment = environment
        self.folder = folder

    def __call__(self, *arguments: str | bytes, stdin: str | bytes = b"", **changed: str) -> Ended:
        ran = subprocess.run(
            [str(PROGRAM), *arguments],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            check=False,
            cwd=self.folder,
            env=self.environment | changed,
            timeout=PATIENCE_SECONDS,
        )
        return _ended(ran.returncode, ran.stdout, ran.stderr)

    def start(self, *arguments: str, **how: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(PROGRAM), *arguments], cwd=self.folder, env=self.environment, **how
        )


class InProcess:
    """The same program, run by this process: nothing has to be imported or loaded again."""

    def __init__(self, environment: dict[str, str], patch: pytest.MonkeyPatch) -> None:
        self.environment = environment
        self.tracebacks_expected = False
        self._patch = patch

    def __call__(self, *arguments: str, stdin: str | bytes = b"", **changed: str) -> Ended:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        out, err = io.BytesIO(), io.BytesIO()
        root, handlers = logging.getLogger(), logging.getLogger().handlers[:]
        level = root.level
        with self._patch.context() as patch:
            for name in [name for name in os.environ if name.startswith("MEM_")]:
                patch.delenv(name)
            for name, value in (self.environment | changed).items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8"))
            patch.setattr(sys, "stdout", io.TextIOWrapper(out, "utf-8", write_through=True))
            patch.setattr(sys, "stderr", io.TextIOWrapper(err, "utf-8", write_through=True))
            code = run_app(app(), arguments)
            ended = _ended(code, out.getvalue(), err.getvalue(), traced=self.tracebacks_expected)
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()
        return ended


def _ended(code: int, out: bytes, err: bytes, *, traced: bool = False) -> Ended:
    assert traced or b"Traceback" not in err, err.decode()
    return Ended(code, out.decode(), err.decode())


@pytest.fixture
def bare_environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """No settings at all, and a data folder that does not exist yet."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEM_")}
    data = tmp_path / "data"
    yield kept | {
        "MEM_EMBEDDED__DATA_DIR": str(data),
        "HOME": str(tmp_path),
        "COLUMNS": "100",
    }
    # Below a closed folder the data lie elsewhere, and would meet the next run at this same path.
    remove_home(data)


@pytest.fixture
def environment(
    bare_environment: dict[str, str], servers: EmbeddedServers, shared_database: Any, tmp_path: Path
) -> Iterator[dict[str, str]]:
    """A migrated database, and a person whom no other test knows."""
    yield bare_environment | {
        "MEM_DATABASE_URL": shared_database.app_url,
        "MEM_DATABASE_OWNER_URL": shared_database.owner_url,
        "MEM_REDIS_URL": servers.redis_url,
        "MEM_USER": f"person-{next(_people)}",
        "MEM_DATABASE__REQUIRE_DURABLE": "false",
    }
    assert not (tmp_path / "data").exists(), "it started servers of its own"


@pytest.fixture
def bare(bare_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """The command with no server set."""
    return InProcess(bare_environment, monkeypatch)


@pytest.fixture
def mnemic(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """The command on a migrated database."""
    return InProcess(environment, monkeypatch)


@pytest.fixture
def installed(environment: dict[str, str], tmp_path: Path) -> Installed:
    """The installed command on a migrated database."""
    return Installed(environment, tmp_path)


@pytest.fixture
async def loop() -> asyncio.AbstractEventLoop:
    """The loop on which the fixtures of this run live."""
    return asyncio.get_running_loop()


@pytest.fixture
def run_now(loop: asyncio.AbstractEventLoop) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine on that loop, between two steps of a test that is none."""
    return loop.run_until_complete


@pytest.fixture
def ndjson(tmp_path: Path) -> Callable[..., Path]:
    """Writes a transcript of the given entries; a text stands for a line as it is."""

    def write(*entries: dict[str, Any] | str, name: str = "talk.ndjson") -> Path:
        made = tmp_path / name
        texts = [one if isinstance(one, str) else json.dumps(one) for one in entries]
        made.write_text("".join(f"{text}\n" for text in texts))
        return made

    return write
