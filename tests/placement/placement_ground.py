"""A database with tenants of many vectors, filled in bulk."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from math import sin
from typing import Any
from uuid import UUID

import asyncpg

from mnemic.embedded import EmbeddedServers
from mnemic.model.embedding import ModelSignature, Vector, checked_vector
from mnemic.model.scope import Scope
from mnemic.settings import MemorySettings
from mnemic.store import roles
from mnemic.store.turns import actor_id

SMALL_ROWS = 100
BOUND = 1_000
DIMENSIONS = 32
SMALL, LARGE = Scope.user("small"), Scope.user("large")
# The large tenant's scopes, and how much was said in each.
MOST, QUARTER, FEW = LARGE.project("most"), LARGE.project("quarter"), LARGE.project("few")
LARGE_TURNS = {MOST: SMALL_ROWS * 75, QUARTER: SMALL_ROWS * 25, FEW: 15}

# Around centres, as what people say is: every tenant says something near to each of them.
FILL = """
    WITH tenant AS (
      INSERT INTO mnemic.tenants (tenant_id, kind, external_id) VALUES ($1, 'person', $2)
      RETURNING tenant_id
    ), scope AS (
      INSERT INTO mnemic.scopes (tenant_id, id, scope_type, path_digest)
      SELECT t.tenant_id, s.id, 'global', s.id::text::bytea
        FROM tenant t, unnest($3::uuid[]) AS s(id) RETURNING tenant_id, id
    ), session AS (
      INSERT INTO mnemic.sessions (tenant_id, id, scope_id, name, started_at, last_active_at)
      SELECT tenant_id, id, id, 's', now(), now() FROM scope RETURNING tenant_id, id
    )
    SELECT count(*) FROM session
"""
FILL_TURNS = """
    INSERT INTO mnemic.turns (tenant_id, id, scope_id, session_id, seq, role, actor, actor_id, text,
                              content_digest, occurred_at, stems, stem_count, word_count, tsv,
                              needs_vector, stats_counted)
    SELECT $1, gen_random_uuid(), s.id, s.id, n, 'user', a.actor, a.id, 'said ' || n, '\\x00',
           now(), 'said', 1, 2, to_tsvector('simple', 'said'), false, true
      FROM unnest($2::uuid[], $3::int[]) AS s(id, turns), generate_series(1, s.turns) AS n
      JOIN (VALUES (true, 'Robot', $4::uuid), (false, 'User', $5::uuid)) AS a(fourth, actor, id)
        ON a.fourth = (n % 4 = 0)
"""
FILL_VECTORS = """
    INSERT INTO mnemic.turn_vectors (tenant_id, model_id, scope_id, memory_id, actor_id, embedding)
    SELECT t.tenant_id, $2, t.scope_id, t.id, t.actor_id,
           l2_normalize((SELECT array_agg(sin(d * (t.seq % 50 + 1)) + 0.7 * (random() - 0.5)
                                          + 0 * t.seq ORDER BY d)
                           FROM generate_series(1, $3::int) d)::real[]::vector)::halfvec
      FROM mnemic.turns t WHERE t.tenant_id = $1
"""
FILL_COUNTS = """
    INSERT INTO mnemic.term_stats (tenant_id, scope_id, kind, term, documents, occurrences)
    SELECT $1, s.id, k.kind, k.term, s.turns, s.turns
      FROM unnest($2::uuid[], $3::int[]) AS s(id, turns),
           (VALUES ('total', ''), ('role', 'user'), ('actor', 'User')) AS k(kind, term)
"""
EXACT = """
    SELECT v.memory_id FROM mnemic.turn_vectors v
     WHERE v.tenant_id = $1 AND v.scope_id = ANY($2::uuid[])
     ORDER BY (v.embedding <#> $3::text::halfvec) + 0, v.memory_id LIMIT $4
"""


class Seeded:
    """An embedder of directions: the same text gives the same one, and no two are alike."""

    signature = ModelSignature("seeded", "1", DIMENSIONS)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [direction(text) for text in texts]

    async def close(self) -> None:
        """Nothing is open."""


def direction(text: str) -> Vector:
    """A point near one of the centres around which the tenants' vectors lie."""
    drawn = random.Random(text)
    centre = drawn.randrange(50) + 1
    near = [sin(place * centre) + 0.7 * (drawn.random() - 0.5) for place in range(1, 33)]
    return checked_vector(near, dimensions=DIMENSIONS)


@dataclass(frozen=True)
class Ground:
    """The database, as each role that may enter it, and the model of its vectors."""

    servers: EmbeddedServers
    name: str

    @property
    def owner_url(self) -> str:
        return self.servers.postgres_url(roles.OWNER_ROLE, self.name)

    @property
    def settings(self) -> MemorySettings:
        return MemorySettings(
            database_url=self.servers.postgres_url(roles.APP_ROLE, self.name),
            database_owner_url=self.owner_url,
            redis_url=self.servers.redis_url,
            recall={"exact_scan_rows_max": BOUND},
            # An answer that is known already tells the route of when it was found.
            cache={"recalls_max": 0},
            maintenance={"move_lock_seconds": 30, "tenants_max": 10_000},
            database={"require_durable": False, "acquire_timeout_seconds": 30},
            working={"timeout_seconds": 10, "connect_timeout_seconds": 10},
        )

    async def fill(self, tenant: Scope, turns: dict[Scope, int]) -> None:
        """The tenant has said so much in each of its scopes."""
        connection = await asyncpg.connect(self.servers.postgres_url("postgres", self.name))
        scopes, counts = [UUID(str(one.id)) for one in turns], list(turns.values())
        identity = tenant.tenant.id
        await connection.execute(FILL, identity, tenant.tenant.external_id, scopes)
        speakers = [actor_id(identity, name) for name in ("Robot", "User")]
        await connection.execute(FILL_TURNS, identity, scopes, counts, *speakers)
        model = await connection.fetchval("SELECT id FROM mnemic.embedding_models")
        await connection.execute(FILL_VECTORS, identity, model, DIMENSIONS)
        await connection.execute(FILL_COUNTS, identity, scopes, counts)
        await connection.close()


async def until(ask: Callable[[], Awaitable[Any]]) -> None:
    """The server offers no event for it, so it is asked, for half a minute."""
    async with asyncio.timeout(30):
        while True:
            if await ask():
                return
            await asyncio.sleep(0.02)
