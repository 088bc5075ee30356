"""The three roles, the schema and the extensions: what an administrator sets up once.

`init` runs the statements of `sql/init.sql`, `init_sql` prints the same ones for a managed server.
They can be run again at any time: what is there stays, and what is unfit is refused with its
remedy, never altered in silence.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import asyncpg
from pydantic import SecretStr

from mnemic.errors import ConfigurationError
from mnemic.store.connecting import connected
from mnemic.store.scram import scram_verifier

__all__ = [
    "APP_ROLE",
    "LOOKUP_ROLE",
    "OWNER_ROLE",
    "SERVER_VERSION_MIN",
    "VECTOR_VERSION_MIN",
    "InitReport",
    "init",
    "init_sql",
]

OWNER_ROLE = "mnemic_owner"
APP_ROLE = "mnemic_app"
LOOKUP_ROLE = "mnemic_lookup"

SERVER_VERSION_MIN = 160_000  # as `server_version_num` has it
VECTOR_VERSION_MIN = (0, 8)

_ADMIN = "--admin-url"
_LOCK = 0x6D6E656D_696E6974
_REFUSED = "MN001"
_NAME_BYTES_MAX = 63
_SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class InitReport:
    """What `init` set up, and whether it had to make the database."""

    database: str
    database_created: bool


async def init(
    admin_url: str | SecretStr,
    *,
    database: str = "mnemic",
    app_password: str | SecretStr | None = None,
    owner_password: str | SecretStr | None = None,
) -> InitReport:
    """The database, its three roles, extensions and schema exist; repeating changes nothing.

    `admin_url` leads to any database of the server, as a role that may create the rest. A database
    that had to be made is closed to everybody but its roles; one that was there keeps its rights.
    Raises `ConfigurationError`, with the remedy, if the server is too old, a role is unfit or the
    administrator lacks a right or comes through a pooler, and `StoreUnavailable` if the server
    cannot be reached.
    """
    passwords = _passwords(app_password, owner_password)
    async with (
        connected(admin_url, setting=_ADMIN, direct=True) as admin,
        _refusals(database),
    ):
        # Held until the connection closes, over CREATE DATABASE, which no transaction may hold.
        await admin.execute("SELECT pg_advisory_lock($1)", _LOCK)
        created = await _create_database(admin, database)
        async with connected(admin_url, setting=_ADMIN, database=database) as inside:
            closing = _statements("close_database") if created else ""
            # Several statements in one message are one transaction.
            await inside.execute(_statements("init") + closing + passwords)
    return InitReport(database=database, database_created=created)


def init_sql(
    *,
    database: str = "mnemic",
    app_password: str | SecretStr | None = None,
    owner_password: str | SecretStr | None = None,
) -> str:
    """The statements of `init`, for an administrator to run inside an existing database.

    Passwords appear as their SCRAM verifiers. Without one, a role cannot log in by password.
    """
    name = _identifier(database)
    return "\n".join(
        (
            f"-- Run inside the database {name} as an administrator. If it does not exist yet:",
            f"--   CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8';",
            "-- The extension vector needs a superuser, or the provider's own way to add it.\n",
            _statements("server_check"),
            _statements("init"),
            _passwords(app_password, owner_password),
        )
    )


def _statements(name: str) -> str:
    return (files("mnemic.store") / "sql" / f"{name}.sql").read_text(encoding="utf-8")


async def _create_database(admin: Any, database: str) -> bool:
    """Whether it had to be made; a server that is too old is refused before."""
    await admin.execute(_statements("server_check"))
    if await admin.fetchval("SELECT true FROM pg_database WHERE datname = $1", database):
        return False
    await admin.execute(
        f"CREATE DATABASE {_identifier(database)} TEMPLATE template0 ENCODING 'UTF8'"
    )
    return True


@asynccontextmanager
async def _refusals(database: str) -> AsyncIterator[None]:
    """What the server refuses, in our words."""
    try:
        yield
    except asyncpg.InsufficientPrivilegeError as fault:
        raise ConfigurationError(
            f"the role in {_ADMIN} lacks a right ({fault.args[0]}); use a superuser, or have the "
            f"server's administrator run what `mnemic db init --sql` prints inside {database}"
        ) from fault
    except asyncpg.PostgresError as fault:
        if fault.sqlstate == _REFUSED:
            raise ConfigurationError(f"{fault.args[0]}; {fault.hint}") from fault
        raise ConfigurationError(f"{database} could not be set up: {fault.args[0]}") from fault


def _passwords(app: str | SecretStr | None, owner: str | SecretStr | None) -> str:
    """Statements that set the given passwords, in a form that may be logged."""
    lines = []
    for role, given in ((APP_ROLE, app), (OWNER_ROLE, owner)):
        password = given.get_secret_value() if isinstance(given, SecretStr) else given
        if password is None:
            continue
        if not password or "\x00" in password:
            raise ConfigurationError(f"the password of {role} must not be empty or hold a NUL")
        verifier = scram_verifier(password, salt=secrets.token_bytes(_SALT_BYTES))
        lines.append(f"ALTER ROLE {role} PASSWORD '{verifier}';\n")
    return "".join(lines)


def _identifier(name: str) -> str:
    if not name or "\x00" in name or len(name.encode()) > _NAME_BYTES_MAX:
        raise ConfigurationError(f"a database's name has 1 to {_NAME_BYTES_MAX} bytes and no NUL")
    return '"' + name.replace('"', '""') + '"'
