"""The rules that hold for every table and function; and that each of them can fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import asyncpg
import pytest
import sqlalchemy as sa

from mnemic.schema import TENANTLESS_TABLES, metadata
from mnemic.store.catalogue import DEFINER_FUNCTIONS, rules, violations

WALL = "tenant_id = (SELECT nullif(current_setting('mnemic.tenant_id', true), '')::uuid)"

# A table that keeps every rule; each plant below breaks one.
STRAY = f"""
    SET LOCAL ROLE mnemic_owner;
    CREATE TABLE mnemic.stray (
      tenant_id uuid NOT NULL, id uuid NOT NULL, scope_id uuid NOT NULL,
      name text NOT NULL, happened_at timestamptz NOT NULL,
      CONSTRAINT stray_pkey PRIMARY KEY (tenant_id, id));
    ALTER TABLE mnemic.stray ENABLE ROW LEVEL SECURITY;
    ALTER TABLE mnemic.stray FORCE ROW LEVEL SECURITY;
    CREATE POLICY tenant_isolation ON mnemic.stray USING ({WALL}) WITH CHECK ({WALL});
    GRANT SELECT, INSERT, DELETE ON mnemic.stray TO mnemic_app;
"""
PARTITION = """
    SET LOCAL ROLE mnemic_owner;
    CREATE TABLE mnemic.turn_vectors_own PARTITION OF mnemic.turn_vectors
      FOR VALUES IN ('00000000-0000-0000-0000-000000000001');
"""
DEFINER = """
    CREATE FUNCTION mnemic.peek() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER
      SET search_path = pg_catalog, mnemic, pg_temp
      BEGIN ATOMIC SELECT count(*) FROM mnemic.turns; END;
    REVOKE ALL ON FUNCTION mnemic.peek() FROM PUBLIC;
"""


class Plant(NamedTuple):
    """Statements that break a rule, and what is said about it."""

    statements: str
    expected: str


PLANTS = [
    Plant(
        "CREATE TABLE mnemic.stray (id uuid CONSTRAINT stray_pkey PRIMARY KEY);",
        "mnemic.stray has no tenant_id and is not listed as a table without a tenant (rule 10)",
    ),
    Plant(
        "ALTER TABLE mnemic.job_runs ADD COLUMN tenant_id uuid NOT NULL;",
        "mnemic.job_runs is listed as a table without a tenant, but has a tenant_id (rule 10)",
    ),
    Plant(
        f"{STRAY} ALTER TABLE mnemic.stray ALTER COLUMN tenant_id SET DEFAULT gen_random_uuid();",
        "mnemic.stray.tenant_id must be a uuid that is never null and has no default (rule 2)",
    ),
    Plant(
        f"{STRAY} ALTER TABLE mnemic.stray DROP CONSTRAINT stray_pkey,"
        " ADD CONSTRAINT stray_pkey PRIMARY KEY (id, tenant_id);",
        "mnemic.stray has no primary key that starts with tenant_id (rule 1)",
    ),
    Plant(
        f"{STRAY} ALTER TABLE mnemic.stray DROP CONSTRAINT stray_pkey;",
        "mnemic.stray has no primary key that starts with tenant_id (rule 1)",
    ),
    Plant(
        f"{STRAY} CREATE UNIQUE INDEX stray_id_key ON mnemic.stray (id);",
        "mnemic.stray_id_key is unique over all tenants: it must start with tenant_id (rule 1)",
    ),
    Plant(
        f"{STRAY} CREATE UNIQUE INDEX stray_word_key ON mnemic.stray ((id::text), tenant_id);",
        "mnemic.stray_word_key is unique over all tenants: it must start with tenant_id (rule 1)",
    ),
    Plant(
        f"{STRAY} ALTER TABLE mnemic.turns ADD CONSTRAINT turns_twin_key UNIQUE (id, tenant_id);"
        " ALTER TABLE mnemic.stray ADD CONSTRAINT stray_id_fkey"
        " FOREIGN KEY (id, tenant_id) REFERENCES mnemic.turns (id, tenant_id);",
        "mnemic.stray stray_id_fkey is a foreign key that does not start with tenant_id on both "
        "sides (rule 1)",
    ),
    Plant(
        "CREATE TABLE public.elsewhere (id uuid PRIMARY KEY);"
        " ALTER TABLE mnemic.turns ADD CONSTRAINT turns_elsewhere_fkey"
        " FOREIGN KEY (id) REFERENCES public.elsewhere (id);",
        "mnemic.turns turns_elsewhere_fkey refers to a table outside of the schema (rule 1)",
    ),
    Plant(
        "DROP TABLE mnemic.turn_vectors_default;",
        "mnemic.turn_vectors is not partitioned by tenant_id alone, or has no DEFAULT partition",
    ),
    Plant(
        f"{STRAY} ALTER TABLE mnemic.stray DISABLE ROW LEVEL SECURITY;",
        "mnemic.stray has row-level security disabled (rule 3)",
    ),
    Plant(
        f"{STRAY} ALTER TABLE mnemic.stray NO FORCE ROW LEVEL SECURITY;",
        "mnemic.stray does not force row-level security on its owner (rule 3)",
    ),
    Plant(
        PARTITION,
        "mnemic.turn_vectors_own has row-level security disabled (rule 3)",
    ),
    Plant(
        f"{PARTITION} ALTER TABLE mnemic.turn_vectors_own ENABLE ROW LEVEL SECURITY;"
        " ALTER TABLE mnemic.turn_vectors_own FORCE ROW LEVEL SECURITY;",
        "mnemic.turn_vectors_own has no policy that keeps reading and writing to the tenant of the "
        "setting (rule 3)",
    ),
    Plant(
        f"{STRAY} DROP POLICY tenant_isolation ON mnemic.stray;"
        f" CREATE POLICY tenant_isolation ON mnemic.stray USING ({WALL});",
        "mnemic.stray has no policy that keeps reading and writing to the tenant of the setting "
        "(rule 3)",
    ),
    Plant(
        f"{STRAY} DROP POLICY tenant_isolation ON mnemic.stray;"
        " CREATE POLICY tenant_isolation ON mnemic.stray USING (tenant_id ="
        " (SELECT nullif(current_setting('mnemic.other', true), '')::uuid));",
        "mnemic.stray policy tenant_isolation lets through more than the tenant's own rows "
        "(rule 3)",
    ),
    Plant(
        f"{STRAY} CREATE POLICY everything ON mnemic.stray FOR SELECT USING (true);",
        "mnemic.stray policy everything lets through more than the tenant's own rows (rule 3)",
    ),
    Plant(
        f"{STRAY} CREATE POLICY additions ON mnemic.stray FOR INSERT TO mnemic_lookup"
        " WITH CHECK (true);",
        "mnemic.stray policy additions lets through more than the tenant's own rows (rule 3)",
    ),
    Plant(
        "CREATE VIEW mnemic.glimpse AS SELECT id FROM mnemic.turns;",
        "mnemic.glimpse is a view without security_invoker",
    ),
    Plant(
        "CREATE MATERIALIZED VIEW mnemic.copied AS SELECT id FROM mnemic.turns;",
        "mnemic.copied is neither a table, an index, a sequence nor a view: policies do not hold "
        "for it",
    ),
    Plant(
        f"{STRAY} ALTER TABLE mnemic.stray SET UNLOGGED;",
        "mnemic.stray is not logged: a crash of the server would empty it",
    ),
    Plant(
        "ALTER TABLE mnemic.turns OWNER TO mnemic_app;",
        "mnemic.turns does not belong to mnemic_owner",
    ),
    Plant(
        "ALTER SCHEMA mnemic OWNER TO postgres;",
        "schema mnemic does not belong to mnemic_owner",
    ),
    Plant("GRANT SELECT ON mnemic.turns TO PUBLIC;", "mnemic.turns gives rights to PUBLIC"),
    Plant(
        "GRANT SELECT (text) ON mnemic.turns TO PUBLIC;",
        "mnemic.turns.text gives rights to PUBLIC",
    ),
    Plant("GRANT USAGE ON SCHEMA mnemic TO PUBLIC;", "schema mnemic gives rights to PUBLIC"),
    Plant("CREATE TYPE mnemic.mood AS ENUM ('good');", "mnemic.mood gives rights to PUBLIC"),
    Plant(
        "GRANT EXECUTE ON FUNCTION mnemic.principal_of TO PUBLIC;",
        "mnemic.principal_of(key_digest bytea) gives rights to PUBLIC",
    ),
    Plant(
        "GRANT TRUNCATE ON mnemic.turns TO mnemic_app;",
        "mnemic.turns (TRUNCATE) gives mnemic_app more than to read and write rows",
    ),
    Plant(
        "GRANT SELECT ON mnemic.turns TO mnemic_app WITH GRANT OPTION;",
        "mnemic.turns (SELECT) gives mnemic_app more than to read and write rows",
    ),
    Plant(
        "REVOKE ALL ON mnemic.facts FROM mnemic_app;",
        "mnemic.facts (SELECT) does not let mnemic_app do what it serves by",
    ),
    Plant(
        "REVOKE INSERT ON mnemic.turns FROM mnemic_app;",
        "mnemic.turns (INSERT) does not let mnemic_app do what it serves by",
    ),
    Plant(
        "REVOKE UPDATE, DELETE ON mnemic.sessions FROM mnemic_app;",
        "mnemic.sessions (UPDATE or DELETE) does not let mnemic_app do what it serves by",
    ),
    Plant(
        "REVOKE EXECUTE ON FUNCTION mnemic.principal_of FROM mnemic_app;",
        "mnemic.principal_of(key_digest bytea) (EXECUTE) does not let mnemic_app do what it serves "
        "by",
    ),
    Plant(
        "GRANT SELECT ON mnemic.turn_vectors_default TO mnemic_app;",
        "mnemic.turn_vectors_default is a partition on which mnemic_app has rights of its own "
        "(rule 3)",
    ),
    Plant(
        "GRANT SELECT (embedding) ON mnemic.turn_vectors_default TO mnemic_app;",
        "mnemic.turn_vectors_default.embedding is a partition on which mnemic_app has rights of "
        "its own (rule 3)",
    ),
    Plant(
        "GRANT DELETE ON mnemic.audit_log TO mnemic_app;",
        "mnemic.audit_log is of the audit, and mnemic_app may change or delete its rows",
    ),
    Plant(
        "GRANT SELECT ON mnemic.turns TO mnemic_lookup;",
        "mnemic.turns gives mnemic_lookup more than to read single columns",
    ),
    Plant(
        "GRANT UPDATE (text) ON mnemic.turns TO mnemic_lookup;",
        "mnemic.turns.text gives mnemic_lookup more than to read single columns",
    ),
    Plant(
        "GRANT CREATE ON SCHEMA mnemic TO mnemic_lookup;",
        "mnemic_lookup may create objects in the schema",
    ),
    Plant(
        "ALTER ROLE mnemic_app BYPASSRLS;",
        "mnemic_app is missing, or is or may become a role that sees through policies",
    ),
    Plant(
        "GRANT mnemic_owner TO mnemic_app;",
        "mnemic_app is missing, or is or may become a role that sees through policies",
    ),
    Plant(
        "ALTER ROLE mnemic_lookup LOGIN;",
        "mnemic_lookup is missing, or is or may become a role that sees through policies",
    ),
    Plant(
        f"{STRAY} ALTER TABLE mnemic.stray ALTER COLUMN happened_at TYPE timestamp;",
        "mnemic.stray.happened_at keeps a time without its zone (rule 5)",
    ),
    Plant(
        "ALTER TABLE mnemic.goals DROP COLUMN person_id;",
        "mnemic.goals.person_id must be part of every table of memories (one with `trust`) and of "
        "its type",
    ),
    Plant(
        "ALTER TABLE mnemic.goals ALTER COLUMN scope_id DROP NOT NULL;",
        "mnemic.goals.scope_id must be part of every table of memories (one with `trust`) and of "
        "its type",
    ),
    Plant(
        f"{STRAY} ALTER TABLE mnemic.stray ADD COLUMN valid_from timestamptz;",
        "mnemic.stray has one axis of time without the other (rule 5)",
    ),
    Plant(
        f"{STRAY} CREATE INDEX stray_name_idx ON mnemic.stray (tenant_id, name);",
        "mnemic.stray_name_idx (name) indexes text of any length: index its digest, or bound it by "
        "a check (rule 6)",
    ),
    Plant(
        f"{STRAY} CREATE INDEX stray_name_idx ON mnemic.stray (tenant_id, lower(name));",
        "mnemic.stray_name_idx (an expression) indexes text of any length: index its digest, or "
        "bound it by a check (rule 6)",
    ),
    Plant(
        "ALTER TABLE mnemic.fact_vectors ADD COLUMN confidence double precision;",
        "mnemic.fact_vectors.confidence stands beside a vector: counters, times and confidence "
        "live elsewhere (rule 7)",
    ),
    Plant(
        f"{STRAY} ALTER TABLE mnemic.stray ADD COLUMN change_history jsonb;",
        "mnemic.stray.change_history is a list that grows with each change: history is rows "
        "(rule 8)",
    ),
    Plant(
        f"{STRAY} ALTER TABLE mnemic.stray ALTER COLUMN id SET DEFAULT gen_random_uuid();",
        "mnemic.stray.id is made by the server: ids come from the client, and sequences tell "
        "counts (rule 9)",
    ),
    Plant(
        f"{STRAY} ALTER TABLE mnemic.stray ADD COLUMN place bigserial;",
        "mnemic.stray.place is made by the server: ids come from the client, and sequences tell "
        "counts (rule 9)",
    ),
    Plant(
        f"{STRAY} CREATE INDEX ON mnemic.stray (tenant_id, happened_at);",
        "mnemic.stray_tenant_id_happened_at_idx has a name that the server made up: write it out "
        "(rule 11)",
    ),
    Plant(
        f"{STRAY} ALTER TABLE mnemic.stray ADD FOREIGN KEY (tenant_id, scope_id)"
        " REFERENCES mnemic.scopes;",
        "mnemic.stray stray_tenant_id_scope_id_fkey has a name that the server made up: write it "
        "out (rule 11)",
    ),
    Plant(
        f"{STRAY} ALTER TABLE mnemic.stray ADD CONSTRAINT stray_name_check CHECK (name <> '')"
        " NOT VALID;",
        "mnemic.stray stray_name_check is not valid: it was not finished, or not checked",
    ),
    Plant(
        "UPDATE pg_index SET indisvalid = false"
        " WHERE indexrelid = 'mnemic.turns_scope_idx'::regclass;",
        "mnemic.turns_scope_idx is not valid: it was not finished, or not checked",
    ),
    Plant(DEFINER, "mnemic.peek() runs with its owner's rights and is not listed (rule 10)"),
    Plant(
        "DROP FUNCTION mnemic.tenants_due;",
        "tenants_due is listed as a definer function, but there is none (rule 10)",
    ),
    Plant(
        "ALTER FUNCTION mnemic.lexical SECURITY INVOKER;",
        "lexical is listed as a definer function, but there is none (rule 10)",
    ),
    Plant(
        "ALTER FUNCTION mnemic.lexical OWNER TO mnemic_owner;",
        "mnemic.lexical(match_q tsquery, rank_q tsquery, scopes uuid[], n integer) looks past the "
        "policies and does not belong to mnemic_lookup (rule 10)",
    ),
    Plant(
        "ALTER FUNCTION mnemic.principal_of SET search_path = mnemic, pg_temp, pg_catalog;",
        "mnemic.principal_of(key_digest bytea) does not pin its search path to pg_catalog, mnemic, "
        "pg_temp (rule 10)",
    ),
    Plant(
        "CREATE FUNCTION mnemic.one() RETURNS int LANGUAGE sql AS 'SELECT 1';",
        "mnemic.one() does not pin its search path to pg_catalog, mnemic, pg_temp (rule 10)",
    ),
    Plant(
        "ALTER FUNCTION mnemic.principal_of VOLATILE;",
        "mnemic.principal_of(key_digest bytea) looks past the policies and may write: it must be "
        "SQL, parsed and stable (rule 10)",
    ),
]


@pytest.fixture
async def scratch(shared_database: Any) -> AsyncIterator[asyncpg.Connection]:
    """A superuser's transaction that is thrown away."""
    connection = await asyncpg.connect(shared_database.admin_url)
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()


async def test_a_migrated_database_keeps_every_rule(app: asyncpg.Connection) -> None:
    found = await violations(app)

    assert found == []


async def test_the_planted_table_keeps_every_rule_until_it_is_broken(
    scratch: asyncpg.Connection,
) -> None:
    await scratch.execute(STRAY)

    assert await violations(scratch) == []


@pytest.mark.parametrize("plant", PLANTS, ids=range(len(PLANTS)))
async def test_each_violation_is_named(scratch: asyncpg.Connection, plant: Plant) -> None:
    await scratch.execute(plant.statements)

    assert plant.expected in await violations(scratch)


def test_each_rule_is_broken_by_a_plant() -> None:
    unbroken = [
        rule for rule in rules() if not any(plant.expected.endswith(rule) for plant in PLANTS)
    ]

    assert unbroken == []


async def test_the_two_lists_name_only_what_is_there(admin: asyncpg.Connection) -> None:
    tables = await admin.fetch(
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'mnemic'::regnamespace"
        " AND relkind IN ('r', 'p')"
    )
    functions = await admin.fetch(
        "SELECT DISTINCT proname::text FROM pg_proc"
        " WHERE pronamespace = 'mnemic'::regnamespace AND prosecdef"
    )

    assert {row["relname"] for row in tables} >= TENANTLESS_TABLES
    assert {row["proname"] for row in functions} == DEFINER_FUNCTIONS


def test_every_constraint_and_index_of_the_tables_has_its_name_written_out() -> None:
    unnamed = [
        (table.name, item)
        for table in metadata.tables.values()
        for item in (*table.constraints, *table.indexes)
        if item.name is None or not isinstance(item.name, str)
    ]

    assert len(metadata.tables) > 30
    assert unnamed == []
    assert all(isinstance(table, sa.Table) for table in metadata.tables.values())
