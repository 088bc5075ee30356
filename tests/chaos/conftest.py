"""Servers that are killed; `make chaos` runs this folder, `make test` does not."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "wire"))
sys.path.insert(0, str(Path(__file__).parent.parent / "working"))

from chaos_postgres import Cluster


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Without `--chaos` nothing here is a test."""
    return None if config.getoption("--chaos") or config.getoption("--deep") else True


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Drawn from `--seed`; a failure is repeated with the seed that it prints."""
    return random.Random(request.config.getoption("--seed"))


@pytest.fixture
def times(request: pytest.FixtureRequest) -> int:
    """How much longer than usual."""
    return 40 if request.config.getoption("--deep") else 1


@pytest.fixture
def place() -> Path:
    """A folder that every user may pass through; the cluster removes it."""
    made = Path(tempfile.mkdtemp(prefix="mnemic-chaos-"))
    made.chmod(0o755)
    return made


@pytest.fixture
async def cluster(place: Path) -> AsyncIterator[Cluster]:
    """A durable PostgreSQL that does not run yet."""
    made = Cluster(place)
    await made.make()
    yield made
    await made.remove()
