from __future__ import annotations

import json
from typing import Any

import pytest

from mnemic import (
    ContextForm,
    FactCreate,
    InvalidInput,
    MemoryManager,
    ProcedureCreate,
    Scope,
    Step,
    Trust,
)
from mnemic.model.context import KNOWN, NOTICE
from mnemic.model.context_form import parse
from mnemic.model.token_count import EstimatedTokens
from mnemic.settings import MemorySettings
from mnemic.testing import a_conversation, a_fact
from mnemic.wiring import Wiring

COUNTER = EstimatedTokens()
QUESTION = "can I deploy on Friday?"


async def remembered(memory: MemoryManager, scope: Scope) -> None:
    """Something of every kind."""
    await memory.remember("Deploys are frozen on Fridays.", scope=scope)
    await memory.remember("I prefer tea over coffee.", scope=scope)
    talk = a_conversation(["The support rota is on call on Fridays.", "Understood."])
    await memory.sessions.append(talk, scope=scope.session("s"))
    await memory.sessions.end(scope=scope.session("s"))
    for name, trust in (("Deploy on Friday", Trust.APPROVED), ("Deploy by hand", Trust.USER)):
        steps = (Step(action="ask"), Step(action="push"))
        procedure = ProcedureCreate(name=name, steps=steps, trust=trust)
        await memory.at(scope).procedural.record_procedure(procedure)


def titles(made: Any) -> list[str]:
    return [section.title for section in made.sections]


async def test_every_kind_of_memory_has_its_section(memory: MemoryManager, scope: Scope) -> None:
    await remembered(memory, scope)

    made = await memory.context(QUESTION, scope=scope, budget=2_000)

    assert made.text.startswith(f"## {KNOWN.heading}\n=")
    assert NOTICE in made.stable.text
    assert titles(made) == [
        "Preferences",
        "Rules and dates",
        "Approved procedures",
        "From earlier conversations",
        "Procedures",
    ]
    assert made.sections[2].items == ("Deploy on Friday: ask; push",)
    assert made.sections[4].items == ("Deploy by hand: ask; push",)
    assert made.tokens == COUNTER.count(made.text) <= made.budget == 2_000
    assert made.degraded == ()
    assert [(one.section, one.text) for one in made.items] == [
        (section.title, item) for section in made.sections for item in section.items
    ]


@pytest.mark.parametrize("form", list(ContextForm))
@pytest.mark.parametrize("budget", [16, 60, 120, 300, "recall", "deep"])
async def test_the_budget_holds_for_the_form_that_was_asked_for(
    memory: MemoryManager, scope: Scope, form: ContextForm, budget: int | str
) -> None:
    await remembered(memory, scope)

    made = await memory.context(QUESTION, scope=scope, budget=budget, form=form.value)

    assert made.budget == {"recall": 1_500, "deep": 4_000}.get(str(budget), budget)
    assert made.tokens == COUNTER.count(made.text) <= made.budget
    assert made.form is form
    assert parse(made.text, form) == made.sections
    if made.budget >= 300:
        assert "frozen on Fridays" in made.text
    if form is ContextForm.MESSAGES and made.text:
        assert json.loads(made.text) == made.messages


async def test_three_hundred_tokens_are_the_default(memory: MemoryManager, scope: Scope) -> None:
    await remembered(memory, scope)

    made = await memory.context(QUESTION, scope=scope)

    assert (made.budget, made.form) == (300, ContextForm.MARKDOWN)
    assert made.stable.tokens <= 150


async def test_the_stable_part_changes_with_memory_alone(
    memory: MemoryManager, scope: Scope
) -> None:
    await remembered(memory, scope)
    before = await memory.context(QUESTION, scope=scope)
    talk = a_conversation(["The lunch menu has soup on Friday.", "Noted."])

    await memory.sessions.append(talk, scope=scope.session("lunch"))
    await memory.sessions.end(scope=scope.session("lunch"))
    asked = await memory.context("what is for lunch on Friday?", scope=scope)
    await memory.remember("We use Valkey for the carts.", scope=scope)
    told = await memory.context(QUESTION, scope=scope)

    assert asked.stable == before.stable
    assert asked.stable.hash == before.stable.hash
    assert asked.volatile.hash != before.volatile.hash
    assert told.stable.hash != before.stable.hash
    assert "Valkey" in told.stable.text


async def test_the_same_question_gives_the_same_bytes(memory: MemoryManager, scope: Scope) -> None:
    await remembered(memory, scope)

    for form in ContextForm:
        made = [await memory.context(QUESTION, scope=scope, form=form) for _ in range(2)]
        assert made[0] == made[1]


async def test_confirming_a_fact_brings_it_in_and_moves_no_other(
    memory: MemoryManager, scope: Scope
) -> None:
    facts = [
        await memory.store_fact(a_fact(object=f"tool {n} " + "x" * 60), scope=scope)
        for n in range(12)
    ]
    before = await memory.context("nothing of it", scope=scope)
    shown = {one.id for one in before.items if one.section == "Facts"}
    left = next(one.id for one in facts if one.id not in shown)

    for key in "abc":
        await memory.at(scope).semantic.reinforce_fact(left, idempotency_key=key)
    after = await memory.context("nothing of it", scope=scope)

    now = [one.id for one in after.items if one.section == "Facts"]
    assert left in now
    assert now == sorted(now, key=lambda one: one.int)
    assert len(set(now) - shown) == 1


async def test_an_episode_that_hardly_answers_is_left_out_and_said_to_be(
    memory: MemoryManager, scope: Scope
) -> None:
    talk = a_conversation(["The support rota is on call on Fridays.", "Understood."])
    await memory.sessions.append(talk, scope=scope.session("s"))
    await memory.sessions.end(scope=scope.session("s"))
    hardly, well = "Who is on the rota of the kitchen?", "Is the support rota on call on Fridays?"

    made = {
        asked: await memory.context(asked, scope=scope, budget="deep") for asked in (hardly, well)
    }

    found = await memory.recall(hardly, scope=scope, limit=50)
    assert "episode" in {hit.kind for hit in found.hits}
    assert "Episodes" not in titles(made[hardly])
    left = [one.reason for one in made[hardly].omitted if one.title == "Episodes"]
    assert left == ["below the floor"]
    assert "Episodes" in titles(made[well])


async def test_what_a_tool_or_an_import_said_is_never_an_instruction(
    memory: MemoryManager, scope: Scope
) -> None:
    for trust in Trust:
        steps = (Step(action=f"obey {trust.name}"),)
        procedure = ProcedureCreate(name=f"Deploy {trust.name}", steps=steps, trust=trust)
        await memory.at(scope).procedural.record_procedure(procedure)

    made = await memory.context("deploy", scope=scope, budget=2_000)

    told = {section.title: section.items for section in made.sections}
    assert sorted(told["Approved procedures"]) == [
        "Deploy APPROVED: obey APPROVED",
        "Deploy OPERATOR: obey OPERATOR",
    ]
    assert set(told["Procedures"]).isdisjoint(told["Approved procedures"])
    assert {one.trust for one in made.items if one.section == "Approved procedures"} == {
        Trust.OPERATOR,
        Trust.APPROVED,
    }


async def test_a_procedure_whose_avoid_condition_holds_is_not_shown(
    memory: MemoryManager, scope: Scope
) -> None:
    for name, avoid in (("Deploy now", ("Friday",)), ("Deploy later", ())):
        procedure = ProcedureCreate(
            name=name, steps=(Step(action="push"),), avoid_conditions=avoid, trust=Trust.APPROVED
        )
        await memory.at(scope).procedural.record_procedure(procedure)

    made = await memory.context(QUESTION, scope=scope)

    assert "Deploy later" in made.text
    assert "Deploy now" not in made.text


async def test_facts_stand_by_their_categories(memory: MemoryManager, scope: Scope) -> None:
    for category in ("failure_pattern", "tool_avoidance", "identity", "tool_affinity", "mine"):
        fact = FactCreate(subject="User", predicate="has", object=category, category=category)
        await memory.store_fact(fact, scope=scope)

    made = await memory.context("nothing of it", scope=scope, budget="recall")

    assert titles(made) == ["About the user", "Tool preferences", "Known issues", "Facts"]
    assert len(made.sections[1].items) == 2


async def test_nothing_known_is_an_empty_section(memory: MemoryManager, scope: Scope) -> None:
    for form in ContextForm:
        made = await memory.context("can I deploy?", scope=scope, form=form)

        assert (made.text, made.tokens, made.sections, made.messages) == ("", 0, (), [])


async def test_a_missed_deadline_gives_an_empty_section_that_says_so(
    settings: MemorySettings, embedder: Any, scope: Scope
) -> None:
    hasty = settings.model_copy(
        update={"context": settings.context.model_copy(update={"deadline_ms": 1})}
    )

    async with MemoryManager(Wiring(hasty, embedder=embedder)) as memory:
        made = await memory.context("can I deploy?", scope=scope, form="json")

    assert (made.text, made.form) == ("", ContextForm.JSON)
    assert made.degraded == ("the deadline of 1 ms passed",)


@pytest.mark.parametrize("budget", [0, -5, 2.5, True, "much", "5", "", ["recall"]])
async def test_a_budget_that_is_none_is_refused(
    memory: MemoryManager, scope: Scope, budget: Any
) -> None:
    with pytest.raises(InvalidInput, match="budget"):
        await memory.context("can I deploy?", scope=scope, budget=budget)
    with pytest.raises(InvalidInput, match="budget"):
        await memory.lifecycle.spawn(scope=scope.session("s"), task="deploy", budget=budget)


@pytest.mark.parametrize("form", ["yaml", "", None, 5, ["text"]])
async def test_a_form_that_there_is_not_is_refused(
    memory: MemoryManager, scope: Scope, form: Any
) -> None:
    with pytest.raises(InvalidInput, match=r"form.*text, markdown, xml, json, messages"):
        await memory.context("can I deploy?", scope=scope, form=form)


class Letters:
    """A token for each character."""

    def count(self, text: str) -> int:
        return len(text)


async def test_a_hosts_own_counter_counts(
    settings: MemorySettings, embedder: Any, scope: Scope
) -> None:
    wiring = Wiring(settings, embedder=embedder, counter=Letters())

    async with MemoryManager(wiring) as memory:
        await remembered(memory, scope)
        made = await memory.context(QUESTION, scope=scope, budget=400)

    assert made.tokens == len(made.text) <= 400
    assert made.text


class Failing:
    """A tokenizer that stumbles over what it reads, or does not count."""

    def __init__(self, gives: Any) -> None:
        self._gives = gives

    def count(self, text: str) -> int:
        if isinstance(self._gives, Exception):
            raise self._gives
        tokens: int = self._gives if text else 0
        return tokens


@pytest.mark.parametrize(
    ("gives", "reason"),
    [
        (ValueError("secret"), "the token counter failed: ValueError"),
        (None, "the token counter gave no count but NoneType"),
        (1.5, "the token counter gave no count but float"),
        (True, "the token counter gave no count but bool"),
        (-1, "the token counter gave no count but int"),
    ],
)
async def test_a_counter_that_fails_gives_an_empty_section_that_says_so(
    settings: MemorySettings, embedder: Any, scope: Scope, gives: Any, reason: str
) -> None:
    async with MemoryManager(Wiring(settings, embedder=embedder, counter=Failing(gives))) as memory:
        await memory.remember("Deploys are frozen on Fridays.", scope=scope)
        made = await memory.context(QUESTION, scope=scope)

    assert made.text == ""
    assert made.degraded == (reason,)


async def test_shares_that_are_set_hold(
    settings: MemorySettings, embedder: Any, scope: Scope
) -> None:
    none = settings.context.model_copy(update={"stable_tokens_max": 0, "episodes_max": 0})
    own = settings.model_copy(update={"context": none})

    async with MemoryManager(Wiring(own, embedder=embedder)) as memory:
        await remembered(memory, scope)
        made = await memory.context(QUESTION, scope=scope, budget=2_000)

    assert made.stable.text == ""
    assert "I prefer tea over coffee." in made.text
    assert titles(made)[-1] == "Further facts"


@pytest.mark.parametrize(
    "text", ["<|endoftext|>", "[SEP]", "é" * 50, "日本語" * 20, "🚀", "\n\n\n", "\ud83d"]
)
def test_every_text_costs_something(text: str) -> None:
    assert COUNTER.count(text) >= 1


def test_adding_text_never_costs_less() -> None:
    text = "The quick brown fox, 2026-03-02: 12,345 items — 日本語 и русский."

    counts = [COUNTER.count(text[:end]) for end in range(len(text) + 1)]

    assert counts == sorted(counts)
    assert counts[0] == 0
