"""The functions that look past the policies: what they find, and for whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4, uuid5

import asyncpg
import pytest

from mnemic.model.turn_vector import RECIPE, SHORT_WORDS_MAX, TURNS_BEFORE_MAX

ONE, OTHER = UUID(int=1), UUID(int=2)
SCOPE, OTHER_SCOPE = UUID(int=11), UUID(int=12)
SPEAKER, LISTENER = UUID(int=21), UUID(int=22)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LEXICAL = ("lexical", "lexical_episodes", "lexical_facts", "lexical_procedures")


async def _executed(url: str, script: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(script)
    finally:
        await connection.close()


@pytest.fixture(scope="module")
async def world(shared_database: Any) -> Any:
    """Two tenants with the same words in turns, episodes, facts and procedures.

    `seq` 1 and 2 are found, 3 has other words, 4 is archived; of facts and procedures 5 is
    superseded or retired.
    """
    turns = "".join(
        _turn(tenant, scope, seq, actor, words, archived="now()" if seq == 4 else "NULL")
        for tenant, scope in ((ONE, SCOPE), (OTHER, OTHER_SCOPE))
        for seq, actor, words in (
            (1, SPEAKER, "'green':1 'tea':2"),
            (2, LISTENER, "'green':1"),
            (3, LISTENER, "'black':1"),
            (4, LISTENER, "'green':1 'tea':2"),
        )
    )
    await _executed(
        shared_database.admin_url,
        f"BEGIN; SET LOCAL session_replication_role = replica; {turns}"
        f"{_others(ONE, SCOPE)}{_others(OTHER, OTHER_SCOPE)} COMMIT",
    )
    return shared_database


def _id(tenant: UUID, seq: int) -> UUID:
    return uuid5(tenant, str(seq))


def _turn(tenant: UUID, scope: UUID, seq: int, actor: UUID, words: str, *, archived: str) -> str:
    quoted = words.replace("'", "''")
    return (
        "INSERT INTO mnemic.turns (tenant_id, id, scope_id, session_id, seq, role, actor, actor_id,"
        " text, content_digest, occurred_at, tsv, archived_at) VALUES"
        f" ('{tenant}', '{_id(tenant, seq)}', '{scope}', '{scope}', {seq}, 'user', 'a', '{actor}',"
        f" 'x', '', now(), '{quoted}', {archived});"
    )


def _others(tenant: UUID, scope: UUID) -> str:
    rows = [
        (1, "''green'':1 ''tea'':2", "NULL", "live", "NULL"),
        (2, "''green'':1", "NULL", "live", "NULL"),
        (3, "''black'':1", "NULL", "live", "NULL"),
        (4, "''green'':1 ''tea'':2", "now()", "live", "NULL"),
        (5, "''green'':1 ''tea'':2", "NULL", "forgotten", "now()"),
    ]
    script = ""
    for seq, words, archived, status, retired in rows:
        shared = f"'{tenant}', '{_id(tenant, seq)}', '{scope}', '{words}', {archived}"
        if status == "live":
            script += (
                "INSERT INTO mnemic.episodes (tenant_id, id, scope_id, tsv, archived_at, task_type,"
                " task_description, outcome, importance_score, occurred_at, title, summary,"
                f" content_digest) VALUES ({shared}, 'x', 'x', 'success', 1, now(), 'x', 'x', '');"
            )
        script += (
            "INSERT INTO mnemic.facts (tenant_id, id, scope_id, tsv, archived_at, status,"
            " retired_at, subject, subject_key, predicate, object, object_key, content, confidence,"
            f" first_learned, last_reinforced) VALUES ({shared}, '{status}', {retired}, 'x', 'x',"
            f" 'x', 'x', 'x{seq}', 'x', 1, now(), now());"
            "INSERT INTO mnemic.procedures (tenant_id, id, scope_id, tsv, archived_at, status,"
            f" retired_at, name, name_key, task_type, steps) VALUES ({shared}, '{status}',"
            f" {retired}, 'x', 'x{seq}', 'x', '[]');"
        )
    return script


@pytest.fixture
async def app(world: Any) -> AsyncIterator[asyncpg.Connection]:
    """The serving role's transaction, thrown away."""
    connection = await asyncpg.connect(world.direct_app_url)
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()


async def _as(connection: asyncpg.Connection, tenant: UUID | None) -> None:
    await connection.execute(f"SET LOCAL mnemic.tenant_id = '{tenant or ''}'")


async def _found(
    connection: asyncpg.Connection,
    function: str,
    *,
    scopes: list[UUID],
    match: str = "'green'",
    rank: str = "'green' | 'tea'",
    limit: int = 10,
) -> list[UUID]:
    rows = await connection.fetch(
        f"SELECT id, rank FROM mnemic.{function}($1::text::tsquery, $2::text::tsquery, $3, $4)",
        match,
        rank,
        scopes,
        limit,
    )
    assert [row["rank"] for row in rows] == sorted((row["rank"] for row in rows), reverse=True)
    return [row["id"] for row in rows]


@pytest.mark.parametrize("function", LEXICAL)
async def test_living_memories_with_the_words_are_found_best_first(
    app: asyncpg.Connection, function: str
) -> None:
    await _as(app, ONE)

    assert await _found(app, function, scopes=[SCOPE]) == [_id(ONE, 1), _id(ONE, 2)]
    assert await _found(app, function, scopes=[SCOPE], limit=1) == [_id(ONE, 1)]


@pytest.mark.parametrize("function", LEXICAL)
async def test_without_a_tenant_nothing_is_found(app: asyncpg.Connection, function: str) -> None:
    await _as(app, None)

    assert await _found(app, function, scopes=[SCOPE, OTHER_SCOPE]) == []


@pytest.mark.parametrize("function", LEXICAL)
async def test_a_foreign_scope_adds_nothing(app: asyncpg.Connection, function: str) -> None:
    await _as(app, OTHER)

    assert await _found(app, function, scopes=[SCOPE]) == []
    assert await _found(app, function, scopes=[SCOPE, OTHER_SCOPE]) == [
        _id(OTHER, 1),
        _id(OTHER, 2),
    ]
    assert await _found(app, function, scopes=[]) == []


async def test_the_actors_own_turns_are_found_alone(app: asyncpg.Connection) -> None:
    await _as(app, ONE)
    query = "SELECT id FROM mnemic.lexical_actor('green', 'green', $1, $2, 10)"

    spoken = await app.fetch(query, [SCOPE], LISTENER)
    foreign = await app.fetch(query, [OTHER_SCOPE], LISTENER)

    assert [row["id"] for row in spoken] == [_id(ONE, 2)]
    assert foreign == []


async def test_words_spelt_alike_are_the_tenants_own_and_still_in_use(
    app: asyncpg.Connection, world: Any
) -> None:
    counts = ", ".join(
        f"('{tenant}', '{scope}', 'term', '{term}', {documents}, 9)"
        for tenant, scope, term, documents in (
            (ONE, SCOPE, "barcelona", 3),
            (ONE, SCOPE, "barcelonas", 0),
            (ONE, SCOPE, "madrid", 4),
            (OTHER, OTHER_SCOPE, "barcelonan", 5),
        )
    )
    await _executed(
        world.admin_url,
        "BEGIN; SET LOCAL session_replication_role = replica; INSERT INTO mnemic.term_stats"
        f" (tenant_id, scope_id, kind, term, documents, occurrences) VALUES {counts}; COMMIT",
    )
    query = "SELECT word, term, documents FROM mnemic.similar_terms('{barcelonna,x}', $1, 9)"

    async def found(tenant: UUID | None, *scopes: UUID) -> list[tuple[str, str, int]]:
        await _as(app, tenant)
        return [tuple(row) for row in await app.fetch(query, list(scopes))]

    assert await found(ONE, SCOPE, OTHER_SCOPE) == [("barcelonna", "barcelona", 3)]
    assert await found(ONE, OTHER_SCOPE) == []
    assert await found(ONE) == []
    assert await found(None, SCOPE, OTHER_SCOPE) == []
    await _executed(world.admin_url, "DELETE FROM mnemic.term_stats")


async def test_the_words_are_found_by_their_index(world: Any, database: Any) -> None:
    await _executed(
        database.admin_url,
        f"""
        SET session_replication_role = replica;
        INSERT INTO mnemic.turns (tenant_id, id, scope_id, session_id, seq, role, actor, actor_id,
                                  text, content_digest, occurred_at, tsv)
        SELECT '{ONE}', gen_random_uuid(), '{SCOPE}', '{SCOPE}', n, 'user', 'a', '{SPEAKER}', 'x',
               '', now(), format('''w%s'':1', n % 500)::tsvector
          FROM generate_series(1, 4000) AS n;
        ANALYZE mnemic.turns;
        """,
    )
    connection = await asyncpg.connect(database.direct_app_url)
    scans = (
        "SELECT (SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'turns_tsv_idx'),"
        " (SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'turns')"
    )
    before = await connection.fetchrow(scans)

    for _ in range(7):  # a kept plan would turn generic after five
        async with connection.transaction():
            await _as(connection, ONE)
            found = await _found(connection, "lexical", scopes=[SCOPE], match="'w7'", rank="'w7'")
    await connection.execute("SELECT pg_stat_force_next_flush()")

    after = await connection.fetchrow(scans)
    await connection.close()
    assert len(found) == 8
    assert before is not None
    assert after is not None
    assert (after[0] - before[0], after[1] - before[1]) == (7, 0)


@pytest.fixture
async def admin_transaction(database: Any) -> AsyncIterator[asyncpg.Connection]:
    """The superuser's transaction without foreign keys, thrown away."""
    connection = await asyncpg.connect(database.admin_url)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("SET LOCAL session_replication_role = replica")
    yield connection
    await transaction.rollback()
    await connection.close()


async def _called(connection: asyncpg.Connection, query: str, *values: Any) -> list[Any]:
    """The rows, as the serving role gets them inside the same transaction."""
    await connection.execute("SET LOCAL ROLE mnemic_app")
    rows = await connection.fetch(query, *values)
    await connection.execute("SET LOCAL ROLE postgres")
    return [tuple(row) for row in rows]


async def test_a_key_that_is_not_revoked_names_its_principal(
    admin_transaction: asyncpg.Connection,
) -> None:
    good, revoked = b"g" * 32, b"r" * 32
    key = uuid4()
    for digest, ident, revoked_at in ((good, key, None), (revoked, uuid4(), NOON)):
        await admin_transaction.execute(
            "INSERT INTO mnemic.api_keys (tenant_id, id, scope_id, name, key_digest, rights,"
            " expires_at, revoked_at) VALUES ($1, $2, $3, 'x', $4, '{read}', $5, $6)",
            ONE,
            ident,
            SCOPE,
            digest,
            NOON,
            revoked_at,
        )
    query = "SELECT * FROM mnemic.principal_of($1)"

    assert await _called(admin_transaction, query, good) == [(ONE, key, SCOPE, ["read"], NOON)]
    assert await _called(admin_transaction, query, revoked) == []
    assert await _called(admin_transaction, query, b"") == []


async def _session(
    connection: asyncpg.Connection, tenant: UUID, *, active: datetime, ended: bool = False
) -> None:
    await connection.execute(
        "INSERT INTO mnemic.sessions (tenant_id, id, scope_id, name, started_at, last_active_at,"
        " state, ended_at) VALUES ($1, gen_random_uuid(), $1, 'x', $2, $2, $3, $4)",
        tenant,
        active,
        "ended" if ended else "active",
        active if ended else None,
    )


DUE = "SELECT tenant_id FROM mnemic.tenants_due($1, $2, $3)"


async def test_tenants_with_idle_sessions_are_due_once_each(
    admin_transaction: asyncpg.Connection,
) -> None:
    idle, fresh, over = uuid4(), uuid4(), uuid4()
    for _ in range(3):
        await _session(admin_transaction, idle, active=NOON - timedelta(hours=1))
    await _session(admin_transaction, fresh, active=NOON)
    await _session(admin_transaction, over, active=NOON - timedelta(hours=1), ended=True)

    due = await _called(admin_transaction, DUE, "end_idle_sessions", 10, NOON)

    assert due == [(idle,)]


@pytest.mark.parametrize(
    ("job", "column"), [("embed_missing", "needs_vector"), ("count_terms", "stats_counted")]
)
async def test_tenants_with_memories_to_work_on_are_due_once_each(
    admin_transaction: asyncpg.Connection, job: str, column: str
) -> None:
    by_kind = {kind: uuid4() for kind in ("turns", "episodes", "facts", "procedures")}
    for kind, tenant in by_kind.items():
        await _memories(admin_transaction, kind, tenant, **{column: column == "needs_vector"})
        await _memories(admin_transaction, kind, uuid4(), **{column: column != "needs_vector"})

    due = await _called(admin_transaction, DUE, job, 10, NOON)

    assert sorted(due) == sorted((tenant,) for tenant in by_kind.values())


@pytest.mark.parametrize(
    ("recipe", "words", "seq", "is_due"),
    [
        (None, SHORT_WORDS_MAX, 1, True),
        (RECIPE + 1, SHORT_WORDS_MAX, 1, True),
        (RECIPE, SHORT_WORDS_MAX, 1, False),
        (None, SHORT_WORDS_MAX + 1, 1, False),
        (None, SHORT_WORDS_MAX, 0, False),
    ],
    ids=["before", "another", "this", "long", "first"],
)
async def test_a_turn_is_due_whose_vector_was_made_otherwise(
    admin_transaction: asyncpg.Connection,
    recipe: int | None,
    words: int,
    seq: int,
    *,
    is_due: bool,
) -> None:
    tenant = uuid4()
    before = await admin_transaction.fetchrow("SELECT * FROM mnemic.vectors_due(1000)")
    await _memories(admin_transaction, "turns", tenant)
    await admin_transaction.execute(
        "UPDATE mnemic.turns SET vector_recipe = $2, word_count = $3, seq = $4"
        " WHERE tenant_id = $1",
        *(tenant, recipe, words, seq),
    )

    due = await _called(admin_transaction, DUE, "embed_missing", 1_000, NOON)
    after = await _called(admin_transaction, "SELECT * FROM mnemic.vectors_due($1)", 1_000)

    assert ((tenant,) in due) == is_due
    assert after == [(before["missing"], before["stale"] + is_due)]


async def test_the_database_has_the_numbers_of_the_recipe(
    admin_transaction: asyncpg.Connection,
) -> None:
    """Whoever changes them in the model alone would leave what was forgotten in other vectors."""
    bodies = {
        row["name"]: row["body"]
        for row in await admin_transaction.fetch(
            "SELECT p.proname AS name, pg_get_functiondef(p.oid) AS body FROM pg_proc p"
            " WHERE p.pronamespace = 'mnemic'::regnamespace"
            "   AND p.proname IN ('forget_windows', 'tenants_due', 'vectors_due')"
        )
    }

    assert f"ORDER BY t.seq LIMIT {TURNS_BEFORE_MAX})" in bodies["forget_windows"]
    for body in bodies.values():
        assert f"word_count <= {SHORT_WORDS_MAX})" in body or f"<= {SHORT_WORDS_MAX} AND" in body
    for name in ("tenants_due", "vectors_due"):
        assert f"vector_recipe IS DISTINCT FROM {RECIPE})" in bodies[name]


async def _memories(
    connection: asyncpg.Connection,
    kind: str,
    tenant: UUID,
    *,
    needs_vector: bool = False,
    stats_counted: bool = True,
) -> None:
    script = _turn(tenant, SCOPE, 1, SPEAKER, "", archived="NULL") + _others(tenant, SCOPE)
    for statement in script.split(";"):
        if f"INTO mnemic.{kind} " in statement:
            await connection.execute(statement)
    await connection.execute(
        f"UPDATE mnemic.{kind} SET needs_vector = $2, stats_counted = $3 WHERE tenant_id = $1",
        tenant,
        needs_vector,
        stats_counted,
    )
    if kind == "turns":
        await connection.execute(
            "UPDATE mnemic.turns SET vector_recipe = $2 WHERE tenant_id = $1", tenant, RECIPE
        )


async def test_more_tenants_than_the_limit_take_turns(
    admin_transaction: asyncpg.Connection,
) -> None:
    tenants = [uuid4() for _ in range(20)]
    for tenant in tenants:
        await _session(admin_transaction, tenant, active=NOON - timedelta(hours=1))

    seen = set()
    for _ in range(200):
        due = await _called(admin_transaction, DUE, "end_idle_sessions", 5, NOON)
        assert len(due) == 5
        seen |= {tenant for (tenant,) in due}

    assert seen == set(tenants)


async def test_an_unknown_job_has_no_tenants(admin_transaction: asyncpg.Connection) -> None:
    await _session(admin_transaction, uuid4(), active=NOON - timedelta(hours=1))

    assert await _called(admin_transaction, DUE, "everything", 10, NOON) == []
    assert await _called(admin_transaction, DUE, None, 10, NOON) == []


async def test_the_lookup_role_reads_the_named_columns_and_nothing_else(
    admin_transaction: asyncpg.Connection,
) -> None:
    for query, allowed in (
        ("SELECT count(tsv) FROM mnemic.turns", True),
        ("SELECT text FROM mnemic.turns", False),
        ("SELECT sum(documents) FROM mnemic.term_stats", True),
        ("SELECT occurrences FROM mnemic.term_stats", False),
        ("SELECT content FROM mnemic.facts", False),
        ("SELECT name FROM mnemic.api_keys", False),
        ("SELECT FROM mnemic.tenants", False),
        ("UPDATE mnemic.turns SET text = ''", False),
    ):
        savepoint = admin_transaction.transaction()
        await savepoint.start()
        await admin_transaction.execute("SET LOCAL ROLE mnemic_lookup")
        try:
            await admin_transaction.fetch(query)
            refused = False
        except asyncpg.InsufficientPrivilegeError:
            refused = True
        await savepoint.rollback()
        assert refused is not allowed, query
