"""A database that is busy enough for a plan to mean something."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from mnemic.embedded import EmbeddedServers
from mnemic.model.scope import Scope
from mnemic.settings import DatabaseSettings
from mnemic.store import roles
from mnemic.store.beginning import beginning
from mnemic.store.statement import Statement
from mnemic.testing import a_scope

NAME = "plans"
ROWS = 3_000
TENANTS = 40
DIMENSIONS = 32
VACUUMS_MAX = 100

FILL = """
    WITH tenant AS (
      SELECT CASE WHEN n = 0 THEN $1::uuid ELSE gen_random_uuid() END AS id, n
        FROM generate_series(0, $3::int) n
    ), made AS (
      INSERT INTO mnemic.tenants (tenant_id, kind, external_id)
      SELECT id, 'person', id::text FROM tenant RETURNING tenant_id
    ), scope AS (
      INSERT INTO mnemic.scopes (tenant_id, id, scope_type, path_digest)
      SELECT id, CASE WHEN n = 0 THEN $2::uuid ELSE id END, 'global', '\\x00' FROM tenant
      RETURNING tenant_id, id
    ), session AS (
      INSERT INTO mnemic.sessions (tenant_id, id, scope_id, name, started_at, last_active_at)
      SELECT tenant_id, id, id, 's', now(), now() FROM scope RETURNING tenant_id, id
    )
    SELECT count(*) FROM session
"""

FILL_TURNS = """
    INSERT INTO mnemic.turns (tenant_id, id, scope_id, session_id, seq, role, actor, actor_id, text,
                              content_digest, occurred_at, stems, stem_count, word_count, tsv,
                              needs_vector, stats_counted, vector_recipe)
    SELECT s.tenant_id, gen_random_uuid(), s.scope_id, s.id, n, 'user', 'User',
           s.tenant_id, 'text ' || n, '\\x00', now(), 'word' || n % 500, 1, 2,
           to_tsvector('simple', 'word' || n % 500 || ' common'), false, n % 100 <> 0,
           CASE WHEN n % 50 <> 0 THEN 1 END
      FROM mnemic.sessions s
     CROSS JOIN LATERAL generate_series(0, CASE WHEN s.tenant_id = $1 THEN $2::int ELSE 200 END) n
"""

FILL_VECTORS = """
    INSERT INTO mnemic.turn_vectors (tenant_id, model_id, scope_id, memory_id, actor_id, embedding)
    SELECT t.tenant_id, m.id, t.scope_id, t.id, t.actor_id,
           (SELECT array_agg(random() - 0.5) FROM generate_series(1, $1::int)
             WHERE t.seq IS NOT NULL)::real[]::halfvec
      FROM mnemic.turns t, mnemic.embedding_models m
"""

# The same words again as facts, which only the busy tenant has.
FILL_FACTS = """
    INSERT INTO mnemic.facts (tenant_id, id, scope_id, subject, subject_key, predicate, object,
                              object_key, content, confidence, first_learned, last_reinforced,
                              stems, stem_count, word_count, tsv, needs_vector, stats_counted)
    SELECT t.tenant_id, t.id, t.scope_id, 's', 's', 'noted', t.text, t.text, t.text, 0.5, now(),
           now(), t.stems, t.stem_count, t.word_count, t.tsv, false, true
      FROM mnemic.turns t WHERE t.tenant_id = $1
"""

FILL_FACT_VECTORS = """
    INSERT INTO mnemic.fact_vectors (tenant_id, model_id, scope_id, memory_id, embedding)
    SELECT v.tenant_id, v.model_id, v.scope_id, v.memory_id, v.embedding
      FROM mnemic.turn_vectors v WHERE v.tenant_id = $1
"""

# What refers to those facts, and what they rest on.
FILL_HISTORY = """
    INSERT INTO mnemic.facts (tenant_id, id, scope_id, subject, subject_key, predicate, object,
                              object_key, content, confidence, first_learned, last_reinforced,
                              needs_vector, stats_counted, status, retired_at, superseded_by)
    SELECT f.tenant_id, gen_random_uuid(), f.scope_id, 's', 's', 'noted', f.object, f.object_key,
           f.content, 0.5, now(), now(), false, true, 'superseded', now(), f.id
      FROM mnemic.facts f WHERE f.tenant_id = $1
"""

FILL_EVIDENCE = """
    INSERT INTO mnemic.fact_evidence (tenant_id, fact_id, source_kind, source_id, observed_at)
    SELECT f.tenant_id, f.id, 'turn', f.id, now() FROM mnemic.facts f WHERE f.tenant_id = $1
"""

FILL_EPISODES = """
    WITH made AS (
      INSERT INTO mnemic.episodes (tenant_id, id, scope_id, task_type, task_description, outcome,
                                   importance_score, occurred_at, title, summary, content_digest,
                                   needs_vector, stats_counted)
      SELECT $1, gen_random_uuid(), $2, 'talk', 'talk', 'success', 0.5, now(), 't', 's', '\\x00',
             false, true
        FROM generate_series(1, $3::int)
      RETURNING tenant_id, id, scope_id
    )
    INSERT INTO mnemic.sessions (tenant_id, id, scope_id, name, state, started_at, last_active_at,
                                 ended_at, episode_id)
    SELECT m.tenant_id, gen_random_uuid(), m.scope_id, 's', 'ended', now(), now(), now(), m.id
      FROM made m
"""

# Keys whose answer quotes one of those facts, each.
FILL_KEYS = """
    WITH made AS (
      INSERT INTO mnemic.idempotency_keys (tenant_id, key_digest, operation, request_digest, answer)
      SELECT f.tenant_id, decode(md5(f.id::text), 'hex'), 'memory.remember', '\\x00',
             jsonb_build_object('id', f.id, 'notes', jsonb_build_array('a note'))
        FROM mnemic.facts f WHERE f.tenant_id = $1
      RETURNING tenant_id, key_digest, (answer ->> 'id')::uuid AS memory_id
    )
    INSERT INTO mnemic.answered_memories (tenant_id, key_digest, memory_id)
    SELECT m.tenant_id, m.key_digest, m.memory_id FROM made m
"""

FILL_HEADS = """
    WITH made AS (
      INSERT INTO mnemic.scopes (tenant_id, id, scope_type, path_digest)
      SELECT $1, gen_random_uuid(), 'global', decode(lpad(to_hex(n), 8, '0'), 'hex')
        FROM generate_series(1, $2::int) n
      RETURNING tenant_id, id
    )
    INSERT INTO mnemic.working_heads (tenant_id, scope_id, notes, notes_expire_at)
    SELECT m.tenant_id, m.id, 1, now() + random() * interval '1 day' FROM made m
"""

# Each twice, of a tenth of what is live: what a past moment has to put together again.
FILL_CHANGES = """
    UPDATE mnemic.facts f
       SET confidence = $2, reinforcement_count = f.reinforcement_count + 1, updated_at = now()
     WHERE f.tenant_id = $1 AND f.status = 'live'
       AND f.id IN (SELECT t.id FROM mnemic.turns t WHERE t.tenant_id = $1 AND t.seq % 10 = 0)
"""

FILL_STATS = """
    INSERT INTO mnemic.term_stats (tenant_id, scope_id, kind, term, documents, occurrences)
    SELECT s.tenant_id, s.id, 'term', 'word' || n, 6, 6
      FROM mnemic.scopes s, generate_series(0, 499) n
"""


# A look at the tables while the tests run would change what the planner knows of them.
LEAVE_ALONE = """
    DO $$ DECLARE one regclass; BEGIN
      FOR one IN SELECT c.oid FROM pg_class c
                  WHERE c.relnamespace = 'mnemic'::regnamespace AND c.relkind = 'r'
      LOOP EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', one); END LOOP;
    END $$
"""


UNSEEN = """
    SELECT c.relname, c.relpages, c.relallvisible FROM pg_class c
     WHERE c.relnamespace = 'mnemic'::regnamespace AND c.relkind = 'r'
       AND c.relallvisible < c.relpages
"""
HOLDING = """
    SELECT a.pid, a.datname, a.backend_type, a.state, a.query FROM pg_stat_activity a
     WHERE a.backend_xmin IS NOT NULL AND a.pid <> pg_backend_pid()
"""


PREPARED = "SELECT 1 FROM pg_prepared_statements WHERE name = $1"


class Busy:
    """Explains statements as the role that serves, inside the busy tenant."""

    def __init__(self, connection: asyncpg.Connection, scope: Scope, model: int) -> None:
        self.connection = connection
        self.scope = scope
        self.model = model

    async def begin(self, plans: str) -> None:
        """A unit as the product begins it: its plans are "new" for each call, or "kept"."""
        text = beginning(
            self.scope.tenant.id, DatabaseSettings(), read_only=True, keep_plans=plans == "kept"
        )
        await self.connection.execute(f"ROLLBACK; {text}")

    async def plan(
        self, statement: Statement, types: str, *arguments: str, kept: str | None = None
    ) -> dict[str, Any]:
        """The plan of the seventh execution: what a prepared statement really does.

        Under the name `kept` it is prepared once, and explained as it is from then on.
        """
        name = kept or "hot"
        call = f"{name}({', '.join(arguments)})"
        if kept is None or not await self.connection.fetchval(PREPARED, name):
            if kept is None:
                await self.connection.execute("DEALLOCATE ALL")
            await self.connection.execute(f"PREPARE {name}({types}) AS {statement.sql}")
            for _ in range(6):
                await self.connection.execute(f"EXECUTE {call}")
        [row] = await self.connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE {call}")
        found: dict[str, Any] = row[0][0]["Plan"]
        return found

    @property
    def values(self) -> dict[str, str]:
        """The values that every hot statement takes, as SQL."""
        vector = "'[" + ",".join(["0.1"] * DIMENSIONS) + "]'::halfvec"
        return {
            "tenant": f"'{self.scope.tenant.id}'",
            "scopes": f"ARRAY['{self.scope.id}']::uuid[]",
            "vector": vector,
            "model": str(self.model),
        }


@pytest.fixture(scope="session")
async def busy_database(
    servers: EmbeddedServers, named_database: Callable[[str], Awaitable[str]]
) -> tuple[str, Scope, int]:
    await named_database(NAME)
    scope = a_scope()
    connection = await asyncpg.connect(servers.postgres_url("postgres", NAME))
    model: int = await connection.fetchval(
        "INSERT INTO mnemic.embedding_models (signature, name, dimensions, state)"
        " VALUES ('synthetic', 'synthetic', $1, 'live') RETURNING id",
        DIMENSIONS,
    )
    await connection.execute(LEAVE_ALONE)
    await connection.execute(FILL, scope.tenant.id, UUID(str(scope.id)), TENANTS)
    await connection.execute(FILL_TURNS, scope.tenant.id, ROWS)
    await connection.execute(FILL_VECTORS, DIMENSIONS)
    await connection.execute(FILL_FACTS, scope.tenant.id)
    await connection.execute(FILL_FACT_VECTORS, scope.tenant.id)
    # In one statement the foreign key is looked up when both are there.
    await connection.execute(FILL_KEYS, scope.tenant.id)
    await connection.execute(FILL_HISTORY, scope.tenant.id)
    for confidence in (0.6, 0.7):
        await connection.execute(FILL_CHANGES, scope.tenant.id, confidence)
    await connection.execute(FILL_EVIDENCE, scope.tenant.id)
    await connection.execute(FILL_EPISODES, scope.tenant.id, UUID(str(scope.id)), ROWS)
    await connection.execute(FILL_STATS)
    # After the words, which every scope has.
    await connection.execute(FILL_HEADS, scope.tenant.id, ROWS)
    await _vacuumed(connection)
    await connection.close()
    return NAME, scope, model


async def _vacuumed(connection: asyncpg.Connection) -> None:
    """An index alone is read only of pages whose rows everybody sees: waits until all are such."""
    for _ in range(VACUUMS_MAX):
        await connection.execute("VACUUM ANALYZE")
        if not (unseen := await connection.fetch(UNSEEN)):
            return
        held = await connection.fetch(HOLDING)
        await asyncio.sleep(0.2)
    pytest.fail(f"not seen by everybody: {unseen}; held back by: {held}")


@pytest.fixture
async def busy(
    servers: EmbeddedServers, busy_database: tuple[str, Scope, int]
) -> AsyncIterator[Busy]:
    name, scope, model = busy_database
    async with _serving(servers.postgres_url(roles.APP_ROLE, name), scope, model) as made:
        yield made


@pytest.fixture
async def empty(
    servers: EmbeddedServers, named_database: Callable[[str], Awaitable[str]]
) -> AsyncIterator[Busy]:
    """A database in which nobody has kept anything yet."""
    await named_database(f"{NAME}_empty")
    url = servers.postgres_url(roles.APP_ROLE, f"{NAME}_empty")
    async with _serving(url, a_scope(), 1) as made:
        yield made


GROW_TURNS = """
    INSERT INTO mnemic.turns (tenant_id, id, scope_id, session_id, seq, role, actor, actor_id, text,
                              content_digest, occurred_at, stems, stem_count, word_count, tsv,
                              needs_vector, stats_counted)
    SELECT s.tenant_id, gen_random_uuid(), s.scope_id, s.id, n, 'user', 'User', s.tenant_id,
           'text ' || n, '\\x00', now(), 'word' || n % 50, 1, 2,
           to_tsvector('simple', 'word' || n % 50), false, true
      FROM mnemic.sessions s CROSS JOIN LATERAL generate_series($1::int, $2::int) n
     WHERE s.tenant_id = coalesce($3, s.tenant_id)
"""
GROW_VECTORS = """
    INSERT INTO mnemic.turn_vectors (tenant_id, model_id, scope_id, memory_id, actor_id, embedding)
    SELECT t.tenant_id, 1, t.scope_id, t.id, t.actor_id,
           (SELECT array_agg(random() - 0.5) FROM generate_series(1, $3::int)
             WHERE t.seq IS NOT NULL)::real[]::halfvec
      FROM mnemic.turns t WHERE t.seq BETWEEN $1 AND $2
       AND t.tenant_id = coalesce($4, t.tenant_id)
"""


_numbers = count()


class Growing:
    """A tenant whose turns become more without the planner being told, alone or beside others."""

    def __init__(self, busy: Busy, admin: asyncpg.Connection) -> None:
        self.busy = busy
        self.admin = admin
        self._turns = 0

    async def grow(self, turns: int) -> None:
        """It has so many turns, each with its vector."""
        tenant = UUID(str(self.busy.scope.tenant.id))
        await self.admin.execute(GROW_TURNS, self._turns + 1, turns, tenant)
        await self.admin.execute(GROW_VECTORS, self._turns + 1, turns, DIMENSIONS, tenant)
        for step in ("SELECT pg_stat_force_next_flush()", "SELECT 1"):  # the server's counters
            await self.admin.execute(step)
        self._turns = turns

    async def crowd(self, tenants: int, turns: int) -> None:
        """So many other tenants are there, each with so many turns as this one has now."""
        await self.admin.execute(FILL, uuid4(), uuid4(), tenants - 1)
        await self.admin.execute(GROW_TURNS, 1, turns, None)
        await self.admin.execute(GROW_VECTORS, 1, turns, DIMENSIONS, None)
        self._turns = turns


@pytest.fixture
async def growing(
    servers: EmbeddedServers, named_database: Callable[[str], Awaitable[str]]
) -> AsyncIterator[Growing]:
    name, scope = f"{NAME}_growing_{next(_numbers)}", a_scope()
    await named_database(name)
    admin = await asyncpg.connect(servers.postgres_url("postgres", name))
    await admin.execute(
        "INSERT INTO mnemic.embedding_models (signature, name, dimensions, state)"
        " VALUES ('synthetic', 'synthetic', $1, 'live')",
        DIMENSIONS,
    )
    await admin.execute(LEAVE_ALONE)
    await admin.execute(FILL, scope.tenant.id, UUID(str(scope.id)), 0)
    async with _serving(servers.postgres_url(roles.APP_ROLE, name), scope, 1) as busy:
        yield Growing(busy, admin)
    await admin.close()


# How many turns each tenant has when the planner looks, and how many the one asked has after that.
UNSEEN_GROWTH = {"few each": (4, 1_500), "more each": (20, 1_500), "all alike": (20, 20)}


@pytest.fixture(params=UNSEEN_GROWTH)
async def unseen(growing: Growing, request: pytest.FixtureRequest) -> Busy:
    """A tenant that is one of hundreds alike, or was when the planner looked."""
    each, grown = UNSEEN_GROWTH[request.param]
    await growing.crowd(300, each)
    await growing.admin.execute("VACUUM ANALYZE")
    await growing.grow(grown)
    await growing.admin.execute("VACUUM")
    return growing.busy


@asynccontextmanager
async def _serving(url: str, scope: Scope, model: int) -> AsyncIterator[Busy]:
    connection = await asyncpg.connect(url, statement_cache_size=0)  # all are deallocated
    await connection.set_type_codec("json", schema="pg_catalog", encoder=str, decoder=json.loads)
    await connection.execute("SET plan_cache_mode = force_custom_plan; SET jit = off; BEGIN")
    await connection.execute(f"SELECT set_config('mnemic.tenant_id', '{scope.tenant.id}', true)")
    try:
        yield Busy(connection, scope, model)
    finally:
        await connection.close()
