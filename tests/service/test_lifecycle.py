from __future__ import annotations

from datetime import timedelta

import asyncpg
import pytest

from mnemic import (
    Conflict,
    Durability,
    InvalidInput,
    MemoryManager,
    NotFound,
    Scope,
    SessionState,
)
from mnemic.model.working import TaskState
from mnemic.testing import TickingClock, a_conversation

TALK = ["Our deploys are frozen on Fridays because of the support rota.", "Noted."]


async def test_a_spawned_agent_starts_with_what_stands_above_it(
    memory: MemoryManager, scope: Scope
) -> None:
    await memory.remember("Deploys are frozen on Fridays.", scope=scope)

    section = await memory.lifecycle.spawn(
        scope=scope.project("p").agent("new").session("s"), task="deploy the service"
    )

    assert "Deploys are frozen on Fridays." in section.text


async def test_what_an_agent_held_survives_a_pause_longer_than_its_time(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    session = scope.session("s")
    here = memory.at(session).working
    await memory.lifecycle.spawn(scope=session, task="migrate")
    await here.set("table", "payments", ttl_seconds=60)
    await here.set_task_state(TaskState("copy", "in_progress", 0.5))
    await here.append_scratchpad("two tables are left")

    checkpoint = await memory.lifecycle.pause(scope=session)
    clock.advance(timedelta(days=3))
    resumed = await memory.lifecycle.resume(scope=session, checkpoint_id=checkpoint)

    assert resumed.state is SessionState.ACTIVE
    assert await here.get_task_state() == TaskState("copy", "in_progress", 0.5)
    assert await here.get_scratchpad() == ["two tables are left"]


async def test_resuming_restores_only_what_is_gone(memory: MemoryManager, scope: Scope) -> None:
    session = scope.session("s")
    here = memory.at(session).working
    await memory.lifecycle.spawn(scope=session, task="migrate")
    await here.set("n", 1)
    await memory.lifecycle.pause(scope=session)
    await here.set("n", 2)

    await memory.lifecycle.resume(scope=session)
    kept = await here.get("n")
    await here.clear()
    await memory.lifecycle.pause(scope=session)
    await memory.lifecycle.resume(scope=session)

    assert kept == 2


async def test_a_terminated_agent_leaves_an_episode_of_its_work_and_no_working_memory(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    here = memory.at(session).working
    await memory.lifecycle.spawn(scope=session, task="migrate")
    await here.set("table", "payments")
    await here.set("kept", "until it ends", durable=True)
    await here.set_task_state(
        TaskState("copy", "failed", 0.5, description="Migrate the payments table")
    )
    await here.append_scratchpad("Lesson: build indexes concurrently.")

    receipt = await memory.lifecycle.terminate(scope=session)

    assert receipt is not None
    row = await seen.fetchrow("SELECT * FROM mnemic.episodes WHERE id = $1", receipt.id)
    assert row is not None
    assert row["outcome"] == "failure"
    assert row["message_count"] == 0
    assert "payments" in f"{row['title']} {row['summary']}"
    assert "concurrently" in str(row["lessons_learned"])
    assert await here.get_all() == {}
    assert await here.get_scratchpad() == []
    with pytest.raises(Conflict):
        await memory.lifecycle.spawn(scope=session, task="again")


async def test_a_conversation_and_its_task_make_one_episode(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    await memory.sessions.append(a_conversation(TALK), scope=session)
    await memory.at(session).working.set_task_state(TaskState("check", "done", 1.0))

    receipt = await memory.lifecycle.terminate(scope=session)

    assert receipt is not None
    row = await seen.fetchrow("SELECT * FROM mnemic.episodes WHERE id = $1", receipt.id)
    assert row is not None
    assert (row["outcome"], row["message_count"]) == ("success", 2)


async def test_a_working_memory_is_remembered_under_a_key(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")

    made = await memory.remember("42", scope=session, memory_type="working")
    named = await memory.remember(
        "43", scope=session, memory_type="working", key="answer", ttl_seconds=60
    )

    here = memory.at(session).working
    assert made.key is not None
    assert (await here.get(made.key), await here.get("answer")) == ("42", "43")
    assert (named.kind, named.key, named.durability) == ("working", "answer", Durability.VALKEY)
    with pytest.raises(InvalidInput, match="key: is for working memory alone"):
        await memory.remember("A fact.", scope=session, key="answer")


async def test_a_working_memory_is_kept_once_for_each_key(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    here = memory.at(session).working

    first = await memory.remember(
        "42", scope=session, memory_type="working", idempotency_key="once"
    )
    await here.clear()
    again = await memory.remember(
        "42", scope=session, memory_type="working", idempotency_key="once"
    )

    assert again == first
    assert await here.get_all() == {}
    with pytest.raises(Conflict):
        await memory.remember("43", scope=session, memory_type="working", idempotency_key="once")
    assert await here.get_all() == {}


async def test_what_cannot_rest_leaves_no_checkpoint(memory: MemoryManager, scope: Scope) -> None:
    session = scope.session("never started")

    with pytest.raises(NotFound):
        await memory.lifecycle.pause(scope=session)

    assert await memory.at(session).working.checkpoints() == []
