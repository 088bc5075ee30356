from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import structlog
from wire_embedder import FixedEmbedder
from wire_working import WORKING_VERBS, seen_by
from working_valkey import Valkey

from mnemic import MemoryManager, OutcomeUnknown, Scope, Unavailable
from mnemic.embedded import EmbeddedServers
from mnemic.settings import MemorySettings
from mnemic.store import roles
from mnemic.wiring import Wiring

pytestmark = pytest.mark.chaos

KILLS = 100
WRITERS = 4
NAME = "chaos_valkey"
SETTLED_SECONDS_MAX = 30.0
LOOKING = Scope.user("who looks whether Valkey is back")
log = structlog.get_logger("chaos")
_tenants = count(1)


@dataclass(slots=True)
class Writer:
    """One manager's writers; what each call was told, by its scope and verb."""

    memory: MemoryManager
    chance: random.Random
    told: list[tuple[Scope, str, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    over: bool = False

    async def write(self) -> None:
        while not self.over:
            scope = await self.prepared()
            name = self.chance.choice(list(WORKING_VERBS))
            if scope is None:
                await asyncio.sleep(0.01)
                continue
            try:
                await WORKING_VERBS[name](self.memory, scope)
            except OutcomeUnknown:
                self.told.append((scope, name, "unknown"))
            except Unavailable:
                self.told.append((scope, name, "refused"))
            except Exception as fault:  # noqa: BLE001 - none other is part of the contract
                self.faults.append(f"{name}: {fault!r}")
            else:
                self.told.append((scope, name, "acknowledged"))

    async def prepared(self) -> Scope | None:
        """A session that holds something, if that could be done."""
        scope = Scope.user(f"chaos-{next(_tenants)}").session("s-1")
        try:
            await self.memory.at(scope).working.set("plan", {"step": 3})
            await self.memory.at(scope).working.append_scratchpad("the first note")
        except Unavailable:
            return None
        return scope

    async def settled(self) -> None:
        """Nothing is held back any more."""
        async with asyncio.timeout(SETTLED_SECONDS_MAX):
            for scope, _, _ in self.told:
                working = self.memory.at(scope).working
                while (await working.status()).degraded:
                    # It merges by itself; but that Valkey is back is found by a call alone.
                    with suppress(Unavailable):
                        await self.memory.at(LOOKING).working.get("k")
                    await asyncio.sleep(0.02)

    async def broken_promises(
        self, beside: MemoryManager, cleans: dict[str, tuple[Any, Any]]
    ) -> list[str]:
        """What another process sees that is not what this one was told."""
        wrong = list(self.faults)
        for scope, name, told in self.told:
            now = await seen_by(beside, scope)
            before, after = cleans[name]
            allowed = {"acknowledged": [after], "refused": [before], "unknown": [before, after]}
            if now not in allowed[told]:
                wrong.append(f"{name} was {told} and left {now}")
        return wrong


def _memory_disk() -> str | None:
    place = Path("/dev/shm")
    return str(place) if place.is_dir() else None


@pytest.fixture
async def valkey() -> AsyncIterator[Valkey]:
    """One that never acknowledges before it has written, on a disk whose fsync costs nothing.

    With `appendfsync everysec` it puts off its writes for up to two seconds while an fsync runs or
    waits for a processor, and what it acknowledges meanwhile is lost with the process: the README
    says so. What is tried here is all the rest.
    """
    with tempfile.TemporaryDirectory(prefix="mnemic-chaos-", dir=_memory_disk()) as folder:
        made = Valkey(Path(folder), fsync="always")
        await made.start()
        yield made
        await made.kill()


@pytest.fixture
async def database_url(
    servers: EmbeddedServers, named_database: Callable[[str], Awaitable[str]]
) -> str:
    await named_database(NAME)
    return servers.postgres_url(roles.APP_ROLE, NAME)


@asynccontextmanager
async def _memory(database_url: str, valkey: Valkey, on_outage: str) -> AsyncIterator[Any]:
    settings = MemorySettings(
        database_url=database_url,
        redis_url=valkey.url,
        database={"require_durable": False, "acquire_timeout_seconds": 10},
        working={
            "on_outage": on_outage,
            "retry_after_seconds": 0.02,
            "durable_lease_seconds": 0.05,
        },
    )
    async with MemoryManager(Wiring(settings, embedder=FixedEmbedder())) as memory:
        yield memory


async def test_a_killed_valkey_loses_nothing_that_was_acknowledged(
    valkey: Valkey, database_url: str, chance: random.Random, times: int
) -> None:
    async with (
        _memory(database_url, valkey, "degrade") as degrading,
        _memory(database_url, valkey, "refuse") as refusing,
    ):
        writers = [Writer(memory, chance) for memory in (degrading, refusing)]
        cleans = {}
        for name, act in WORKING_VERBS.items():
            scope = await writers[0].prepared()
            assert scope is not None
            before = await seen_by(degrading, scope)
            await act(degrading, scope)
            cleans[name] = before, await seen_by(degrading, scope)
        async with asyncio.TaskGroup() as tasks:
            for writer in writers * (WRITERS // 2):
                tasks.create_task(writer.write())
            for _ in range(KILLS * times):
                await asyncio.sleep(chance.uniform(0.03, 0.2))
                await valkey.kill()
                await asyncio.sleep(chance.uniform(0.0, 0.05))
                await valkey.start()
            for writer in writers:
                writer.over = True
        for writer in writers:
            await writer.settled()

        async with _memory(database_url, valkey, "refuse") as beside:
            wrong = [
                one for writer in writers for one in await writer.broken_promises(beside, cleans)
            ]

    counts = Counter(told for writer in writers for _, _, told in writer.told)
    log.info("killed valkey", kills=KILLS * times, violations=len(wrong), **counts)
    assert wrong == []
    assert counts["acknowledged"] > KILLS
