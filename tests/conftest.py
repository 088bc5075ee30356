"""One server for the whole run, and a database of its own for each test that asks for one."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from hypothesis import settings

from mnemic.embedded import EmbeddedServers, start
from mnemic.settings import EmbeddedSettings, MemorySettings
from mnemic.store import roles, unit
from mnemic.store.upgrade import upgrade

sys.path.insert(0, str(Path(__file__).parent / "pooler"))

from pooling import PgBouncer, PooledServers, pgbouncer_program

# A shell that starts the suite in the background lets it ignore Ctrl-C, and every program that a
# test starts and interrupts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_TEMPLATE = "mnemic_template"
_DRAWN = "mnemic"
_numbers = count(1)
# The second is the role of the isolation proof that sees through policies.
_SERVING = (roles.APP_ROLE, "mnemic_test_bypassing")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--deep` makes the long runs as long as before a release.

    `--through-pgbouncer` puts a PgBouncer in transaction mode before the roles that serve.
    """
    parser.addoption("--deep", action="store_true", help="long runs, for a release")
    parser.addoption("--chaos", action="store_true", help="what `make chaos` runs, at its size")
    parser.addoption("--seed", type=int, default=1, help="what is drawn by chance follows from it")
    parser.addoption("--through-pgbouncer", action="store_true", help="serve through a PgBouncer")


def pytest_configure(config: pytest.Config) -> None:
    # What is drawn is the same in every run, but before a release; how long it takes never decides.
    settings.register_profile(_DRAWN, deadline=None, derandomize=not config.getoption("--deep"))
    settings.load_profile(_DRAWN)
    if config.getoption("--through-pgbouncer"):
        if pgbouncer_program() is None:
            raise pytest.UsageError("--through-pgbouncer: PgBouncer is not installed")
        # As a deployment sets it whose pool of servers is small: its callers wait longer.
        os.environ["MEM_DATABASE__PGBOUNCER"] = "true"
        os.environ["MEM_DATABASE__ACQUIRE_TIMEOUT_SECONDS"] = "10"


@dataclass(frozen=True)
class Database:
    """A database of the test's own, as each role that may enter it."""

    servers: EmbeddedServers
    name: str

    @property
    def app_url(self) -> str:
        """As the product serves: through the pooler, where there is one."""
        return self.servers.postgres_url(roles.APP_ROLE, self.name)

    @property
    def direct_app_url(self) -> str:
        """The serving role at the server itself, to look at what it sees."""
        direct = getattr(self.servers, "direct", self.servers)
        url: str = direct.postgres_url(roles.APP_ROLE, self.name)
        return url

    @property
    def owner_url(self) -> str:
        return self.servers.postgres_url(roles.OWNER_ROLE, self.name)

    @property
    def admin_url(self) -> str:
        return self.servers.postgres_url("postgres", self.name)

    def serve(self, **settings: Any) -> unit.Database:
        """Units of the serving role, for the caller to close; with a pooler if there is one."""
        return unit.Database(self.app_url, MemorySettings(database=settings).database)


@pytest.fixture(scope="session")
def servers(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[EmbeddedServers]:
    """PostgreSQL and Valkey, thrown away afterwards; nothing of theirs reaches the disk."""
    settings = EmbeddedSettings(data_dir=tmp_path_factory.mktemp("servers"))
    started = start(settings, durable=False)
    if pytestconfig.getoption("--through-pgbouncer"):
        pooler = PgBouncer(started, roles=_SERVING)
        yield PooledServers(started, pooler, _SERVING)
        pooler.stop()
    else:
        yield started
    started.discard()


@pytest.fixture(scope="session")
async def template(servers: EmbeddedServers) -> str:
    """The name of a migrated database that others are copied from."""
    await roles.init(servers.postgres_url(), database=_TEMPLATE)
    upgrade(servers.postgres_url(roles.OWNER_ROLE, _TEMPLATE))
    return _TEMPLATE


@pytest.fixture(scope="session")
def named_database(servers: EmbeddedServers, template: str) -> Callable[[str], Awaitable[str]]:
    """Copies the migrated database under a name, for the whole run; gives the name."""

    async def make(name: str) -> str:
        await _execute(servers, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        # Settings of roles in a database are not copied with it.
        await roles.init(servers.postgres_url(), database=name)
        return name

    return make


@pytest.fixture
async def database(servers: EmbeddedServers, template: str) -> AsyncIterator[Database]:
    """A migrated database, dropped afterwards."""
    async with _copied(servers, template) as made:
        yield made


@pytest.fixture(scope="module")
async def shared_database(servers: EmbeddedServers, template: str) -> AsyncIterator[Database]:
    """A migrated database for the tests of one file, which leave nothing behind in it."""
    async with _copied(servers, template) as made:
        yield made


@pytest.fixture
async def empty_database(servers: EmbeddedServers) -> AsyncIterator[Database]:
    """A database that was set up but never migrated, dropped afterwards."""
    made = Database(servers, f"empty_{next(_numbers)}")
    await roles.init(servers.postgres_url(), database=made.name)
    yield made
    await _execute(servers, f"DROP DATABASE {made.name} WITH (FORCE)")


@pytest.fixture
async def app(database: Database) -> AsyncIterator[asyncpg.Connection]:
    """A connection as the role that serves."""
    connection = await asyncpg.connect(database.direct_app_url)
    yield connection
    await connection.close()


@pytest.fixture
async def owner(database: Database) -> AsyncIterator[asyncpg.Connection]:
    """A connection as the role that migrates."""
    connection = await asyncpg.connect(database.owner_url)
    yield connection
    await connection.close()


@pytest.fixture
async def admin(database: Database) -> AsyncIterator[asyncpg.Connection]:
    """A connection as the superuser, which sees through every policy."""
    connection = await asyncpg.connect(database.admin_url)
    yield connection
    await connection.close()


@asynccontextmanager
async def _copied(servers: EmbeddedServers, template: str) -> AsyncIterator[Database]:
    made = Database(servers, f"test_{next(_numbers)}")
    await _execute(servers, f"CREATE DATABASE {made.name} TEMPLATE {template} STRATEGY file_copy")
    # Settings of roles in a database are not copied with it.
    await roles.init(servers.postgres_url(), database=made.name)
    try:
        yield made
    finally:
        await _execute(servers, f"DROP DATABASE {made.name} WITH (FORCE)")


async def _execute(servers: EmbeddedServers, statement: str) -> None:
    connection = await asyncpg.connect(servers.postgres_url())
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
