"""What is kept in a session takes part in it, whether anything is said there or not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from mnemic import (
    Conflict,
    EpisodeCreate,
    MemoryManager,
    NotFound,
    ProcedureCreate,
    Scope,
    SessionState,
    Step,
)
from mnemic.testing import TickingClock, a_fact, a_turn

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
STEPS = "Ship it\n1. Run the tests\n2. Tag the release"


async def _extract(memory: MemoryManager, scope: Scope) -> Any:
    above = memory.at(scope.parent or scope)
    told = EpisodeCreate(task_description="We use Valkey for the carts.", occurred_at=AT)
    episode = await above.episodic.record_episode(told)
    return await memory.at(scope).semantic.extract_facts_from_episode(episode)


KEEPS: dict[str, Callable[[MemoryManager, Scope], Awaitable[Any]]] = {
    "a statement": lambda memory, scope: memory.remember("I use Vim.", scope=scope),
    "an experience": lambda memory, scope: memory.remember(
        "The deploy went well.", memory_type="episodic", scope=scope
    ),
    "a way": lambda memory, scope: memory.remember(STEPS, memory_type="procedural", scope=scope),
    "a fact": lambda memory, scope: memory.store_fact(a_fact(), scope=scope),
    "a fact of the tier": lambda memory, scope: memory.at(scope).semantic.store_fact(a_fact()),
    "an episode": lambda memory, scope: memory.at(scope).episodic.record_episode(
        EpisodeCreate(task_description="The deploy went well.", occurred_at=AT)
    ),
    "a procedure": lambda memory, scope: memory.at(scope).procedural.record_procedure(
        ProcedureCreate(name="Ship it", steps=(Step(action="Run the tests"),))
    ),
    "what an episode says": _extract,
}


async def _held(memory: MemoryManager, scope: Scope) -> int:
    found = await memory.recall("Vim deploy tests Valkey", scope=scope, floor=0.0, limit=100)
    return sum(hit.memory.scope_id == scope.id for hit in found.hits)


@pytest.mark.parametrize("keeps", KEEPS.values(), ids=KEEPS.keys())
async def test_what_is_kept_in_a_session_moves_up_when_it_ends(
    memory: MemoryManager, scope: Scope, keeps: Callable[..., Awaitable[Any]]
) -> None:
    session = scope.session("quiet")

    await keeps(memory, session)
    before = await _held(memory, session)
    await memory.sessions.end(scope=session)

    assert before == 1
    assert await _held(memory, session) == 0
    assert await _held(memory, scope) >= 1


@pytest.mark.parametrize("keeps", KEEPS.values(), ids=KEEPS.keys())
async def test_nothing_is_kept_in_a_session_that_has_ended(
    memory: MemoryManager, scope: Scope, keeps: Callable[..., Awaitable[Any]]
) -> None:
    session = scope.session("over")
    await memory.sessions.start(scope=session)
    await memory.sessions.end(scope=session)

    with pytest.raises(Conflict, match="The session has ended"):
        await keeps(memory, session)

    assert await _held(memory, session) == 0


async def test_a_call_repeated_after_the_end_has_its_answer(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    first = await memory.remember("I use Vim.", scope=session, idempotency_key="k")
    await memory.sessions.end(scope=session)

    again = await memory.remember("I use Vim.", scope=session, idempotency_key="k")

    assert again == first
    with pytest.raises(Conflict, match="The session has ended"):
        await memory.remember("I use Vim.", scope=session, idempotency_key="another")


async def test_what_is_kept_is_activity_and_does_not_wake_a_session_that_rests(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    session = scope.session("s")
    await memory.sessions.start(scope=session)
    begun = await memory.sessions.pause(scope=session)
    clock.advance(timedelta(minutes=5))

    await memory.remember("I use Vim.", scope=session)

    stands = await memory.sessions.start(scope=session)
    assert stands.state is SessionState.PAUSED
    assert stands.last_active_at >= begun.last_active_at + timedelta(minutes=5)


async def test_an_idle_session_without_a_turn_is_ended_too(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    session = scope.session("s")
    await memory.remember("I use Vim.", scope=session)
    clock.advance(timedelta(hours=1))

    await memory.maintenance.end_idle_sessions()

    with pytest.raises(Conflict, match="has ended"):
        await memory.sessions.start(scope=session)
    assert await _held(memory, scope) == 1


async def test_what_is_kept_while_it_ends_moves_up_or_is_refused(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    await memory.sessions.append([a_turn("We begin.")], scope=session)

    async def keep(number: int) -> bool:
        try:
            await memory.remember(f"I use tool{number}.", scope=session)
        except Conflict:
            return False
        return True

    kept, *_ = await asyncio.gather(
        asyncio.gather(*(keep(number) for number in range(12))),
        memory.sessions.end(scope=session),
    )

    above = await memory.at(scope).semantic.search_facts("tool", limit=50)
    assert len(above) == sum(kept)
    assert await _held(memory, session) == 0


async def test_a_turn_said_before_now_moves_the_start_of_a_session_that_something_was_kept_in(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    await memory.remember("I use Vim.", scope=session)

    await memory.sessions.append([a_turn("Long ago.", occurred_at=AT)], scope=session)

    stands = await memory.sessions.start(scope=session)
    assert stands.started_at == AT


async def test_an_episode_is_believed_by_its_id_alone(memory: MemoryManager, scope: Scope) -> None:
    here = memory.at(scope)
    told = EpisodeCreate(task_description="We use Valkey for the carts.", occurred_at=AT)
    episode = await here.episodic.record_episode(told)

    [fact] = await here.semantic.extract_facts_from_episode(
        replace(episode, summary="I use Emacs.", task_description="I use Emacs.")
    )

    assert fact.object == "Valkey"
    with pytest.raises(NotFound):
        await here.semantic.extract_facts_from_episode(replace(episode, id=uuid4()))


def _way(*actions: str) -> ProcedureCreate:
    return ProcedureCreate(name="Ship it", steps=tuple(Step(action=one) for one in actions))


async def test_a_procedure_whose_name_stands_above_becomes_its_next_version(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    above, here = memory.at(scope).procedural, memory.at(session).procedural
    first = await above.record_procedure(_way("Tag the release"))
    await above.record_outcome(first.id, success=False)
    tried = await here.record_procedure(_way("Run the tests", "Tag the release"))
    for number in range(3):
        await here.record_outcome(tried.id, success=True, idempotency_key=f"k{number}")

    await memory.sessions.end(scope=session)

    best = await above.get_best_procedure("general")
    assert best is not None
    assert (best.id, best.version, len(best.steps)) == (first.id, 2, 2)
    assert (best.success_count, best.failure_count) == (3, 1)
    left = await seen.fetch(
        "SELECT id FROM mnemic.procedures WHERE tenant_id = $1 AND status = 'live'",
        scope.tenant.id,
    )
    assert [row["id"] for row in left] == [first.id]


async def test_the_same_procedure_above_stays_at_its_version(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    first = await memory.at(scope).procedural.record_procedure(_way("Tag the release"))
    await memory.at(session).procedural.record_procedure(_way("Tag the release"))

    await memory.sessions.end(scope=session)

    best = await memory.at(scope).procedural.get_best_procedure("general")
    assert best is not None
    assert (best.id, best.version) == (first.id, 1)
