"""What is written at the moment at which it is forgotten: one of both came first, for everybody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import asyncpg
import pytest

from mnemic import (
    Conflict,
    EpisodeCreate,
    FactCreate,
    InvalidInput,
    MemoryManager,
    NotFound,
    ProcedureCreate,
    Retracted,
    Scope,
    Step,
    TurnCreate,
)
from mnemic.model.embedding import Vector
from mnemic.settings import MemorySettings
from mnemic.testing import TickingClock, a_conversation, a_fact, a_scope, a_turn
from mnemic.wiring import Wiring

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
ROUNDS = 12
LIKES = FactCreate(subject="Ann", predicate="likes", object="gnus")
LIVES = FactCreate(subject="Ann", predicate="lives_in", object="Oslo")
WAY = ProcedureCreate(name="Ship it", steps=(Step(action="Tag the gnus"),))


async def _after(milliseconds: float, call: Callable[[], Awaitable[Any]]) -> Any:
    await asyncio.sleep(milliseconds / 1_000)  # spreads the calls over what they race with
    try:
        return await call()
    except (Conflict, NotFound, Retracted) as refused:
        return refused


def _keep(memory: MemoryManager, scope: Scope, what: Any) -> Awaitable[Any]:
    if isinstance(what, FactCreate):
        return memory.store_fact(what, scope=scope)
    return memory.at(scope).procedural.record_procedure(what)


async def _is_found(memory: MemoryManager, scope: Scope, what: Any) -> bool:
    if isinstance(what, FactCreate):
        return bool(await memory.at(scope).semantic.get_by_entity("Ann"))
    return bool(await memory.at(scope).procedural.find_matching("Ship it"))


@pytest.mark.parametrize("what", [LIKES, LIVES, WAY], ids=["fact", "single value", "procedure"])
async def test_what_is_kept_while_it_is_forgotten_is_gone_or_not_refused(
    memory: MemoryManager, what: Any
) -> None:
    wrong = []
    for number in range(ROUNDS):
        scope = a_scope()
        kept = await _keep(memory, scope, what)

        await asyncio.gather(
            memory.forget([kept.id], scope=scope),
            *(_after(delay, partial(_keep, memory, scope, what)) for delay in range(1, 9)),
        )

        if await _is_found(memory, scope, what):
            wrong.append(number)
        with pytest.raises(Retracted):
            await _keep(memory, scope, what)
    assert wrong == []


async def test_what_is_forgotten_above_while_a_session_ends_does_not_come_up_with_it(
    memory: MemoryManager,
) -> None:
    wrong = []
    for number in range(ROUNDS):
        project = a_scope().project("p")
        session = project.session("s")
        kept = await memory.store_fact(LIKES, scope=project)
        await memory.store_fact(LIKES, scope=session)

        await asyncio.gather(
            memory.forget([kept.id], scope=project),
            _after(number * 0.7, partial(memory.sessions.end, scope=session)),
        )
        await memory.sessions.end(scope=session)

        if await _is_found(memory, project, LIKES):
            wrong.append(number)
    assert wrong == []


async def test_no_fact_is_read_from_an_episode_that_is_forgotten_meanwhile(
    memory: MemoryManager, seen: asyncpg.Connection
) -> None:
    told = EpisodeCreate(task_description="I use Zed. My name is Zedcanary.", occurred_at=AT)
    wrong = []
    for number in range(ROUNDS):
        scope = a_scope()
        here = memory.at(scope)
        episode = await here.episodic.record_episode(told)

        await asyncio.gather(
            _after(0, partial(here.semantic.extract_facts_from_episode, episode)),
            _after(number * 1.5, partial(memory.forget, [episode.id], scope=scope)),
        )

        left = await seen.fetchval(
            "SELECT count(*) FROM mnemic.facts WHERE tenant_id = $1", scope.tenant.id
        )
        if left:
            wrong.append((number, left))
    assert wrong == []


async def test_no_answer_of_a_key_quotes_what_was_forgotten(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    spaced = a_fact(subject="Zanzacanary  person")
    fact = await memory.store_fact(spaced, scope=scope, idempotency_key="k1")
    twice = TurnCreate(
        text="The lease is red.", actor="User", occurred_at=AT, tags=("ttcanary", "ttcanary")
    )
    session = scope.session("s")
    [turn] = await memory.sessions.append([twice], scope=session, idempotency_key="k2")
    assert fact.notes

    await memory.forget([fact.id], scope=scope)
    await memory.forget([turn.id], scope=session)

    answers = await seen.fetch(
        "SELECT answer::text FROM mnemic.idempotency_keys WHERE tenant_id = $1", scope.tenant.id
    )
    assert len(answers) == 2
    assert [row[0] for row in answers if "canary" in row[0]] == []
    again = await memory.store_fact(spaced, scope=scope, idempotency_key="k1")
    assert (again.id, again.notes) == (fact.id, ())


async def test_no_answer_quotes_what_a_session_left_behind(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    kept = await memory.store_fact(a_fact(subject="Zanzacanary person"), scope=scope)
    spaced = a_fact(subject="Zanzacanary  person")
    left = await memory.store_fact(spaced, scope=session, idempotency_key="k")
    await memory.sessions.end(scope=session)
    assert left.notes

    await memory.forget([kept.id], scope=scope)

    answers = await seen.fetch(
        "SELECT answer::text FROM mnemic.idempotency_keys WHERE tenant_id = $1", scope.tenant.id
    )
    assert len(answers) == 1
    assert "canary" not in answers[0][0]


async def test_no_word_is_counted_of_what_a_session_left_behind(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    kept = await memory.store_fact(a_fact(object="quokkacanary"), scope=scope)
    await memory.store_fact(a_fact(object="quokkacanary"), scope=session)
    await memory.sessions.end(scope=session)
    await memory.maintenance.count_terms()

    await memory.forget([kept.id], scope=scope)

    left = await seen.fetch(
        "SELECT term FROM mnemic.term_stats WHERE tenant_id = $1 AND term LIKE 'quokka%'",
        scope.tenant.id,
    )
    assert left == []


class _Slow:
    """An embedder that is away first, and then holds its answer until it is let go."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.signature = inner, inner.signature
        self.is_away, self.holds = True, False
        self.asked, self.goes = asyncio.Event(), asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if self.is_away:
            raise OSError
        vectors: list[Vector] = await self.inner.embed(list(texts))
        # Others of the same database have texts without a vector as well.
        if self.holds and any("diabetes" in text for text in texts):
            self.holds = False
            self.asked.set()
            await self.goes.wait()
        return vectors

    async def close(self) -> None:
        """Its owner closes it."""


async def test_a_vector_of_words_that_are_no_longer_said_is_not_kept(
    settings: MemorySettings,
    embedder: Any,
    clock: TickingClock,
    scope: Scope,
    seen: asyncpg.Connection,
) -> None:
    slow = _Slow(embedder)
    session = scope.session("s")
    talk = ["My secret diagnosis is diabetes.", "The roof of the house is red."]
    async with MemoryManager(Wiring(settings, clock=clock, embedder=slow)) as memory:
        turns = await memory.sessions.append(a_conversation(talk), scope=session)
        ended = await memory.sessions.end(scope=session)
        slow.is_away, slow.holds = False, True
        job = asyncio.create_task(memory.maintenance.embed_missing())
        await slow.asked.wait()
        slow.is_away = True
        await memory.forget([turns[0].id], scope=scope)
        slow.is_away = False
        slow.goes.set()
        await job
        assert ended is not None
        waits = await seen.fetchval(
            "SELECT needs_vector FROM mnemic.episodes WHERE id = $1", ended.id
        )
        await memory.maintenance.embed_missing()

        found = await memory.recall("diabetes", scope=scope, floor=0.0, memory_types=("episodic",))

    [hit] = [one for one in found.hits if one.kind == "episode"]
    assert waits is True
    assert hit.reasons.cosine < 0.4


async def test_a_run_of_marks_that_would_stop_everybody_is_refused(
    memory: MemoryManager, scope: Scope
) -> None:
    run = "\u0f71\u0f72" * 20_000
    for call in (
        lambda: memory.remember(f"x{run}", scope=scope),
        lambda: memory.recall(f"x{run[:1_000]}", scope=scope),
        lambda: memory.sessions.append([a_turn(f"x{run}")], scope=scope.session("s")),
    ):
        with pytest.raises(InvalidInput, match="combining marks in a row"):
            await call()

    kept = await memory.remember("x" + "\u0301" * 30, scope=scope)
    assert kept.created


@pytest.mark.parametrize("mark", ["\x01", "\x07", "\x7f", "\u2800", "\ufff9"])
async def test_a_mark_that_nobody_sees_is_no_way_round_a_retraction(
    memory: MemoryManager, scope: Scope, mark: str
) -> None:
    kept = await memory.store_fact(LIKES, scope=scope)
    await memory.forget([kept.id], scope=scope)

    with pytest.raises(Retracted):
        await memory.store_fact(replace(LIKES, object=f"gn{mark}us"), scope=scope)


async def test_an_ended_session_is_not_resumed_by_way_of_a_checkpoint(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    working = memory.at(session).working
    await memory.sessions.start(scope=session)
    await working.set("k", "one")
    checkpoint = await working.create_checkpoint()
    await memory.sessions.end(scope=session)
    await working.set("k", "two")

    with pytest.raises(Conflict, match="has ended"):
        await memory.lifecycle.resume(scope=session, checkpoint_id=checkpoint)

    assert await working.get("k") == "two"
