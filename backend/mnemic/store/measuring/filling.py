"""A database full of other tenants' memories: real rows, words and vectors, by bulk statements.

They are written by the administrator of a throwaway cluster: forced row-level security refuses bulk
rows of many tenants to every other role. Everything follows from the numbers asked for, so the
same ones give the same rows; `random()` is not used.
"""

from __future__ import annotations

from collections.abc import Callable

import asyncpg

from mnemic.model.turn_vector import RECIPE

__all__ = ["FILL_STEPS", "MEMORIES_A_TENANT_MIN", "fill", "settle"]

MEMORIES_A_TENANT_MIN = 4  # one of each kind
_POOL = 512  # vectors that are added in pairs: 512² of them are different
_WORDS = 12

# Half of the rows beyond the first four of a tenant belong to a quarter of the tenants.
_PREPARE = """
    CREATE FUNCTION pg_temp.share(n bigint, salt bigint) RETURNS double precision
    LANGUAGE sql IMMUTABLE AS $$
      SELECT (hashint8extended(n, salt) & 4503599627370495) / 4503599627370496.0::double precision
    $$;
    CREATE FUNCTION pg_temp.name(kind text, n bigint) RETURNS uuid
    LANGUAGE sql IMMUTABLE AS $$ SELECT md5(kind || n)::uuid $$;

    CREATE TEMPORARY TABLE pool (n int PRIMARY KEY, embedding halfvec);
    INSERT INTO pool
    SELECT n, (SELECT array_agg(pg_temp.share(n * 4000 + d, 1) - 0.5)
                 FROM generate_series(1, {dimensions}) d)::real[]::halfvec
      FROM generate_series(0, {pool} - 1) n;

    CREATE TEMPORARY TABLE filler AS
    SELECT p.*, row_number() OVER (PARTITION BY p.kind, p.owner ORDER BY p.n) - 1 AS place,
           (SELECT string_agg('word' || floor(4000 * pg_temp.share(p.n * 16 + w, 2) ^ 3), ' ')
              FROM generate_series(1, {words}) w) AS said,
           timestamptz '2026-01-01' + p.n * interval '1 minute' AS at
      FROM (SELECT n, n % 4 AS kind, pg_temp.name('memory', n) AS id,
                   CASE WHEN n < {tenants} * 4 THEN n / 4
                        ELSE floor({tenants} * pg_temp.share(n, 3) ^ 2)::bigint END AS owner
              FROM generate_series(0, {rows} - 1) n) p;
    CREATE INDEX ON filler (kind);
    ANALYZE filler;
"""

_OWNERS = """
    INSERT INTO mnemic.tenants (tenant_id, kind, external_id)
    SELECT pg_temp.name('tenant', n), 'person', 'filler-' || n
      FROM generate_series(0, {tenants} - 1) n;
    INSERT INTO mnemic.scopes (tenant_id, id, scope_type, path_digest)
    SELECT pg_temp.name('tenant', n), pg_temp.name('scope', n), 'global', '\\x00'
      FROM generate_series(0, {tenants} - 1) n;
    INSERT INTO mnemic.sessions (tenant_id, id, scope_id, name, state, started_at, last_active_at,
                                 ended_at, turn_count)
    SELECT pg_temp.name('tenant', f.owner), pg_temp.name('session', f.owner),
           pg_temp.name('scope', f.owner), 'filler', 'ended', min(f.at), max(f.at), max(f.at),
           count(*)
      FROM filler f WHERE f.kind = 0 GROUP BY f.owner;
"""

_SHARED = "tenant_id, id, scope_id, stems, stem_count, word_count, tsv, needs_vector, stats_counted"
_SHARED_VALUES = """
    pg_temp.name('tenant', f.owner), f.id, pg_temp.name('scope', f.owner), f.said, {words}, {words},
    to_tsvector('simple', f.said), false, true
"""


def _memories(table: str, kind: int, columns: str, values: str) -> str:
    return f"""
        INSERT INTO mnemic.{table} ({_SHARED}, {columns})
        SELECT {_SHARED_VALUES}, {values} FROM filler f WHERE f.kind = {kind}
    """


_TURNS = _memories(
    "turns",
    0,
    "session_id, seq, role, actor, actor_id, text, content_digest, occurred_at, vector_recipe",
    "pg_temp.name('session', f.owner), f.place, 'user', 'User', pg_temp.name('actor', f.owner),"
    f" f.said, decode(md5(f.said), 'hex'), f.at, {RECIPE}",
)
_EPISODES = _memories(
    "episodes",
    1,
    "task_type, task_description, outcome, importance_score, occurred_at, title, summary,"
    " content_digest",
    "'conversation', f.said, 'success', 0.5, f.at, f.said, f.said, decode(md5(f.said), 'hex')",
)
_FACTS = _memories(
    "facts",
    2,
    "subject, subject_key, predicate, object, object_key, content, confidence, first_learned,"
    " last_reinforced",
    "'filler', 'filler', 'noted', f.said, md5(f.said || f.n), f.said, 0.8, f.at, f.at",
)
_PROCEDURES = _memories(
    "procedures",
    3,
    "name, name_key, task_type, steps",
    "f.said, md5(f.said || f.n), 'general',"
    " jsonb_build_array(jsonb_build_object('action', f.said))",
)


def _vectors(noun: str, kind: int) -> str:
    actor, its = (", actor_id", ", pg_temp.name('actor', f.owner)") if noun == "turn" else ("", "")
    return f"""
        INSERT INTO mnemic.{noun}_vectors
               (tenant_id, model_id, scope_id, memory_id, embedding{actor})
        SELECT pg_temp.name('tenant', f.owner), {{model}}, pg_temp.name('scope', f.owner), f.id,
               l2_normalize(a.embedding + b.embedding){its}
          FROM filler f
          JOIN pool a ON a.n = f.n % {{pool}}
          JOIN pool b ON b.n = (f.n / {{pool}} * 7 + f.n * 3 + 1) % {{pool}}
         WHERE f.kind = {kind}
    """


_COUNTS = """
    INSERT INTO mnemic.term_stats (tenant_id, scope_id, kind, term, documents, occurrences)
    SELECT pg_temp.name('tenant', c.owner), pg_temp.name('scope', c.owner), c.kind, c.term,
           c.documents, c.occurrences
      FROM (SELECT f.owner, 'term' AS kind, w.stem AS term, count(DISTINCT f.id) AS documents,
                   count(*) AS occurrences
              FROM filler f CROSS JOIN LATERAL unnest(string_to_array(f.said, ' ')) w(stem)
             GROUP BY f.owner, w.stem
            UNION ALL
            SELECT f.owner, 'total', '', count(*), count(*) * {words} FROM filler f GROUP BY f.owner
            UNION ALL
            SELECT f.owner, k.kind, k.term, count(*), 0
              FROM filler f CROSS JOIN (VALUES ('actor', 'User'), ('role', 'user')) k(kind, term)
             WHERE f.kind = 0 GROUP BY f.owner, k.kind, k.term) c
"""

FILL_STEPS = (
    _PREPARE,
    _OWNERS,
    _TURNS,
    _EPISODES,
    _FACTS,
    _PROCEDURES,
    *(_vectors(noun, kind) for kind, noun in enumerate(("turn", "episode", "fact", "procedure"))),
    _COUNTS,
)


async def fill(
    admin_url: str,
    *,
    rows: int,
    tenants: int,
    model: int,
    dimensions: int,
    progress: Callable[[int], None],
) -> None:
    """So many tenants hold so many memories, each with its vector and its words counted.

    `progress` is called after each of `FILL_STEPS`.
    """
    numbers = {
        "rows": rows,
        "tenants": tenants,
        "model": model,
        "dimensions": dimensions,
        "pool": _POOL,
        "words": _WORDS,
    }
    connection = await asyncpg.connect(admin_url)
    try:
        async with connection.transaction():
            # The rows are whole by construction; to look each reference up takes as long again.
            await connection.execute("SET LOCAL session_replication_role = replica")
            for step in FILL_STEPS:
                await connection.execute(step.format(**numbers))
                progress(1)
    finally:
        await connection.close()


async def settle(admin_url: str) -> None:
    """The tables are vacuumed and analysed: what autovacuum does within minutes is done."""
    connection = await asyncpg.connect(admin_url)
    try:
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()
