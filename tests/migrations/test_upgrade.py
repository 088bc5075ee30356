"""Moving a database between revisions, and what is refused."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from mnemic.errors import (
    MnemicError,
    StoreUnavailable,
)
from mnemic.schema import metadata
from mnemic.store import migrating
from mnemic.store import upgrade as moving
from mnemic.store.upgrade import Step, check, current, downgrade, sql, upgrade

# Everything that a migration makes, as text; oids and statistics left out.
SNAPSHOT = """
SELECT coalesce(string_agg(line, E'\\n' ORDER BY line), '') FROM (
  SELECT format('table %s %s %s %s %s %s', relname, relkind, relrowsecurity, relforcerowsecurity,
                (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(coalesce(relacl, acldefault(
                   CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner))) a),
                reloptions)
    FROM pg_class WHERE relnamespace = 'mnemic'::regnamespace AND relkind IN ('r', 'p', 'S')
  UNION ALL
  SELECT format('column %s %s %s %s %s %s %s %s', relname, attname,
                format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid),
                attstorage, attidentity, attacl)
    FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
   WHERE relnamespace = 'mnemic'::regnamespace AND relkind IN ('r', 'p') AND attnum > 0
     AND NOT attisdropped
  UNION ALL
  SELECT format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
    FROM pg_constraint WHERE connamespace = 'mnemic'::regnamespace
  UNION ALL
  SELECT format('index %s', indexdef) FROM pg_indexes WHERE schemaname = 'mnemic'
  UNION ALL
  SELECT format('policy %s', to_jsonb(p)) FROM pg_policies p WHERE schemaname = 'mnemic'
  UNION ALL
  SELECT format('trigger %s', pg_get_triggerdef(t.oid))
    FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid
   WHERE relnamespace = 'mnemic'::regnamespace AND NOT tgisinternal
  UNION ALL
  SELECT format('function %s %s %s', pg_get_functiondef(oid), proowner::regrole, proacl)
    FROM pg_proc WHERE pronamespace = 'mnemic'::regnamespace
  UNION ALL
  SELECT format('type %s %s %s', typname,
                (SELECT array_agg(a::text ORDER BY a::text)
                   FROM unnest(coalesce(typacl, acldefault('T', typowner))) a),
                (SELECT string_agg(enumlabel, ',' ORDER BY enumsortorder) FROM pg_enum
                  WHERE enumtypid = t.oid))
    FROM pg_type t WHERE typnamespace = 'mnemic'::regnamespace AND typtype = 'e'
) AS lines (line)
"""
# What the tables of the code say too, partitions left out.
TABLES = """
SELECT string_agg(line, E'\\n' ORDER BY line) FROM (
  SELECT format('column %s %s %s %s %s %s', relname, attname, format_type(atttypid, atttypmod),
                attnotnull, pg_get_expr(adbin, adrelid), attidentity) AS line
    FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
   WHERE relnamespace = 'mnemic'::regnamespace AND relkind IN ('r', 'p') AND attnum > 0
     AND relname <> 'alembic_version' AND NOT relispartition
  UNION ALL
  SELECT format('constraint %s %s %s', relname, conname, pg_get_constraintdef(k.oid))
    FROM pg_constraint k JOIN pg_class c ON c.oid = conrelid
   WHERE connamespace = 'mnemic'::regnamespace AND relname <> 'alembic_version'
     AND NOT relispartition
  UNION ALL
  SELECT format('index %s', pg_get_indexdef(indexrelid)) FROM pg_index
    JOIN pg_class c ON c.oid = indrelid
   WHERE relnamespace = 'mnemic'::regnamespace AND relname <> 'alembic_version'
     AND NOT relispartition
  UNION ALL
  SELECT format('type %s %s', t.oid::regtype, enumlabel)
    FROM pg_enum JOIN pg_type t ON t.oid = enumtypid
) AS lines (line)
"""

UPGRADER = "import sys; from mnemic.store.upgrade import upgrade; upgrade(sys.argv[1])"


async def _asked(url: str, query: str, *values: Any) -> Any:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query, *values)
    finally:
        await connection.close()


async def _snapshot(url: str) -> str:
    """The schema, and the rows that migrations themselves put into it."""
    schema = await _asked(url, SNAPSHOT)
    if "table predicates " not in schema:
        return str(schema)
    rows = await _asked(
        url,
        "SELECT string_agg(format('%s %s %s', name, cardinality, category), E'\\n' ORDER BY name)"
        " FROM mnemic.predicates",
    )
    return f"{schema}\n{rows}"


async def _run_at_once(program: str, *arguments: str) -> list[bytes]:
    """What two processes that run the program at the same time say on standard error."""
    running = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, *arguments, stderr=asyncio.subprocess.PIPE
        )
        for _ in range(2)
    ]
    return [(await process.communicate())[1] for process in running]


async def _executed(url: str, script: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(script)
    finally:
        await connection.close()


async def test_an_empty_database_is_moved_to_the_head_step_by_step(empty_database: Any) -> None:
    steps: list[Step] = []
    before = current(empty_database.owner_url)

    after = upgrade(empty_database.owner_url, progress=steps.append)

    assert before.current is None
    assert after.current == after.head == before.head
    assert after.is_head
    assert after.pending == ()
    assert [step.revision for step in steps] == list(before.pending)
    assert [(step.done, step.total) for step in steps] == [
        (place, len(steps)) for place in range(1, len(steps) + 1)
    ]
    assert steps[0].title.startswith("Tenants, the scope tree")


# Not by how many transactions there were: those of the whole server count, and autovacuum has some.
WRITTEN_SINCE = " UNION ALL ".join(
    f"SELECT '{table}' FROM {table} WHERE CAST(CAST(xmin AS text) AS bigint) >= $1"
    for table in (
        *("mnemic.alembic_version", "pg_class", "pg_attribute", "pg_constraint", "pg_index"),
        *("pg_proc", "pg_policy", "pg_trigger", "pg_type"),
    )
)


async def test_a_database_at_the_head_is_left_alone(database: Any) -> None:
    steps: list[Step] = []
    now = await _asked(database.admin_url, "SELECT pg_current_xact_id()::text::bigint")

    upgrade(database.owner_url, progress=steps.append)

    assert steps == []
    assert await _asked(database.admin_url, WRITTEN_SINCE, now) is None
    await _executed(database.admin_url, "UPDATE mnemic.alembic_version SET version_num = '-'")
    assert await _asked(database.admin_url, WRITTEN_SINCE, now) == "mnemic.alembic_version"


async def test_nothing_but_the_version_table_is_left_at_the_base_and_the_way_up_is_open(
    database: Any,
) -> None:
    steps: list[Step] = []
    before = await _snapshot(database.admin_url)

    stands = downgrade(database.owner_url, "base", progress=steps.append)

    left = await _snapshot(database.admin_url)
    assert stands.current is None
    assert all("alembic_version" in line for line in left.splitlines())
    assert [step.done for step in steps] == list(range(1, steps[0].total + 1))
    upgrade(database.owner_url)
    assert await _snapshot(database.admin_url) == before


async def test_every_step_goes_down_and_up_again_to_the_same_schema(database: Any) -> None:
    revisions = [None, *moving._ordered(moving._script())]
    seen = {revisions[-1]: await _snapshot(database.admin_url)}

    for revision in reversed(revisions[:-1]):
        downgrade(database.owner_url, revision or "base")
        seen[revision] = await _snapshot(database.admin_url)

    for revision in revisions[1:]:
        upgrade(database.owner_url, revision or "head")
        assert await _snapshot(database.admin_url) == seen[revision], revision
    assert len(set(seen.values())) == len(revisions)


async def test_the_printed_statements_make_the_same_schema(
    empty_database: Any, database: Any
) -> None:
    script = sql()

    await _executed(empty_database.owner_url, script)

    assert current(empty_database.owner_url).is_head
    assert await _snapshot(empty_database.admin_url) == await _snapshot(database.admin_url)
    assert "SET LOCAL lock_timeout" in script
    assert "SET LOCAL statement_timeout" in script


async def test_the_printed_statements_of_the_way_back_undo_it(database: Any) -> None:
    script = sql("head", "0001")

    await _executed(database.owner_url, script)

    assert current(database.owner_url).current == "0001"


async def test_tables_made_from_the_code_are_the_migrated_ones(
    empty_database: Any, database: Any
) -> None:
    """Stricter than Alembic's comparison: conditions, checks, index columns and enums as well."""
    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(empty_database.owner_url)
    )
    async with engine.begin() as connection:
        await connection.run_sync(metadata.create_all)
    await engine.dispose()

    from_code = await _asked(empty_database.admin_url, TABLES)
    migrated = await _asked(database.admin_url, TABLES)

    assert from_code.splitlines() == migrated.splitlines()
    assert len(from_code.splitlines()) > 700


async def test_the_database_equals_the_tables(database: Any) -> None:
    found = check(database.owner_url)

    assert found.differences == ()
    assert found.violations == ()
    assert found.ok


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("ALTER TABLE mnemic.turns ADD COLUMN mood text", "mood"),
        ("ALTER TABLE mnemic.turns DROP COLUMN caption", "caption"),
        ("ALTER TABLE mnemic.goals ALTER COLUMN title DROP NOT NULL", "title"),
        ("ALTER TABLE mnemic.goals ALTER COLUMN version SET DEFAULT 7", "version"),
        ("ALTER TABLE mnemic.sessions ALTER COLUMN turn_count TYPE bigint", "turn_count"),
        ("DROP INDEX mnemic.turns_actor_idx", "turns_actor_idx"),
        ("CREATE INDEX turns_mood_idx ON mnemic.turns (tenant_id, caption)", "turns_mood_idx"),
        ("ALTER TABLE mnemic.turns DROP CONSTRAINT turns_document_id_fkey", "document_id"),
        ("ALTER TABLE mnemic.turns DROP CONSTRAINT turns_role_check", "turns_role_check"),
        ("ALTER TABLE mnemic.scopes DROP CONSTRAINT scopes_path_key", "scopes_path_key"),
        ("CREATE TABLE mnemic.stray (tenant_id uuid)", "stray"),
        ("DROP TABLE mnemic.promoted_indexes", "promoted_indexes"),
    ],
)
async def test_a_difference_from_the_tables_is_found(database: Any, change: str, said: str) -> None:
    await _executed(database.owner_url, change)

    found = check(database.owner_url)

    assert any(said in difference for difference in found.differences)
    assert not any(" at 0x" in difference for difference in found.differences)
    assert not found.ok


async def test_a_missing_wall_is_found(database: Any) -> None:
    await _executed(database.owner_url, "DROP POLICY tenant_isolation ON mnemic.turns")

    found = check(database.owner_url)

    assert found.differences == ()
    assert any(line.startswith("mnemic.turns has no policy") for line in found.violations)
    assert not found.ok


async def test_two_upgraders_in_two_processes_both_succeed(empty_database: Any) -> None:
    faults = await _run_at_once(UPGRADER, empty_database.owner_url)

    assert faults == [b"", b""]
    assert current(empty_database.owner_url).is_head
    assert check(empty_database.owner_url).ok


async def test_two_upgraders_in_two_threads_both_succeed(empty_database: Any) -> None:
    stands = await asyncio.gather(
        *(asyncio.to_thread(upgrade, empty_database.owner_url) for _ in range(2))
    )

    assert [revision.is_head for revision in stands] == [True, True]


def test_a_program_without_a_loop_may_call_it(template: str, servers: Any) -> None:
    stands = upgrade(servers.postgres_url("mnemic_owner", template))

    assert stands.is_head


async def test_a_superuser_migrates_as_the_owner(empty_database: Any) -> None:
    upgrade(empty_database.admin_url)

    owners = await _asked(
        empty_database.admin_url,
        "SELECT array_agg(DISTINCT relowner::regrole::text) FROM pg_class"
        " WHERE relnamespace = 'mnemic'::regnamespace",
    )
    assert owners == ["mnemic_owner"]


LATER = """
import sqlalchemy as sa
from alembic import op

revision = "9000"
down_revision = "{head}"
branch_labels = None
depends_on = None


def upgrade():
    op.add_column("turns", sa.Column("mood", sa.Text), schema="mnemic")
    with op.get_context().autocommit_block():
        op.create_index(
            "turns_mood_idx", "turns", ["tenant_id", "mood"], schema="mnemic",
            postgresql_concurrently=True,
        )
"""
LATER_UPGRADER = """
import sys
from pathlib import Path
from mnemic.store import revisions, upgrade as moving
revisions.migrations_folder = moving.migrations_folder = lambda: Path(sys.argv[2])
assert moving.upgrade(sys.argv[1]).current == "9000"
"""


async def test_a_later_step_may_commit_on_the_way_and_two_upgraders_still_do_not_meet(
    database: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "migrations"
    shutil.copytree(moving.migrations_folder(), folder)
    later = LATER.format(head=moving.head())
    (folder / "versions" / "9000_later.py").write_text(later, encoding="utf-8")

    faults = await _run_at_once(LATER_UPGRADER, database.owner_url, str(folder))

    assert faults == [b"", b""]
    assert await _asked(
        database.admin_url,
        "SELECT indisvalid FROM pg_index WHERE indexrelid = 'mnemic.turns_mood_idx'::regclass",
    )


async def test_the_driver_url_of_sqlalchemy_is_taken_as_well(database: Any) -> None:
    url = database.owner_url.replace("postgresql://", "postgresql+asyncpg://")

    assert current(url).is_head
    assert check(url).ok


async def test_a_table_in_use_stops_the_move_before_anything_is_changed(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "LOCK_TIMEOUT_MS", 100)
    before = await _snapshot(database.admin_url)
    reader = await asyncpg.connect(database.app_url)

    async with reader.transaction():
        await reader.fetch("SELECT FROM mnemic.tenants")
        with pytest.raises(StoreUnavailable, match="too busy"):
            await asyncio.to_thread(downgrade, database.owner_url, "base")

    await reader.close()
    assert await _snapshot(database.admin_url) == before
    assert current(database.owner_url).is_head


async def test_a_step_that_fails_undoes_the_ones_before_it(empty_database: Any) -> None:
    upgrade(empty_database.owner_url, "0001")
    before = await _snapshot(empty_database.admin_url)
    await _executed(empty_database.owner_url, "CREATE TABLE mnemic.procedures (id int)")

    with pytest.raises(MnemicError, match=r"nothing was changed.*procedures"):
        upgrade(empty_database.owner_url)

    await _executed(empty_database.owner_url, "DROP TABLE mnemic.procedures")
    assert await _snapshot(empty_database.admin_url) == before
    assert upgrade(empty_database.owner_url).is_head


async def test_a_session_of_the_owner_is_not_left_behind(database: Any) -> None:
    check(database.owner_url)
    upgrade(database.owner_url)

    sessions = await _asked(
        database.admin_url,
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
    )
    assert sessions == 0
