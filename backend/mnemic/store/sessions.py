"""The life of sessions, and the order of what is said in them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.errors import Conflict, NotFound
from mnemic.model.episode import Outcome
from mnemic.model.scope import Scope
from mnemic.model.session import Session, SessionState
from mnemic.model.turn_vector import Said
from mnemic.store.statement import Statement
from mnemic.store.turns import said_before, said_of

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["SessionStore", "over"]

_COLUMNS = """s.id, s.scope_id, s.name, s.state, s.started_at, s.last_active_at, s.ended_at,
              s.episode_id, s.turn_count"""

START = Statement("""
    INSERT INTO mnemic.sessions (tenant_id, id, scope_id, name, started_at, last_active_at,
                                 recorded_at)
    VALUES (:tenant, :id, :id, :name, :at, :now, :now)
    ON CONFLICT (tenant_id, id) DO NOTHING
""")

GET = Statement(f"SELECT {_COLUMNS} FROM mnemic.sessions s WHERE {{tenant:s}} AND s.id = :id")

LOCK = Statement(
    f"SELECT {_COLUMNS} FROM mnemic.sessions s WHERE {{tenant:s}} AND s.id = :id FOR UPDATE"
)

TAKE_PLACES = Statement(f"""
    UPDATE mnemic.sessions s
       SET turn_count = s.turn_count + :count,
           started_at = least(s.started_at, :first_at),
           last_active_at = greatest(s.last_active_at, :now)
     WHERE {{tenant:s}} AND s.id = :id
    RETURNING s.turn_count - :count AS first_seq,
              {said_before("s.id", "s.id", "s.turn_count")} AS before
""")

JOIN = Statement("""
    INSERT INTO mnemic.sessions AS s (tenant_id, id, scope_id, name, started_at, last_active_at,
                                      recorded_at)
    VALUES (:tenant, :id, :id, :name, :now, :now, :now)
    ON CONFLICT (tenant_id, id) DO UPDATE
       SET last_active_at = greatest(s.last_active_at, excluded.last_active_at)
     WHERE s.state <> 'ended'
    RETURNING s.id
""")

SET_STATE = Statement("""
    UPDATE mnemic.sessions s
       SET state = :state, last_active_at = greatest(s.last_active_at, :at)
     WHERE {tenant:s} AND s.id = :id AND s.state <> 'ended'
""")

END = Statement("""
    UPDATE mnemic.sessions s
       SET state = 'ended', ended_at = :ended_at, moved_at = :now, episode_id = :episode_id,
           outcome = :outcome
     WHERE {tenant:s} AND s.id = :id AND s.state <> 'ended'
""")

IDLE = Statement("""
    SELECT s.id, array_agg(x.scope_type::text ORDER BY x.depth) AS levels,
           array_agg(x.name ORDER BY x.depth) AS names, t.kind, t.external_id
      FROM mnemic.sessions s
      JOIN mnemic.tenants t ON t.tenant_id = s.tenant_id
      JOIN mnemic.scopes c ON c.tenant_id = s.tenant_id AND c.id = s.scope_id
     CROSS JOIN LATERAL (VALUES (1, 'project', c.project), (2, 'agent_type', c.agent_type),
                                (3, 'agent_instance', c.agent_instance), (4, 'session', c.session))
                AS x(depth, scope_type, name)
     WHERE {tenant:s} AND {tenant:t} AND {tenant:c}
       AND s.state = 'active' AND s.last_active_at < :before AND x.name IS NOT NULL
       AND s.id <> ALL(CAST(:skip AS uuid[]))
     GROUP BY s.id, s.last_active_at, t.kind, t.external_id
     ORDER BY s.last_active_at, s.id
     LIMIT :limit
""")


def over(scope: Scope) -> Conflict:
    """What is told to those who would go on in a session that has ended."""
    return Conflict("The session has ended; start one under another name.", id=scope.id)


class SessionStore:
    """Starts sessions, orders their turns, ends them once. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def start(self, scope: Scope, *, at: datetime, now: datetime) -> tuple[Session, bool]:
        """The session of `scope`, and whether it was started now.

        Raises `Conflict` if it has ended.
        """
        started = await self._unit.execute(START, id=scope.id, name=scope.name, at=at, now=now)
        session = await self.lock(scope)
        if session.state is SessionState.ENDED:
            raise over(scope)
        return session, bool(started)

    async def join(self, scope: Scope, *, now: datetime) -> None:
        """The session of `scope` is open and active now, started if it was not.

        Nobody else ends it until the unit is over: what is kept in it meanwhile moves up with the
        rest. Raises `Conflict` if it has ended.
        """
        if await self._unit.fetch_one(JOIN, id=scope.id, name=scope.name, now=now) is None:
            raise over(scope)

    async def get(self, scope: Scope) -> Session:
        """The session of `scope`. Raises `NotFound`."""
        return _found(await self._unit.fetch_one(GET, id=scope.id), scope)

    async def lock(self, scope: Scope) -> Session:
        """As `get`; nobody else appends to it or ends it until the unit is over."""
        return _found(await self._unit.fetch_one(LOCK, id=scope.id), scope)

    async def take_places(
        self, scope: Scope, *, count: int, first_at: datetime, now: datetime
    ) -> tuple[int, tuple[Said, ...]]:
        """`count` positions for turns, gapless: the first of them, and what was said before it.

        The session was active now, however long ago its turns were said.
        """
        row = await self._unit.fetch_one(
            TAKE_PLACES, id=scope.id, count=count, first_at=first_at, now=now
        )
        if row is None:
            raise NotFound("No such session.", id=scope.id)
        return row["first_seq"], said_of(row["before"])

    async def set_state(self, scope: Scope, state: SessionState, *, at: datetime) -> None:
        """The session is active or paused. Raises `Conflict` if it has ended."""
        if not await self._unit.execute(SET_STATE, id=scope.id, state=state.value, at=at):
            await self.get(scope)
            raise over(scope)

    async def end(
        self,
        scope: Scope,
        *,
        at: datetime,
        now: datetime,
        episode_id: UUID | None,
        outcome: Outcome | None,
    ) -> None:
        """The session is over, with its episode; what it held stands above from now on.

        Raises `Conflict` if it was over already.
        """
        landed = await self._unit.execute(
            END,
            id=scope.id,
            ended_at=at,
            now=now,
            episode_id=episode_id,
            outcome=outcome.value if outcome else None,
        )
        if landed != 1:
            raise Conflict("The session has ended already.", id=scope.id)

    async def idle(
        self, *, before: datetime, limit: int, skip: Collection[UUID] = ()
    ) -> list[dict[str, Any]]:
        """Active sessions of the tenant without activity since `before`, oldest first.

        None of `skip`. One of the store methods without a scope: maintenance asks for the whole
        tenant. Each answer holds the `kind` and `external_id` of the tenant and the `path` of the
        scope.
        """
        rows = await self._unit.fetch(IDLE, before=before, limit=limit, skip=list(skip))
        return [
            {
                "kind": row["kind"],
                "external_id": row["external_id"],
                "path": tuple(zip(row["levels"], row["names"], strict=True)),
            }
            for row in rows
        ]


def _found(row: Any, scope: Scope) -> Session:
    if row is None:
        raise NotFound("No such session.", id=scope.id)
    return Session(
        id=row["id"],
        scope_id=row["scope_id"],
        name=row["name"],
        state=SessionState(row["state"]),
        started_at=row["started_at"],
        last_active_at=row["last_active_at"],
        ended_at=row["ended_at"],
        episode_id=row["episode_id"],
        turn_count=row["turn_count"],
    )
