"""A question's vector is made while the store is read, where that costs nobody anything."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

from mnemic.model.embedding import Vector
from mnemic.model.scope import Scope
from mnemic.model.words import normal_form
from mnemic.service.tools import Tools

__all__ = ["Foreseen", "foreseen"]

AHEAD_MAX = 2
"""How many are made ahead at once: of more each would wait for the others, with a connection."""

WAIT_SECONDS = 0.02
"""How long a unit stays open for a model in this process; a network is never waited for in one."""

Making: TypeAlias = asyncio.Task[list[Vector] | None]


class Foreseen:
    """The vector of a question as it is if it names nobody, which the store has to tell."""

    def __init__(self, text: str, making: Making | None) -> None:
        self._text = text
        self._making = making

    def making_of(self, text: str) -> Making | None:
        """What makes the vector of this text, as `Tools.vectors` does; nothing if that is none."""
        return self._making if text == self._text else None

    async def vector(self, text: str, *, since: float) -> Vector | None:
        """The vector, if it is of this text and there in a moment; `since` by `time.monotonic`."""
        if (making := self.making_of(text)) is None:
            return None
        if not making.done():
            left = max(0.0, WAIT_SECONDS - (time.monotonic() - since))
            await asyncio.wait({making}, timeout=left)
        if not making.done() or making.cancelled() or making.exception():
            return None
        made = making.result()
        return made[0] if made else None


@asynccontextmanager
async def foreseen(tools: Tools, text: str, scope: Scope) -> AsyncIterator[Foreseen]:
    """The vector of the question is being made meanwhile, by a model that runs in this process.

    Not where the last question in the scope named somebody: such a name is not embedded, so the
    work would be for nothing. Who needs it and has no transaction open waits for `making_of`.
    """
    normal = normal_form(text)
    worth = bool(normal) and tools.embeds_here and not tools.named_lately(scope)
    if not worth or tools.ahead >= AHEAD_MAX or tools.known_vector(normal) is not None:
        yield Foreseen(normal, None)
        return
    making = asyncio.create_task(tools.vectors([normal]))
    tools.ahead += 1
    making.add_done_callback(lambda _made: _ended(tools))
    try:
        yield Foreseen(normal, making)
    finally:
        if not making.done():
            making.cancel()
            await asyncio.wait({making})
        if not making.cancelled():
            making.exception()  # whoever needed the vector was told


def _ended(tools: Tools) -> None:
    tools.ahead -= 1
