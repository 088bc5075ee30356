"""The connection that a migration runs on, and what it refuses to touch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache, partial
from typing import Any

import asyncpg
import sqlalchemy as sa
from alembic.runtime.environment import IncludeNameFn, NameFilterParentNames, NameFilterType
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from mnemic.errors import ConfigurationError, SchemaMismatch, StoreUnavailable
from mnemic.schema import SCHEMA
from mnemic.store.connecting import connected, open_connection
from mnemic.store.roles import OWNER_ROLE, SERVER_VERSION_MIN, VECTOR_VERSION_MIN

__all__ = [
    "OFFLINE_PREAMBLE",
    "OWNER_SETTING",
    "connection_for",
    "is_ours",
    "required",
    "without_force",
]

OWNER_SETTING = "MEM_DATABASE_OWNER_URL"

_LOCK = 0x6D6E656D_6D696772
LOCK_WAIT_SECONDS_MAX = 600.0
_LOCK_POLL_SECONDS = 0.1
LOCK_TIMEOUT_MS = 5_000
STATEMENT_TIMEOUT_MS = 600_000

OFFLINE_PREAMBLE = (
    f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}",
    f"SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}",
    f"SELECT pg_advisory_xact_lock({_LOCK})",
)

_STATE = """
SELECT current_setting('server_version_num')::int AS server_version,
       current_user::text AS role,
       to_regrole('mnemic_owner') IS NOT NULL
         AND to_regrole('mnemic_app') IS NOT NULL
         AND to_regrole('mnemic_lookup') IS NOT NULL AS has_roles,
       (SELECT rolname FROM pg_namespace JOIN pg_roles ON pg_roles.oid = nspowner
         WHERE nspname = 'mnemic') AS schema_owner,
       (SELECT string_to_array(substring(extversion from '^[0-9.]+'), '.')::int[]
          FROM pg_extension WHERE extname = 'vector') AS vector_version,
       (SELECT count(*) = 2 FROM pg_extension
         WHERE extname IN ('pg_trgm', 'btree_gin')) AS has_rest,
       (SELECT string_agg(DISTINCT quote_ident(nspname), ', ')
          FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
         WHERE extname IN ('vector', 'pg_trgm', 'btree_gin')) AS extension_schemas,
       to_regclass('mnemic.alembic_version') IS NOT NULL AS has_version,
       EXISTS (SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
                WHERE nspname = 'mnemic' AND relkind IN ('r', 'p')) AS has_tables
"""


@asynccontextmanager
async def connection_for(
    url: str | SecretStr | None, *, reads_only: bool
) -> AsyncIterator[AsyncConnection]:
    """A connection fit for migrating, alone in its database; closed afterwards.

    The lock is held by a second connection, for a migration may commit on the way (indexes built
    concurrently), and a lock taken before Alembic begins would begin a transaction that nobody
    commits. Raises `ConfigurationError` or `SchemaMismatch`, with the remedy, if the database is
    not fit, and `StoreUnavailable` if it cannot be reached.
    """
    url = required(url)
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=partial(_prepared, url, reads_only=reads_only),
        poolclass=NullPool,
    )
    try:
        async with _alone(url, reads_only=reads_only), engine.connect() as connection:
            yield connection
    finally:
        await engine.dispose()


def required(url: str | SecretStr | None) -> str | SecretStr:
    """The URL; raises `ConfigurationError` that names its setting if there is none."""
    if url is None:
        raise ConfigurationError(f"set {OWNER_SETTING} to a URL that logs in as {OWNER_ROLE}")
    return url


@asynccontextmanager
async def _alone(url: str | SecretStr, *, reads_only: bool) -> AsyncIterator[None]:
    """No other upgrade of the database runs meanwhile; this one asks until it is its turn.

    The connection holds no snapshot, neither while it waits nor while it keeps the lock, for an
    index that is built concurrently waits for every older snapshot, and each would wait for the
    other. A lock statement that blocks has one, and so has the answer of a statement with
    parameters, until the next statement.
    """
    if reads_only:
        yield
        return
    async with (
        connected(url, setting=OWNER_SETTING, direct=True) as guard,
        guard.transaction(),
    ):
        await guard.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        try:
            async with asyncio.timeout(LOCK_WAIT_SECONDS_MAX):
                await _lock(guard)
        except TimeoutError as fault:
            raise StoreUnavailable(
                "another upgrade of this database is running; try again when it is done"
            ) from fault
        yield


async def _lock(guard: asyncpg.Connection) -> None:
    while True:
        is_ours = await guard.fetchval("SELECT pg_try_advisory_xact_lock($1)", _LOCK)
        await guard.execute("SELECT")  # a simple statement: the answer's snapshot is let go
        if is_ours:
            return
        await asyncio.sleep(_LOCK_POLL_SECONDS)


async def _prepared(url: str | SecretStr, *, reads_only: bool) -> asyncpg.Connection:
    """The driver's connection, checked, as the owner, with timeouts that outlive a commit.

    `mnemic` stays out of the search path: Alembic would take its tables for unqualified ones.
    """
    connection = await open_connection(
        url,
        setting=OWNER_SETTING,
        direct=True,
        application_name="mnemic-upgrade",
        lock_timeout=str(LOCK_TIMEOUT_MS),
        statement_timeout=str(STATEMENT_TIMEOUT_MS),
        idle_in_transaction_session_timeout="0",
    )
    try:
        (state,) = await connection.fetch(_STATE)
        _refuse_unfit(state)
        if not reads_only and state["role"] != OWNER_ROLE:
            await _become_owner(connection, state["role"])
        await connection.execute(
            "SELECT set_config('search_path', $1, false)", state["extension_schemas"]
        )
    except BaseException:
        await connection.close()
        raise
    return connection


def _refuse_unfit(state: Any) -> None:
    remedy = "run `mnemic db init`"
    if state["server_version"] < SERVER_VERSION_MIN:
        raise ConfigurationError("the server is older than PostgreSQL 16; upgrade the server")
    if not state["has_roles"]:
        raise ConfigurationError(f"a role of mnemic is missing on the server; {remedy}")
    if state["vector_version"] is None or not state["has_rest"]:
        raise ConfigurationError(
            f"an extension (vector, pg_trgm, btree_gin) is missing in the database; {remedy}"
        )
    if tuple(state["vector_version"]) < VECTOR_VERSION_MIN:
        raise ConfigurationError(
            "pgvector is older than 0.8; install 0.8 or later, then ALTER EXTENSION vector UPDATE"
        )
    if state["schema_owner"] is None:
        raise ConfigurationError(f"the schema {SCHEMA} is missing in the database; {remedy}")
    if state["has_tables"] and not state["has_version"]:
        raise SchemaMismatch(
            f"the schema {SCHEMA} holds tables that mnemic did not make; choose another database"
        )


async def _become_owner(connection: asyncpg.Connection, role: str) -> None:
    if not await connection.fetchval("SELECT pg_has_role(current_user, $1, 'SET')", OWNER_ROLE):
        raise ConfigurationError(
            f"{OWNER_SETTING} logs in as {role}; it must log in as {OWNER_ROLE}"
        )
    await connection.execute(f"SET ROLE {OWNER_ROLE}")


def is_ours(connection: sa.Connection | None) -> IncludeNameFn:
    """Whether a name in the database is compared: our schema, without the partitions of tables."""

    @cache
    def partitions() -> frozenset[str]:
        # Asked at the first comparison, for a statement before Alembic's own would begin a
        # transaction that nobody commits.
        if connection is None:
            return frozenset()
        names = connection.scalars(
            sa.text(
                "SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
                " WHERE nspname = :schema AND relkind IN ('r', 'p')"
                # A table that a tenant's vectors are being moved to is a partition soon.
                " AND (relispartition OR relname ~ '_vectors_[0-9a-f]{32}$')"
            ),
            {"schema": SCHEMA},
        )
        return frozenset(names)

    def included(name: str | None, kind: NameFilterType, parents: NameFilterParentNames) -> bool:
        if kind == "schema":
            return name == SCHEMA
        if kind == "table":
            return parents.get("schema_name") == SCHEMA and name not in partitions()
        return True

    return included


@contextmanager
def without_force(op: Any, *tables: str) -> Iterator[None]:
    """Inside, the owner's statements see every row of `tables`; afterwards none again.

    Under FORCE an owner's UPDATE changes nothing and ADD FOREIGN KEY validates nothing, silently;
    a foreign key needs both of its tables here. All of it happens in the migration's own
    transaction, so nobody else ever sees a table unforced, and an error undoes it.
    """
    for table in tables:
        op.execute(f"ALTER TABLE {SCHEMA}.{table} NO FORCE ROW LEVEL SECURITY")
    yield
    for table in tables:
        op.execute(f"ALTER TABLE {SCHEMA}.{table} FORCE ROW LEVEL SECURITY")
