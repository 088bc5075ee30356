"""The hooks of an agent's life: `memory.lifecycle`, for whatever starts and stops agents."""

from __future__ import annotations

from mnemic.errors import Unavailable
from mnemic.model.context import Context
from mnemic.model.episode import Outcome
from mnemic.model.receipt import Receipt
from mnemic.model.scope import Scope
from mnemic.model.session import Session
from mnemic.service.context import checked_budget, context
from mnemic.service.end_session import end_session
from mnemic.service.parsing import checked_outcome, checked_query, session_scope
from mnemic.service.sessions import (
    pause_session,
    require_open,
    resume_session,
    start_session,
)
from mnemic.service.tools import Tools
from mnemic.store.faults import after_landing
from mnemic.tier.working import WorkingMemory

__all__ = ["Lifecycle"]


class Lifecycle:
    """Spawn, pause, resume, terminate; every scope given here names a session."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def spawn(self, *, scope: Scope, task: str, budget: int | str | None = None) -> Context:
        """The session is open; what is known that helps with `task`, as a prompt section.

        A new agent so starts with what stands above it. Past `context.deadline_ms` the section is
        empty and `degraded`. Raises `Conflict` if the session has ended.
        """
        checked_query(task, self._tools.settings.limits, field="task")
        checked_budget(budget, self._tools.settings.context)
        await start_session(self._tools, scope=scope)
        return await context(self._tools, task, scope=scope, budget=budget)

    async def pause(self, *, scope: Scope) -> str:
        """The session rests, and what the agent held is a checkpoint: its id.

        The checkpoint outlives Valkey and the time to live of the values. Raises `NotFound`,
        `Conflict` if the session has ended, and `OutcomeUnknown` if what it holds cannot be read:
        the session rests then, and the same call makes the checkpoint later.
        """
        await pause_session(self._tools, scope=scope)
        with after_landing("pause it again"):
            return await WorkingMemory(self._tools.working, scope).create_checkpoint()

    async def resume(self, *, scope: Scope, checkpoint_id: str | None = None) -> Session:
        """The session is active again, with what the agent held.

        With `checkpoint_id` exactly that is restored; without it, the newest checkpoint if nothing
        is held any more. Raises `NotFound`, `Conflict` if the session has ended.
        """
        working = WorkingMemory(self._tools.working, session_scope(scope))
        if checkpoint_id is not None:
            await require_open(self._tools, scope=scope)
            # Before the session is active again, so that an unknown one changes nothing.
            await working.restore_checkpoint(checkpoint_id)
            with after_landing("resume it again"):
                return await resume_session(self._tools, scope=scope)
        session = await resume_session(self._tools, scope=scope)
        with after_landing("resume it again"):
            if await _is_empty(working) and (known := await working.checkpoints()):
                newest = max(known, key=lambda one: (one.created_at, one.id))
                await working.restore_checkpoint(str(newest.id))
        return session

    async def terminate(
        self, *, scope: Scope, outcome: Outcome | str | None = None
    ) -> Receipt | None:
        """The session is over: one episode, its memories above it, its working memory gone."""
        return await end_session(self._tools, scope=scope, outcome=checked_outcome(outcome))


async def _is_empty(working: WorkingMemory) -> bool:
    """Whether nothing is held; not so while that cannot be told."""
    try:
        return (await working.record()).is_empty
    except Unavailable:
        return False
