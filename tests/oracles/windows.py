"""*A vector says what stands*: a turn's is made of it and of the turns before it, no others."""

from __future__ import annotations

from itertools import groupby
from uuid import UUID

import asyncpg

from mnemic.model.embedding import Embedder
from mnemic.model.scope import Scope
from mnemic.model.turn_vector import Said, joined, said_in_order

__all__ = ["assert_windows", "vectors_of"]

APART_MAX = 1e-3  # a stored number has eleven bits
_TURNS = """
    SELECT t.id, t.session_id, t.actor, t.text, t.caption, CAST(v.embedding AS real[]) AS vector
      FROM mnemic.turns t
      LEFT JOIN mnemic.turn_vectors v ON v.tenant_id = t.tenant_id AND v.memory_id = t.id
     WHERE t.tenant_id = $1 ORDER BY t.session_id, t.seq
"""


async def vectors_of(seen: asyncpg.Connection, scope: Scope) -> dict[UUID, list[float] | None]:
    """What is stored for each turn of the tenant, in the order of its session."""
    return {row["id"]: row["vector"] for row in await seen.fetch(_TURNS, scope.tenant.id)}


async def assert_windows(
    seen: asyncpg.Connection, scope: Scope, embedder: Embedder, *, without: int = 0
) -> None:
    """Every stored vector of the tenant is what its turns give now; `without` turns have none."""
    rows = await seen.fetch(_TURNS, scope.tenant.id)
    wrong, missing = [], 0
    for _, turns in groupby(rows, key=lambda row: row["session_id"]):
        said = list(turns)
        texts = said_in_order((), [Said(one["actor"], one["text"], one["caption"]) for one in said])
        for row, wanted in zip(said, texts, strict=True):
            if row["vector"] is None:
                missing += 1
                continue
            made = joined(await embedder.embed(list(wanted)))
            apart = max(abs(one - other) for one, other in zip(row["vector"], made, strict=True))
            if apart > APART_MAX:
                wrong.append((row["text"], round(apart, 4)))
    assert wrong == [], f"made of something else: {wrong}"
    assert missing == without
