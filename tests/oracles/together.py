"""*Concurrency* and *interleaving*: calls at once, and writes between a job's read and its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

from mnemic.errors import EmbedderUnavailable
from mnemic.model.embedding import Vector
from mnemic.model.episode import EpisodeDraft
from mnemic.model.fact import FactCreate
from mnemic.testing import HashingEmbedder
from mnemic.think import RulesThinker, SessionRecord

__all__ = ["Gate", "HeldEmbedder", "HeldThinker", "at_once", "meanwhile"]

PATIENCE_SECONDS = 60.0


class Gate:
    """Once closed, who comes first waits until it opens, or all who come, if so many are told.

    `reached` tells that they wait.
    """

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._open = asyncio.Event()
        self._places = 0

    def close(self, places: int = 1) -> None:
        """The next `places` who come wait; those after them pass."""
        self.reached.clear()
        self._open.clear()
        self._places = places

    def open(self) -> None:
        """Nobody waits any more."""
        self._places = 0
        self._open.set()

    async def passed(self) -> None:
        """Through the gate."""
        if self._places:
            self._places -= 1
            if not self._places:
                self.reached.set()
            await self._open.wait()


class HeldEmbedder(HashingEmbedder):
    """Hashed words, behind a gate; `fault` is raised instead while it is set.

    `asked` holds the texts of each call.
    """

    def __init__(self) -> None:
        self.gate = Gate()
        self.fault: Exception | None = None
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.asked.append(list(texts))
        await self.gate.passed()
        if self.fault is not None:
            raise self.fault
        return await super().embed(texts)

    def fail(self) -> None:
        """The model is away."""
        self.fault = EmbedderUnavailable("away")


class HeldThinker:
    """The rules, behind a gate; `faults` are raised for sessions in which the word stands."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.faults: dict[str, Exception] = {}
        self.read = 0
        self.told: list[SessionRecord] = []
        self._rules = RulesThinker()

    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        self.read += 1
        self.told.append(session)
        await self.gate.passed()
        for word, fault in self.faults.items():
            if any(word in turn.text for turn in session.turns):
                raise fault
        return await self._rules.summarise(session)

    def extract_facts(
        self, text: str, *, actor: str, occurred_at: datetime
    ) -> Sequence[FactCreate]:
        return self._rules.extract_facts(text, actor=actor, occurred_at=occurred_at)


async def at_once(*calls: Awaitable[Any]) -> list[Any]:
    """The answers of calls that run at the same time; the first fault is raised."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return list(await asyncio.gather(*calls))


async def meanwhile(gate: Gate, job: Awaitable[Any], write: Callable[[], Awaitable[Any]]) -> Any:
    """What `job` gives when `write` is committed while it waits at the gate."""
    gate.close()
    running = asyncio.ensure_future(job)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await gate.reached.wait()
            await write()
    finally:
        gate.open()
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await running
