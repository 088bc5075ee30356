"""The handle of grants: `memory.grants`, for whoever decides who may write above himself."""

from __future__ import annotations

from mnemic.model.scope import Scope
from mnemic.service.rights import allow_writing, revoke_writing
from mnemic.service.tools import Tools

__all__ = ["Grants"]


class Grants:
    """A scope writes in itself; in a scope above it, only where that was granted."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def allow(self, scope: Scope, *, to: Scope) -> None:
        """Whoever works in `scope`, or below it, may change what stands in `to`, above it.

        Raises `InvalidInput` if `to` is not above `scope`.
        """
        await allow_writing(self._tools, scope=scope, target=to)

    async def revoke(self, scope: Scope, *, to: Scope) -> bool:
        """That right is gone; false if there was none."""
        return await revoke_writing(self._tools, scope=scope, target=to)
