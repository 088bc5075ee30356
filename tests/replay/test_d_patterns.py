"""Query text and patterns: a name is a name, whatever some store would make of its characters."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from mnemic import EpisodeCreate, MemoryManager, ProcedureCreate, Scope, Step
from mnemic.testing import a_fact, a_turn
from oracles.answers import refused
from oracles.reach import nothing_wider
from oracles.round_trip import same
from oracles.stage import Stage

NOT_APPLICABLE: dict[str, str] = {}

AT = datetime(2026, 3, 1, tzinfo=UTC)
STEPS = (Step(action="Tag the release"),)


async def _facts(memory: MemoryManager, scope: Scope) -> list[str]:
    """What is found from a scope by everything that finds facts."""
    listed = await memory.at(scope).semantic.get_by_entity("User", 100)
    found = await memory.recall("User uses", scope=scope, limit=100, floor=0.0)
    asked = [hit.memory for hit in found.hits]
    nothing_wider(asked, scope, own={fact.id for fact in listed})
    return sorted(fact.object for fact in listed)


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("100%", "100 percent"),
        ("file_name", "fileXname"),
        ("back\\slash", "backslash"),
        ("a.c", "abc"),
        ("plain", "plains"),
    ],
)
async def test_d04_percent_underscore_and_backslash_are_themselves_in_each_tier(
    memory: MemoryManager, scope: Scope, name: str, like: str
) -> None:
    here = memory.at(scope)
    for one in (name, like):
        await here.working.set(one, one)
        await here.semantic.store_fact(a_fact(subject=one))
        told = EpisodeCreate(task_description=one, occurred_at=AT, task_type=one)
        await here.episodic.record_episode(told)
        way = ProcedureCreate(name=one, steps=STEPS, task_type=one)
        await here.procedural.record_procedure(way)

    best = await here.procedural.get_best_procedure(name)
    escaped = name.replace("\\", "\\\\")

    assert await here.working.list_keys(escaped) == [name]
    assert [fact.subject for fact in await here.semantic.get_by_entity(name)] == [name]
    assert [one.task_type for one in await here.episodic.get_by_task_type(name)] == [name]
    assert best is not None
    assert best.name == name


async def test_d05_an_underscore_in_a_name_is_kept_and_found(
    memory: MemoryManager, scope: Scope
) -> None:
    semantic = memory.at(scope).semantic
    fact = await semantic.store_fact(a_fact(subject="GRACE_v2", predicate="runs", object="Linux"))
    other = await semantic.store_fact(a_fact(subject="GRACEXv2", predicate="runs", object="BSD"))

    by_name = await semantic.get_by_entity("GRACE_v2")
    by_words = await semantic.search_facts("GRACE_v2")

    assert fact.subject == "GRACE_v2"
    assert [one.id for one in by_name] == [fact.id]
    assert by_words[0].id == fact.id
    assert [one.id for one in await semantic.get_by_entity("GRACEXv2")] == [other.id]
    assert await semantic.get_by_entity("GRACEv2") == []


async def test_d06_a_scope_is_itself_and_its_own_children_alone(
    memory: MemoryManager, scope: Scope
) -> None:
    names = ["team_a", "teamXa", "team_a2", "team_", "team%"]
    for name in names:
        team = scope.project(name)
        await memory.store_fact(a_fact(object=name), scope=team)
        await memory.store_fact(a_fact(object=f"{name} session"), scope=team.session("s"))
        await memory.at(team).working.set("k", name)

    for name in names:
        team = scope.project(name)
        assert await _facts(memory, team) == [name]
        assert await _facts(memory, team.session("s")) == [name, f"{name} session"]
        assert await memory.at(team).working.get_all() == {"k": name}


async def test_d07_a_path_in_a_name_leads_nowhere(memory: MemoryManager, scope: Scope) -> None:
    names = ["/org_1/a", "/orgX1/a", "/org_1", "/org_1/", "/org_1/a/b", "org_1/a"]
    for name in names:
        await memory.store_fact(a_fact(object=name), scope=scope.project(name))

    for name in names:
        assert await _facts(memory, scope.project(name)) == [name]
    assert await _facts(memory, scope) == []


async def test_d09_two_paths_that_join_to_one_text_are_two(memory: MemoryManager) -> None:
    pairs = [
        ("acme_x", "y"),
        ("acme", "x_y"),
        ("acme_x_", "y"),
        ("acme", "x\x1fy"),
        ("acme\x1fx", "y"),
    ]
    scopes = [Scope.organisation(one).project(other) for one, other in pairs]
    for scope, pair in zip(scopes, pairs, strict=True):
        await memory.store_fact(a_fact(object=repr(pair)), scope=scope)

    assert len({scope.id for scope in scopes}) == len(scopes)
    assert [await _facts(memory, scope) for scope in scopes] == [[repr(pair)] for pair in pairs]


@pytest.mark.parametrize("name", ["*", "u[12]", "u?", "\\", "u*", "{u1}", "u1"])
async def test_d11_a_name_is_never_a_pattern_of_the_store(
    memory: MemoryManager, scope: Scope, name: str
) -> None:
    prefix = scope.tenant.external_id
    others = [Scope.user(f"{prefix}{other}").session("s") for other in ("u2", "u3", "u", "ux")]
    for other in others:
        await memory.at(other).working.set("k", "theirs")
    mine = Scope.user(f"{prefix}{name}").session("s")
    await memory.at(mine).working.set(name, "mine")

    assert await memory.at(mine).working.list_keys() == [name]
    assert await memory.at(mine).working.get_all() == {name: "mine"}
    assert await memory.at(mine).working.clear() == 1
    assert [await memory.at(other).working.get("k") for other in others] == ["theirs"] * 4


async def test_d12_one_session_name_of_two_users_is_two_sessions(
    memory: MemoryManager, scope: Scope
) -> None:
    other = Scope.user(f"{scope.tenant.external_id} other")
    for one, word in ((scope, "mine"), (other, "theirs")):
        await memory.sessions.append([a_turn(word, external_id="m")], scope=one.session("s"))
        await memory.at(one.session("s")).working.set("k", word)

    found = await memory.recall("mine theirs", scope=scope.session("s"), floor=0.0)

    assert [hit.text for hit in found.hits] == ["User: mine"]
    assert await memory.at(scope.session("s")).working.get("k") == "mine"
    assert await memory.at(other.session("s")).working.get("k") == "theirs"


async def test_d13_deployments_with_related_names_share_no_key(stage: Stage, scope: Scope) -> None:
    held: dict[str, Any] = {}

    for name in ("prod", "prod2", "prod:", "pro"):
        async with stage.another(working={"namespace": name}) as memory:
            working = memory.at(scope).working
            await working.set(name, name)
            held[name] = await working.get_all()

    async with stage.another(working={"namespace": "prod"}) as memory:
        cleared = await memory.at(scope).working.clear()
    async with stage.another(working={"namespace": "prod2"}) as memory:
        left = await memory.at(scope).working.get_all()
    assert held == {name: {name: name} for name in held}
    assert cleared == 1
    assert left == {"prod2": "prod2"}


async def test_d15_a_comma_does_not_split_a_tag(memory: MemoryManager, scope: Scope) -> None:
    tags = ("red, green", "red", "a|b", "{x}")

    fact = await memory.at(scope).semantic.store_fact(a_fact(tags=tags))
    await refused(
        memory.store_fact(a_fact(object="y", tags="red, green"), scope=scope),
        field="tags",
        control=memory.store_fact(a_fact(object="y", tags=["red, green"]), scope=scope),
    )

    assert fact.tags == tags


@pytest.mark.parametrize("name", ["../../x", "a/b", "a%2Fb", ".", "..", "C:\\x", "plain"])
async def test_d17_a_name_like_a_path_is_one_name_everywhere(
    memory: MemoryManager, scope: Scope, name: str
) -> None:
    session = scope.session(name)
    other = scope.session(f"{name}x")
    await memory.sessions.append([a_turn("said here")], scope=session)
    await memory.at(session).working.set(name, name)

    started = await memory.sessions.start(scope=session)
    found = await memory.recall("said", scope=session, floor=0.0)
    elsewhere = await memory.recall("said", scope=other, floor=0.0)

    assert started.name == name
    assert [hit.text for hit in found.hits] == ["User: said here"]
    assert await memory.at(session).working.get_all() == {name: name}
    assert elsewhere.hits == ()


async def test_d18_no_value_becomes_a_part_of_a_statement(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    evil = "a'); DROP TABLE mnemic.facts; --"
    here = memory.at(scope)

    fact = await here.semantic.store_fact(
        a_fact(subject=evil, object=evil, metadata={evil: {evil: [evil]}}, tags=[evil])
    )
    await here.working.set(evil, {evil: evil})
    types: Any = ["id; SELECT 1"]
    await refused(
        memory.recall("x", scope=scope, memory_types=types),
        field="memory_types",
        control=memory.recall("x", scope=scope, memory_types=["semantic"]),
    )

    assert same([evil, {evil: {evil: [evil]}}], [fact.object, fact.metadata])
    assert [one.id for one in await here.semantic.get_by_entity(evil)] == [fact.id]
    assert [one.id for one in await here.semantic.search_facts(evil)] == [fact.id]
    assert await here.working.get_all() == {evil: {evil: evil}}
    assert (await stage.stored(scope))["facts"] == 1


async def test_d19_an_object_in_the_place_of_a_name_is_no_operator(
    memory: MemoryManager, scope: Scope
) -> None:
    operator: Any = {"$ne": None}
    here = memory.at(scope)
    await memory.store_fact(a_fact(), scope=scope)

    for ask, harmless, field in (
        (_user, "u", "tenant"),
        (_session_of(scope), "s", "session"),
        (here.semantic.get_by_entity, "User", "entity"),
        (here.episodic.get_by_task_type, "note", "task_type"),
        (here.working.get, "k", "key"),
        (here.working.list_keys, "*", "pattern"),
    ):
        await refused(ask(operator), field=field, control=ask(harmless))
    await refused(
        memory.recall("x", scope=operator), field="scope", control=memory.recall("x", scope=scope)
    )
    await refused(
        memory.forget(operator, scope=scope), field="ids", control=memory.recall("x", scope=scope)
    )


async def _user(name: str) -> Scope:
    return Scope.user(name)


def _session_of(scope: Scope) -> Any:
    async def made(name: str) -> Scope:
        return scope.session(name)

    return made


async def test_d20_a_pattern_costs_no_more_than_its_text(
    memory: MemoryManager, scope: Scope
) -> None:
    evil = "(a+)+$"
    here = memory.at(scope)
    flood = "a" * 9_000 + "!"
    await here.working.set(flood, 1)
    way = ProcedureCreate(name="Evil", steps=STEPS, trigger_pattern=evil)
    kept = await here.procedural.record_procedure(way)
    pattern: Any = [evil]

    started = time.perf_counter()
    unmatched = await here.procedural.find_matching(flood)
    keys = await here.working.list_keys(evil)
    starred = await here.working.list_keys("*a*a*a*a*a*a*b")
    await refused(
        memory.forget(pattern, scope=scope),
        field="ids",
        control=memory.forget([kept.id], scope=scope),
    )
    took = time.perf_counter() - started

    assert unmatched == []
    assert keys == starred == []
    assert await here.working.list_keys("a*!") == [flood]
    assert took < 60  # by backtracking it would take years
