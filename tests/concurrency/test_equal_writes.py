"""However many call at once: equal writes are one, and nobody meets a deadlock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from wire_rows import RowReader
from wire_verbs import VERBS

from mnemic import Conflict, MemoryManager, NotFound, Scope, StoreUnavailable
from mnemic.settings import DatabaseSettings
from mnemic.testing import a_conversation, a_fact

CALLERS = 32
ROUNDS = 6
_tenants = count(1)


@pytest.fixture
def scope() -> Scope:
    return Scope.user(f"concurrent-{next(_tenants)}").project("x")


@pytest.mark.parametrize("name", sorted(name for name, verb in VERBS.items() if verb.takes_key))
async def test_equal_writes_at_once_have_one_effect_and_one_answer(
    name: str, memory: MemoryManager, seen: RowReader, scope: Scope
) -> None:
    verb, alone = VERBS[name], Scope.user(f"concurrent-{next(_tenants)}").project("x")
    await verb.act(memory, alone, await verb.prepare(memory, alone), "key-1")
    made = await verb.prepare(memory, scope)

    answers = await asyncio.gather(
        *(verb.act(memory, scope, made, "key-1") for _ in range(CALLERS))
    )

    once = await seen.of(alone, memory)
    assert (await seen.of(scope, memory)).differing(once) == {}
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("name", sorted(name for name, verb in VERBS.items() if not verb.takes_key))
async def test_equal_writes_without_a_key_leave_what_one_leaves(
    name: str, memory: MemoryManager, seen: RowReader, scope: Scope
) -> None:
    verb, alone = VERBS[name], Scope.user(f"concurrent-{next(_tenants)}").project("x")
    await verb.act(memory, alone, await verb.prepare(memory, alone), "")
    made = await verb.prepare(memory, scope)

    await asyncio.gather(*(verb.act(memory, scope, made, "") for _ in range(CALLERS)))

    once = await seen.of(alone, memory)
    assert (await seen.of(scope, memory)).differing(once, but="audit_log") == {}


async def test_equal_facts_of_many_callers_are_one_row_with_the_evidence_of_all(
    memory: MemoryManager, scope: Scope
) -> None:
    told = [memory.store_fact(a_fact(), scope=scope) for _ in range(CALLERS)]

    receipts = await asyncio.gather(*told)

    [fact] = await memory.at(scope).semantic.get_by_entity("PostgreSQL")
    assert {receipt.id for receipt in receipts} == {fact.id}
    assert fact.reinforcement_count == CALLERS


async def _opposite(one: Callable[[], Any], other: Callable[[], Any]) -> list[BaseException]:
    """Both at once, several times; what was raised."""
    told = await asyncio.gather(
        *(call() for _ in range(ROUNDS) for call in (one, other)), return_exceptions=True
    )
    return [fault for fault in told if isinstance(fault, BaseException)]


async def test_turns_in_opposite_orders_stop_nobody(memory: MemoryManager, scope: Scope) -> None:
    said = a_conversation([f"Turn number {place}." for place in range(20)])
    talk = scope.session("s-1")

    faults = await _opposite(
        lambda: memory.sessions.append(said, scope=talk),
        lambda: memory.sessions.append(said[::-1], scope=talk),
    )

    assert faults == []
    ended = await memory.sessions.end(scope=talk)
    assert ended is not None


async def test_forgetting_in_opposite_orders_stops_nobody(
    memory: MemoryManager, scope: Scope
) -> None:
    texts = [f"The port of service {number} is {4_000 + number}." for number in range(12)]
    ids = [(await memory.remember(text, scope=scope)).id for text in texts]
    ids += [(await memory.remember(text, scope=scope, memory_type="episodic")).id for text in texts]

    faults = await _opposite(
        lambda: memory.forget(ids, scope=scope), lambda: memory.forget(ids[::-1], scope=scope)
    )

    assert len(faults) == 2 * ROUNDS - 1
    assert {type(fault) for fault in faults} == {NotFound}


async def test_resolving_in_opposite_orders_stops_nobody(
    memory: MemoryManager, scope: Scope
) -> None:
    semantic = memory.at(scope).semantic
    ids = [(await semantic.store_fact(a_fact(object=f"value {n}"))).id for n in range(10)]

    faults = await _opposite(
        lambda: semantic.resolve_conflict(ids), lambda: semantic.resolve_conflict(ids[::-1])
    )

    assert len(faults) == 2 * ROUNDS - 1
    assert {type(fault) for fault in faults} <= {NotFound, Conflict}


async def test_durable_values_in_opposite_orders_stop_nobody(
    memory: MemoryManager, scope: Scope
) -> None:
    working = memory.at(scope).working
    keys = [f"key {number}" for number in range(8)]

    async def set_all(names: list[str]) -> None:
        await asyncio.gather(*(working.set(name, 1, durable=True) for name in names))

    faults = await _opposite(lambda: set_all(keys), lambda: set_all(keys[::-1]))

    assert faults == []
    assert await working.list_keys() == keys


async def test_a_full_pool_is_told_as_soon_as_the_setting_says_and_recovers_at_once(
    opened_with: Callable[..., Any], scope: Scope
) -> None:
    memory: MemoryManager = await opened_with(pool_max=2, acquire_timeout_seconds=0.3)
    loop = asyncio.get_running_loop()
    free, held = asyncio.Event(), asyncio.Barrier(3)

    async def hold() -> None:
        async with memory._tools.database.open_unit(None):
            await held.wait()
            await free.wait()

    holders = [asyncio.ensure_future(hold()) for _ in range(2)]
    await held.wait()
    asked = loop.time()
    with pytest.raises(StoreUnavailable, match="pool_max"):
        await memory.remember("I like tea.", scope=scope)
    waited = loop.time() - asked
    free.set()
    await asyncio.gather(*holders)
    async with asyncio.timeout(2):
        await memory.remember("I like tea.", scope=scope)

    assert 0.3 <= waited < 3  # governed by the setting, on however busy a machine
    assert DatabaseSettings().acquire_timeout_seconds < 1
