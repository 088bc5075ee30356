"""One server for the whole run, and a database of its own for each test that asks for one."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count

import asyncpg
import pytest

from mnemic.embedded import EmbeddedServers, start
from mnemic.settings import EmbeddedSettings
from mnemic.store import roles
from mnemic.store.upgrade import upgrade

# A shell that starts the suite in the background lets it ignore Ctrl-C, and every program that a
# test starts and interrupts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_TEMPLATE = "mnemic_template"
_numbers = count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--deep` makes the long runs as long as before a release."""
    parser.addoption("--deep", action="store_true", help="long runs, for a release")


@dataclass(frozen=True)
class Database:
    """A database of the test's own, as each role that may enter it."""

    servers: EmbeddedServers
    name: str

    @property
    def app_url(self) -> str:
        return self.servers.postgres_url(roles.APP_ROLE, self.name)

    @property
    def owner_url(self) -> str:
        return self.servers.postgres_url(roles.OWNER_ROLE, self.name)

    @property
    def admin_url(self) -> str:
        return self.servers.postgres_url("postgres", self.name)


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServers]:
    """PostgreSQL and Valkey, thrown away afterwards; nothing of theirs reaches the disk."""
    settings = EmbeddedSettings(data_dir=tmp_path_factory.mktemp("servers"))
    started = start(settings, durable=False)
    yield started
    started.discard()


@pytest.fixture(scope="session")
async def template(servers: EmbeddedServers) -> str:
    """The name of a migrated database that others are copied from."""
    await roles.init(servers.postgres_url(), database=_TEMPLATE)
    upgrade(servers.postgres_url(roles.OWNER_ROLE, _TEMPLATE))
    return _TEMPLATE


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
    connection = await asyncpg.connect(database.app_url)
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
    yield made
    await _execute(servers, f"DROP DATABASE {made.name} WITH (FORCE)")


async def _execute(servers: EmbeddedServers, statement: str) -> None:
    connection = await asyncpg.connect(servers.postgres_url())
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
