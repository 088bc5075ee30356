"""Procedural memory: what works, step by step."""

from __future__ import annotations

from uuid import UUID

from mnemic.model.procedure import Procedure, ProcedureCreate, Step
from mnemic.model.scope import Scope
from mnemic.service.parsing import checked_idempotency_key, checked_limit
from mnemic.service.procedures import (
    best_procedure,
    match_procedures,
    record_outcome,
    update_steps,
)
from mnemic.service.record_procedure import checked_procedure, keep_procedure
from mnemic.service.tools import Tools

__all__ = ["ProceduralMemory"]


class ProceduralMemory:
    """The procedures of a scope and of those above it."""

    def __init__(self, tools: Tools, scope: Scope) -> None:
        self._tools = tools
        self._scope = scope

    async def record_procedure(
        self,
        procedure: ProcedureCreate,
        *,
        idempotency_key: str | None = None,
        lift: bool = False,
    ) -> Procedure:
        """The procedure as it is kept in this scope; of a known name it is the next version.

        `trigger_pattern` is RE2 syntax. Raises `InvalidInput`, `Conflict` for a used key,
        `Retracted` for what was forgotten here, `NotFound` if the key's procedure was forgotten
        since.
        """
        return await keep_procedure(
            self._tools,
            checked_procedure(self._tools, procedure, self._scope),
            scope=self._scope,
            key=checked_idempotency_key(idempotency_key),
            lift=lift,
        )

    async def find_matching(self, context: str, limit: int = 5) -> list[Procedure]:
        """Procedures that fit what is to be done, the best first.

        By trigger pattern, then words and meaning, weighed by how reliable each is once it was
        tried five times; one whose avoid-condition holds in `context` is left out.
        """
        settings = self._tools.settings.recall
        bound, _ = checked_limit(limit, largest=settings.limit_max)
        return await match_procedures(self._tools, context, scope=self._scope, limit=bound)

    async def record_outcome(
        self,
        procedure_id: UUID,
        success: bool,  # noqa: FBT001 - the plan's own signature
        *,
        note: str | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """Whether it worked, once for each key. Raises `NotFound`."""
        await record_outcome(
            self._tools,
            procedure_id,
            success=success,
            scope=self._scope,
            note=note,
            key=idempotency_key,
        )

    async def get_best_procedure(self, task_type: str) -> Procedure | None:
        """The most reliable procedure for a type of task, if there is one.

        By the 5 % quantile of its success rate; ½ for one tried less than five times.
        """
        return await best_procedure(self._tools, task_type, scope=self._scope)

    async def update_steps(
        self, procedure_id: UUID, steps: list[Step], *, idempotency_key: str | None = None
    ) -> Procedure:
        """The procedure under its next version. Raises `NotFound`, `Forbidden`."""
        return await update_steps(
            self._tools, procedure_id, steps, scope=self._scope, key=idempotency_key
        )
