"""Prompt sections as an agent gets them: the verb's own, structured, in the scope of the server."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
from mcp import Client

from mnemic import ContextForm, MemoryManager, MemorySettings, ProcedureCreate, Scope, Step, Trust
from mnemic.edge.mcp.answers import ITEMS_MAX, OMISSIONS_MAX, section_of
from mnemic.edge.mcp.server import build_server
from mnemic.embedded import EmbeddedServers
from mnemic.model.context import Context, Omission
from mnemic.settings import DatabaseSettings
from mnemic.testing import HashingEmbedder, TickingClock, a_fact, a_turn
from mnemic.wiring import Wiring

_people = count(1)


@pytest.fixture
async def memory(shared_database: Any, servers: EmbeddedServers) -> AsyncIterator[MemoryManager]:
    settings = MemorySettings(
        database_url=shared_database.app_url,
        redis_url=servers.redis_url,
        database=DatabaseSettings(require_durable=False, acquire_timeout_seconds=20),
        context={"deadline_ms": 60_000},
    )
    wiring = Wiring(settings, clock=TickingClock(), embedder=HashingEmbedder())
    async with MemoryManager(wiring) as opened:
        yield opened


@pytest.fixture
def scope() -> Scope:
    return Scope.user(f"reader {next(_people)}").project("garden")


async def _section(memory: MemoryManager, scope: Scope, **given: Any) -> dict[str, Any]:
    async with Client(build_server(memory, scope)) as client:
        answer = await client.call_tool("get_context", {"query": "the lease of the vault", **given})
    assert not answer.is_error, answer.content
    told: dict[str, Any] | None = answer.structured_content
    assert told is not None
    return told


async def _filled(memory: MemoryManager, scope: Scope, facts: int = 3) -> None:
    for number in range(facts):
        text = f"The lease of vault {number} is red."
        await memory.store_fact(a_fact(object=str(number), content=text), scope=scope)
    steps = (Step(action="ring the vault"), Step(action="sign the lease"))
    way = ProcedureCreate(name="Renew the lease of the vault", steps=steps, trust=Trust.APPROVED)
    await memory.at(scope).procedural.record_procedure(way)
    said = a_turn("The lease of the vault was signed in the garden.")
    await memory.sessions.append([said], scope=scope.session("s"))
    await memory.sessions.end(scope=scope.session("s"))


@pytest.mark.parametrize("form", list(ContextForm))
@pytest.mark.parametrize("budget", [None, 60, 150, "recall", "deep"])
async def test_the_section_is_that_of_the_verb(
    memory: MemoryManager, scope: Scope, form: ContextForm, budget: Any
) -> None:
    await _filled(memory, scope)

    told = await _section(memory, scope, budget=budget, form=form.value)
    made = await memory.context("the lease of the vault", scope=scope, budget=budget, form=form)

    assert (told["text"], told["tokens"], told["budget"]) == (made.text, made.tokens, made.budget)
    assert told["form"] == form.value
    assert (told["stable_hash"], told["volatile_hash"]) == (made.stable.hash, made.volatile.hash)
    assert (told["stable_tokens"], told["volatile_tokens"]) == (
        made.stable.tokens,
        made.volatile.tokens,
    )
    assert told["items"] == [{"id": str(one.id), "kind": one.kind} for one in made.items]
    assert told["items_total"] == len(made.items)
    assert told["omitted_total"] == len(made.omitted)
    assert {(one["section"], one["reason"]): one["count"] for one in told["omitted"]} == Counter(
        (one.title, one.reason) for one in made.omitted
    )
    assert told["degraded"] == []
    assert told["tokens"] <= told["budget"]


async def test_what_a_plain_budget_holds_is_of_every_kind(
    memory: MemoryManager, scope: Scope
) -> None:
    await _filled(memory, scope)

    told = await _section(memory, scope)

    assert "Approved: follow these where they fit" in told["text"]
    assert {one["kind"] for one in told["items"]} >= {"fact", "procedure"}


async def test_what_was_left_out_costs_no_more_than_it_must(
    memory: MemoryManager, scope: Scope
) -> None:
    for number in range(40):
        text = f"The lease of vault {number} is {'very ' * 40}red."
        await memory.store_fact(a_fact(object=str(number), content=text), scope=scope)

    told = await _section(memory, scope, budget=20)

    assert told["text"] == ""
    assert told["items"] == []
    assert told["omitted_total"] == 40
    assert sum(one["count"] for one in told["omitted"]) == 40
    assert {one["reason"] for one in told["omitted"]} == {"over the budget"}
    assert "very" not in json.dumps(told)


async def test_beyond_its_text_an_answer_costs_what_its_rows_may(
    memory: MemoryManager, scope: Scope
) -> None:
    for number in range(ITEMS_MAX + 10):
        text = f"The lease of vault {number} is red."
        await memory.store_fact(a_fact(object=str(number), content=text), scope=scope)

    told = await _section(memory, scope, budget=2_000)
    few = await _section(memory, scope)

    assert told["items_total"] == ITEMS_MAX + 10
    assert len({one["id"] for one in told["items"]}) == len(told["items"]) == ITEMS_MAX
    assert len(few["items"]) == few["items_total"] < ITEMS_MAX
    assert few["omitted_total"] == ITEMS_MAX + 10 - few["items_total"]
    assert _beside_text(told) < 80 * ITEMS_MAX
    assert _beside_text(few) < 80 * few["items_total"] + 1_000


def _beside_text(told: dict[str, Any]) -> int:
    """The characters of the answer but for the section itself."""
    return len(json.dumps({**told, "text": ""}))


def test_of_many_reasons_those_of_most_memories_are_told() -> None:
    omitted = tuple(
        Omission(f"Title {number}", "x" * 500, "over the budget")
        for number in range(OMISSIONS_MAX + 5)
        for _ in range(number + 1)
    )

    told = section_of(Context(budget=9, omitted=omitted))

    assert [one.count for one in told.omitted] == list(range(OMISSIONS_MAX + 5, 5, -1))
    assert told.omitted_total == len(omitted)


async def test_the_stable_hash_changes_with_what_is_known_alone(
    memory: MemoryManager, scope: Scope
) -> None:
    await _filled(memory, scope)
    one = await _section(memory, scope)

    other = await _section(memory, scope, query="who signed in the garden?")
    await memory.remember("I prefer tea.", scope=scope)
    after = await _section(memory, scope)

    assert one["stable_hash"] == other["stable_hash"] != after["stable_hash"]


async def test_it_is_of_the_scope_of_the_server_and_of_no_sibling(
    memory: MemoryManager, scope: Scope
) -> None:
    everywhere = Scope(scope.tenant)
    for name, place in (
        ("garden", scope),
        ("house", everywhere),
        ("kitchen", everywhere.project("kitchen")),
    ):
        text = f"The lease of the vault stands in the {name}."
        await memory.store_fact(a_fact(object=name, content=text), scope=place)

    told = await _section(memory, scope)

    assert len(told["items"]) == 2
    assert "garden" in told["text"]
    assert "kitchen" not in told["text"]


async def test_when_memory_is_late_the_section_is_empty_and_says_why(
    memory: MemoryManager, scope: Scope
) -> None:
    await _filled(memory, scope)
    hurried = memory.settings.model_copy(
        update={"context": memory.settings.context.model_copy(update={"deadline_ms": 1})}
    )

    wiring = Wiring(hurried, clock=TickingClock(), embedder=HashingEmbedder())
    async with MemoryManager(wiring) as late:
        told = await _section(late, scope)

    assert (told["text"], told["items"]) == ("", [])
    assert told["degraded"] == ["the deadline of 1 ms passed"]
