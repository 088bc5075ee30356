from __future__ import annotations

import inspect
from typing import Any
from uuid import uuid4

import pytest

from mnemic import (
    Durability,
    EpisodeCreate,
    MemoryManager,
    NotFound,
    ProcedureCreate,
    Scope,
    Step,
)
from mnemic.null.manager import NullMemoryManager
from mnemic.testing import a_conversation, a_fact, a_scope
from mnemic.testing.builders import AT
from mnemic.tier.tiers import Tiers

HANDLES = ("grants", "sessions", "lifecycle", "transcripts", "maintenance")
TIERS = ("working", "episodic", "semantic", "procedural")


def methods(kind: type) -> dict[str, Any]:
    """The public methods of a class, each with its parameters."""
    return {
        name: inspect.signature(member).parameters
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


@pytest.fixture
def memory() -> MemoryManager:
    return MemoryManager.null()


@pytest.fixture
def scope() -> Scope:
    return a_scope().session("s")


def test_nothing_of_the_real_one_is_left_to_work_without_it(memory: MemoryManager) -> None:
    pairs = [
        (type(getattr(memory, handle)), type(getattr(memory, handle)).__mro__[1])
        for handle in HANDLES
    ]
    tiers = memory.at(a_scope())
    pairs += [(type(getattr(tiers, tier)), type(getattr(tiers, tier)).__mro__[1]) for tier in TIERS]
    pairs.append((NullMemoryManager, MemoryManager))

    for null, real in pairs:
        inherited = {
            name for name in methods(real) if getattr(null, name) is getattr(real, name, None)
        }
        assert inherited - {"null"} == set(), null.__name__
    assert {name for name in vars(tiers) if name != "scope"} == set(TIERS)
    assert set(inspect.signature(Tiers.__init__).parameters) == {"self", "tools", "scope"}


async def test_writing_is_taken_and_said_not_to_be_kept(
    memory: MemoryManager, scope: Scope
) -> None:
    async with memory:
        receipts = [
            await memory.remember("The rota is weekly.", scope=scope),
            await memory.store_fact(a_fact(), scope=scope),
            *await memory.sessions.append(a_conversation(["One.", "Two."]), scope=scope),
        ]

    assert len(receipts) == 4
    assert [receipt.kind for receipt in receipts] == ["fact", "fact", "turn", "turn"]
    assert {receipt.durability for receipt in receipts} == {Durability.NONE}
    assert not any(receipt.created for receipt in receipts)


async def test_reading_is_empty_and_says_why(memory: MemoryManager, scope: Scope) -> None:
    await memory.remember("The rota is weekly.", scope=scope)

    found = await memory.recall("rota", scope=scope, limit=5)
    section = await memory.context("rota", scope=scope, budget=100)
    spawned = await memory.lifecycle.spawn(scope=scope, task="rota")

    assert (found.hits, found.degraded) == ((), ("memory is switched off",))
    assert (section.text, section.degraded) == ("", ("memory is switched off",))
    assert spawned.text == ""
    assert await memory.sessions.end(scope=scope) is None
    assert await memory.lifecycle.terminate(scope=scope) is None
    assert (await memory.maintenance.end_idle_sessions()).done == 0


async def test_the_tiers_take_what_the_real_ones_take(memory: MemoryManager, scope: Scope) -> None:
    here = memory.at(scope)
    episode = await here.episodic.record_episode(
        EpisodeCreate(task_description="Migrated.", occurred_at=AT)
    )
    fact = await here.semantic.store_fact(a_fact())
    procedure = await here.procedural.record_procedure(
        ProcedureCreate(name="Deploy", steps=(Step(action="Tag"),))
    )
    await here.working.set("n", 1, ttl_seconds=60, durable=True)

    assert (episode.task_description, fact.object, procedure.name) == (
        "Migrated.",
        "PostgreSQL",
        "Deploy",
    )
    assert await here.working.get("n", 7) == 7
    assert await here.working.get_all() == {}
    assert (await here.working.status()).degraded
    assert await here.episodic.get_recent() == []
    assert await here.semantic.get_by_entity("PostgreSQL") == []
    assert await here.procedural.get_best_procedure("deploy") is None


async def test_what_must_name_a_memory_is_not_found(memory: MemoryManager, scope: Scope) -> None:
    here = memory.at(scope)

    for call in (
        memory.forget([uuid4()], scope=scope),
        memory.why_not("rota", uuid4(), scope=scope, filters={"kind": "fact"}),
        here.episodic.update_importance(uuid4(), 0.5),
        here.semantic.reinforce_fact(uuid4()),
        here.semantic.deprecate_fact(uuid4(), "No."),
        here.procedural.record_outcome(uuid4(), success=True),
        here.working.restore_checkpoint(str(uuid4())),
    ):
        with pytest.raises(NotFound):
            await call
    await here.working.restore_checkpoint(await here.working.create_checkpoint())
