"""What PostgreSQL holds of a tenant: to be compared before and after, and between two histories.

*Idempotence*: whatever is done twice leaves the digest of done once. *Clock purity*: time alone
changes no row. *Order independence*: the canonical statements do not tell who came first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any

import asyncpg

from mnemic.errors import MnemicError
from mnemic.model.scope import Scope

__all__ = [
    "assert_changes_nothing",
    "canonical_facts",
    "difference",
    "digest_of",
    "rows_of",
    "tables_that_hold",
]

_TABLES = """
    SELECT c.relname::text AS name FROM pg_catalog.pg_class c
     WHERE c.relnamespace = 'mnemic'::regnamespace AND c.relkind IN ('r', 'p')
       AND NOT c.relispartition
       AND EXISTS (SELECT 1 FROM pg_catalog.pg_attribute a
                    WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped)
     ORDER BY 1
"""
_FACTS = """
    SELECT f.subject_key, f.predicate, f.object_key, f.status, f.confidence,
           f.reinforcement_count, f.valid_from, f.valid_to, w.object_key AS instead,
           (SELECT count(*) FROM mnemic.fact_evidence e
             WHERE e.tenant_id = f.tenant_id AND e.fact_id = f.id) AS sources
      FROM mnemic.facts f
      LEFT JOIN mnemic.facts w ON w.tenant_id = f.tenant_id AND w.id = f.superseded_by
     WHERE f.tenant_id = $1
     ORDER BY f.subject_key, f.predicate, f.object_key, f.status
"""


async def rows_of(seen: asyncpg.Connection, scope: Scope) -> dict[str, list[str]]:
    """Every row of the tenant of `scope`, whole, by table; tables without one are left out."""
    found = {}
    for table in await seen.fetch(_TABLES):
        rows = await seen.fetch(
            f"SELECT to_jsonb(t)::text AS row FROM mnemic.{table['name']} t"
            " WHERE t.tenant_id = $1 ORDER BY 1",
            scope.tenant.id,
        )
        if rows:
            found[table["name"]] = [row["row"] for row in rows]
    return found


async def digest_of(seen: asyncpg.Connection, scope: Scope) -> str:
    """One digest of all rows of the tenant."""
    return sha256(repr(await rows_of(seen, scope)).encode()).hexdigest()


def difference(before: dict[str, list[str]], after: dict[str, list[str]]) -> dict[str, list[str]]:
    """The rows that stand in one of them alone, by table."""
    found = {}
    for table in before.keys() | after.keys():
        changed = set(before.get(table, ())) ^ set(after.get(table, ()))
        if changed:
            found[table] = sorted(changed)
    return found


async def assert_changes_nothing(
    seen: asyncpg.Connection, scope: Scope, call: Callable[[], Awaitable[Any]]
) -> Any:
    """What the call gives, or the error that it raises; no row of the tenant differs afterwards."""
    before = await rows_of(seen, scope)
    try:
        answer = await call()
    except MnemicError as fault:
        answer = fault
    changed = difference(before, await rows_of(seen, scope))
    assert changed == {}, f"changed: {sorted(changed)}"
    return answer


async def tables_that_hold(seen: asyncpg.Connection, scope: Scope, word: str) -> set[str]:
    """The tables of the tenant in which the word stands anywhere."""
    rows = await rows_of(seen, scope)
    return {
        table
        for table, texts in rows.items()
        if any(word.casefold() in t.casefold() for t in texts)
    }


async def canonical_facts(seen: asyncpg.Connection, scope: Scope) -> list[tuple[Any, ...]]:
    """What is known of the tenant, and what it replaced, without ids and times of writing."""
    return [tuple(row) for row in await seen.fetch(_FACTS, scope.tenant.id)]
