"""One database for every loop, thread and fork; each test works in tenants of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mnemic.embedded import EmbeddedServers
from mnemic.settings import MemorySettings
from mnemic.store import roles

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

NAME = "loops"
SCRIPT_SECONDS_MAX = 60


@pytest.fixture(scope="session")
async def loops_database(named_database: Callable[[str], Awaitable[str]]) -> str:
    """The name of a migrated database."""
    return await named_database(NAME)


@pytest.fixture(scope="session")
def settings(servers: EmbeddedServers, loops_database: str) -> MemorySettings:
    """Settings that the whole process shares."""
    return MemorySettings.model_validate(
        {
            "database_url": servers.postgres_url(roles.APP_ROLE, loops_database),
            "database_owner_url": servers.postgres_url(roles.OWNER_ROLE, loops_database),
            "redis_url": servers.redis_url,
            "context": {"deadline_ms": 60_000},
            "database": {"acquire_timeout_seconds": 20, "require_durable": False},
            "working": {"namespace": NAME},
        }
    )


@pytest.fixture
def run(servers: EmbeddedServers, loops_database: str) -> Callable[[str], str]:
    """Runs a script in a process of its own where each warning is an error; what it printed.

    The process says nothing on standard error, and ends well.
    """
    environment = os.environ | {
        "PYTHONPATH": str(HERE),
        "MEM_DATABASE_URL": servers.postgres_url(roles.APP_ROLE, loops_database),
        "MEM_REDIS_URL": servers.redis_url,
        "MEM_DATABASE__REQUIRE_DURABLE": "false",
        "MEM_WORKING__NAMESPACE": NAME,
    }

    def ran(script: str) -> str:
        told = subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            env=environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=SCRIPT_SECONDS_MAX,
        )
        assert (told.returncode, told.stderr) == (0, "")
        return told.stdout

    return ran
