"""Transcripts become memory, once, whatever is run twice, killed or wrong in them."""

from __future__ import annotations

import io
import json
from typing import Any

import asyncpg
import pytest

from mnemic.errors import InvalidInput
from mnemic.manager import MemoryManager
from mnemic.model.scope import Scope
from mnemic.model.transcript import BadLine, Entry, read

AT = "2026-03-02T09:{:02}:00Z"


def lines(*entries: dict[str, Any]) -> list[Entry]:
    text = "\n".join(json.dumps(entry) for entry in entries)
    return list(read(io.BytesIO(text.encode())))


def turn(session: str, number: int, text: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "turn",
        "session": session,
        "actor": "User",
        "text": text,
        "at": AT.format(number),
        **more,
    }


def fact(thing: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "fact",
        "subject": "deploys",
        "predicate": "frozen_on",
        "object": thing,
        **more,
    }


TWO_SESSIONS = (
    {"type": "session", "session": "one", "project": "ledger", "outcome": "failure"},
    turn("one", 0, "The release failed because the migration locked a table"),
    turn("two", 1, "We keep backups for thirty days"),
    turn("one", 2, "Then we rolled it back"),
    fact("Friday", session="one", content="Deploys are frozen on Fridays"),
)


async def test_each_session_has_its_turns_and_one_episode(
    memory: MemoryManager, scope: Scope
) -> None:
    report = await memory.transcripts.ingest(lines(*TWO_SESSIONS), scope=scope)

    assert [(one.name, one.turns_added) for one in report.sessions] == [("one", 2), ("two", 1)]
    assert report.episodes_created == 2
    assert all(one.title for one in report.sessions)
    assert (report.facts_added, report.facts_known, report.problems) == (1, 0, ())


async def test_a_session_stands_in_the_project_that_the_transcript_names(
    memory: MemoryManager, scope: Scope
) -> None:
    report = await memory.transcripts.ingest(lines(*TWO_SESSIONS), scope=scope)

    one, two = (session.scope for session in report.sessions)
    assert one == scope.project("ledger").session("one")
    assert two == scope.session("two")
    inside = await memory.recall("What failed in the release?", scope=scope.project("ledger"))
    outside = await memory.recall("What failed in the release?", scope=scope, floor=0.0)
    assert any("migration locked" in hit.text for hit in inside.hits)
    assert not any("migration locked" in hit.text for hit in outside.hits)


async def test_a_project_of_the_scope_goes_before_that_of_the_transcript(
    memory: MemoryManager, scope: Scope
) -> None:
    base = scope.project("other").agent_type("coder")

    report = await memory.transcripts.ingest(lines(*TWO_SESSIONS), scope=base)

    assert [session.scope.parent for session in report.sessions] == [base, base]


async def test_a_project_of_the_transcript_does_not_lead_out_of_an_agents_scope(
    memory: MemoryManager, scope: Scope
) -> None:
    agent = scope.agent_type("coder")

    report = await memory.transcripts.ingest(lines(*TWO_SESSIONS), scope=agent)

    assert [session.scope.parent for session in report.sessions] == [agent, agent]


async def test_the_outcome_that_the_transcript_states_is_the_episodes(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    report = await memory.transcripts.ingest(lines(*TWO_SESSIONS), scope=scope)

    outcome = await seen.fetchval(
        "SELECT outcome::text FROM mnemic.episodes WHERE id = $1", report.sessions[0].episode_id
    )
    assert outcome == "failure"


async def test_a_second_run_adds_nothing(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    entries = lines(*TWO_SESSIONS)
    first = await memory.transcripts.ingest(entries, scope=scope)
    before = await _rows(seen, scope)

    second = await memory.transcripts.ingest(entries, scope=scope)

    assert (second.turns_added, second.turns_known, second.turns_left_out) == (0, 3, 0)
    assert (second.episodes_created, second.facts_added, second.facts_known) == (0, 0, 1)
    assert second.problems == ()
    assert [one.episode_id for one in second.sessions] == [one.episode_id for one in first.sessions]
    assert [one.title for one in second.sessions] == [one.title for one in first.sessions]
    assert await _rows(seen, scope) == before


async def test_a_run_that_broke_off_is_completed_by_the_next(
    memory: MemoryManager, scope: Scope
) -> None:
    entries = lines(*[turn("long", number, f"Remark number {number}") for number in range(60)])
    await memory.transcripts.ingest(entries[:23], scope=scope, keep_open=True)

    report = await memory.transcripts.ingest(entries, scope=scope)

    assert (report.turns_known, report.turns_added, report.episodes_created) == (23, 37, 1)


async def test_turns_keep_their_order_over_many_batches(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    spoken = [
        turn(f"s{number % 2}", 0, f"Remark number {number}", id=str(number))
        for number in range(600)
    ]

    report = await memory.transcripts.ingest(lines(*spoken), scope=scope)

    texts = await seen.fetch(
        "SELECT text FROM mnemic.turns WHERE session_id = $1 ORDER BY seq",
        scope.session("s1").id,
    )
    assert report.turns_added == 600
    assert [row["text"] for row in texts] == [
        f"Remark number {number}" for number in range(1, 600, 2)
    ]


async def test_sessions_kept_open_go_on(memory: MemoryManager, scope: Scope) -> None:
    first = await memory.transcripts.ingest(
        lines(turn("open", 0, "To be continued")), scope=scope, keep_open=True
    )

    second = await memory.transcripts.ingest(
        lines(turn("open", 0, "To be continued"), turn("open", 1, "The end")), scope=scope
    )

    assert (first.episodes_created, first.sessions[0].episode_id) == (0, None)
    assert (second.turns_known, second.turns_added, second.episodes_created) == (1, 1, 1)


async def test_new_turns_of_an_ended_session_are_counted_not_added(
    memory: MemoryManager, scope: Scope
) -> None:
    await memory.transcripts.ingest(lines(turn("done", 0, "All is said")), scope=scope)

    report = await memory.transcripts.ingest(
        lines(
            turn("done", 0, "All is said"),
            turn("done", 1, "One more thing"),
            turn("done", 2, "And another"),
            turn("fresh", 3, "This one is new"),
        ),
        scope=scope,
    )

    done, fresh = report.sessions
    assert (done.turns_known, done.turns_added, done.turns_left_out) == (1, 0, 2)
    assert (fresh.turns_added, fresh.turns_left_out) == (1, 0)
    assert report.problems == ()


async def test_an_edited_turn_is_told_by_its_line_and_the_rest_is_added(
    memory: MemoryManager, scope: Scope
) -> None:
    await memory.transcripts.ingest(
        lines(turn("edited", 0, "As it was said", id="a")), scope=scope, keep_open=True
    )

    report = await memory.transcripts.ingest(
        lines(
            turn("edited", 1, "Something new", id="b"),
            turn("edited", 0, "As somebody wishes it had been said", id="a"),
        ),
        scope=scope,
    )

    assert [(one.line, one.session) for one in report.problems] == [(2, "edited")]
    assert "another text" in report.problems[0].reason
    assert (report.turns_added, report.turns_left_out, report.episodes_created) == (1, 0, 1)


async def test_an_id_used_twice_in_one_file_keeps_its_first_text(
    memory: MemoryManager, scope: Scope
) -> None:
    report = await memory.transcripts.ingest(
        lines(turn("twice", 0, "The first", id="a"), turn("twice", 1, "The second", id="a")),
        scope=scope,
    )

    assert (report.turns_added, [one.line for one in report.problems]) == (1, [2])


async def test_a_fact_whose_id_stands_for_another_one_is_told_by_its_line(
    memory: MemoryManager, scope: Scope
) -> None:
    await memory.transcripts.ingest(lines(fact("Friday", id="f")), scope=scope)

    report = await memory.transcripts.ingest(
        lines(fact("Friday", id="f"), fact("Monday", id="f")), scope=scope
    )

    assert (report.facts_known, report.facts_added) == (1, 0)
    assert [one.line for one in report.problems] == [2]


async def test_a_bad_line_is_a_problem_and_the_rest_is_kept(
    memory: MemoryManager, scope: Scope
) -> None:
    entries = lines(turn("some", 0, "Kept"), {"type": "turn"}, turn("some", 1, "Kept as well"))

    report = await memory.transcripts.ingest(entries, scope=scope)

    assert isinstance(entries[1], BadLine)
    assert report.turns_added == 2
    assert [one.line for one in report.problems] == [2]


async def test_progress_counts_every_turn_fact_and_session_once(
    memory: MemoryManager, scope: Scope
) -> None:
    counted = {"turn": 0, "fact": 0, "session": 0}

    def count(kind: str, number: int) -> None:
        counted[kind] += number

    await memory.transcripts.ingest(lines(*TWO_SESSIONS), scope=scope, progress=count)

    assert counted == {"turn": 3, "fact": 1, "session": 2}


async def test_a_scope_that_names_a_session_is_refused(memory: MemoryManager, scope: Scope) -> None:
    with pytest.raises(InvalidInput, match="names its own") as refused:
        await memory.transcripts.ingest([], scope=scope.session("one"))

    assert refused.value.field == "scope"


async def test_nothing_in_gives_nothing_out(memory: MemoryManager, scope: Scope) -> None:
    report = await memory.transcripts.ingest(
        lines({"type": "session", "session": "silent"}), scope=scope
    )

    assert (report.sessions, report.facts_added, report.problems) == ((), 0, ())


async def _rows(seen: asyncpg.Connection, scope: Scope) -> dict[str, int]:
    return {
        table: await seen.fetchval(
            f"SELECT count(*) FROM mnemic.{table} WHERE tenant_id = $1", scope.tenant.id
        )
        for table in ("turns", "episodes", "facts", "fact_evidence", "sessions", "audit_log")
    }
