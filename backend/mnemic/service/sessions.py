"""Start, pause and resume sessions."""

from __future__ import annotations

from uuid import UUID

from mnemic.model.scope import Scope
from mnemic.model.session import Session, SessionState
from mnemic.model.turn import Turn
from mnemic.service.parsing import session_scope
from mnemic.service.tools import Tools
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
        return await unit.sessions.start(scope, at=now, now=now)

    return await tools.transact(scope.tenant.id, start)


async def pause_session(tools: Tools, *, scope: Scope) -> Session:
    """The session rests. Raises `NotFound`, or `Conflict` if it has ended."""
    return await _set_state(tools, scope, SessionState.PAUSED)


async def resume_session(tools: Tools, *, scope: Scope) -> Session:
    """The session is active again. Raises `NotFound`, or `Conflict` if it has ended."""
    return await _set_state(tools, scope, SessionState.ACTIVE)


async def require_open(tools: Tools, *, scope: Scope) -> None:
    """The session is there and has not ended. Raises `NotFound`, `Conflict`."""
    session = await tools.transact(
        scope.tenant.id, lambda unit: unit.sessions.get(scope), read_only=True
    )
    if session.state is SessionState.ENDED:
        raise over(scope)


async def _set_state(tools: Tools, scope: Scope, state: SessionState) -> Session:
    session_scope(scope)

    async def move(unit: Unit) -> Session:
        await unit.sessions.set_state(scope, state, at=tools.now())
        return await unit.sessions.get(scope)

    return await tools.transact(scope.tenant.id, move)


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
