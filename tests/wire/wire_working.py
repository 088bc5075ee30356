"""Working memory behind a Valkey that fails at one message, held against what was promised."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from wire_lanes import RETRIES_MAX, Tally
from wire_proxy import Fault, WireProxy

from mnemic import MemoryManager, OutcomeUnknown, Scope, TaskState, Unavailable

Act = Callable[[MemoryManager, Scope], Awaitable[Any]]
_SETTLED_SECONDS_MAX = 10.0
_tenants = count(1)


async def _set(memory: MemoryManager, scope: Scope) -> None:
    await memory.at(scope).working.set("plan", {"step": 4})


async def _set_new(memory: MemoryManager, scope: Scope) -> None:
    await memory.at(scope).working.set("new", [1, 2], ttl_seconds=600)


async def _set_durable(memory: MemoryManager, scope: Scope) -> None:
    await memory.at(scope).working.set("plan", {"step": 5}, durable=True)


async def _delete(memory: MemoryManager, scope: Scope) -> None:
    await memory.at(scope).working.delete("plan")


async def _append(memory: MemoryManager, scope: Scope) -> None:
    await memory.at(scope).working.append_scratchpad("the second note")


async def _task(memory: MemoryManager, scope: Scope) -> None:
    await memory.at(scope).working.set_task_state(TaskState(description="Deploy"))


async def _clear(memory: MemoryManager, scope: Scope) -> None:
    await memory.at(scope).working.clear()


async def _remember(memory: MemoryManager, scope: Scope) -> None:
    await memory.remember(
        "step 9", scope=scope, memory_type="working", key="told", idempotency_key="key-1"
    )


async def _checkpoint(memory: MemoryManager, scope: Scope) -> None:
    await memory.at(scope).working.create_checkpoint()


async def _pause(memory: MemoryManager, scope: Scope) -> None:
    await memory.sessions.start(scope=scope)
    await memory.lifecycle.pause(scope=scope)


WORKING_VERBS: dict[str, Act] = {
    "set": _set,
    "set new": _set_new,
    "set durable": _set_durable,
    "delete": _delete,
    "append": _append,
    "task": _task,
    "clear": _clear,
    "remember": _remember,
    "checkpoint": _checkpoint,
    "pause": _pause,
}


async def seen_by(memory: MemoryManager, scope: Scope) -> tuple[Any, ...]:
    """What working memory shows of the scope."""
    record = await memory.at(scope).working.record()
    return dict(record.values), record.task_state, tuple(record.scratchpad)


@dataclass(slots=True)
class WorkingLane:
    """A manager behind a proxy, and one that stands beside and sees what is really there."""

    memory: MemoryManager
    beside: MemoryManager
    proxy: WireProxy

    async def clean(self, act: Act) -> tuple[int, tuple[Any, ...]]:
        """How many messages the verb takes, on a new connection, and what it leaves."""
        scope = await self._prepared()
        self.proxy.arm()
        await act(self.memory, scope)
        return self.proxy.seen, await seen_by(self.beside, scope)

    async def _prepared(self) -> Scope:
        scope = Scope.user(f"wire-working-{next(_tenants)}").session("s-1")
        await self.beside.at(scope).working.set("plan", {"step": 3})
        await self.beside.at(scope).working.append_scratchpad("the first note")
        await self._settled(scope)
        # The pool is emptied, so that what a connection says first is among the messages.
        client = self.memory._tools.working.place._valkey.client
        await client._pool().discard_idle()
        return scope

    async def _settled(self, scope: Scope) -> None:
        """Nothing is held back any more."""
        async with asyncio.timeout(_SETTLED_SECONDS_MAX):
            while True:
                try:
                    await self.memory.at(scope).working.record()
                except Unavailable:
                    await asyncio.sleep(0.01)
                    continue
                if not (await self.memory.at(scope).working.status()).degraded:
                    return
                await asyncio.sleep(0.01)

    async def run(
        self, name: str, fault: Fault, message: int, after: tuple[Any, ...], tally: Tally
    ) -> None:
        """One fault at one message of one verb, counted in `tally`."""
        act, scope = WORKING_VERBS[name], await self._prepared()
        before = await seen_by(self.beside, scope)
        self.proxy.arm(fault, message)
        raised: Exception | None = None
        try:
            await act(self.memory, scope)
        except Exception as error:  # noqa: BLE001 - which ones there are is what is asked
            raised = error
        if self.proxy.struck:
            tally.outcomes["success" if raised is None else type(raised).__name__] += 1
        else:
            tally.missed[name] += 1
        self.proxy.arm()
        await self._settled(scope)
        now = await seen_by(self.beside, scope)
        if wrong := _judged(raised, before, now, after):
            tally.wrong.append(f"{name}: {fault} at message {message}: {wrong}")
            return
        if raised is not None and now != after:
            await self._again(act, scope)
        if (left := await seen_by(self.beside, scope)) != after:
            tally.wrong.append(f"{name}: {fault} at message {message}: left {left}")

    async def _again(self, act: Act, scope: Scope) -> None:
        for attempt in range(RETRIES_MAX):
            try:
                return await act(self.memory, scope)
            except Unavailable:
                if attempt == RETRIES_MAX - 1:
                    raise
                await self._settled(scope)
        raise AssertionError


def _judged(
    raised: Exception | None, before: tuple[Any, ...], now: tuple[Any, ...], after: tuple[Any, ...]
) -> str:
    if raised is None:
        return "" if now == after else f"success without its effect: {now}"
    if isinstance(raised, OutcomeUnknown):
        return "" if now in (before, after) else f"half an effect: {now}"
    if not isinstance(raised, Unavailable):
        return f"an error that is no part of the contract: {raised!r}"
    return "" if now == before else f"{raised!r} although something was changed: {now}"
