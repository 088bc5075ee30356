"""What was said, in order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from mnemic.model.normalise import comparison_key, digest
from mnemic.model.scope import Scope, TenantId
from mnemic.model.trust import Trust
from mnemic.model.turn import Turn, TurnCreate, TurnId
from mnemic.model.turn_vector import TURNS_BEFORE_MAX, Said
from mnemic.store.columns import wording_values
from mnemic.store.statement import Statement
from mnemic.store.tombstones import said_mark, turn_mark
from mnemic.store.wording import words_of

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = [
    "TurnStore",
    "actor_id",
    "content_digest",
    "external_digest",
    "said_before",
    "said_of",
    "turn_marks",
]

ADD = Statement("""
    INSERT INTO mnemic.turns (tenant_id, id, scope_id, session_id, seq, role, actor, actor_id, text,
                              caption, external_digest, content_digest, occurred_at, recorded_at,
                              ends_with_question, first_person, has_name, has_time_expr, metadata,
                              tags, trust, source, stems, stem_count, word_count, tsv)
    VALUES (:tenant, :id, :scope, :scope, :seq, :role, :actor, :actor_id, :text, :caption,
            :external_digest, :content_digest, :occurred_at, :recorded_at, :ends_with_question,
            :first_person, :has_name, :has_time_expr, :metadata, :tags, :trust, :source, :stems,
            :stem_count, :word_count, CAST(CAST(:tsv AS text) AS tsvector))
""")

KNOWN_EXTERNAL = Statement("""
    SELECT t.external_digest, t.content_digest FROM mnemic.turns t
     WHERE {tenant:t} AND t.session_id = :session
       AND t.external_digest = ANY(CAST(:digests AS bytea[]))
""")

# What a turn is made of: neither its words nor what is noted of them.
COLUMNS = (
    *("id", "scope_id", "session_id", "seq", "role", "actor", "text", "caption"),
    *("occurred_at", "recorded_at", "trust", "source", "metadata", "tags"),
)
_COLUMNS = ", ".join(f"t.{name}" for name in COLUMNS)

OF_SESSION = Statement(f"""
    SELECT {_COLUMNS} FROM mnemic.turns t
     WHERE {{keyed:t}} AND t.session_id = :session AND t.seq >= :first_seq
     ORDER BY t.seq LIMIT :limit
""")

COUNT = Statement("""
    SELECT count(*) AS turns FROM mnemic.turns t
     WHERE {keyed:t} AND t.session_id = :session AND t.id <> ALL(CAST(:without AS uuid[]))
""")

LIFT = Statement("""
    UPDATE mnemic.turns t SET scope_id = :parent, stats_counted = false
     WHERE {tenant:t} AND t.session_id = :session AND t.scope_id = :session
""")


def actor_id(tenant: TenantId, actor: str) -> UUID:
    """One id for every spelling of an actor's name within a tenant."""
    return uuid5(tenant, f"actor;{comparison_key(actor)}")


def external_digest(external_id: str) -> bytes:
    """The form in which a caller's own id of a turn is unique in its session."""
    return digest(external_id)


def content_digest(turn: TurnCreate) -> bytes:
    """What a turn says, whoever names it how."""
    return digest(turn.actor, turn.text, turn.caption or "")


def turn_marks(session: UUID, turn: TurnCreate) -> tuple[bytes, bytes]:
    """The digests under which a turn of a session is refused after it was forgotten."""
    said = content_digest(turn)
    named = said if turn.external_id is None else external_digest(turn.external_id)
    return turn_mark(session, named), said_mark(session, said, turn.occurred_at)


def said_before(session: str, scope: str, seq: str) -> str:
    """SQL for the turns right before a place of a session, in order, as `said_of` reads them.

    They are those that still stand. One in another scope would be left out: whoever sees a turn
    sees all that its vector takes in. Asked behind the limit, for asked before it the planner
    expects next to no rows, and reads and sorts the whole session.
    """
    return f"""(
        SELECT jsonb_agg(jsonb_build_array(b.actor, b.text, b.caption) ORDER BY b.seq)
          FROM (SELECT b.actor, b.text, b.caption, b.seq, b.scope_id FROM mnemic.turns b
                 WHERE {{tenant:b}} AND b.session_id = {session} AND b.seq < {seq}
                 ORDER BY b.seq DESC LIMIT {TURNS_BEFORE_MAX}) b
         WHERE b.scope_id = {scope})"""


def said_of(value: Sequence[Sequence[Any]] | None) -> tuple[Said, ...]:
    """What `said_before` has read."""
    return tuple(Said(*one) for one in value or ())


LAST_SAID = Statement(f"SELECT {said_before(':session', ':session', '2147483647')} AS before")


class TurnStore:
    """Appends turns and finds them again. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def known_external(self, scope: Scope, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """Which of the callers' own ids the session of `scope` holds, with what they stand for."""
        rows = await self._unit.fetch(KNOWN_EXTERNAL, session=scope.id, digests=list(digests))
        return {row["external_digest"]: row["content_digest"] for row in rows}

    async def last_said(self, scope: Scope) -> tuple[Said, ...]:
        """The last turns of the session of `scope`: what is said next takes them in."""
        row = await self._unit.fetch_one(LAST_SAID, session=scope.id)
        return said_of(row["before"]) if row is not None else ()

    async def add(
        self,
        scope: Scope,
        turns: Sequence[tuple[TurnId, TurnCreate]],
        *,
        first_seq: int,
        now: datetime,
    ) -> None:
        """The turns stand in the session of `scope`, from position `first_seq` on."""
        await self._unit.execute_many(
            ADD,
            [
                _values(scope, identity, turn, first_seq + place, now)
                for place, (identity, turn) in enumerate(turns)
            ],
        )

    async def of_session(
        self, scope: Scope, *, session: UUID, first_seq: int, limit: int
    ) -> list[Turn]:
        """Turns of a session that is visible from `scope`, in order, from `first_seq` on."""
        rows = await self._unit.fetch(
            OF_SESSION,
            scopes=scope.visible_ids,
            session=session,
            first_seq=first_seq,
            limit=limit,
        )
        return [turn_of(row) for row in rows]

    async def count(self, scope: Scope, *, session: UUID, without: Collection[UUID] = ()) -> int:
        """How many turns of a session are visible from `scope`, those `without` left out."""
        row = await self._unit.fetch_one(
            COUNT, scopes=scope.visible_ids, session=session, without=list(without)
        )
        return int(row["turns"]) if row is not None else 0

    async def lift(self, scope: Scope, *, parent: Scope) -> int:
        """The turns of an ended session stand in its parent's scope; how many there were."""
        return await self._unit.execute(LIFT, session=scope.id, parent=parent.id)


def _values(
    scope: Scope, identity: TurnId, turn: TurnCreate, seq: int, now: datetime
) -> dict[str, object]:
    words = words_of(turn.text, turn.caption)
    return {
        "id": identity,
        "scope": scope.id,
        "seq": seq,
        "role": turn.role,
        "actor": turn.actor,
        "actor_id": actor_id(scope.tenant.id, turn.actor),
        "text": turn.text,
        "caption": turn.caption,
        "external_digest": external_digest(turn.external_id) if turn.external_id else None,
        "content_digest": content_digest(turn),
        "occurred_at": turn.occurred_at,
        "recorded_at": now,
        "ends_with_question": words.ends_with_question,
        "first_person": words.first_person,
        "has_name": words.has_name,
        "has_time_expr": words.has_time_expression,
        "metadata": turn.metadata,
        "tags": list(turn.tags),
        "trust": int(turn.trust),
        "source": turn.source,
        **wording_values(words),
    }


def turn_of(row: Any) -> Turn:
    """The value of a row of `turns`."""
    return Turn(
        id=TurnId(row["id"]),
        scope_id=row["scope_id"],
        session_id=row["session_id"],
        seq=row["seq"],
        role=row["role"],
        actor=row["actor"],
        text=row["text"],
        caption=row["caption"],
        occurred_at=row["occurred_at"],
        recorded_at=row["recorded_at"],
        trust=Trust(row["trust"]),
        source=row["source"],
        metadata=row["metadata"],
        tags=tuple(row["tags"]),
    )
