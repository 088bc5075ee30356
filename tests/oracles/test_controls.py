"""Each oracle about a whole scope is shown a scope in which it does not hold, and must see it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from mnemic import FactCreate, InvalidInput, MemoryManager, Scope, StoreUnavailable
from mnemic.model.receipt import VectorState
from mnemic.testing import HashingEmbedder, a_fact, a_scope, a_turn
from oracles.closure import assert_closed, plant
from oracles.degraded import tells
from oracles.gone import WAYS_BACK, assert_gone, come_back
from oracles.partition import assert_partition
from oracles.ranked import assert_ranked
from oracles.reading import WAYS, ways_that_show
from oracles.stored import (
    assert_changes_nothing,
    canonical_facts,
    difference,
    digest_of,
    rows_of,
)
from oracles.together import HeldEmbedder, at_once, meanwhile
from oracles.windows import assert_windows


async def test_a_word_of_a_sibling_is_seen_and_so_is_one_that_is_missing(
    memory: MemoryManager, scope: Scope
) -> None:
    one, other = scope.project("one"), scope.project("other")
    places = await plant(memory, [one, other])
    await assert_closed(memory, places, "Do")
    [word, another] = places

    leaked = await memory.store_fact(a_fact(object=f"{another} too"), scope=one)
    with pytest.raises(AssertionError, match="what stands elsewhere"):
        await assert_closed(memory, places, f"Do {another}")
    await memory.forget([leaked.id], scope=one)
    await memory.at(one).working.set("leak", another)
    with pytest.raises(AssertionError, match="working shows what stands elsewhere"):
        await assert_closed(memory, places, "Do")
    await memory.at(one).working.delete("leak")
    await memory.at(one).working.delete("word")
    with pytest.raises(AssertionError, match="working memory is another's"):
        await assert_closed(memory, places, "Do")
    assert word != another


@pytest.mark.parametrize("where", ["a fact", "a turn", "a metadata value", "working memory"])
async def test_what_is_left_of_a_word_is_seen_wherever_it_stands(
    memory: MemoryManager, seen: asyncpg.Connection, scope: Scope, where: str
) -> None:
    session = scope.session("s")
    await assert_gone([memory], seen, session, "heliotrope")
    if where == "a turn":
        await memory.sessions.append([a_turn("It is Heliotrope.")], scope=session)
    elif where == "working memory":
        await memory.at(session).working.set("k", {"heliotrope": 1})
    else:
        told = {"object": "heliotrope"} if where == "a fact" else {"metadata": {"k": "heliotrope"}}
        await memory.store_fact(a_fact(**told), scope=session)

    with pytest.raises(AssertionError):
        await assert_gone([memory], seen, session, "heliotrope", query="uses")


async def test_every_way_back_is_taken_by_what_was_never_retracted(
    memory: MemoryManager, scope: Scope
) -> None:
    fact = FactCreate(subject="User", predicate="uses", object="Verbena", content="I use Verbena.")
    await memory.store_fact(fact, scope=scope.session("carrier of Verbena"))

    stands = await come_back(memory, scope, fact)

    assert stands.keys() == WAYS_BACK.keys()
    assert stands["a call"]
    assert stands["the end of a session"]


async def test_every_way_of_reading_shows_something_of_somewhere(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    for text, kind in (
        ("It was heliotrope.", "episodic"),
        ("The vault opens with heliotrope", "semantic"),
        ("Heliotrope\n1. Say heliotrope", "procedural"),
    ):
        await memory.remember(text, scope=scope, memory_type=kind)
    for predicate in ("uses", "prefers_tool"):
        told = a_fact(predicate=predicate, object="heliotrope")
        await memory.store_fact(told, scope=scope)
    await memory.sessions.append([a_turn("Say heliotrope.")], scope=session)
    await memory.at(session).working.set("k", "heliotrope")
    await memory.at(session).working.create_checkpoint()

    ways = await ways_that_show(memory, session, "heliotrope")

    unseen = {way for way in WAYS if way not in ways}
    assert {way for way in unseen if not way.startswith("outcome")} <= {"checkpoints"}
    assert any(way.startswith("outcome") for way in ways)


async def test_a_change_of_any_row_is_seen(
    memory: MemoryManager, seen: asyncpg.Connection, scope: Scope
) -> None:
    kept = await memory.store_fact(a_fact(), scope=scope)
    before, digest = await rows_of(seen, scope), await digest_of(seen, scope)

    async def changes() -> Any:
        await memory.at(scope).semantic.reinforce_fact(kept.id)
        raise InvalidInput("must be text; pass text", field="x")

    assert await assert_changes_nothing(seen, scope, lambda: memory.recall("uses", scope=scope))
    with pytest.raises(AssertionError, match="facts"):
        await assert_changes_nothing(seen, scope, changes)
    assert "facts" in difference(before, await rows_of(seen, scope))
    assert digest != await digest_of(seen, scope)
    assert await rows_of(seen, a_scope()) == {}


async def test_two_histories_that_know_something_else_are_told_apart(
    memory: MemoryManager, seen: asyncpg.Connection, scope: Scope
) -> None:
    others = {
        "value": [a_fact(object="Valkey")],
        "count": [a_fact(), a_fact()],
        "more": [a_fact(), a_fact(object="Valkey")],
    }
    await memory.store_fact(a_fact(), scope=scope)
    same = a_scope()
    await memory.store_fact(a_fact(source="elsewhere"), scope=same)

    known = await canonical_facts(seen, scope)

    assert known == await canonical_facts(seen, same) != []
    for name, facts in others.items():
        other = a_scope(f"other {name} {scope.tenant.external_id}")
        for fact in facts:
            await memory.store_fact(fact, scope=other)
        assert known != await canonical_facts(seen, other), name


@pytest.mark.parametrize(
    "pages", [[[1, 2], [2, 3]], [[1], [3]], [[1, 2, 3]], [], [[1, 2], [1]], [[1, 1], [2, 3]]]
)
def test_pages_that_are_no_partition_are_seen(pages: list[list[int]]) -> None:
    assert_partition([[1, 2], [3]], {1, 2, 3}, size_max=2)
    with pytest.raises(AssertionError):
        assert_partition(pages, {1, 2, 3}, size_max=2)


async def test_an_order_that_nobody_can_rely_on_is_seen(
    memory: MemoryManager, scope: Scope
) -> None:
    for name in ("PostgreSQL", "Valkey", "Celery"):
        await memory.store_fact(a_fact(object=name), scope=scope)
    found = await memory.recall("Does User use Valkey?", scope=scope, floor=0.0)
    hits = found.hits
    assert_ranked(found)
    assert len(hits) == 3

    faults = {
        "reversed": replace(found, hits=hits[::-1]),
        "twice": replace(found, hits=(hits[0], *hits)),
        "more than the limit": replace(found, limit=2),
        "no number": replace(found, hits=(replace(hits[0], score=float("nan")), *hits[1:])),
        "out of bounds": replace(found, hits=(replace(hits[0], score=11.0), *hits[1:])),
        "below": replace(found, hits=(*hits[:2], replace(hits[2], score=-1.0))),
        "confidence": replace(found, confidence=1.01),
    }
    for fault in faults.values():
        with pytest.raises(AssertionError):
            assert_ranked(fault)


async def test_an_answer_that_does_not_tell_what_is_away_is_seen(
    memory: MemoryManager, scope: Scope
) -> None:
    receipt = await memory.store_fact(a_fact(), scope=scope)
    found = await memory.recall("uses", scope=scope)

    assert not tells(found)
    assert not tells(receipt)
    assert not tells([])
    assert not tells(None)
    assert not tells(replace(found, degraded=("",)))
    assert tells(replace(found, degraded=("vectors: away",)))
    assert tells(replace(receipt, vector=VectorState.PENDING))
    assert tells(StoreUnavailable())


async def test_a_write_that_a_job_overwrites_is_seen_to_be_lost() -> None:
    held, embedder = {"n": 0}, HeldEmbedder()

    async def writes_back_what_it_read() -> None:
        read = dict(held)
        await embedder.embed(["x"])
        held.update(read)

    async def write() -> None:
        held["n"] = 5

    await meanwhile(embedder.gate, writes_back_what_it_read(), write)

    assert held == {"n": 0}
    assert embedder.asked == [["x"]]


async def test_calls_at_once_do_meet() -> None:
    together = asyncio.Barrier(3)

    async def call(number: int) -> int:
        await together.wait()
        return number

    assert await at_once(*(call(number) for number in range(3))) == [0, 1, 2]


@pytest.mark.parametrize("wrong", ["another's", "gone"])
async def test_a_vector_that_is_not_of_the_turns_that_stand_is_seen(
    memory: MemoryManager, seen: asyncpg.Connection, scope: Scope, wrong: str
) -> None:
    embedder = HashingEmbedder()
    session = scope.session("s")
    told = await memory.sessions.append(
        [a_turn(f"It is {word}.") for word in ("heliotrope", "amber", "jade")], scope=session
    )
    await assert_windows(seen, scope, embedder)

    if wrong == "gone":
        # Past the triggers, as if nobody had thought of the two after it.
        async with seen.transaction():
            await seen.execute("SET LOCAL session_replication_role = replica")
            await seen.execute("DELETE FROM mnemic.turns WHERE id = $1", told[0].id)
    else:
        await seen.execute(
            "UPDATE mnemic.turn_vectors v SET embedding = o.embedding FROM mnemic.turn_vectors o"
            " WHERE v.memory_id = $1 AND o.memory_id = $2",
            *(told[1].id, told[0].id),
        )

    with pytest.raises(AssertionError, match="made of something else"):
        await assert_windows(seen, scope, embedder)
