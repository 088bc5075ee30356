"""What a write is told reads back equal, or is refused by the name of its field."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from mnemic import (
    Conflict,
    EpisodeCreate,
    InvalidInput,
    MemoryManager,
    NotFound,
    ProcedureCreate,
    Scope,
    Step,
    Trust,
)
from mnemic.testing import a_fact, a_turn

AT = datetime(2026, 3, 1, tzinfo=UTC)
STEPS = (Step(action="Tag the release"),)
MISUSED = [
    ("trust", 99),
    ("trust", "x"),
    ("trust", None),
    ("source", "a\x00"),
    ("source", "\ud800"),
    ("source", None),
    ("source", "s" * 201),
    ("metadata", None),
    ("metadata", {"x": float("nan")}),
    ("metadata", {1: 2}),
    ("metadata", {"x": "a" * 70_000}),
    ("tags", None),
    ("tags", "abc"),
    ("tags", ("a\x00",)),
]


@pytest.mark.parametrize(("field", "value"), [*MISUSED, ("content", ""), ("category", "")])
async def test_a_fact_is_refused_by_the_field(
    memory: MemoryManager, scope: Scope, field: str, value: Any
) -> None:
    with pytest.raises(InvalidInput, match=f"^{field}"):
        await memory.store_fact(a_fact(**{field: value}), scope=scope)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *MISUSED,
        ("actions", None),
        ("actions", {"a": 1}),
        ("lessons_learned", 5),
        ("tokens_used", 1.5),
    ],
)
async def test_an_episode_is_refused_by_the_field(
    memory: MemoryManager, scope: Scope, field: str, value: Any
) -> None:
    given: dict[str, Any] = {"task_description": "Built it", "occurred_at": AT, field: value}

    with pytest.raises(InvalidInput, match=f"^{field}"):
        await memory.at(scope).episodic.record_episode(EpisodeCreate(**given))


@pytest.mark.parametrize(
    ("field", "value"),
    [*MISUSED, ("steps", None), ("steps", ("a",)), ("preconditions", None)],
)
async def test_a_procedure_is_refused_by_the_field(
    memory: MemoryManager, scope: Scope, field: str, value: Any
) -> None:
    given: dict[str, Any] = {"name": "Deploy", "steps": STEPS, field: value}

    with pytest.raises(InvalidInput, match=f"^{field}"):
        await memory.at(scope).procedural.record_procedure(ProcedureCreate(**given))


@pytest.mark.parametrize(("field", "value"), MISUSED)
async def test_a_turn_is_refused_by_the_field(
    memory: MemoryManager, scope: Scope, field: str, value: Any
) -> None:
    with pytest.raises(InvalidInput, match=f"^{field}"):
        await memory.sessions.append([a_turn(**{field: value})], scope=scope.session("s"))


@pytest.mark.parametrize(
    "changed",
    [
        {"confidence": 0.9},
        {"valid_from": AT},
        {"valid_to": AT},
        {"metadata": {"a": 1}},
        {"tags": ("a",)},
        {"content": "User likes it"},
        {"trust": Trust.OPERATOR},
        {"source": "other"},
    ],
)
async def test_a_key_stands_for_all_that_a_fact_says(
    memory: MemoryManager, scope: Scope, changed: dict[str, Any]
) -> None:
    first = await memory.store_fact(a_fact(), scope=scope, idempotency_key="k")
    again = await memory.store_fact(a_fact(), scope=scope, idempotency_key="k")

    assert again == first
    with pytest.raises(Conflict):
        await memory.store_fact(a_fact(**changed), scope=scope, idempotency_key="k")


@pytest.mark.parametrize(
    "changed",
    [{"metadata": {"a": 1}}, {"tags": ["a"]}, {"trust": Trust.OPERATOR}, {"source": "other"}],
)
@pytest.mark.parametrize(
    ("content", "memory_type"),
    [("It is weekly.", "semantic"), ("It went well.", "episodic"), ("Go\n1. Tag", "procedural")],
)
async def test_a_key_stands_for_all_that_is_remembered(
    memory: MemoryManager, scope: Scope, content: str, memory_type: str, changed: dict[str, Any]
) -> None:
    same: dict[str, Any] = {"memory_type": memory_type, "idempotency_key": "k"}
    await memory.remember(content, scope=scope, **same)

    with pytest.raises(Conflict):
        await memory.remember(content, scope=scope, **same, **changed)


async def test_a_text_with_a_relative_time_is_the_same_later(
    memory: MemoryManager, scope: Scope
) -> None:
    text = "I moved to Oslo yesterday. I live in Oslo."
    first = await memory.remember(text, scope=scope, idempotency_key="k")

    again = await memory.remember(text, scope=scope, idempotency_key="k")

    assert again == first


async def test_the_key_of_a_fact_that_was_forgotten_says_so(
    memory: MemoryManager, scope: Scope
) -> None:
    semantic = memory.at(scope).semantic
    fact = await semantic.store_fact(a_fact(), idempotency_key="k")
    await memory.forget([fact.id], scope=scope)

    with pytest.raises(NotFound, match="forgotten"):
        await semantic.store_fact(a_fact(), idempotency_key="k")


async def test_the_same_statements_in_opposite_orders_do_not_stop_each_other(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    said = ["I like tea.", "I live in Oslo.", "I work at Acme.", "I like milk."]
    texts = [" ".join(said), " ".join(reversed(said))] * 8

    receipts = await asyncio.gather(*(memory.remember(text, scope=scope) for text in texts))

    counts = await seen.fetch(
        "SELECT DISTINCT reinforcement_count FROM mnemic.facts WHERE scope_id = $1", scope.id
    )
    assert len(receipts) == 16
    assert [row["reinforcement_count"] for row in counts] == [16]


async def test_a_changed_procedure_is_counted_by_its_new_words(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    first = await memory.remember("Deploy\n1. Alpha", scope=scope, memory_type="procedural")
    await memory.maintenance.count_terms()
    await memory.remember("Deploy\n1. Beta", scope=scope, memory_type="procedural")
    await memory.maintenance.count_terms()

    await memory.at(scope).procedural.update_steps(first.id, [Step(action="Gamma")])
    await memory.maintenance.count_terms()

    rows = await seen.fetch(
        "SELECT term, documents FROM mnemic.term_stats WHERE scope_id = $1", scope.id
    )
    assert {row["term"]: row["documents"] for row in rows} == {"deploy": 1, "gamma": 1, "": 1}


@pytest.mark.parametrize("name", ["", " ", "\u200b", "\u3000", "\u202e", "\x1f"])
def test_a_scope_has_a_visible_name(name: str) -> None:
    with pytest.raises(InvalidInput, match="empty"):
        Scope.user(name)
