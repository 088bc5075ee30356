"""Embeddings, one table a kind of memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.model.embedding import Vector
from mnemic.model.scope import Scope
from mnemic.model.turn_vector import RECIPE, SHORT_WORDS_MAX, Said, turn_texts
from mnemic.store.episodes import episode_text
from mnemic.store.procedures import COLUMNS as PROCEDURE_COLUMNS
from mnemic.store.procedures import procedure_of, procedure_text
from mnemic.store.statement import Statement
from mnemic.store.turns import said_before, said_of

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["KINDS", "PendingText", "VectorStore", "VectorsDue"]

KINDS = ("turn", "episode", "fact", "procedure")

# The row decides scope and actor, so a vector can never stand apart from its memory; a memory that
# was deleted meanwhile takes none.
_PUT_TURN = Statement("""
    INSERT INTO mnemic.turn_vectors (tenant_id, model_id, scope_id, memory_id, actor_id, embedding)
    SELECT t.tenant_id, :model, t.scope_id, t.id, t.actor_id, :embedding
      FROM mnemic.turns t WHERE {tenant:t} AND t.id = :id
    ON CONFLICT (tenant_id, model_id, memory_id) DO UPDATE SET embedding = excluded.embedding
""")


def _put(noun: str) -> Statement:
    return Statement(f"""
        INSERT INTO mnemic.{noun}_vectors (tenant_id, model_id, scope_id, memory_id, embedding)
        SELECT m.tenant_id, :model, m.scope_id, m.id, :embedding
          FROM mnemic.{noun}s m WHERE {{tenant:m}} AND m.id = :id
        ON CONFLICT (tenant_id, model_id, memory_id) DO UPDATE SET embedding = excluded.embedding
    """)


PUT = {"turn": _PUT_TURN, **{noun: _put(noun) for noun in KINDS[1:]}}

# What comes to have a vector after it was recorded could not be near before.
DONE = {
    noun: Statement(f"""
        UPDATE mnemic.{noun}s m
           SET needs_vector = false, {f"vector_recipe = {RECIPE}," if noun == "turn" else ""}
               embedded_at = CASE WHEN CAST(:now AS timestamptz) IS NULL
                                    OR EXISTS (SELECT FROM mnemic.{noun}_vectors v
                                                WHERE {{tenant:v}} AND v.memory_id = m.id)
                                  THEN m.embedded_at ELSE coalesce(m.embedded_at, :now) END
         WHERE {{tenant:m}} AND m.id = ANY(CAST(:ids AS uuid[]))
    """)
    for noun in KINDS
}

DROP = {
    noun: Statement(f"""
        DELETE FROM mnemic.{noun}_vectors v
         WHERE {{tenant:v}} AND v.memory_id = ANY(CAST(:ids AS uuid[]))
    """)
    for noun in KINDS
}

# What a vector is about to be replaced by, or dropped for, is no reason to lose it.
KEEP = {
    noun: Statement(f"""
        WITH kept AS (
          INSERT INTO mnemic.memory_history (tenant_id, id, memory_id, place, known_until, before)
          SELECT :tenant, CAST(md5(concat_ws(';', v.memory_id, p.place)) AS uuid), v.memory_id,
                 p.place, :now, '{{}}'
            FROM (SELECT DISTINCT v.memory_id FROM mnemic.{noun}_vectors v
                   WHERE {{tenant:v}} AND v.memory_id = ANY(CAST(:ids AS uuid[]))) v
           CROSS JOIN LATERAL (SELECT coalesce(max(h.place), 0) + 1 AS place
                                 FROM mnemic.memory_history h
                                WHERE {{tenant:h}} AND h.memory_id = v.memory_id) p
          RETURNING id, memory_id
        )
        INSERT INTO mnemic.past_vectors (tenant_id, change_id, model_id, embedding)
        SELECT :tenant, k.id, v.model_id, v.embedding
          FROM kept k JOIN mnemic.{noun}_vectors v ON v.memory_id = k.memory_id
         WHERE {{tenant:v}}
    """)
    for noun in KINDS[1:]
}

_BEFORE = f"""
    CASE WHEN m.word_count <= {SHORT_WORDS_MAX}
         THEN {said_before("m.session_id", "m.scope_id", "m.seq")} END"""
# What a text to be embedded is made of.
_COLUMNS = {
    "turn": f"m.id, m.actor, m.text, m.caption, {_BEFORE} AS before",
    "episode": "m.id, m.title, m.summary, m.key_topics",
    "fact": "m.id, m.content",
    "procedure": ", ".join(f"m.{name}" for name in PROCEDURE_COLUMNS),
}
# Turns whose vector was made otherwise than `turn_texts` says; it answers until it is made anew.
_STALE = f"""NOT m.needs_vector AND m.word_count <= {SHORT_WORDS_MAX} AND m.seq > 0
             AND m.vector_recipe IS DISTINCT FROM {RECIPE}"""


def _missing(noun: str, due: str) -> Statement:
    return Statement(f"""
        SELECT {_COLUMNS[noun]} FROM mnemic.{noun}s m
         WHERE {{tenant:m}} AND {due} AND m.id <> ALL(CAST(:skip AS uuid[]))
         ORDER BY m.recorded_at, m.id LIMIT :limit
    """)


MISSING = {noun: _missing(noun, "m.needs_vector") for noun in KINDS}
MISSING_OF = _missing(
    "turn",
    f"m.needs_vector AND m.word_count <= {SHORT_WORDS_MAX} AND m.seq > 0"
    " AND m.session_id = ANY(CAST(:sessions AS uuid[]))",
)
STALE = _missing("turn", _STALE)

# Held until the vector is there: nobody gives the memory other words meanwhile.
STILL = {
    noun: Statement(f"""
        SELECT {_COLUMNS[noun]} FROM mnemic.{noun}s m
         WHERE {{tenant:m}} AND ({due}) AND m.id = ANY(CAST(:ids AS uuid[]))
         ORDER BY m.id FOR UPDATE OF m
    """)
    for noun in KINDS
    for due in [f"m.needs_vector OR {_STALE}" if noun == "turn" else "m.needs_vector"]
}

# Nor does a session lose a turn meanwhile, or end. Before the turns, as whoever forgets holds them.
HOLD_SESSIONS = Statement("""
    SELECT s.id FROM mnemic.sessions s
     WHERE {tenant:s}
       AND s.id IN (SELECT t.session_id FROM mnemic.turns t
                     WHERE {tenant:t} AND t.id = ANY(CAST(:ids AS uuid[])))
     ORDER BY s.id FOR SHARE
""")

COUNT_DUE = Statement("""
    SELECT d.missing, d.stale FROM mnemic.vectors_due(CAST(:limit AS bigint)) AS d
""")

# `+ 0` keeps the planner from an approximate index.
NEAREST = {
    noun: Statement(f"""
        SELECT -min((v.embedding <#> CAST(:vector AS halfvec)) + 0) AS cosine
          FROM mnemic.{noun}_vectors v WHERE {{owned:v}} AND v.model_id = :model
    """)
    for noun in KINDS
}

# `IS TRUE` keeps the planner from going through the scope above for each vector of the session.
LIFT = {
    noun: Statement(f"""
        UPDATE mnemic.{noun}_vectors v SET scope_id = m.scope_id FROM mnemic.{noun}s m
         WHERE {{tenant:v}} AND {{tenant:m}} AND m.id = v.memory_id
           AND v.scope_id = :session AND (m.scope_id = :parent) IS TRUE
    """)
    for noun in KINDS
}


# A fact that moves gets a new row of the same text, so its vector is the same.
COPY_FACT = Statement("""
    WITH made AS (
      INSERT INTO mnemic.fact_vectors (tenant_id, model_id, scope_id, memory_id, embedding)
      SELECT f.tenant_id, v.model_id, f.scope_id, f.id, v.embedding
        FROM mnemic.fact_vectors v
        JOIN mnemic.facts f ON {tenant:f} AND f.id = :to AND f.status = 'live'
       WHERE {tenant:v} AND v.memory_id = :source
      ON CONFLICT (tenant_id, model_id, memory_id) DO NOTHING
      RETURNING memory_id
    )
    UPDATE mnemic.facts m SET needs_vector = false, embedded_at = :now
     WHERE {tenant:m} AND m.id IN (SELECT made.memory_id FROM made)
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingText:
    """A memory whose vector is to be made, with the texts that it is made of."""

    kind: str
    id: UUID
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorsDue:
    """How many memories have no vector, and how many turns one that is made anew."""

    missing: int
    stale: int


class VectorStore:
    """Keeps vectors beside their memories. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def put(
        self,
        kind: str,
        vectors: Sequence[tuple[UUID, Vector]],
        *,
        model: int,
        now: datetime | None = None,
    ) -> None:
        """Each memory that still exists has its vector under `model`; one it had is kept apart.

        A turn's is not: what it says never changes, so the new one stands for all of its past.
        Memories that are recorded in the same unit need no `now`. One of the store methods without
        a scope: the memory's own row decides it.
        """
        ids = [one for one, _ in vectors]
        if now is not None and kind in KEEP:
            await self._unit.execute(KEEP[kind], ids=ids, now=now)
        await self._unit.execute(DONE[kind], ids=ids, now=now)
        await self._unit.execute_many(
            PUT[kind],
            [{"id": one, "model": model, "embedding": vector} for one, vector in vectors],
        )

    async def drop(self, kind: str, ids: Sequence[UUID], *, now: datetime | None) -> None:
        """Memories that are history have no vector: theirs would be near instead of living ones.

        Their past has it, unless there is no `now`: then nothing of it is left. One of the store
        methods without a scope: the caller holds the rows.
        """
        if now is not None and kind in KEEP:
            await self._unit.execute(KEEP[kind], ids=list(ids), now=now)
        await self._unit.execute(DONE[kind], ids=list(ids), now=None)
        await self._unit.execute(DROP[kind], ids=list(ids))

    async def missing(self, *, limit: int, skip: Collection[UUID] = ()) -> list[PendingText]:
        """Memories of the tenant without a vector, oldest first within a kind; none of `skip`.

        Behind them come turns whose vector was made otherwise. One of the store methods without a
        scope: maintenance asks for the whole tenant.
        """
        found: list[PendingText] = []
        for kind, statement in (*MISSING.items(), ("turn", STALE)):
            if len(found) < limit:
                rows = await self._unit.fetch(statement, limit=limit - len(found), skip=list(skip))
                found += [
                    PendingText(kind=kind, id=row["id"], texts=_texts(kind, row)) for row in rows
                ]
        return found

    async def missing_of(self, sessions: Sequence[UUID], *, limit: int) -> list[PendingText]:
        """Turns of the sessions without a vector that may take in others, oldest first.

        One of the store methods without a scope: the caller has written to these sessions.
        """
        rows = await self._unit.fetch(MISSING_OF, sessions=list(sessions), limit=limit, skip=[])
        return [PendingText(kind="turn", id=row["id"], texts=_texts("turn", row)) for row in rows]

    async def due(self, *, limit: int) -> VectorsDue:
        """How many vectors are to be made in all tenants, each number up to `limit`.

        One of the store methods without a scope: it is asked before a tenant is known.
        """
        row = await self._unit.fetch_one(COUNT_DUE, limit=limit)
        return VectorsDue(**row) if row is not None else VectorsDue(missing=0, stale=0)

    async def still(self, kind: str, pending: Sequence[PendingText]) -> set[UUID]:
        """Which of the memories of a kind still say what they said, and are still due.

        A turn says what it said if the turns before it do. Their rows are held, of turns their
        sessions too. One of the store methods without a scope, as `missing`.
        """
        ids = [one.id for one in pending]
        if kind == "turn":
            await self._unit.fetch(HOLD_SESSIONS, ids=ids)
        rows = await self._unit.fetch(STILL[kind], ids=ids)
        told = {row["id"]: _texts(kind, row) for row in rows}
        return {one.id for one in pending if told.get(one.id) == one.texts}

    async def nearest(self, scope: Scope, kind: str, vector: Vector, *, model: int) -> float | None:
        """The cosine of the nearest memory of a kind that is visible from `scope`, if any is."""
        row = await self._unit.fetch_one(
            NEAREST[kind], scopes=scope.visible_ids, vector=vector, model=model
        )
        return None if row is None else row["cosine"]

    async def copy_fact(self, scope: Scope, source: UUID, *, to: UUID, now: datetime) -> None:
        """The fact `to`, made of one that stood in `scope`, has the same vector."""
        del scope  # both rows are held by the unit that moves the fact
        await self._unit.execute(COPY_FACT, source=source, to=to, now=now)

    async def lift(self, scope: Scope, *, parent: Scope) -> None:
        """The vectors of memories that moved from a session to its parent stand there too."""
        for kind in KINDS:
            await self._unit.execute(LIFT[kind], session=scope.id, parent=parent.id)


def _texts(kind: str, row: Any) -> tuple[str, ...]:
    if kind == "turn":
        said = Said(row["actor"], row["text"], row["caption"])
        return turn_texts(said, said_of(row["before"]))
    return (_text(kind, dict(row)),)


def _text(kind: str, values: dict[str, object]) -> str:
    if kind == "episode":
        topics = values["key_topics"]
        return episode_text(
            str(values["title"]),
            str(values["summary"]),
            [str(topic) for topic in topics] if isinstance(topics, list) else [],
        )
    if kind == "fact":
        return str(values["content"])
    return procedure_text(procedure_of(values))
