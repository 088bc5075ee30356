"""H: what is deleted or retracted is gone everywhere, and stays away."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemic import (
    FactCreate,
    InvalidInput,
    MemoryManager,
    NotFound,
    Retracted,
    Scope,
    Step,
    Unavailable,
)
from mnemic.model.procedure import ProcedureCreate
from mnemic.model.transcript import StatedFact, Utterance
from mnemic.testing import TickingClock, a_conversation, a_fact, a_scope, a_turn
from oracles.failing import failing
from oracles.gone import WAYS_BACK, assert_gone, come_back
from oracles.reading import ways_that_show
from oracles.stored import assert_changes_nothing, rows_of

NOT_APPLICABLE: dict[str, str] = {}

WORD = "heliotrop"  # as its stem is counted
words = st.text(st.characters(categories=["Ll", "Lo"]), min_size=4, max_size=12).map(
    lambda text: f"q{text}"
)
generated = settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


async def _furnish(memory: MemoryManager, scope: Scope, word: str) -> list[UUID]:
    """A memory of each kind that holds the word: their ids."""
    told = {
        "semantic": f"The vault opens with {word}",
        "episodic": f"It was {word} that opened the vault",
        "procedural": f"Open the vault with {word}\n1. Say {word}",
    }
    receipts = [
        await memory.remember(text, scope=scope, memory_type=kind) for kind, text in told.items()
    ]
    session = scope.session(f"about {len(word)}")
    said = await memory.sessions.append([a_turn(f"Say {word}, please.")], scope=session)
    return [one.id for one in (*receipts, *said)]


@generated
@given(words)
async def test_h04_what_is_forgotten_is_absent_from_every_way_of_reading(
    memory: MemoryManager, seen: asyncpg.Connection, word: str
) -> None:
    scope = a_scope()
    ids = await _furnish(memory, scope, word)
    session = scope.session(f"about {len(word)}")
    shown_before = await ways_that_show(memory, session, word)
    beside = await memory.remember("The vault is green", scope=scope)

    await memory.forget(ids[3:], scope=session)
    await memory.forget(ids[:3], scope=scope)

    assert shown_before >= {"recall semantic", "recall episodic", "recall procedural", "context"}
    for place in (session, scope):
        await assert_gone([memory], seen, place, word, query=f"vault {word}")
    found = await memory.recall("vault", scope=scope, floor=0.0)
    assert [hit.id for hit in found.hits] == [beside.id]


async def test_h05_no_process_serves_what_another_has_deleted(
    opened: Callable[..., Any], memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    async with opened() as other:
        receipt = await memory.remember(f"The vault opens with {WORD}", scope=scope)
        warm = [await ways_that_show(one, scope, WORD) for one in (memory, other)]

        await memory.forget([receipt.id], scope=scope)

        assert all("recall semantic" in ways for ways in warm)
        await assert_gone([other, memory], seen, scope, WORD, query="vault")


async def test_h07_a_step_that_was_taken_out_is_in_no_answer(
    memory: MemoryManager, scope: Scope
) -> None:
    skills = memory.at(scope).procedural
    both = (Step(action="Tag the release"), Step(action=f"Say {WORD}"))
    await skills.record_procedure(ProcedureCreate(name="Deploy", steps=both))
    before = await ways_that_show(memory, scope, WORD, query="deploy release")

    await skills.record_procedure(ProcedureCreate(name="Deploy", steps=both[:1]))

    assert before
    assert await ways_that_show(memory, scope, WORD, query="deploy release") == set()
    assert await ways_that_show(memory, scope, "Tag the release", query="deploy release")


async def test_h08_one_name_of_a_turn_in_two_scopes_is_two_turns(
    memory: MemoryManager, scope: Scope
) -> None:
    places = [scope.session("a"), scope.session("b"), a_scope().session("a")]
    receipts = []
    for place in places:
        said = a_turn(f"Say {WORD}", external_id="m-1")
        receipts += await memory.sessions.append([said], scope=place)

    await memory.forget([receipts[0].id], scope=places[0])

    shown = [bool(await ways_that_show(memory, place, WORD)) for place in places]
    assert len({one.id for one in receipts}) == 3
    assert shown == [False, True, True]
    with pytest.raises(NotFound):
        await memory.forget([receipts[1].id], scope=places[2])


async def test_h09_what_is_made_anew_for_one_scope_leaves_the_others_alone(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    one, other, stranger = scope.session("one"), scope.session("other"), a_scope()
    for place in (one, other, stranger.session("one")):
        await memory.sessions.append(a_conversation(["The vault is green."]), scope=place)
    await memory.maintenance.count_terms()
    before = await rows_of(seen, stranger)
    kept = _of(await rows_of(seen, scope), other)

    await memory.sessions.end(scope=one)
    await memory.maintenance.count_terms()

    after = _of(await rows_of(seen, scope), other)
    assert await rows_of(seen, stranger) == before
    assert len(kept) > 3
    assert after == kept


def _of(rows: dict[str, list[str]], scope: Scope) -> list[str]:
    return [row for table in sorted(rows) for row in rows[table] if str(scope.id) in row]


async def test_h10_deleting_what_nobody_has_is_said_to_have_failed(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    receipt = await memory.store_fact(a_fact(), scope=scope)

    unknown = await assert_changes_nothing(
        seen, scope, lambda: memory.forget([uuid4()], scope=scope)
    )
    first = await memory.forget([receipt.id], scope=scope)
    again = await assert_changes_nothing(
        seen, scope, lambda: memory.forget([receipt.id], scope=scope)
    )

    assert (type(unknown), first.counts, type(again)) == (NotFound, {"fact": 1}, NotFound)


@pytest.mark.parametrize(
    ("table", "event"),
    [("tombstones", "INSERT"), ("fact_vectors", "DELETE"), ("audit_log", "INSERT")],
)
async def test_h12_a_deletion_is_acknowledged_when_it_is_done_and_not_before(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, table: str, event: str
) -> None:
    receipt = await memory.remember(f"The vault opens with {WORD}", scope=scope)

    async with failing(seen, scope, table, event):
        fault = await assert_changes_nothing(
            seen, scope, lambda: memory.forget([receipt.id], scope=scope)
        )

    assert isinstance(fault, Unavailable)
    assert "recall semantic" in await ways_that_show(memory, scope, WORD)
    await memory.forget([receipt.id], scope=scope)
    await assert_gone([memory], seen, scope, WORD)


@pytest.mark.parametrize("retract", ["forget", "deprecate"])
async def test_h13_what_was_retracted_comes_back_on_no_path(
    memory: MemoryManager, scope: Scope, retract: str
) -> None:
    here = memory.at(scope)

    def stated(value: str) -> FactCreate:
        return FactCreate(subject="User", predicate="uses", object=value, content=f"I use {value}.")

    gone, kept = stated("Heliotrope"), stated("Verbena")
    await memory.store_fact(gone, scope=scope.session("carrier of Heliotrope"))
    await memory.store_fact(kept, scope=scope.session("carrier of Verbena"))
    receipt = await memory.store_fact(gone, scope=scope)
    if retract == "forget":
        await memory.forget([receipt.id], scope=scope)
    else:
        await here.semantic.deprecate_fact(receipt.id, "no longer so")

    back = await come_back(memory, scope, gone)

    assert back == dict.fromkeys(WAYS_BACK, False)
    control = {}
    for name in WAYS_BACK:
        other = a_scope()
        await memory.store_fact(kept, scope=other.session("carrier of Verbena"))
        control |= await come_back(memory, other, kept, [name])
    assert {name for name, stands in control.items() if not stands} == {
        "maintenance",  # it states nothing
        "a call from below",  # it states it below
    }


async def test_h15_a_forgotten_value_is_refused_until_it_is_asserted_anew(
    memory: MemoryManager, scope: Scope
) -> None:
    receipt = await memory.store_fact(a_fact(), scope=scope)
    await memory.forget([receipt.id], scope=scope)

    with pytest.raises(Retracted, match="lift=True"):
        await memory.store_fact(a_fact(), scope=scope)
    lifted = await memory.store_fact(a_fact(), scope=scope, lift=True)

    assert (lifted.created, lifted.id != receipt.id) == (True, True)
    assert (await memory.store_fact(a_fact(), scope=scope)).id == lifted.id


async def test_h16_a_transcript_does_not_bring_back_what_was_forgotten(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    def entries() -> list[Any]:
        said = a_turn(f"Say {WORD}", external_id="m-1")
        other = a_turn("The vault is green", external_id="m-2")
        return [
            Utterance(session="s", turn=said, line=1),
            Utterance(session="s", turn=other, line=2),
            StatedFact(fact=a_fact(object=WORD), external_id="f-1", line=3),
        ]

    await memory.transcripts.ingest(entries(), scope=scope, keep_open=True)
    session = scope.session("s")
    ids = [
        hit.id
        for hit in (await memory.recall(WORD, scope=session, floor=0.0)).hits
        if WORD in hit.text
    ]
    await memory.forget(
        [one for one in ids if one not in await _facts(memory, scope)], scope=session
    )
    await memory.forget(sorted(await _facts(memory, scope)), scope=scope)

    again = await memory.transcripts.ingest(entries(), scope=scope)

    await assert_gone([memory], seen, scope, WORD, query=f"vault {WORD}")
    assert len(ids) == 2
    assert again.turns_added == 0
    assert again.facts_added == 0
    assert await ways_that_show(memory, scope, "vault is green", query="vault")


async def _facts(memory: MemoryManager, scope: Scope) -> set[UUID]:
    return {one.id for one in await memory.at(scope).semantic.get_by_entity("User", 100)}


async def test_h18_what_was_made_of_a_long_text_goes_with_it_and_is_counted(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session, here = scope.session("s"), memory.at(scope)
    secret = f"We decided to use {WORD} for the vault. " + "It is opened at night. " * 300
    said = await memory.sessions.append(
        [a_turn(secret), a_turn("I use Valkey."), a_turn("We agreed on Friday.")], scope=session
    )
    await memory.sessions.end(scope=session)
    [episode] = await here.episodic.get_recent()
    facts = await here.semantic.extract_facts_from_episode(episode)
    await memory.maintenance.count_terms()
    before = await ways_that_show(memory, scope, WORD)

    gone = await memory.forget([said[0].id], scope=scope)

    await assert_gone([memory], seen, scope, WORD, query=f"{WORD} vault")
    assert before >= {"recall episodic", "recent", "facts", "context"}
    assert any(WORD in fact.object for fact in facts)
    assert (gone.counts["turn"], gone.counts["fact"], gone.reworded) == (1, 1, 1)
    assert await ways_that_show(memory, scope, "Valkey")


async def test_h19_what_was_searched_is_counted_right_at_once(
    memory: MemoryManager, scope: Scope
) -> None:
    facts = [await memory.store_fact(a_fact(object=f"o{n}"), scope=scope) for n in range(5)]
    before = (await memory.recall("uses", scope=scope)).searched

    await memory.forget([one.id for one in facts[:2]], scope=scope)
    uncounted = (await memory.recall("uses", scope=scope)).searched
    await memory.maintenance.count_terms()
    await memory.forget([facts[2].id], scope=scope)

    assert (before, uncounted) == (5, 3)
    assert (await memory.recall("uses", scope=scope)).searched == 2


async def test_h21_a_rejected_value_is_not_laundered_by_another_one(
    memory: MemoryManager, scope: Scope
) -> None:
    def lives_in(city: str) -> FactCreate:
        return a_fact(predicate="lives_in", object=city)

    oslo = await memory.store_fact(lives_in("Oslo"), scope=scope)
    await memory.at(scope).semantic.deprecate_fact(oslo.id, "never")
    await memory.store_fact(lives_in("Bergen"), scope=scope)

    with pytest.raises(Retracted):
        await memory.store_fact(lives_in("Oslo"), scope=scope)
    await memory.store_fact(lives_in("Lima"), scope=scope)

    known = await memory.at(scope).semantic.get_by_entity("User")
    assert [fact.object for fact in known] == ["Lima"]
    lifted = await memory.store_fact(lives_in("Oslo"), scope=scope, lift=True)
    assert lifted.created


@generated
@given(
    st.sampled_from(["v2.1", "42", "2026-01-02", "7", "€5", "no", "ß"]),
    st.sampled_from(["noted", "stated"]),
)
async def test_h22_a_short_value_is_refused_like_a_long_one(
    memory: MemoryManager, value: str, how: str
) -> None:
    scope = a_scope()

    async def tell(text: str) -> Any:
        if how == "noted":
            return await memory.remember(text, scope=scope)
        return await memory.store_fact(a_fact(object=text), scope=scope)

    receipt = await tell(value)
    await memory.forget([receipt.id], scope=scope)

    with pytest.raises(Retracted):
        await tell(f" {value} ")
    assert (await tell(f"{value}1")).created


async def test_h23_a_name_that_is_like_another_deletes_nothing(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    receipts = [
        await memory.remember(f"{name}\n1. Ask", scope=scope, memory_type="procedural")
        for name in ("Plan", "Planning")
    ]
    wrong: Any = ["Plan"]

    refused = await assert_changes_nothing(seen, scope, lambda: memory.forget(wrong, scope=scope))
    await memory.forget([receipts[0].id], scope=scope)

    assert isinstance(refused, InvalidInput)
    left = await memory.at(scope).procedural.find_matching("plan planning", 10)
    assert [one.name for one in left] == ["Planning"]


async def test_h24_using_a_value_never_shortens_its_life(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    working = memory.at(scope).working
    week = timedelta(days=7)
    for durable in (False, True):
        await working.set("k", 1, week.total_seconds(), durable=durable)
        uses: list[Callable[[], Any]] = [
            lambda: working.get("k"),
            lambda: working.exists("k"),
            working.get_all,
            lambda: working.set("k", 2),
            lambda: working.set("other", 1),
            lambda: working.append_scratchpad("note"),
            working.create_checkpoint,
            lambda: memory.recall("k", scope=scope),
        ]
        for use in uses:
            clock.advance(timedelta(hours=1))
            await use()

        clock.advance(week - timedelta(hours=len(uses), minutes=1))
        assert await working.get("k") == 2
        clock.advance(timedelta(minutes=2))
        assert await working.get("k") is None
