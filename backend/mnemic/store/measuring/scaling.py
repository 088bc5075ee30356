"""Turns of many tenants or of one large scope, by bulk statements, among whatever is there.

Their words are drawn from a vocabulary as often as they stand in it, their vectors are sums of two
of a pool. They are written by the administrator of a throwaway cluster. Everything follows from
what is given: `random()` is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import asyncpg

from mnemic.model.embedding import Vector
from mnemic.model.scope import Scope
from mnemic.model.turn_vector import RECIPE
from mnemic.store.statement import Statement

__all__ = [
    "LEXICAL",
    "LEXICAL_ACTOR",
    "Owner",
    "Told",
    "Words",
    "beside",
    "fill_turns",
    "nearest",
    "rows_of",
    "said_in",
]

TURNS_A_SESSION = 20

# One leg alone; recall has them inside of its statements.
LEXICAL = Statement("""
    SELECT l.id FROM mnemic.lexical(CAST(CAST(:match AS text) AS tsquery),
                                    CAST(CAST(:rank AS text) AS tsquery),
                                    CAST(:scopes AS uuid[]), CAST(:words AS int)) AS l(id, rank)
""")
LEXICAL_ACTOR = Statement("""
    SELECT l.id FROM mnemic.lexical_actor(CAST(CAST(:either AS text) AS tsquery),
                                          CAST(CAST(:rank AS text) AS tsquery),
                                          CAST(:scopes AS uuid[]), CAST(:actor AS uuid),
                                          CAST(:words AS int)) AS l(id, rank)
""")

_SHARE = """
    CREATE FUNCTION pg_temp.share(n bigint, salt bigint) RETURNS double precision
    LANGUAGE sql IMMUTABLE AS $$
      SELECT (hashint8extended(n, salt) & 4503599627370495) / 4503599627370496.0::double precision
    $$;
    CREATE TEMPORARY TABLE pool (n int PRIMARY KEY, embedding halfvec);
    CREATE TEMPORARY TABLE middle (embedding halfvec);
    CREATE TEMPORARY TABLE vocabulary (n int PRIMARY KEY, word text);
    CREATE TEMPORARY TABLE owner (n int PRIMARY KEY, tenant uuid, external text, scope uuid,
                                  rows int, first bigint);
"""
_POOL = "INSERT INTO pool SELECT n, e::halfvec FROM unnest($1::int[], $2::text[]) u(n, e)"
_MIDDLE = "INSERT INTO middle SELECT $1::text::halfvec"
_VOCABULARY = "INSERT INTO vocabulary SELECT * FROM unnest($1::int[], $2::text[])"
_OWNER = """
    INSERT INTO owner
    SELECT u.n, u.tenant, u.external, u.scope, u.rows,
           sum(u.rows) OVER (ORDER BY u.n) - u.rows
      FROM unnest($1::int[], $2::uuid[], $3::text[], $4::uuid[], $5::int[])
           u(n, tenant, external, scope, rows)
"""

_FILLER = """
    ANALYZE pool; ANALYZE vocabulary; ANALYZE owner;
    CREATE TEMPORARY TABLE filler AS
    SELECT o.tenant, o.scope, o.first + r AS n,
           md5('turn' || o.scope || r)::uuid AS id,
           md5('session' || o.scope || r / {session})::uuid AS session, r % {session} AS seq,
           'Person ' || ((o.first + r) / {session} * 2 + r % 2) % 400 AS actor,
           timestamptz '2023-01-01' + r * interval '7 minutes' AS at
      FROM owner o CROSS JOIN LATERAL generate_series(0, o.rows - 1) r;
    CREATE TEMPORARY TABLE spoken AS
    SELECT f.n, string_agg(v.word, ' ' ORDER BY w) AS stems, count(*) AS words
      FROM filler f
     CROSS JOIN LATERAL generate_series(1, 4 + floor({longest} * pg_temp.share(f.n, 5))::int) w
      JOIN vocabulary v ON v.n = floor({vocabulary} * pg_temp.share(f.n * 64 + w, 2))::int
     GROUP BY f.n;
    CREATE UNIQUE INDEX ON spoken (n);
    ANALYZE filler; ANALYZE spoken;
"""

_OWNERS = """
    INSERT INTO mnemic.tenants (tenant_id, kind, external_id)
    SELECT tenant, 'person', external FROM owner ON CONFLICT DO NOTHING;
    INSERT INTO mnemic.scopes (tenant_id, id, scope_type, path_digest)
    SELECT tenant, scope, 'global', '\\x00' FROM owner ON CONFLICT DO NOTHING;
    INSERT INTO mnemic.sessions (tenant_id, id, scope_id, name, state, started_at, last_active_at,
                                 ended_at, turn_count)
    SELECT f.tenant, f.session, f.scope, f.session::text, 'ended', min(f.at), max(f.at), max(f.at),
           count(*)
      FROM filler f GROUP BY f.tenant, f.session, f.scope;
"""

_TURNS = f"""
    INSERT INTO mnemic.turns (tenant_id, id, scope_id, session_id, seq, role, actor, actor_id, text,
                              content_digest, occurred_at, stems, stem_count, word_count, tsv,
                              needs_vector, stats_counted, vector_recipe)
    SELECT f.tenant, f.id, f.scope, f.session, f.seq, 'user', f.actor,
           md5(f.tenant || f.actor)::uuid, s.stems, decode(md5(s.stems), 'hex'), f.at, s.stems,
           s.words, s.words * 2,
           to_tsvector('simple', s.stems), false, true, {RECIPE}
      FROM filler f JOIN spoken s USING (n)
"""
_VECTORS = """
    INSERT INTO mnemic.turn_vectors (tenant_id, model_id, scope_id, memory_id, embedding, actor_id)
    SELECT f.tenant, {model}, f.scope, f.id, l2_normalize(m.embedding + a.embedding + b.embedding),
           md5(f.tenant || f.actor)::uuid
      FROM filler f CROSS JOIN middle m
      JOIN pool a ON a.n = floor({pool} * pg_temp.share(f.n, 7))::int
      JOIN pool b ON b.n = floor({pool} * pg_temp.share(f.n, 11))::int
"""
_COUNTS = """
    INSERT INTO mnemic.term_stats AS s (tenant_id, scope_id, kind, term, documents, occurrences)
    SELECT c.tenant, c.scope, c.kind, c.term, c.documents, c.occurrences
      FROM (SELECT f.tenant, f.scope, 'term' AS kind, w.stem AS term,
                   count(DISTINCT f.n) AS documents, count(*) AS occurrences
              FROM filler f JOIN spoken p USING (n)
             CROSS JOIN LATERAL unnest(string_to_array(p.stems, ' ')) w(stem)
             GROUP BY f.tenant, f.scope, w.stem
            UNION ALL
            SELECT f.tenant, f.scope, 'total', '', count(*), sum(p.words)
              FROM filler f JOIN spoken p USING (n) GROUP BY f.tenant, f.scope
            UNION ALL
            SELECT f.tenant, f.scope, 'actor', f.actor, count(*), 0 FROM filler f
             GROUP BY f.tenant, f.scope, f.actor
            UNION ALL
            SELECT f.tenant, f.scope, 'role', 'user', count(*), 0 FROM filler f
             GROUP BY f.tenant, f.scope) c
    ON CONFLICT (tenant_id, scope_id, kind, term)
    DO UPDATE SET documents = s.documents + excluded.documents,
                  occurrences = s.occurrences + excluded.occurrences
"""

_NEAREST = """
    SELECT v.memory_id FROM mnemic.turn_vectors v
     WHERE v.tenant_id = $1 AND v.scope_id = $2 AND v.model_id = $3
     ORDER BY (v.embedding <#> $4::text::halfvec) + 0, v.memory_id LIMIT $5
"""
_ROWS = """
    SELECT t.id, t.text, CAST(v.embedding AS real[]) AS embedding
      FROM mnemic.turns t JOIN mnemic.turn_vectors v
        ON v.tenant_id = t.tenant_id AND v.memory_id = t.id AND v.model_id = $3
     WHERE t.tenant_id = $1 AND t.scope_id = $2 ORDER BY t.id
"""
_SAID = """
    SELECT t.stems, CAST(v.embedding AS real[]) AS embedding
      FROM mnemic.turns t JOIN mnemic.turn_vectors v
        ON v.tenant_id = t.tenant_id AND v.memory_id = t.id AND v.model_id = $3
     WHERE t.tenant_id = $1 AND t.scope_id = $2 ORDER BY t.occurred_at, t.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A scope, and how many turns it gets."""

    scope: Scope
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What is said: a vocabulary, each word as often as it is to be met, four to `longest` more."""

    vocabulary: Sequence[str]
    longest: int = 12


@dataclass(frozen=True, slots=True)
class Told:
    """A turn as others would keep it too."""

    id: UUID
    text: str
    vector: list[float]


async def fill_turns(
    admin_url: str,
    owners: Sequence[Owner],
    *,
    model: int,
    words: Words,
    pool: Sequence[Vector],
    middle: Vector,
) -> None:
    """Each owner has so many turns more, in sessions of twenty, with words counted.

    The vector of a turn is that of `middle` and two of the `pool`, at unit length.
    """
    numbers = {
        "session": TURNS_A_SESSION,
        "longest": words.longest,
        "vocabulary": len(words.vocabulary),
        "pool": len(pool),
        "model": model,
    }
    connection = await asyncpg.connect(admin_url)
    try:
        async with connection.transaction():
            await connection.execute("SET LOCAL session_replication_role = replica")
            await connection.execute(_SHARE)
            await connection.execute(_POOL, list(range(len(pool))), [_text(one) for one in pool])
            await connection.execute(_MIDDLE, _text(middle))
            await connection.execute(
                _VOCABULARY, list(range(len(words.vocabulary))), list(words.vocabulary)
            )
            await connection.execute(
                _OWNER,
                list(range(len(owners))),
                [one.scope.tenant.id for one in owners],
                [one.scope.tenant.external_id for one in owners],
                [one.scope.id for one in owners],
                [one.rows for one in owners],
            )
            for step in (_FILLER, _OWNERS, _TURNS, _VECTORS, _COUNTS):
                await connection.execute(step.format(**numbers))
    finally:
        await connection.close()


async def nearest(
    admin_url: str, scope: Scope, vectors: Sequence[Vector], *, model: int, k: int
) -> list[list[UUID]]:
    """The ids of the `k` turns of a scope that are nearest to each vector, all of them compared."""
    connection = await asyncpg.connect(admin_url)
    try:
        found = []
        for vector in vectors:
            rows = await connection.fetch(
                _NEAREST, scope.tenant.id, scope.id, model, _text(vector), k
            )
            found.append([row["memory_id"] for row in rows])
        return found
    finally:
        await connection.close()


async def beside(admin_url: str, name: str) -> str:
    """The address of a new database on the same server, which has the vectors' extension."""
    connection = await asyncpg.connect(admin_url)
    try:
        await connection.execute(f'CREATE DATABASE "{name}"')
    finally:
        await connection.close()
    parts = urlsplit(admin_url)
    url = urlunsplit(parts._replace(path=f"/{name}"))
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE EXTENSION vector")
    finally:
        await connection.close()
    return url


async def rows_of(admin_url: str, scope: Scope, *, model: int) -> list[Told]:
    """The turns of a scope with their vectors."""
    connection = await asyncpg.connect(admin_url)
    try:
        rows = await connection.fetch(_ROWS, scope.tenant.id, scope.id, model)
        return [Told(row["id"], row["text"], list(row["embedding"])) for row in rows]
    finally:
        await connection.close()


async def said_in(
    admin_url: str, scope: Scope, *, model: int
) -> tuple[list[str], list[list[float]]]:
    """The stems of each turn of a scope, and the vectors, in order."""
    connection = await asyncpg.connect(admin_url)
    try:
        rows = await connection.fetch(_SAID, scope.tenant.id, scope.id, model)
        return [row["stems"] for row in rows], [list(row["embedding"]) for row in rows]
    finally:
        await connection.close()


def _text(vector: Sequence[float]) -> str:
    return f"[{','.join(f'{one:.9g}' for one in vector)}]"
