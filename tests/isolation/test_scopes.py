"""The five levels: a scope sees itself and what stands above it, and writes in itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from mnemic import (
    EpisodeCreate,
    FactCreate,
    Forbidden,
    InvalidInput,
    MemoryManager,
    NotFound,
    ProcedureCreate,
    Scope,
    Step,
)
from mnemic.testing import a_scope

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def five_levels() -> Scope:
    """A session of an agent of some type, in a project of a tenant of its own."""
    return a_scope().project("p").agent_type("coder").agent("1").session("s")


async def furnish(memory: MemoryManager, scope: Scope, word: str) -> None:
    """A fact, an episode and a procedure of `scope` that hold the word."""
    here = memory.at(scope)
    await here.semantic.store_fact(FactCreate(subject="Deploys", predicate="uses", object=word))
    await here.episodic.record_episode(
        EpisodeCreate(task_description=f"Deploys used {word}.", occurred_at=AT, task_type="deploy")
    )
    await here.procedural.record_procedure(
        ProcedureCreate(
            name=f"Deploy with {word}",
            steps=(Step(action=f"Use {word}"),),
            task_type="deploy",
            trigger_pattern="deploy",
        )
    )


async def seen_from(memory: MemoryManager, scope: Scope, words: list[str]) -> dict[str, set[str]]:
    """Which of the words each way of reading shows from `scope`."""
    here = memory.at(scope)
    answers: dict[str, Any] = {
        "recall": (await memory.recall("deploys", scope=scope, limit=100, floor=0.0)).hits,
        "context": (await memory.context("deploys", scope=scope, budget=5_000)).text,
        "recent": await here.episodic.get_recent(100),
        "entity": await here.semantic.get_by_entity("deploys"),
        "matching": await here.procedural.find_matching("deploy", 50),
    }
    return {
        way: {word for word in words if word in repr(answer)} for way, answer in answers.items()
    }


def each_way(seen: dict[str, set[str]], words: list[str]) -> bool:
    """Whether every way of reading shows these words and no others."""
    return all(shown == set(words) for shown in seen.values())


async def test_each_prefix_of_the_chain_sees_itself_and_what_stands_above(
    memory: MemoryManager,
) -> None:
    chain = five_levels().chain[::-1]
    words = ["global0", "project1", "type2", "agent3", "session4"]
    for scope, word in zip(chain, words, strict=True):
        await furnish(memory, scope, word)

    seen = [await seen_from(memory, scope, words) for scope in chain]

    for depth, ways in enumerate(seen):
        assert each_way(ways, words[: depth + 1]), ways


async def test_levels_that_are_left_out_are_other_scopes(memory: MemoryManager) -> None:
    tenant = a_scope()
    places = {
        "within": tenant.project("p").agent_type("coder").agent("1"),
        "untyped": tenant.project("p").agent("1"),
        "homeless": tenant.agent("1"),
    }
    for word, scope in places.items():
        await furnish(memory, scope, word)

    seen = {word: await seen_from(memory, scope, list(places)) for word, scope in places.items()}

    for word, ways in seen.items():
        assert each_way(ways, [word]), ways


async def test_siblings_descendants_and_other_tenants_are_never_seen(
    memory: MemoryManager,
) -> None:
    agent = a_scope().project("p").agent("1")
    foreign = [
        agent.session("s"),
        Scope(agent.tenant).project("p").agent("2"),
        Scope(agent.tenant).project("P"),
        Scope.organisation(agent.tenant.external_id).project("p").agent("1"),
    ]
    words = [f"foreign{place}" for place in range(len(foreign))]
    for scope, word in zip(foreign, words, strict=True):
        await furnish(memory, scope, word)

    seen = await seen_from(memory, agent, words)

    assert each_way(seen, []), seen


async def test_a_new_agent_starts_with_the_defaults_that_stand_above_it(
    memory: MemoryManager,
) -> None:
    tenant = a_scope()
    coders = tenant.project("p").agent_type("coder")
    await furnish(memory, tenant, "house0")
    await furnish(memory, tenant.project("p"), "project1")
    await furnish(memory, coders, "coders2")
    words = ["house0", "project1", "coders2"]

    born = coders.agent("never seen before").session("first")
    seen = await seen_from(memory, born, words)
    best = await memory.at(born).procedural.get_best_procedure("deploy")

    assert each_way(seen, words), seen
    assert best is not None


@dataclass(frozen=True)
class Held:
    """What stands in the project: two facts of one subject, an episode and a procedure."""

    facts: tuple[Any, Any]
    episode: Any
    procedure: Any


async def held_by(memory: MemoryManager, scope: Scope) -> Held:
    here = memory.at(scope)
    facts = [
        await here.semantic.store_fact(FactCreate(subject="a", predicate="likes", object=word))
        for word in ("tea", "coffee")
    ]
    episode = await here.episodic.record_episode(
        EpisodeCreate(task_description="Tea was made.", occurred_at=AT)
    )
    procedure = await here.procedural.record_procedure(
        ProcedureCreate(name="Make tea", steps=(Step(action="Boil water"),))
    )
    return Held((facts[0], facts[1]), episode, procedure)


Change = Callable[[MemoryManager, Scope, Held], Awaitable[Any]]

CHANGES: dict[str, Change] = {
    "forget": lambda m, s, held: m.forget([held.facts[0].id], scope=s),
    "update_steps": lambda m, s, held: m.at(s).procedural.update_steps(
        held.procedure.id, [Step(action="Warm the pot")]
    ),
    "reinforce": lambda m, s, held: m.at(s).semantic.reinforce_fact(held.facts[0].id),
    "deprecate": lambda m, s, held: m.at(s).semantic.deprecate_fact(held.facts[0].id, "no"),
    "resolve": lambda m, s, held: m.at(s).semantic.resolve_conflict(
        [fact.id for fact in held.facts]
    ),
    "verify": lambda m, s, held: m.at(s).semantic.verify_fact(held.facts[0].id),
    "importance": lambda m, s, held: m.at(s).episodic.update_importance(held.episode.id, 0.9),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_writing_upward_needs_a_grant(memory: MemoryManager, change: Change) -> None:
    project = a_scope().project("p")
    agent = project.agent("1")
    held = await held_by(memory, project)

    with pytest.raises(Forbidden):
        await change(memory, agent, held)
    unchanged = await memory.at(project).semantic.get_by_entity("a")
    await memory.grants.allow(agent, to=project)
    await change(memory, agent, held)

    assert {fact.reinforcement_count for fact in unchanged} == {1}
    assert len(unchanged) == 2


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_revoked_grant_is_none(memory: MemoryManager, change: Change) -> None:
    project = a_scope().project("p")
    agent = project.agent("1")
    held = await held_by(memory, project)
    await memory.grants.allow(agent, to=project)

    revoked = await memory.grants.revoke(agent, to=project)

    assert revoked
    with pytest.raises(Forbidden):
        await change(memory, agent, held)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_what_stands_beside_or_below_is_not_even_there(
    memory: MemoryManager, change: Change
) -> None:
    project = a_scope().project("p")
    held = await held_by(memory, project.agent("2"))
    await memory.grants.allow(project.agent("1"), to=project)

    for elsewhere in (project.agent("1"), project, Scope(project.tenant)):
        with pytest.raises(NotFound):
            await change(memory, elsewhere, held)


async def test_a_grant_covers_what_is_below_its_scope_and_nothing_beside_it(
    memory: MemoryManager,
) -> None:
    project = a_scope().project("p")
    coders = project.agent_type("coder")
    held = await held_by(memory, project)
    await memory.grants.allow(coders, to=project)

    below = coders.agent("1").session("s")
    surer = await memory.at(below).semantic.reinforce_fact(held.facts[0].id)

    assert surer.reinforcement_count == 2
    for beside in (project.agent_type("tester").agent("1"), project.agent("1")):
        with pytest.raises(Forbidden):
            await memory.at(beside).semantic.reinforce_fact(held.facts[0].id)


async def test_a_grant_to_one_scope_says_nothing_of_the_scope_above_that(
    memory: MemoryManager,
) -> None:
    tenant = a_scope()
    agent = tenant.project("p").agent("1")
    held = await held_by(memory, tenant)

    await memory.grants.allow(agent, to=tenant.project("p"))

    with pytest.raises(Forbidden):
        await memory.at(agent).semantic.reinforce_fact(held.facts[0].id)


async def test_rights_are_granted_upward_only(memory: MemoryManager) -> None:
    project = a_scope().project("p")
    agent = project.agent("1")
    refused = (agent, project.agent("2"), agent.session("s"), a_scope().project("p"))

    for target in refused:
        with pytest.raises(InvalidInput, match="scope above"):
            await memory.grants.allow(agent, to=target)


async def test_an_episode_that_stands_elsewhere_is_as_unknown_as_one_that_does_not(
    memory: MemoryManager,
) -> None:
    """Its id is all that is believed of the episode handed in: the rest is read again."""
    project = a_scope().project("p")
    told = EpisodeCreate(task_description="I use Vim for deploys.", occurred_at=AT)
    hidden = await memory.at(project.agent("2")).episodic.record_episode(told)
    seen = await memory.at(project.agent("1")).episodic.record_episode(
        EpisodeCreate(task_description="I use Emacs for deploys.", occurred_at=AT)
    )

    here = memory.at(project.agent("1")).semantic
    messages = set()
    for identity in (hidden.id, uuid4()):
        with pytest.raises(NotFound) as refused:
            await here.extract_facts_from_episode(replace(hidden, id=identity))
        messages.add(str(refused.value).replace(str(identity), "ID"))
    [fact] = await here.extract_facts_from_episode(replace(hidden, id=seen.id))

    assert len(messages) == 1
    assert fact.object == "Emacs"
