"""What each role may see and write, in every table that has a tenant, now and later."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

ONE, OTHER = UUID(int=1), UUID(int=2)
SHARED_ID = UUID(int=0x1D)

COLUMNS = """
SELECT c.relname::text AS table_name, a.attname::text AS name, y.typname::text AS type,
       y.typtype = 'e' AS is_enum,
       (SELECT enumlabel::text FROM pg_enum e WHERE e.enumtypid = y.oid
         ORDER BY enumsortorder LIMIT 1) AS label,
       (SELECT string_agg(pg_get_constraintdef(k.oid), ' ') FROM pg_constraint k
         WHERE k.conrelid = c.oid AND k.contype = 'c' AND k.conkey = ARRAY[a.attnum]) AS checks
  FROM pg_class c
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  JOIN pg_type y ON y.oid = a.atttypid
 WHERE c.relnamespace = 'mnemic'::regnamespace AND c.relkind IN ('r', 'p')
   AND NOT c.relispartition AND a.attnotnull AND NOT a.atthasdef
   AND EXISTS (SELECT FROM pg_attribute t WHERE t.attrelid = c.oid AND t.attname = 'tenant_id')
 ORDER BY 1, a.attnum
"""
VALUES = {
    "bool": "true",
    "uuid": f"'{SHARED_ID}'",
    "text": "'x'",
    "jsonb": "'{}'",
    "_text": "'{}'",
    "bytea": "decode(repeat('00', 32), 'hex')",
    "timestamptz": "now()",
    "int2": "1",
    "int4": "1",
    "int8": "1",
    "float8": "0.5",
    "halfvec": "'[1,0]'",
}


def _value(column: asyncpg.Record, tenant: UUID) -> str:
    """The least that the column takes."""
    if column["name"] == "tenant_id":
        return f"'{tenant}'"
    if column["is_enum"]:
        return f"'{column['label']}'"
    choice = re.search(r"ARRAY\['([^']+)'", column["checks"] or "")
    return f"'{choice[1]}'" if choice else VALUES[column["type"]]


async def _inserts(connection: asyncpg.Connection, tenant: UUID) -> dict[str, str]:
    """For each table with a tenant, a statement that adds a row of `tenant`."""
    by_table: dict[str, list[asyncpg.Record]] = {}
    for column in await connection.fetch(COLUMNS):
        by_table.setdefault(column["table_name"], []).append(column)
    return {
        table: f"INSERT INTO mnemic.{table} ({', '.join(_quoted(c['name']) for c in columns)}) "
        f"VALUES ({', '.join(_value(c, tenant) for c in columns)})"
        for table, columns in by_table.items()
    }


def _quoted(name: str) -> str:
    return f'"{name}"'


async def _as(connection: asyncpg.Connection, tenant: UUID | None) -> None:
    await connection.execute(f"SET LOCAL mnemic.tenant_id = '{tenant or ''}'")


@pytest.fixture(scope="module")
async def tables(shared_database: Any) -> dict[str, str]:
    """Every table with a tenant holds a row of one tenant and the same row of another."""
    admin = await asyncpg.connect(shared_database.admin_url)
    statements = await _inserts(admin, ONE)
    async with admin.transaction():
        # Foreign keys are not what these tests are about.
        await admin.execute("SET LOCAL session_replication_role = replica")
        for tenant in (ONE, OTHER):
            for statement in (await _inserts(admin, tenant)).values():
                await admin.execute(statement)
    await admin.close()
    return statements


@pytest.fixture
async def app_transaction(
    shared_database: Any, tables: dict[str, str]
) -> AsyncIterator[asyncpg.Connection]:
    """The serving role's transaction, thrown away."""
    async with _thrown_away(shared_database.direct_app_url) as connection:
        yield connection


@pytest.fixture
async def owner_transaction(
    shared_database: Any, tables: dict[str, str]
) -> AsyncIterator[asyncpg.Connection]:
    """The migrating role's transaction, thrown away."""
    async with _thrown_away(shared_database.owner_url) as connection:
        yield connection


@asynccontextmanager
async def _thrown_away(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        transaction = connection.transaction()
        await transaction.start()
        yield connection
        await transaction.rollback()
    finally:
        await connection.close()


async def _refusal(connection: asyncpg.Connection, statement: str) -> str | None:
    """The SQLSTATE with which the statement is refused; nothing is left of it either way."""
    savepoint = connection.transaction()
    await savepoint.start()
    try:
        await connection.execute(statement)
    except asyncpg.PostgresError as fault:
        return fault.sqlstate
    finally:
        await savepoint.rollback()
    return None


async def test_without_a_tenant_no_row_of_any_table_is_visible(
    app_transaction: asyncpg.Connection, tables: dict[str, str]
) -> None:
    await _as(app_transaction, None)

    seen = {
        table: await app_transaction.fetchval(f"SELECT count(*) FROM mnemic.{table}")
        for table in tables
    }

    assert len(seen) > 30
    assert set(seen.values()) == {0}


async def test_a_connection_that_never_had_a_tenant_sees_nothing(
    app_transaction: asyncpg.Connection,
) -> None:
    never = await app_transaction.fetchval("SELECT current_setting('mnemic.tenant_id', true)")

    assert never is None
    assert await app_transaction.fetchval("SELECT count(*) FROM mnemic.turns") == 0


async def test_a_tenant_sees_its_own_row_of_each_table_and_no_other(
    app_transaction: asyncpg.Connection, tables: dict[str, str]
) -> None:
    await _as(app_transaction, OTHER)

    for table in tables:
        rows = await app_transaction.fetch(f"SELECT tenant_id FROM mnemic.{table}")
        assert [row["tenant_id"] for row in rows] == [OTHER], table


async def test_no_row_can_be_written_for_another_tenant_in_any_table(
    app_transaction: asyncpg.Connection, tables: dict[str, str]
) -> None:
    await _as(app_transaction, OTHER)

    refused = {
        table: await _refusal(app_transaction, statement.replace(str(ONE), str(UUID(int=3))))
        for table, statement in tables.items()
    }

    assert set(refused.values()) == {"42501"}


async def test_no_row_can_be_moved_to_another_tenant(
    app_transaction: asyncpg.Connection, tables: dict[str, str]
) -> None:
    await _as(app_transaction, OTHER)

    refused = {
        table: await _refusal(app_transaction, f"UPDATE mnemic.{table} SET tenant_id = '{ONE}'")
        for table in tables
    }

    assert set(refused.values()) == {"42501"}


async def test_another_tenants_rows_cannot_be_deleted(
    app_transaction: asyncpg.Connection, shared_database: Any
) -> None:
    await _as(app_transaction, OTHER)

    deleted = await app_transaction.execute("DELETE FROM mnemic.goals WHERE tenant_id = $1", ONE)

    assert deleted == "DELETE 0"


async def test_the_owner_sees_and_changes_nothing_under_force(
    owner_transaction: asyncpg.Connection, tables: dict[str, str]
) -> None:
    for table in tables:
        assert await owner_transaction.fetchval(f"SELECT count(*) FROM mnemic.{table}") == 0, table
        changed = await owner_transaction.execute(
            f"UPDATE mnemic.{table} SET tenant_id = tenant_id"
        )
        assert changed == "UPDATE 0", table


async def test_the_audit_can_only_be_added_to(app_transaction: asyncpg.Connection) -> None:
    await _as(app_transaction, OTHER)

    for table in ("audit_log", "audit_seals"):
        assert await _refusal(app_transaction, f"DELETE FROM mnemic.{table}") == "42501"
        assert (
            await _refusal(app_transaction, f"UPDATE mnemic.{table} SET tenant_id = tenant_id")
            == "42501"
        )


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE mnemic.turns",
        "SELECT FROM mnemic.turn_vectors_default",
        "DELETE FROM mnemic.fact_vectors_default",
        "CREATE TABLE mnemic.mine (id int)",
        "CREATE RULE mine AS ON INSERT TO mnemic.turns DO INSTEAD NOTHING",
        "ALTER TABLE mnemic.turns DISABLE ROW LEVEL SECURITY",
        "DROP POLICY tenant_isolation ON mnemic.turns",
        "SET ROLE mnemic_owner",
        "SET ROLE mnemic_lookup",
        "UPDATE mnemic.embedding_models SET dimensions = 8",
        "DELETE FROM mnemic.embedding_models",
        "INSERT INTO mnemic.predicates (name, cardinality, category) VALUES ('a', 'single', 'b')",
        "UPDATE mnemic.alembic_version SET version_num = '0000'",
        "COPY mnemic.turns FROM '/dev/null'",
    ],
)
async def test_the_serving_role_may_not(
    app_transaction: asyncpg.Connection, statement: str
) -> None:
    assert await _refusal(app_transaction, statement) == "42501"


async def test_row_security_cannot_be_switched_off_by_the_serving_role(
    app_transaction: asyncpg.Connection,
) -> None:
    await app_transaction.execute("SET LOCAL row_security = off")

    assert await _refusal(app_transaction, "SELECT FROM mnemic.turns") == "42501"


async def test_a_foreign_reference_fails_as_a_missing_one_does(
    app_transaction: asyncpg.Connection, shared_database: Any
) -> None:
    foreign = uuid4()
    admin = await asyncpg.connect(shared_database.admin_url)
    await admin.execute(
        "INSERT INTO mnemic.tenants (tenant_id, kind, external_id) VALUES ($1, 'person', 'c')",
        foreign,
    )
    await admin.execute(
        "INSERT INTO mnemic.scopes (tenant_id, id, scope_type, path_digest)"
        " VALUES ($1, $1, 'global', '')",
        foreign,
    )
    await admin.close()
    await _as(app_transaction, OTHER)
    faults = []

    for scope in (foreign, uuid4()):
        savepoint = app_transaction.transaction()
        await savepoint.start()
        with pytest.raises(asyncpg.ForeignKeyViolationError) as caught:
            await app_transaction.execute(
                "INSERT INTO mnemic.goals (tenant_id, id, scope_id, title)"
                " VALUES ($1, gen_random_uuid(), $2, 'x')",
                OTHER,
                scope,
            )
        await savepoint.rollback()
        faults.append((str(caught.value), str(caught.value.detail).replace(str(scope), "")))

    assert faults[0] == faults[1]


async def test_an_id_that_another_tenant_uses_is_free(
    app_transaction: asyncpg.Connection, tables: dict[str, str]
) -> None:
    third = UUID(int=3)
    await _as(app_transaction, third)
    await app_transaction.execute(tables["tenants"].replace(str(ONE), str(third)))

    taken = await _refusal(app_transaction, tables["scopes"].replace(str(ONE), str(third)))

    assert taken is None


async def test_the_tenant_is_forgotten_at_the_end_of_the_transaction(
    shared_database: Any, tables: dict[str, str]
) -> None:
    connection = await asyncpg.connect(shared_database.direct_app_url)
    async with connection.transaction():
        await connection.fetchval("SELECT set_config('mnemic.tenant_id', $1, true)", str(ONE))
        within = await connection.fetchval("SELECT count(*) FROM mnemic.turns")

    afterwards = await connection.fetchval("SELECT count(*) FROM mnemic.turns")
    await connection.close()

    assert (within, afterwards) == (1, 0)
