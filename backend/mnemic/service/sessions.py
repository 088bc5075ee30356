"""Start, pause and resume sessions."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from mnemic.model.scope import Scope
from mnemic.model.session import Session, SessionState
from mnemic.model.turn import Turn
from mnemic.service.parsing import session_scope
from mnemic.service.tools import Tools
from mnemic.store.guards import AuditEntry
from mnemic.store.sessions import over
from mnemic.store.unit import Unit

__all__ = [
    "TURNS_MAX",
    "pause_session",
    "require_open",
    "resume_session",
    "start_session",
    "turns_of",
]

TURNS_MAX = 100_000
_PAGE = 2_000


async def start_session(tools: Tools, *, scope: Scope) -> Session:
    """The session of `scope` is open; starting it again changes nothing.

    Raises `Conflict` if it has ended.
    """
    session_scope(scope)
    now = tools.now()

    async def start(unit: Unit) -> Session:
        await unit.scopes.ensure(scope)
        session, is_new = await unit.sessions.start(scope, at=now, now=now)
        if is_new:
            await _witness(unit, tools, scope, "session.start", now)
        return session

    return await tools.transact(scope.tenant.id, start)


async def pause_session(tools: Tools, *, scope: Scope) -> Session:
    """The session rests. Raises `NotFound`, or `Conflict` if it has ended."""
    return await _set_state(tools, scope, SessionState.PAUSED, "session.pause")


async def resume_session(tools: Tools, *, scope: Scope) -> Session:
    """The session is active again. Raises `NotFound`, or `Conflict` if it has ended."""
    return await _set_state(tools, scope, SessionState.ACTIVE, "session.resume")


async def require_open(tools: Tools, *, scope: Scope) -> None:
    """The session is there and has not ended. Raises `NotFound`, `Conflict`."""
    session = await tools.transact(
        scope.tenant.id, lambda unit: unit.sessions.get(scope), read_only=True
    )
    if session.state is SessionState.ENDED:
        raise over(scope)


async def _set_state(tools: Tools, scope: Scope, state: SessionState, action: str) -> Session:
    session_scope(scope)
    now = tools.now()

    async def move(unit: Unit) -> Session:
        await unit.sessions.set_state(scope, state, at=now)
        await _witness(unit, tools, scope, action, now)
        return await unit.sessions.get(scope)

    return await tools.transact(scope.tenant.id, move)


async def _witness(unit: Unit, tools: Tools, scope: Scope, action: str, now: datetime) -> None:
    entry = AuditEntry(
        id=tools.new_id(), action=action, subject_kind="session", subject_id=scope.id
    )
    await unit.guards.audit(scope, entry, now=now)


async def turns_of(unit: Unit, scope: Scope, session: UUID) -> list[Turn]:
    """What was said in a session that is visible from `scope`, in order; `TURNS_MAX` at most."""
    turns: list[Turn] = []
    while len(turns) < TURNS_MAX:
        # Positions have gaps where a turn was forgotten.
        first = turns[-1].seq + 1 if turns else 0
        page = await unit.turns.of_session(scope, session=session, first_seq=first, limit=_PAGE)
        turns += page
        if len(page) < _PAGE:
            break
    return turns
