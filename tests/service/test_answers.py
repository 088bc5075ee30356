"""A memory that a key answered with is given again as it was, until what it quotes is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any
from uuid import UUID, uuid5

import asyncpg
import pytest
from redis.asyncio import Redis

from mnemic import (
    Conflict,
    EpisodeCreate,
    InvalidInput,
    MemoryManager,
    NotFound,
    Outcome,
    ProcedureCreate,
    Retracted,
    Scope,
    Step,
    Trust,
)
from mnemic.model.episode import Episode
from mnemic.model.receipt import Receipt
from mnemic.service.record_episode import _EPISODE
from mnemic.service.witness import Write, committed, land_and_show, request_digest
from mnemic.settings import MemorySettings
from mnemic.store.unit import Unit
from mnemic.testing import TickingClock, a_conversation, a_fact, a_scope
from mnemic.wiring import Wiring
from oracles.stored import tables_that_hold

CANARY = "zanzacanary"
AT = datetime(2026, 3, 2, 9, 0, 0, 123_456, tzinfo=timezone(timedelta(hours=5, minutes=30)))
TOLD: dict[str, Any] = {
    "metadata": {
        "z": 1,
        "float": 1.0,
        "large": 1e17,
        "small": 5e-324,
        "nested": {"list": [1, 2.5, None, True, "名"], "empty": {}},
    },
    "tags": ("red, green", "ops"),
    "trust": Trust.APPROVED,
}
FACT = a_fact(
    subject=CANARY, predicate="lives_in", object="Oslo", content="Zanzacanary: Øslo", **TOLD
)
EPISODE = EpisodeCreate(
    task_description=f"Moved {CANARY} to PostgreSQL.",
    occurred_at=AT,
    outcome=Outcome.PARTIAL,
    actions=({"tool": "psql", "args": {"n": 1, "f": 1.0}},),
    lessons_learned=("Build indexes concurrently.",),
    duration_seconds=12.0,
    tokens_used=4_000,
    **TOLD,
)
STEPS = (Step(action=f"Tag {CANARY}", expected="a tag"), Step(action="Push it"))
WAY = ProcedureCreate(name="Ship it", steps=STEPS, preconditions=("CI is green",), **TOLD)

Call = Callable[[Any, Any, str], Awaitable[Any]]


async def _nothing(_here: Any) -> list[UUID]:
    return []


async def _a_fact(here: Any) -> list[UUID]:
    return [(await here.semantic.store_fact(FACT)).id]


async def _two_facts(here: Any) -> list[UUID]:
    told = [a_fact(subject=CANARY, predicate="deploys_to", object=one) for one in ("Oslo", "Rome")]
    return [(await here.semantic.store_fact(one)).id for one in told]


async def _a_way(here: Any) -> list[UUID]:
    return [(await here.procedural.record_procedure(WAY)).id]


@dataclass(frozen=True)
class Verb:
    """`call` answers with a memory; `other` asks something else; `change` is what comes after."""

    call: Call
    other: Call
    change: Call
    ready: Callable[[Any], Awaitable[list[UUID]]] = _nothing


VERBS = {
    "store_fact": Verb(
        lambda here, _, key: here.semantic.store_fact(FACT, idempotency_key=key),
        lambda here, _, key: here.semantic.store_fact(
            replace(FACT, object="Rome"), idempotency_key=key
        ),
        lambda here, *_: here.semantic.store_fact(replace(FACT, object="Lima")),
    ),
    "reinforce_fact": Verb(
        lambda here, ids, key: here.semantic.reinforce_fact(ids[0], idempotency_key=key),
        lambda here, ids, key: here.semantic.verify_fact(ids[0], idempotency_key=key),
        lambda here, ids, _: here.semantic.deprecate_fact(ids[0], "No longer."),
        _a_fact,
    ),
    "verify_fact": Verb(
        lambda here, ids, key: here.semantic.verify_fact(ids[0], idempotency_key=key),
        lambda here, ids, key: here.semantic.reinforce_fact(ids[0], idempotency_key=key),
        lambda here, ids, _: here.semantic.reinforce_fact(ids[0]),
        _a_fact,
    ),
    "resolve_conflict": Verb(
        lambda here, ids, key: here.semantic.resolve_conflict(ids, idempotency_key=key),
        lambda here, ids, key: here.semantic.reinforce_fact(ids[0], idempotency_key=key),
        lambda here, ids, _: asyncio.gather(
            *(here.semantic.reinforce_fact(one) for one in ids), return_exceptions=True
        ),
        _two_facts,
    ),
    "record_episode": Verb(
        lambda here, _, key: here.episodic.record_episode(EPISODE, idempotency_key=key),
        lambda here, _, key: here.episodic.record_episode(
            replace(EPISODE, tokens_used=4_001), idempotency_key=key
        ),
        lambda here, ids, _: here.episodic.update_importance(ids[0], 0.123),
    ),
    "record_procedure": Verb(
        lambda here, _, key: here.procedural.record_procedure(WAY, idempotency_key=key),
        lambda here, _, key: here.procedural.record_procedure(
            replace(WAY, steps=STEPS[:1]), idempotency_key=key
        ),
        lambda here, ids, _: here.procedural.record_outcome(ids[0], success=True),
    ),
    "update_steps": Verb(
        lambda here, ids, key: here.procedural.update_steps(
            ids[0], [*STEPS, Step(action="Wait")], idempotency_key=key
        ),
        lambda here, ids, key: here.procedural.update_steps(
            ids[0], [Step(action="Wait")], idempotency_key=key
        ),
        lambda here, ids, _: here.procedural.update_steps(ids[0], [Step(action="Sleep")]),
        _a_way,
    ),
}


async def _stands(here: Any, answer: Any) -> Any:
    """The memory as it is now, asked for under a key that its first answer does not stand under."""
    found = await here._tools.transact(
        here._scope.tenant.id,
        lambda unit: getattr(unit, f"{type(answer).__name__.lower()}s").by_ids(
            here._scope,
            [answer.id],
            **({"live_only": False} if type(answer).__name__ == "Fact" else {}),
        ),
    )
    return found[0]


@pytest.mark.parametrize("name", VERBS)
async def test_a_key_gives_the_memory_again_as_it_was(
    memory: MemoryManager, scope: Scope, name: str
) -> None:
    verb, here = VERBS[name], memory.at(scope)
    made = await verb.ready(here)
    first = await verb.call(here, made, "k")
    before = await _stands(here.semantic, first)

    await verb.change(here, made or [first.id], "")

    again = await verb.call(here, made, "k")
    assert again == first == before
    assert repr(again) == repr(first) == repr(before)  # of the same types, in the same order
    assert await _stands(here.semantic, first) != first
    with pytest.raises(Conflict, match="idempotency key"):
        await verb.other(here, made, "k")


@pytest.mark.parametrize("name", VERBS)
async def test_of_many_at_once_with_one_key_each_is_given_the_same_later_as_well(
    memory: MemoryManager, scope: Scope, name: str, seen: asyncpg.Connection
) -> None:
    verb, here = VERBS[name], memory.at(scope)
    made = await verb.ready(here)

    answers = await asyncio.gather(*(verb.call(here, made, "k") for _ in range(32)))

    await verb.change(here, made or [answers[0].id], "")
    answers.append(await verb.call(here, made, "k"))
    assert {repr(one) for one in answers} == {repr(answers[0])}
    told = "SELECT count(*) FROM mnemic.audit_log WHERE tenant_id = $1 AND subject_id = $2"
    stood = len(made) if name == "resolve_conflict" else len(made) > 0
    witnessed = await seen.fetchval(told, scope.tenant.id, answers[0].id)
    changed = 0 if name == "store_fact" else 1  # which is another fact there
    assert witnessed == 1 + changed + (1 if stood else 0)


@pytest.mark.parametrize("name", VERBS)
async def test_no_table_holds_a_word_of_what_was_forgotten_and_the_key_says_so(
    memory: MemoryManager, scope: Scope, name: str, seen: asyncpg.Connection
) -> None:
    verb, here = VERBS[name], memory.at(scope)
    made = await verb.ready(here)
    answer = await verb.call(here, made, "k")
    assert "idempotency_keys" in await tables_that_hold(seen, scope, CANARY)

    await memory.forget(made or [answer.id], scope=scope, idempotency_key="forget")

    assert await tables_that_hold(seen, scope, CANARY) == set()
    with pytest.raises(NotFound, match="was forgotten since"):
        await verb.call(here, made, "k")
    with pytest.raises(Conflict, match="idempotency key"):
        await verb.other(here, made, "k")


async def test_a_key_that_gave_a_receipt_gives_the_memory_as_it_stood_when_it_was_asked(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    here = memory.at(scope).semantic
    receipt = await memory.store_fact(FACT, scope=scope, idempotency_key="k")
    await here.reinforce_fact(receipt.id)

    first = await here.store_fact(FACT, idempotency_key="k")
    await here.reinforce_fact(receipt.id)
    again = await here.store_fact(FACT, idempotency_key="k")

    assert (first.reinforcement_count, again) == (2, first)
    assert await memory.store_fact(FACT, scope=scope, idempotency_key="k") == receipt
    await memory.forget([receipt.id], scope=scope)
    assert await tables_that_hold(seen, scope, CANARY) == set()
    with pytest.raises(NotFound, match="was forgotten since"):
        await here.store_fact(FACT, idempotency_key="k")


async def test_a_fact_that_rested_on_what_was_forgotten_is_not_quoted(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    here = memory.at(scope)
    told = EpisodeCreate(task_description=f"We use {CANARY} for the carts.", occurred_at=AT)
    episode = await here.episodic.record_episode(told)
    [fact] = await here.semantic.extract_facts_from_episode(episode)
    await here.semantic.verify_fact(fact.id, idempotency_key="k")

    await memory.forget([episode.id], scope=scope)

    assert await tables_that_hold(seen, scope, CANARY) == set()
    with pytest.raises(NotFound, match="was forgotten since"):
        await here.semantic.verify_fact(fact.id, idempotency_key="k")


async def test_what_a_session_left_behind_is_not_quoted(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    kept = await memory.at(scope).semantic.store_fact(FACT)
    left = await memory.at(session).semantic.store_fact(FACT, idempotency_key="k")
    await memory.sessions.end(scope=session)
    assert await memory.at(session).semantic.store_fact(FACT, idempotency_key="k") == left

    await memory.forget([kept.id], scope=scope)

    assert await tables_that_hold(seen, scope, CANARY) == set()
    with pytest.raises(NotFound, match="was forgotten since"):
        await memory.at(session).semantic.store_fact(FACT, idempotency_key="k")


async def test_a_procedure_that_lives_on_in_another_is_quoted_until_that_is_forgotten(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    kept = await memory.at(scope).procedural.record_procedure(replace(WAY, steps=STEPS[1:]))
    below = memory.at(session).procedural
    first = await below.record_procedure(WAY, idempotency_key="k")
    await memory.sessions.end(scope=session)

    again = await below.record_procedure(WAY, idempotency_key="k")
    await memory.forget([kept.id], scope=scope)

    assert again == first
    assert first.id != kept.id
    assert await tables_that_hold(seen, scope, CANARY) == set()
    with pytest.raises(NotFound, match="was forgotten since"):
        await below.record_procedure(WAY, idempotency_key="k")


async def test_an_episode_that_is_told_anew_is_answered_with_in_its_new_words(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    said = [f"The vault code is {CANARY}.", "Noted.", "We use Valkey for the carts."]
    turns = await memory.sessions.append(a_conversation(said), scope=session)
    ended = await memory.sessions.end(scope=session)
    assert ended is not None

    async def work(_unit: Unit, _now: datetime) -> Receipt:
        return committed(ended.id, "episode", created=False, notes=(f"told of {CANARY}",))

    async def ask() -> Episode:
        write = Write(operation="any", request=request_digest("any"), key="k")
        return await land_and_show(memory._tools, write, work, _EPISODE, scope=scope)

    first = await ask()

    await memory.forget([turns[0].id], scope=scope)

    told = await ask()
    assert CANARY in repr(first)
    assert (told.id, told.message_count) == (first.id, 2)
    assert await ask() == told
    assert await tables_that_hold(seen, scope, CANARY) == set()


WAITS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND usename = 'mnemic_app' AND wait_event_type = 'Lock'"
)
IN_A_UNIT = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND usename = 'mnemic_app' AND xact_start IS NOT NULL"
)
KEYS = "SELECT count(*) FROM mnemic.idempotency_keys WHERE tenant_id = $1"


async def _until(seen: asyncpg.Connection, asked: str, *values: object) -> None:
    """There is something to count."""
    for _ in range(1_000):
        if await seen.fetchval(asked, *values):
            return
        await asyncio.sleep(0.005)
    raise TimeoutError(asked)


@pytest.mark.parametrize("key", ["a new key", "a key with a receipt"])
async def test_nobody_quotes_what_is_being_forgotten(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, key: str
) -> None:
    here, tools = memory.at(scope).semantic, memory._tools
    receipt_key = "a key with a receipt"
    kept = await memory.store_fact(FACT, scope=scope, idempotency_key=receipt_key)

    async def ask() -> Any:
        if key == receipt_key:
            return await here.store_fact(FACT, idempotency_key=key)
        return await here.reinforce_fact(kept.id, idempotency_key=key)

    async with tools.database.open_unit(scope.tenant.id) as unit:
        await unit.forgetting.locate(scope, [kept.id])
        await unit.forgetting.delete(scope, "fact", [kept.id])
        asking = asyncio.create_task(ask())
        waiting = asyncio.create_task(_until(seen, WAITS))
        done, _ = await asyncio.wait({asking, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()

    assert done == {waiting}
    with pytest.raises(NotFound):
        await asking
    assert await tables_that_hold(seen, scope, CANARY) == set()


async def test_whoever_comes_first_what_was_forgotten_is_quoted_nowhere(
    memory: MemoryManager, seen: asyncpg.Connection
) -> None:
    wrong = []
    for number in range(8):
        scope = a_scope()
        here = memory.at(scope)
        fact = await here.semantic.store_fact(FACT)
        way = await here.procedural.record_procedure(WAY)
        calls = [
            partial(here.semantic.reinforce_fact, fact.id, idempotency_key="1"),
            partial(here.semantic.verify_fact, fact.id, idempotency_key="2"),
            partial(here.semantic.store_fact, FACT, idempotency_key="3"),
            partial(here.procedural.update_steps, way.id, list(STEPS[:1]), idempotency_key="4"),
            partial(here.procedural.record_procedure, WAY, idempotency_key="5"),
        ]

        await asyncio.gather(
            memory.forget([fact.id, way.id], scope=scope),
            *(_after(place * 0.7 + number / 10, call) for place, call in enumerate(calls)),
        )

        if left := await tables_that_hold(seen, scope, CANARY):
            wrong.append((number, left))
    assert wrong == []


async def _after(milliseconds: float, call: Callable[[], Awaitable[Any]]) -> Any:
    await asyncio.sleep(milliseconds / 1_000)  # spreads the calls over what they race with
    try:
        return await call()
    except (Conflict, NotFound, Retracted) as refused:
        return refused


@pytest.fixture
async def valkey(settings: MemorySettings) -> AsyncIterator[Redis]:
    """The server itself, to stop those who write to it."""
    assert settings.redis_url is not None
    client: Redis = Redis.from_url(settings.redis_url.get_secret_value())
    yield client
    await client.execute_command("CLIENT", "UNPAUSE")
    await client.aclose()


async def test_a_key_of_working_memory_is_claimed_before_the_value_is_put(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, valkey: Redis
) -> None:
    here = memory.at(scope).working
    remember = partial(
        memory.remember, scope=scope, memory_type="working", idempotency_key="k", key="plan"
    )
    await here.set("plan", "none")

    await valkey.execute_command("CLIENT", "PAUSE", 8_000, "WRITE")
    first = asyncio.create_task(remember("Sail"))
    await _until(seen, KEYS, scope.tenant.id)
    with pytest.raises(Conflict, match="idempotency key"):
        await remember("Fly")
    opened = await seen.fetchval(IN_A_UNIT)
    again = asyncio.create_task(remember("Sail"))
    is_held = not first.done()
    await valkey.execute_command("CLIENT", "UNPAUSE")

    receipt = await first
    assert (is_held, opened) == (True, 0)
    assert await again == receipt
    assert await here.get("plan") == "Sail"
    witnessed = "SELECT count(*) FROM mnemic.audit_log WHERE tenant_id = $1"
    assert await seen.fetchval(witnessed, scope.tenant.id) == 1


async def test_of_many_texts_with_one_key_at_once_one_is_put(
    memory: MemoryManager, scope: Scope
) -> None:
    texts = [f"Plan {number}" for number in range(8)]
    for number in range(3):
        place = scope.session(f"s{number}")
        told = await asyncio.gather(
            *(
                memory.remember(text, scope=place, memory_type="working", idempotency_key="k")
                for text in texts
            ),
            return_exceptions=True,
        )

        [receipt] = [one for one in told if isinstance(one, Receipt)]
        refused = [one for one in told if isinstance(one, Conflict)]
        assert len(refused) == len(texts) - 1
        held = await memory.at(place).working.get_all()
        assert held == {receipt.key: texts[told.index(receipt)]}


async def test_a_key_whose_value_was_not_put_puts_the_same_and_nothing_else(
    settings: MemorySettings, embedder: Any, clock: TickingClock, scope: Scope
) -> None:
    working = settings.working.model_copy(update={"keys_max": 1, "value_bytes_max": 100})
    narrow = settings.model_copy(update={"working": working})
    async with MemoryManager(Wiring(narrow, clock=clock, embedder=embedder)) as memory:
        here = memory.at(scope).working
        remember = partial(memory.remember, scope=scope, memory_type="working", idempotency_key="k")
        with pytest.raises(InvalidInput, match="bytes long"):
            await remember("x" * 200)  # which is seen before the key is claimed
        await here.set("other", 1)
        with pytest.raises(InvalidInput):
            await remember("Sail")

        with pytest.raises(Conflict, match="idempotency key"):
            await remember("Fly")
        await here.delete("other")
        receipt = await remember("Sail")
        await here.clear()

        assert receipt.key == f"note-{uuid5(scope.id, 'working;k').hex[-12:]}"
        assert await remember("Sail") == receipt
        assert await here.get_all() == {}
