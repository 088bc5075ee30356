from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from mnemic import Conflict, InvalidInput, MemoryManager, NotFound, Outcome, Scope, SessionState
from mnemic.model.receipt import VectorState
from mnemic.testing import TickingClock, a_conversation, a_turn

TALK = [
    "Our deploys are frozen on Fridays because of the support rota.",
    "Noted: no deploys on Fridays.",
    "We chose PostgreSQL over a document store for the ledger.",
    "The ledger will live in PostgreSQL.",
]


async def test_appended_turns_keep_their_order_and_text(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("monday")
    turns = a_conversation(TALK)

    receipts = await memory.sessions.append(turns, scope=session)

    found = await memory.recall("ledger database", scope=session, floor=0.0, limit=100)
    said = sorted((hit.memory for hit in found.hits), key=lambda turn: turn.seq)
    assert [turn.text for turn in said] == TALK
    assert [turn.seq for turn in said] == [0, 1, 2, 3]
    assert [turn.id for turn in said] == [receipt.id for receipt in receipts]
    assert {receipt.vector for receipt in receipts} == {VectorState.READY}


async def test_a_second_append_of_the_same_ids_adds_nothing(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("monday")
    first = await memory.sessions.append(a_conversation(TALK), scope=session)

    second = await memory.sessions.append(a_conversation([*TALK, "One more."]), scope=session)

    assert [receipt.id for receipt in second[:4]] == [receipt.id for receipt in first]
    assert [receipt.created for receipt in second] == [False, False, False, False, True]
    assert (
        await seen.fetchval("SELECT count(*) FROM mnemic.turns WHERE session_id = $1", session.id)
        == 5
    )


async def test_a_known_id_with_another_text_is_a_conflict(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    await memory.sessions.append([a_turn("First.", external_id="x")], scope=session)

    with pytest.raises(Conflict, match="'x' is kept with another text"):
        await memory.sessions.append([a_turn("Second.", external_id="x")], scope=session)
    with pytest.raises(Conflict, match="'y' is kept with another text"):
        await memory.sessions.append(
            [a_turn("One.", external_id="y"), a_turn("Two.", external_id="y")], scope=session
        )


async def test_an_id_given_twice_in_one_call_is_one_turn(
    memory: MemoryManager, scope: Scope
) -> None:
    twice = [a_turn("Once.", external_id="x"), a_turn("Once.", external_id="x")]

    receipts = await memory.sessions.append(twice, scope=scope.session("s"))

    assert [receipt.created for receipt in receipts] == [True, False]
    assert receipts[0].id == receipts[1].id


async def test_concurrent_appends_lose_nothing_and_leave_no_gap(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("busy")

    await asyncio.gather(
        *(memory.sessions.append([a_turn(f"Line {n}.")], scope=session) for n in range(10))
    )

    places = await seen.fetch(
        "SELECT seq, text FROM mnemic.turns WHERE session_id = $1 ORDER BY seq", session.id
    )
    assert [row["seq"] for row in places] == list(range(10))
    assert {row["text"] for row in places} == {f"Line {n}." for n in range(10)}


async def test_a_session_that_ends_becomes_one_episode_above_it(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.project("checkout").session("monday")
    await memory.sessions.append(a_conversation(TALK), scope=session)

    receipt = await memory.sessions.end(scope=session)

    assert receipt is not None
    assert receipt.created
    row = await seen.fetchrow("SELECT * FROM mnemic.episodes WHERE id = $1", receipt.id)
    assert row is not None
    assert row["scope_id"] == scope.project("checkout").id
    assert row["message_count"] == 4
    assert row["session_id"] == session.id
    assert row["started_at"] == a_conversation(TALK)[0].occurred_at
    assert row["duration_seconds"] == 180
    state = await seen.fetchrow("SELECT * FROM mnemic.sessions WHERE id = $1", session.id)
    assert state is not None
    assert (state["state"], state["episode_id"]) == ("ended", receipt.id)


async def test_what_a_session_held_is_seen_from_a_sibling_only_after_it_ended(
    memory: MemoryManager, scope: Scope
) -> None:
    session, sibling = scope.session("one"), scope.session("two")
    await memory.sessions.append(a_conversation(TALK), scope=session)
    await memory.remember("The ledger team sits in Oslo.", scope=session)
    before = await memory.recall("Where does the ledger team sit?", scope=sibling, floor=0.0)

    await memory.sessions.end(scope=session)

    after = await memory.recall("Where does the ledger team sit?", scope=sibling, floor=0.0)
    assert before.hits == ()
    assert {hit.kind for hit in after.hits} == {"turn", "episode", "fact"}
    assert "Oslo" in next(hit.text for hit in after.hits if hit.kind == "fact")


async def test_ending_twice_gives_the_same_episode(memory: MemoryManager, scope: Scope) -> None:
    session = scope.session("monday")
    await memory.sessions.append(a_conversation(TALK), scope=session)
    first = await memory.sessions.end(scope=session)

    second = await memory.sessions.end(scope=session)

    assert first is not None
    assert second is not None
    assert (second.id, second.created) == (first.id, False)


async def test_many_enders_at_once_write_one_episode(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("monday")
    await memory.sessions.append(a_conversation(TALK), scope=session)

    receipts = await asyncio.gather(*(memory.sessions.end(scope=session) for _ in range(8)))

    assert len({receipt.id for receipt in receipts if receipt}) == 1
    assert sum(receipt.created for receipt in receipts if receipt) == 1
    assert (
        await seen.fetchval(
            "SELECT count(*) FROM mnemic.episodes WHERE session_id = $1", session.id
        )
        == 1
    )


async def test_turns_that_come_while_it_ends_are_in_the_episode_or_refused(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("race")
    await memory.sessions.append(a_conversation(TALK), scope=session)

    outcomes = await asyncio.gather(
        memory.sessions.end(scope=session),
        *(memory.sessions.append([a_turn(f"Late {n}.")], scope=session) for n in range(6)),
        return_exceptions=True,
    )

    kept = sum(isinstance(outcome, list) for outcome in outcomes[1:])
    refused = sum(isinstance(outcome, Conflict) for outcome in outcomes[1:])
    assert kept + refused == 6
    episode = await seen.fetchrow(
        "SELECT message_count FROM mnemic.episodes WHERE session_id = $1", session.id
    )
    assert episode is not None
    assert episode["message_count"] == 4 + kept


async def test_an_empty_session_ends_without_an_episode(
    memory: MemoryManager, scope: Scope
) -> None:
    await memory.sessions.start(scope=scope.session("quiet"))

    receipt = await memory.sessions.end(scope=scope.session("quiet"))

    assert receipt is None


async def test_the_given_outcome_is_the_episodes(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("monday")
    await memory.sessions.append(a_conversation(TALK), scope=session)

    receipt = await memory.sessions.end(scope=session, outcome="failure")

    assert receipt is not None
    kept = await seen.fetchval("SELECT outcome FROM mnemic.episodes WHERE id = $1", receipt.id)
    assert kept == Outcome.FAILURE


async def test_an_ended_session_takes_nothing_new(memory: MemoryManager, scope: Scope) -> None:
    session = scope.session("monday")
    await memory.sessions.append(a_conversation(TALK), scope=session)
    await memory.sessions.end(scope=session)

    again = await memory.sessions.append(a_conversation(TALK), scope=session)

    assert not any(receipt.created for receipt in again)
    with pytest.raises(Conflict, match="has ended"):
        await memory.sessions.append([a_turn("New.")], scope=session)
    with pytest.raises(Conflict, match="has ended"):
        await memory.sessions.start(scope=session)
    with pytest.raises(Conflict, match="has ended"):
        await memory.sessions.pause(scope=session)


async def test_a_session_rests_and_goes_on(memory: MemoryManager, scope: Scope) -> None:
    session = scope.session("monday")
    await memory.sessions.start(scope=session)

    paused = await memory.sessions.pause(scope=session)
    resumed = await memory.sessions.resume(scope=session)

    assert (paused.state, resumed.state) == (SessionState.PAUSED, SessionState.ACTIVE)


async def test_an_unknown_session_cannot_be_ended(memory: MemoryManager, scope: Scope) -> None:
    with pytest.raises(NotFound):
        await memory.sessions.end(scope=scope.session("never"))


async def test_a_scope_without_a_session_is_refused_by_name(
    memory: MemoryManager, scope: Scope
) -> None:
    with pytest.raises(InvalidInput, match="scope: must name a session"):
        await memory.sessions.append([a_turn()], scope=scope)


async def test_one_bad_turn_keeps_all_of_them_out(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("monday")
    bad = [a_turn("Good."), a_turn("\u200b "), a_turn("Good too.")]

    with pytest.raises(InvalidInput, match="text: must not be blank"):
        await memory.sessions.append(bad, scope=session)

    assert (
        await seen.fetchval("SELECT count(*) FROM mnemic.turns WHERE session_id = $1", session.id)
        == 0
    )


async def test_idle_sessions_are_ended_and_busy_ones_are_not(
    memory: MemoryManager, scope: Scope, clock: object, seen: asyncpg.Connection
) -> None:
    old, fresh = scope.session("old"), scope.session("fresh")
    await memory.sessions.append(a_conversation(TALK), scope=old)
    clock.advance(timedelta(hours=2))  # type: ignore[attr-defined]
    await memory.sessions.start(scope=fresh)

    report = await memory.maintenance.end_idle_sessions()

    states = dict(
        await seen.fetch(
            "SELECT name, state FROM mnemic.sessions WHERE tenant_id = $1", scope.tenant.id
        )
    )
    assert states == {"old": "ended", "fresh": "active"}
    assert report.done >= 1
    assert report.failed == 0


async def test_a_paused_session_rests_as_long_as_it_likes(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    session = scope.session("resting")
    await memory.sessions.append(a_conversation(TALK), scope=session)
    await memory.sessions.pause(scope=session)
    clock.advance(timedelta(days=30))

    await memory.maintenance.end_idle_sessions()

    resumed = await memory.sessions.resume(scope=session)
    assert resumed.state is SessionState.ACTIVE


async def test_one_key_appends_once(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    said = [a_turn("One."), a_turn("Two.")]

    answers = await asyncio.gather(
        *(memory.sessions.append(said, scope=session, idempotency_key="k") for _ in range(16))
    )

    assert all(answer == answers[0] for answer in answers)
    count = "SELECT count(*) FROM mnemic.turns WHERE session_id = $1"
    assert await seen.fetchval(count, session.id) == 2
    with pytest.raises(Conflict, match="idempotency key"):
        await memory.sessions.append([a_turn("Three.")], scope=session, idempotency_key="k")


async def test_an_append_is_witnessed(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    await memory.sessions.append([a_turn("Heliotrope.")], scope=scope.session("s"))

    rows = await seen.fetch("SELECT * FROM mnemic.audit_log WHERE tenant_id = $1", scope.tenant.id)
    assert [row["action"] for row in rows] == ["session.append"]
    assert "eliotrope" not in str([dict(row) for row in rows])


async def test_each_step_of_a_session_is_witnessed_once(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")

    for step in ("start", "start", "pause", "resume", "end", "end"):
        await getattr(memory.sessions, step)(scope=session)

    rows = await seen.fetch(
        "SELECT action, subject_id FROM mnemic.audit_log WHERE tenant_id = $1 ORDER BY recorded_at",
        scope.tenant.id,
    )
    assert [tuple(row) for row in rows] == [
        (f"session.{step}", session.id) for step in ("start", "pause", "resume", "end")
    ]
