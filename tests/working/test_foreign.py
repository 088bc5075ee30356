"""What another program wrote under our keys: a precise error for each verb, and an end to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import uuid4

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from mnemic.embedded import EmbeddedServers
from mnemic.errors import MnemicError
from mnemic.model.scope import Scope
from mnemic.model.working import TaskState
from mnemic.store.working.faults import translated
from mnemic.store.working.keys import TASK, ScopeKeys, scope_keys
from mnemic.store.working.opening import WorkingPlaces
from mnemic.testing.builders import a_scope
from mnemic.testing.working_contract import contract_settings
from mnemic.tier.working import WorkingMemory

Spoil = Callable[[Redis, ScopeKeys], Awaitable[object]]

_HEAD = b"f" * 16 + b"0" * 32 + b"0" * 14 + b"1v" + b"0" * 14 + b"5"
_VALUE = b"f" * 16 + b"0" * 14 + b"1v"

SPOILT: dict[str, Spoil] = {
    "values are a text": lambda redis, keys: redis.set(keys.values, "theirs"),
    "heads are a list": lambda redis, keys: redis.lpush(keys.heads, "theirs"),
    "notes are a set": lambda redis, keys: redis.sadd(keys.notes, "theirs"),
    "a value is short": lambda redis, keys: redis.hset(keys.values, "kheld", "theirs"),
    "a value is bytes": lambda redis, keys: redis.hset(keys.values, "kheld", b"\xff" * 40),
    "a value is no JSON": lambda redis, keys: redis.hset(keys.values, "kheld", _VALUE + b"{"),
    "a task is no task": lambda redis, keys: redis.hset(keys.values, TASK, _VALUE + b'{"a":1}'),
    "a task is a number": lambda redis, keys: redis.hset(keys.values, TASK, _VALUE + b"7"),
    "a head is short": lambda redis, keys: redis.hset(keys.heads, "kheld", "theirs"),
    "a head is bytes": lambda redis, keys: redis.hset(keys.heads, "kheld", b"\xff" * 90),
    "a field is no text": lambda redis, keys: redis.hset(keys.heads, b"k\xff", _HEAD),
    "the gate is theirs": lambda redis, keys: redis.hset(keys.values, "g", "theirs"),
    "the gate is bytes": lambda redis, keys: redis.hset(keys.values, "g", b"\xff" * 80),
    "a counter is a word": lambda redis, keys: redis.hset(keys.heads, "#b", "theirs"),
    "a counter is a fraction": lambda redis, keys: redis.hset(keys.heads, "#b", "1.5"),
    "keys are a word": lambda redis, keys: redis.hset(keys.heads, "#k", "theirs"),
    "the floor is a word": lambda redis, keys: redis.hset(keys.heads, "#f", "theirs"),
    "notes are a fraction": lambda redis, keys: redis.hset(keys.heads, "#n", "1.5"),
    "notes end at a word": lambda redis, keys: redis.hset(keys.heads, "#x", "theirs"),
    "a note is bytes": lambda redis, keys: redis.hset(keys.notes, uuid4().hex, b"\xff" * 20),
}

VERBS: dict[str, Callable[[WorkingMemory], Awaitable[object]]] = {
    "set": lambda memory: memory.set("held", 2),
    "set another": lambda memory: memory.set("another", 2),
    "set durable": lambda memory: memory.set("held", 2, durable=True),
    "get": lambda memory: memory.get("held"),
    "exists": lambda memory: memory.exists("held"),
    "delete": lambda memory: memory.delete("held"),
    "list_keys": lambda memory: memory.list_keys(),
    "get_all": lambda memory: memory.get_all(),
    "set_task_state": lambda memory: memory.set_task_state(TaskState(description="ours")),
    "get_task_state": lambda memory: memory.get_task_state(),
    "append_scratchpad": lambda memory: memory.append_scratchpad("ours"),
    "get_scratchpad": lambda memory: memory.get_scratchpad(),
    "create_checkpoint": lambda memory: memory.create_checkpoint(),
    "record": lambda memory: memory.record(),
    "clear": lambda memory: memory.clear(),
}


@pytest.fixture
def scope() -> Scope:
    return a_scope(f"foreign {uuid4()}").session("s")


@pytest.fixture
async def redis(servers: EmbeddedServers) -> AsyncIterator[Redis]:
    """Whoever else writes there."""
    made = Redis.from_url(servers.redis_url)
    yield made
    await made.aclose()


@pytest.mark.parametrize("spoilt", SPOILT)
async def test_what_others_wrote_is_told_by_name_and_nothing_else_breaks(
    places: WorkingPlaces, redis: Redis, scope: Scope, spoilt: str
) -> None:
    keys = scope_keys(contract_settings().namespace, scope)
    memory, told = WorkingMemory(places, scope), []
    beside = WorkingMemory(places, a_scope("foreign beside"))

    for call in VERBS.values():
        await redis.delete(keys.values, keys.heads, keys.notes)
        await memory.set("held", 1)
        await memory.append_scratchpad("ours")
        for key in (keys.values, keys.heads, keys.notes):
            if f"{key[-1]}" in _replaced(spoilt):
                await redis.delete(key)
        await SPOILT[spoilt](redis, keys)
        try:
            await call(memory)
        except MnemicError as fault:
            told.append(str(fault))

    assert told, "no verb noticed; the case proves nothing"
    assert {one for one in told if "did not write" not in one} == set()
    await beside.set("held", 1)
    assert await beside.get("held") == 1
    await redis.delete(keys.values, keys.heads, keys.notes)
    await memory.set("held", 3)
    assert await memory.get("held") == 3


def _replaced(spoilt: str) -> str:
    """The last letter of the key that is of another type."""
    return {"values are a text": "v", "heads are a list": "h", "notes are a set": "n"}.get(
        spoilt, ""
    )


@pytest.mark.parametrize(
    "words",
    [
        "Script killed by user with SCRIPT KILL. script: 71f0a, on @user_script:2.",
        "Unknown Redis command called from script script: 71f0a, on @user_script:5.",
        "user_script:9: Script attempted to access nonexistent global variable 'x'",
    ],
)
def test_what_is_no_fault_of_the_data_is_told_as_it_is(words: str) -> None:
    told = translated(ResponseError(words), sent=True)

    assert type(told) is MnemicError
    assert str(told) == f"Valkey answered with an error: {words}"
