"""The handle of sessions: `memory.sessions`."""

from __future__ import annotations

from collections.abc import Sequence

from mnemic.model.episode import Outcome
from mnemic.model.receipt import Receipt
from mnemic.model.scope import Scope
from mnemic.model.session import Session
from mnemic.model.turn import TurnCreate
from mnemic.service.end_session import end_session
from mnemic.service.parsing import checked_outcome
from mnemic.service.sessions import pause_session, resume_session, start_session
from mnemic.service.tools import Tools
from mnemic.service.transcribe import append_turns

__all__ = ["Sessions"]


class Sessions:
    """The life of sessions; every scope given here must name one (`scope.session("…")`)."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def start(self, *, scope: Scope) -> Session:
        """The session is open; starting it twice changes nothing. Raises `Conflict` if ended."""
        return await start_session(self._tools, scope=scope)

    async def append(
        self,
        turns: Sequence[TurnCreate],
        *,
        scope: Scope,
        idempotency_key: str | None = None,
    ) -> list[Receipt]:
        """The turns stand in the session, all or none; one receipt each.

        A turn whose `external_id` is there already is not added again, nor one that was forgotten
        here (`refused`). Starts the session if need be. At most `limits.batch_max` turns at once.
        Raises `InvalidInput`, and `Conflict` if the session has ended, an id comes with another
        text, or the key with other turns.
        """
        return await append_turns(self._tools, turns, scope=scope, key=idempotency_key)

    async def pause(self, *, scope: Scope) -> Session:
        """The session rests. Raises `NotFound`, `Conflict` if it has ended."""
        return await pause_session(self._tools, scope=scope)

    async def resume(self, *, scope: Scope) -> Session:
        """The session is active again. Raises `NotFound`, `Conflict` if it has ended."""
        return await resume_session(self._tools, scope=scope)

    async def end(self, *, scope: Scope, outcome: Outcome | str | None = None) -> Receipt | None:
        """The session is over and one episode stands in the scope above it: its receipt.

        What the session held moves up with it. Nothing is returned for a session in which nothing
        was said. Ending it again gives the same receipt with `created` false. Raises `NotFound`.
        """
        return await end_session(self._tools, scope=scope, outcome=checked_outcome(outcome))
