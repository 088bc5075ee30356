"""What is known from before is never stale, never another's, and holds no text."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import redis.asyncio
from pydantic import SecretStr

from mnemic import (
    CacheCounts,
    EmbedderUnavailable,
    EpisodeCreate,
    MemoryManager,
    ProcedureCreate,
    Recall,
    Scope,
    Step,
)
from mnemic.service import foresight
from mnemic.service.caches import Caches
from mnemic.service.tools import Tools
from mnemic.settings import MemorySettings
from mnemic.store import unit
from mnemic.store.measuring.bare import Recorder
from mnemic.testing import TickingClock, a_conversation, a_fact, a_scope, a_turn
from mnemic.wiring import Wiring

QUESTION = "which database holds the carts?"
CANARY = "zanzibar"
Act = Callable[[MemoryManager, Scope, dict[str, Any]], Awaitable[Any]]


async def _say(memory: MemoryManager, scope: Scope, _: dict[str, Any]) -> None:
    said = [a_turn("The database of the carts is Valkey.")]
    await memory.sessions.append(said, scope=scope.session("two"))
    await memory.sessions.end(scope=scope.session("two"))


WRITES: dict[str, Act] = {
    "a fact": lambda memory, scope, _: memory.store_fact(
        a_fact(subject="The carts", object="Valkey as a database"), scope=scope
    ),
    "a turn": _say,
    "an episode": lambda memory, scope, held: memory.at(scope).episodic.record_episode(
        EpisodeCreate(task_description="The carts moved to a database.", occurred_at=held["at"])
    ),
    "a procedure": lambda memory, scope, _: memory.at(scope).procedural.record_procedure(
        ProcedureCreate(name="Move the carts database", steps=(Step(action="Dump it"),))
    ),
    "a confirmation": lambda memory, scope, held: memory.at(scope).semantic.reinforce_fact(
        held["fact"]
    ),
    "a retraction": lambda memory, scope, held: memory.at(scope).semantic.deprecate_fact(
        held["fact"], "wrong"
    ),
    "forgetting": lambda memory, scope, held: memory.forget([held["fact"]], scope=scope),
    "other steps": lambda memory, scope, held: memory.at(scope).procedural.update_steps(
        held["procedure"], [Step(action="Copy the carts")]
    ),
    "another weight": lambda memory, scope, held: memory.at(scope).episodic.update_importance(
        held["episode"], 0.9
    ),
    "the end of a session": lambda memory, scope, _: memory.sessions.end(
        scope=scope.session("one")
    ),
}


@pytest.fixture
async def other(
    settings: MemorySettings, embedder: Any, clock: TickingClock
) -> AsyncIterator[MemoryManager]:
    """Another process, as far as caches go."""
    async with MemoryManager(Wiring(settings, clock=clock, embedder=embedder)) as opened:
        yield opened


@pytest.fixture
async def forgetful(
    settings: MemorySettings, embedder: Any, clock: TickingClock
) -> AsyncIterator[MemoryManager]:
    """A process that keeps nothing."""
    off = settings.model_copy(
        update={"cache": settings.cache.model_copy(update={"recalls_max": 0, "facts_max": 0})}
    )
    async with MemoryManager(Wiring(off, clock=clock, embedder=embedder)) as opened:
        yield opened


async def _filled(memory: MemoryManager, scope: Scope, clock: TickingClock) -> dict[str, Any]:
    fact = await memory.store_fact(
        a_fact(subject="The carts", object="PostgreSQL as a database"), scope=scope
    )
    procedure = await memory.at(scope).procedural.record_procedure(
        ProcedureCreate(name="Back up the carts database", steps=(Step(action="Dump it"),))
    )
    episode = await memory.at(scope).episodic.record_episode(
        EpisodeCreate(task_description="The carts database was slow.", occurred_at=clock())
    )
    said = a_conversation(["The carts live in a database.", "Which one?"])
    await memory.sessions.append(said, scope=scope.session("one"))
    return {"fact": fact.id, "procedure": procedure.id, "episode": episode.id, "at": clock()}


def _told(found: Recall) -> Recall:
    """Without what depends on when it was asked."""
    hits = tuple(
        replace(hit, score=round(hit.score, 4), reasons=hit.reasons._replace(bounded=0.0))
        for hit in found.hits
    )
    return replace(found, took=timedelta(0), hits=hits, confidence=round(found.confidence, 4))


async def _recalls(memory: MemoryManager) -> CacheCounts:
    return (await memory.maintenance.caches())["recalls"]


async def test_what_was_asked_before_is_answered_alike_without_searching(
    memory: MemoryManager, forgetful: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    await _filled(memory, scope, clock)

    answers = [await memory.recall(QUESTION, scope=scope) for _ in range(3)]
    anew = await forgetful.recall(QUESTION, scope=scope)

    assert [_told(one) for one in answers] == [_told(anew)] * 3
    assert anew.returned > 2
    assert await _recalls(memory) == CacheCounts(hits=2, misses=1, entries=1)
    assert await _recalls(forgetful) == CacheCounts()


@pytest.mark.parametrize("name", WRITES)
async def test_what_is_written_is_heard_of_in_every_process(
    memory: MemoryManager,
    other: MemoryManager,
    forgetful: MemoryManager,
    scope: Scope,
    clock: TickingClock,
    name: str,
) -> None:
    held = await _filled(memory, scope, clock)
    before = [await one.recall(QUESTION, scope=scope, floor=0.0) for one in (memory, other)]
    contexts = [await one.context(QUESTION, scope=scope) for one in (memory, other)]

    await WRITES[name](memory, scope, held)

    after = [await one.recall(QUESTION, scope=scope, floor=0.0) for one in (memory, other)]
    anew = await forgetful.recall(QUESTION, scope=scope, floor=0.0)
    assert [_told(one) for one in after] == [_told(anew)] * 2
    assert _told(anew) != _told(before[0])
    written = await forgetful.context(QUESTION, scope=scope)
    assert (await memory.context(QUESTION, scope=scope)).text == written.text
    assert (await other.context(QUESTION, scope=scope)).text == written.text
    assert contexts[0].text == contexts[1].text


async def test_nobody_is_answered_with_what_another_one_asked_for(
    memory: MemoryManager, clock: TickingClock
) -> None:
    mine, yours = a_scope(), a_scope()
    await _filled(memory, mine.project("shop"), clock)
    asking = (mine.project("shop"), mine.project("shop").agent("a"), mine, mine.project("x"), yours)

    found = {
        scope: [(await memory.recall(QUESTION, scope=scope)).returned for _ in range(2)]
        for scope in asking
    }

    assert [min(found[scope]) > 0 for scope in asking] == [True, True, False, False, False]
    assert [max(found[scope]) > 0 for scope in asking] == [True, True, False, False, False]
    other_kind = await memory.recall(QUESTION, scope=asking[0], memory_types=["procedural"])
    assert {hit.kind for hit in other_kind.hits} == {"procedure"}
    assert (await memory.recall(QUESTION, scope=asking[0], limit=1)).returned == 1


async def _valkey_texts(url: str) -> str:
    """All that Valkey holds."""
    readers = {"string": "get", "hash": "hgetall", "set": "smembers"}
    client = redis.asyncio.Redis.from_url(url)
    found = []
    async for key in client.scan_iter():
        kind = (await client.type(key)).decode()
        if kind == "list":
            found.append(await client.lrange(key, 0, -1))
        elif kind == "zset":
            found.append(await client.zrange(key, 0, -1))
        else:
            found.append(await getattr(client, readers[kind])(key))
        found.append(key)
    await client.aclose()
    return repr(found)


async def test_no_cache_holds_a_text(tools: Tools, settings: MemorySettings, scope: Scope) -> None:
    memory = MemoryManager(Wiring(settings))
    memory._opened = tools
    fact = await memory.store_fact(a_fact(object=CANARY), scope=scope)
    for _ in range(2):
        found = await memory.recall(f"User uses {CANARY}", scope=scope)
        context = await memory.context(f"User uses {CANARY}", scope=scope)
    kept = repr([tools.caches.recalls._kept, tools.caches.facts._kept])
    vectors = repr(getattr(tools.embedder, "inner", tools.embedder)._kept)

    await memory.forget([fact.id], scope=scope)

    assert CANARY in found.hits[0].text
    assert CANARY in context.text
    assert str(fact.id) in kept
    assert CANARY not in kept + vectors
    url = settings.redis_url.get_secret_value()  # type: ignore[union-attr]
    assert CANARY not in await _valkey_texts(url)
    again = await memory.recall(f"User uses {CANARY}", scope=scope, floor=0.0)
    assert CANARY not in "".join(hit.text for hit in again.hits)
    await memory.at(scope.session("s")).working.set("k", CANARY)
    assert CANARY in await _valkey_texts(url)  # which the look would have seen


async def test_an_answer_is_kept_for_a_while_only(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    await _filled(memory, scope, clock)
    await memory.recall(QUESTION, scope=scope)
    clock.advance(timedelta(seconds=memory.settings.cache.seconds + 1))

    await memory.recall(QUESTION, scope=scope)

    assert (await _recalls(memory)).hits == 0


async def test_the_least_used_answer_goes_first(
    settings: MemorySettings, embedder: Any, scope: Scope
) -> None:
    small = settings.model_copy(
        update={"cache": settings.cache.model_copy(update={"recalls_max": 2})}
    )
    async with MemoryManager(Wiring(small, embedder=embedder)) as memory:
        for question in ("one", "two", "one", "three", "one", "two"):
            await memory.recall(question, scope=scope)

        assert await _recalls(memory) == CacheCounts(hits=2, misses=4, entries=2)


async def test_a_cache_costs_a_new_question_no_transaction(
    tools: Tools, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foresight, "WAIT_SECONDS", 30.0)  # for a busy machine
    recorder = Recorder(tools.database)
    memory = MemoryManager(Wiring(tools.settings))
    memory._opened = replace(tools, database=recorder)
    await memory.store_fact(a_fact(), scope=scope)

    async def asked() -> list[int]:
        """How many statements each transaction of a recall has."""
        recorder.transactions.clear()
        await memory.recall("User uses PostgreSQL", scope=scope, memory_types=["semantic"])
        return [len(one.statements) for one in recorder.transactions]

    first, again = await asked(), await asked()
    await memory.store_fact(a_fact(subject="The carts"), scope=scope)
    after = await asked()

    assert first == [3]  # statistics, candidates, rows
    assert again == [2]  # the count of writes, rows
    assert after == [2, 2]  # the count before the statistics


async def test_what_is_written_while_a_question_is_answered_ends_the_answer(
    tools: Tools, scope: Scope
) -> None:
    memory, other = MemoryManager(Wiring(tools.settings)), MemoryManager(Wiring(tools.settings))
    other._opened = tools
    await other.store_fact(a_fact(), scope=scope)
    embedder = Interrupted(tools.embedder)
    memory._opened = replace(tools, embedder=embedder, caches=Caches(tools.settings.cache))

    async def interrupt() -> None:
        await other.store_fact(a_fact(subject="The carts"), scope=scope)

    embedder.act = interrupt
    await memory.recall("what uses PostgreSQL", scope=scope, floor=0.0)
    again = await memory.recall("what uses PostgreSQL", scope=scope, floor=0.0)

    assert await _recalls(memory) == CacheCounts(hits=0, misses=2, entries=1)
    assert again.searched == 2


async def test_an_answer_that_tells_a_word_of_a_memory_is_not_kept(
    memory: MemoryManager, scope: Scope
) -> None:
    await memory.store_fact(a_fact(object="the received parcel"), scope=scope)
    quoting = [await memory.recall("recieved", scope=scope) for _ in range(2)]
    entries = (await _recalls(memory)).entries
    plain = [await memory.recall("received", scope=scope) for _ in range(2)]

    assert [any("read as" in note for note in one.notes) for one in quoting] == [True, True]
    assert [any("read as" in note for note in one.notes) for one in plain] == [False, False]
    assert entries == 0
    assert await _recalls(memory) == CacheCounts(hits=1, misses=3, entries=1)


class Interrupted:
    """An embedder that does something else first, the first time."""

    def __init__(self, embedder: Any) -> None:
        self.signature = embedder.signature
        self.act: Callable[[], Awaitable[None]] | None = None
        self._inner = embedder

    async def embed(self, texts: list[str]) -> list[Any]:
        if self.act is not None:
            act, self.act = self.act, None
            await act()
        return list(await self._inner.embed(texts))

    async def close(self) -> None:
        """Nothing is open."""


class Away:
    """An embedder whose service is away."""

    def __init__(self, embedder: Any) -> None:
        self.signature = embedder.signature

    async def embed(self, _: list[str]) -> list[Any]:
        raise EmbedderUnavailable

    async def close(self) -> None:
        """Nothing is open."""


async def test_a_degraded_answer_is_not_kept(
    settings: MemorySettings, memory: MemoryManager, embedder: Any, scope: Scope
) -> None:
    await memory.store_fact(a_fact(), scope=scope)
    async with MemoryManager(Wiring(settings, embedder=Away(embedder))) as degraded:
        found = [await degraded.recall("PostgreSQL", scope=scope) for _ in range(2)]

        assert [bool(one.degraded) for one in found] == [True, True]
        assert (await _recalls(degraded)).entries == 0


async def test_without_valkey_what_is_written_is_heard_of(
    settings: MemorySettings, other: MemoryManager, embedder: Any, scope: Scope, clock: TickingClock
) -> None:
    alone = settings.model_copy(update={"redis_url": SecretStr("redis://127.0.0.1:1/0")})
    held = await _filled(other, scope, clock)
    async with MemoryManager(Wiring(alone, clock=clock, embedder=embedder)) as memory:
        first = await memory.recall(QUESTION, scope=scope)
        again = await memory.recall(QUESTION, scope=scope)
        await other.forget([held["fact"]], scope=scope)
        after = await memory.recall(QUESTION, scope=scope)

        assert (await _recalls(memory)).hits == 1
    assert held["fact"] in {hit.id for hit in first.hits} & {hit.id for hit in again.hits}
    assert held["fact"] not in {hit.id for hit in after.hits}


async def _stale(memory: MemoryManager, other: MemoryManager, chance: random.Random) -> list[int]:
    """When something was found that had been forgotten, or not found that had been told."""
    scope, known, wrong = a_scope(), {}, []
    for number in range(40):
        writer, reader = chance.choice([(memory, other), (other, memory), (memory, memory)])
        if known and chance.random() < 0.4:
            gone = chance.choice(sorted(known))
            await writer.forget([known.pop(gone)], scope=scope)
        else:
            fact = a_fact(object=f"tool {number}")
            known[number] = (await writer.store_fact(fact, scope=scope)).id
        found = await reader.recall("User uses tool", scope=scope, floor=0.0, limit=100)
        if {hit.id for hit in found.hits} != set(known.values()):
            wrong.append(number)
    return wrong


async def test_no_order_of_writes_and_questions_leaves_a_stale_answer(
    memory: MemoryManager,
    other: MemoryManager,
    pytestconfig: pytest.Config,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = random.Random(pytestconfig.getoption("seed"))

    assert await _stale(memory, other, chance) == []

    monkeypatch.setattr(unit, "counting", lambda _tenant: "")
    assert await _stale(memory, other, chance) != []  # the count is what keeps it right
