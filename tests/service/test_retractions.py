from __future__ import annotations

from datetime import UTC, datetime

import asyncpg
import pytest

from mnemic import MemoryManager, Retracted, Scope
from mnemic.testing import a_conversation, a_fact

TALK = ["The vault code is heliotrope.", "Understood."]
STEPS = "Deploy\n1. Tag the release"


async def _live(seen: asyncpg.Connection, scope: Scope) -> list[str]:
    rows = await seen.fetch(
        "SELECT object FROM mnemic.facts WHERE tenant_id = $1 AND status = 'live'", scope.tenant.id
    )
    return sorted(row["object"] for row in rows)


@pytest.mark.parametrize(
    ("kept", "again"),
    [
        ("v2.1", "v2.1"),
        ("42", " 42 "),
        ("2026-01-02", "2026-01-02"),
        ("admin", "ad\u200dmin"),
        ("café", "cafe\u0301"),
        ("PostgreSQL", "POSTGRESQL"),
    ],
)
async def test_a_forgotten_value_is_refused_in_every_spelling(
    memory: MemoryManager, scope: Scope, kept: str, again: str
) -> None:
    receipt = await memory.store_fact(a_fact(object=kept), scope=scope)
    await memory.forget([receipt.id], scope=scope)

    with pytest.raises(Retracted, match="lift=True"):
        await memory.store_fact(a_fact(object=again), scope=scope)


async def test_it_is_refused_below_its_scope_and_not_beside_it(
    memory: MemoryManager, scope: Scope
) -> None:
    project, other = scope.project("a"), scope.project("b")
    receipt = await memory.store_fact(a_fact(), scope=project)
    await memory.forget([receipt.id], scope=project)

    beside = await memory.store_fact(a_fact(), scope=other)

    assert beside.created
    with pytest.raises(Retracted):
        await memory.store_fact(a_fact(), scope=project.agent("x"))


async def test_lifting_takes_it_back_for_good(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    receipt = await memory.store_fact(a_fact(), scope=scope)
    await memory.forget([receipt.id], scope=scope)

    lifted = await memory.store_fact(a_fact(), scope=scope, lift=True)
    again = await memory.store_fact(a_fact(), scope=scope)

    assert lifted.created
    assert again.id == lifted.id
    assert await _live(seen, scope) == ["PostgreSQL"]


async def test_a_retracted_value_does_not_come_back_by_way_of_another(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    oslo = await memory.store_fact(a_fact(predicate="lives_in", object="Oslo"), scope=scope)
    await memory.forget([oslo.id], scope=scope)
    await memory.store_fact(a_fact(predicate="lives_in", object="Bergen"), scope=scope)

    with pytest.raises(Retracted):
        await memory.store_fact(a_fact(predicate="lives_in", object="Oslo"), scope=scope)

    assert await _live(seen, scope) == ["Bergen"]


async def test_a_session_does_not_carry_it_up_when_it_ends(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    await memory.store_fact(a_fact(), scope=session)
    receipt = await memory.store_fact(a_fact(), scope=scope)
    await memory.forget([receipt.id], scope=scope)
    await memory.sessions.append(a_conversation(TALK), scope=session)

    ended = await memory.sessions.end(scope=session)

    assert ended is not None
    assert await _live(seen, scope) == []


@pytest.mark.parametrize(
    ("content", "memory_type"),
    [("The rota is weekly.", "semantic"), ("It went well.", "episodic"), (STEPS, "procedural")],
)
async def test_every_type_is_refused_after_it_was_forgotten(
    memory: MemoryManager, scope: Scope, content: str, memory_type: str
) -> None:
    receipt = await memory.remember(content, scope=scope, memory_type=memory_type)
    await memory.forget([receipt.id], scope=scope)

    with pytest.raises(Retracted):
        await memory.remember(content, scope=scope, memory_type=memory_type)
    lifted = await memory.remember(content, scope=scope, memory_type=memory_type, lift=True)

    assert lifted.created


async def test_a_forgotten_turn_is_not_added_by_a_second_ingest(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    first, _ = await memory.sessions.append(a_conversation(TALK), scope=session)
    await memory.forget([first.id], scope=session)

    again = await memory.sessions.append(a_conversation(TALK), scope=session)

    found = await memory.recall("vault code", scope=session, floor=0.0)
    assert [receipt.created for receipt in again] == [False, False]
    assert [receipt.refused for receipt in again] == [True, False]
    assert "heliotrope" not in str(found.hits)


async def test_a_turn_forgotten_after_its_session_ended_stays_forgotten(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    first, _ = await memory.sessions.append(a_conversation(TALK), scope=session)
    await memory.sessions.end(scope=session)
    await memory.forget([first.id], scope=scope)

    again = await memory.sessions.append(a_conversation(TALK), scope=session)

    assert [receipt.refused for receipt in again] == [True, False]


async def test_history_that_comes_late_does_not_replace_what_is_true_now(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    now = a_fact(predicate="lives_in", object="Oslo", valid_from=datetime(2025, 6, 1, tzinfo=UTC))
    before = a_fact(
        predicate="lives_in", object="Lisbon", valid_from=datetime(2019, 1, 1, tzinfo=UTC)
    )

    current = await memory.store_fact(now, scope=scope)
    await memory.store_fact(before, scope=scope)

    rows = await seen.fetch(
        "SELECT object, status, valid_to, superseded_by FROM mnemic.facts WHERE tenant_id = $1"
        " ORDER BY valid_from",
        scope.tenant.id,
    )
    assert [tuple(row) for row in rows] == [
        ("Lisbon", "superseded", datetime(2025, 6, 1, tzinfo=UTC), current.id),
        ("Oslo", "live", None, None),
    ]


async def test_an_option_that_does_not_exist_is_an_error(
    memory: MemoryManager, scope: Scope
) -> None:
    with pytest.raises(TypeError, match="unknown option 'importence'"):
        await memory.remember("The rota is weekly.", scope=scope, importence=0.5)  # type: ignore[call-arg]
