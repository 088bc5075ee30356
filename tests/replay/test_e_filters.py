"""E: filters and metadata; what is asked of holds, and what cannot be asked is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest
from mcp import Client

from mnemic import (
    EpisodeCreate,
    InvalidInput,
    MemoryManager,
    NotFound,
    Outcome,
    ProcedureCreate,
    Scope,
    Step,
)
from mnemic.edge.mcp.server import build_server
from mnemic.model.transcript import Utterance
from mnemic.testing import a_fact, a_scope, a_turn
from oracles.answers import refused
from oracles.ranked import assert_ranked
from oracles.reach import nothing_wider, within_limit
from oracles.round_trip import same
from oracles.stage import Stage

NOT_APPLICABLE: dict[str, str] = {
    "E18": "There is no HTTP interface yet, and no verb that patches parts of a kept memory.",
}

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
TOKYO = timezone(timedelta(hours=9))


async def _kept(memory: MemoryManager, scope: Scope, *held: dict[str, Any]) -> list[UUID]:
    """An episode with each of the metadata, all in the same words."""
    here = memory.at(scope).episodic
    told = [
        EpisodeCreate(task_description="A deploy went out", occurred_at=AT, metadata=one)
        for one in held
    ]
    return [(await here.record_episode(one)).id for one in told]


async def _passing(memory: MemoryManager, scope: Scope, filters: Any) -> set[UUID]:
    found = await memory.recall("the deploy", scope=scope, floor=0.0, filters=filters)
    assert_ranked(found)
    return {hit.id for hit in found.hits}


@pytest.mark.parametrize("field", ["tags", "metadata.tag", "outcome", "kind"])
async def test_e03_in_takes_a_list_and_never_the_characters_of_a_text(
    memory: MemoryManager, scope: Scope, field: str
) -> None:
    for choices in ("red", "", None, {"a": 1}, 7, ("red",), b"red"):
        await refused(
            memory.recall("x", scope=scope, filters={field: {"in": choices}}),
            field="filters",
            control=memory.recall("x", scope=scope, filters={field: {"in": []}}),
        )


async def test_e03_a_list_of_one_text_finds_that_text_whole(
    memory: MemoryManager, scope: Scope
) -> None:
    whole, _ = await _kept(memory, scope, {"tag": "red"}, {"tag": "r"})

    assert await _passing(memory, scope, {"metadata.tag": {"in": ["red"]}}) == {whole}


async def test_e04_true_is_true_and_no_text_and_no_number(
    memory: MemoryManager, scope: Scope
) -> None:
    values: list[Any] = [True, "true", "True", 1, False, "false", 0]
    ids = await _kept(memory, scope, *({"x": value} for value in values))

    for value, kept in zip(values, ids, strict=True):
        assert await _passing(memory, scope, {"metadata.x": value}) == {kept}, value
        assert await _passing(memory, scope, {"metadata.x": {"in": [value]}}) == {kept}, value


@pytest.mark.parametrize(
    "both",
    [
        {"metadata.n": {"ge": 1, "lt": 5}},
        {"metadata.n": {"lt": 5, "ge": 1}},
        {"and": [{"metadata.n": {"ge": 1}}, {"metadata.n": {"lt": 5}}]},
        {"metadata.n": {"ge": 1}, "and": [{"metadata.n": {"lt": 5}}]},
        {"not": {"or": [{"metadata.n": {"lt": 1}}, {"metadata.n": {"ge": 5}}]}},
    ],
)
async def test_e05_two_operators_on_one_key_both_count(
    memory: MemoryManager, scope: Scope, both: dict[str, Any]
) -> None:
    ids = await _kept(memory, scope, *({"n": n} for n in range(7)))

    assert await _passing(memory, scope, both) == set(ids[1:5])
    assert await _passing(memory, scope, {"metadata.n": {"ge": 1}}) == set(ids[1:])


def _wrapped(wrong: dict[str, Any], good: dict[str, Any]) -> list[dict[str, Any]]:
    """A condition wherever one may stand."""
    return [
        wrong,
        {**good, **wrong},
        {"or": [good, wrong]},
        {"and": [good, {"not": wrong}]},
        {"not": {"or": [{"and": [wrong]}, good]}},
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"tags": {"contains": "red"}},
        {"metadata.n": {"$gt": 1}},
        {"metadata.n": {"gt": 1, "near": 2}},
        {"nobody": 1},
        {"OR": [{"tags": "red"}]},
        {"tags": {}},
        {"importance": {"lt": "high"}},
    ],
)
async def test_e06_what_is_not_supported_is_refused_however_deep_it_stands(
    memory: MemoryManager, scope: Scope, wrong: dict[str, Any]
) -> None:
    good = {"source": "caller"}
    [kept] = await _kept(memory, scope, {})

    for filters in _wrapped(wrong, good):
        with pytest.raises(InvalidInput, match="filters"):
            await memory.recall("the deploy", scope=scope, filters=filters)
    for filters in _wrapped(good, good)[:3]:
        assert await _passing(memory, scope, filters) == {kept}


async def test_e07_of_a_thousand_those_few_that_pass_come_back_however_far_they_lie(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    near = [a_turn(f"The deploy of release {number} is frozen.") for number in range(995)]
    far = [a_turn(f"My cat sleeps, night {number}.", tags=("cat",)) for number in range(5)]
    await memory.sessions.append([*near, *far], scope=session)

    asked = "when is the deploy of a release frozen?"
    found = await memory.recall(asked, scope=session, floor=0.0, filters={"tags": "cat"})
    plain = await memory.recall(asked, scope=session, floor=0.0)

    assert {hit.memory.tags for hit in found.hits} == {("cat",)}
    assert found.returned == 5
    assert plain.returned == 10
    assert {hit.memory.tags for hit in plain.hits} == {()}


async def test_e09_no_door_gives_more_than_were_asked_for(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope)
    for number in range(10):
        await here.semantic.store_fact(a_fact(object=f"tool {number}"))
        await here.episodic.record_episode(
            EpisodeCreate(
                task_description=f"Deploy {number}", occurred_at=AT, outcome=Outcome.SUCCESS
            )
        )
        way = ProcedureCreate(name=f"Deploy {number}", steps=(Step(action="Tag it"),))
        await here.procedural.record_procedure(way)
    doors: list[Callable[[int], Any]] = [
        lambda limit: here.semantic.search_facts("User uses tool", limit),
        lambda limit: here.semantic.get_by_entity("User", limit),
        lambda limit: here.episodic.search_similar("Deploy", limit),
        here.episodic.get_recent,
        lambda limit: here.episodic.get_by_outcome(Outcome.SUCCESS, limit),
        lambda limit: here.episodic.get_by_task_type("conversation", limit),
        lambda limit: here.procedural.find_matching("Deploy", limit),
    ]

    for door in doors:
        assert (len(await door(3)), len(await door(100))) == (3, 10)
    for filters in (None, {"source": "caller"}, {"kind": "fact"}):
        found = await memory.recall("User tool", scope=scope, limit=3, filters=filters, floor=0.0)
        within_limit(found, 3, 100)
        assert found.returned == 3


@pytest.mark.parametrize("field", ["occurred_at", "metadata.at"])
async def test_e10_dates_are_instants_whatever_their_zone(
    memory: MemoryManager, scope: Scope, field: str
) -> None:
    # As text and as numbers these stand in another order than as instants.
    moments = [AT.replace(hour=hour).astimezone(TOKYO) for hour in (8, 9, 14, 15, 16)]
    ids = []
    for at in moments:
        told = EpisodeCreate(
            task_description="A deploy", occurred_at=at, metadata={"at": at.isoformat()}
        )
        ids.append((await memory.at(scope).episodic.record_episode(told)).id)

    for begins, ends in (
        ("2026-03-01T09:00:00Z", "2026-03-01T16:00:00Z"),
        ("2026-03-01T04:00:00-05:00", "2026-03-02T01:00:00+09:00"),
    ):
        inside = {field: {"ge": begins, "lt": ends}}
        assert await _passing(memory, scope, inside) == set(ids[1:4])
        assert await _passing(memory, scope, {"not": inside}) == {ids[0], ids[4]}
        assert await _passing(memory, scope, {field: begins}) == {ids[1]}


async def test_e11_a_null_in_the_metadata_blocks_no_reader_and_no_neighbour(
    memory: MemoryManager, scope: Scope
) -> None:
    with_null, inner, without = await _kept(
        memory, scope, {"k": None}, {"k": {"k": None}, "l": [None]}, {"k": "v"}
    )

    assert await _passing(memory, scope, None) == {with_null, inner, without}
    assert await _passing(memory, scope, {"metadata.k": "v"}) == {without}
    assert await _passing(memory, scope, {"metadata.k": None}) == {with_null}
    assert await _passing(memory, scope, {"metadata.k.k": None}) == {with_null, inner, without}
    assert await _passing(memory, scope, {"metadata.k": {"exists": True}}) == {inner, without}
    read = {one.id: one.metadata for one in await memory.at(scope).episodic.get_recent()}
    assert read[with_null] == {"k": None}
    assert len(read) == 3


@pytest.mark.parametrize(
    "held",
    [
        {"n": 1, "x": 1.5, "l": [1, "1", None, [True]], "d": {}, "e": {"d": {"f": False}}},
        {"n": 0, "x": -0.0, "l": [], "s": "", "t": "1", "b": False},
        {"n": 2**53 + 1, "m": -(2**63), "x": 1e-300, "": "no name", "a.b": {"c.d": 1}},
    ],
)
async def test_e12_values_of_every_type_read_back_as_they_are(
    stage: Stage, memory: MemoryManager, scope: Scope, held: dict[str, Any]
) -> None:
    session = scope.session("s")
    [episode] = await _kept(memory, scope, held)
    [turn] = await memory.sessions.append([a_turn(metadata=held)], scope=session)
    fact = await memory.store_fact(a_fact(metadata=held), scope=scope)

    [read] = await memory.at(scope).episodic.get_recent()
    found = await memory.recall("User uses PostgreSQL", scope=session, floor=0.0)

    assert read.id == episode
    for one in (read, await stage.kept(turn, session), await stage.kept(fact, scope)):
        assert same(held, one.metadata)
    assert {hit.id for hit in found.hits} == {episode, turn.id, fact.id}
    assert all(same(held, hit.memory.metadata) for hit in found.hits)


async def test_e15_no_metadata_moves_a_memory_to_another_owner(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    bob = a_scope()
    claims = {
        **{name: str(bob.id) for name in ("scope_id", "session_id", "id")},
        **{name: str(bob.tenant.id) for name in ("tenant_id", "user_id", "user", "owner")},
        "trust": 0,
        "source": "operator",
    }
    await memory.store_fact(a_fact(), scope=bob)

    fact = await memory.store_fact(a_fact(metadata=claims), scope=scope)
    again = await memory.store_fact(a_fact(), scope=scope, metadata=claims)
    told = await memory.remember("The vault uses Valkey", scope=scope, metadata=claims)
    [kept] = await _kept(memory, scope, claims)

    mine = await memory.recall("User uses PostgreSQL deploy", scope=scope, floor=0.0)
    nothing_wider([hit.memory for hit in mine.hits], scope, own={hit.id for hit in mine.hits})
    assert {fact.id, again.id, told.id, kept} == {hit.id for hit in mine.hits}
    assert {hit.memory.scope_id for hit in mine.hits} == {scope.id}
    assert (await stage.kept(fact, scope)).metadata == claims
    assert all((hit.source, int(hit.trust)) == ("caller", 2) for hit in mine.hits)
    theirs = await memory.recall("User uses PostgreSQL deploy", scope=bob, floor=0.0)
    assert [hit.memory.metadata for hit in theirs.hits] == [{}]
    await refused(
        memory.recall("x", scope=scope, filters={"user_id": str(bob.tenant.id)}),
        field="filters",
        control=memory.recall("x", scope=scope, filters={"metadata.user_id": "bob"}),
    )


async def test_e17_nothing_and_zero_are_values_and_not_missing_ones(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope)
    told = EpisodeCreate(
        task_description="A deploy", occurred_at=AT, importance_score=0.0, duration_seconds=0.0
    )
    kept = await here.episodic.record_episode(told)
    other = await here.episodic.record_episode(
        EpisodeCreate(task_description="A test", occurred_at=AT, importance_score=0.9)
    )
    doubted = await memory.store_fact(a_fact(confidence=0.0, metadata={}), scope=scope)
    noted = await memory.remember(
        "A release went out", scope=scope, memory_type="episodic", importance=0.0
    )

    await here.episodic.update_importance(other.id, 0)

    read = {one.id: one for one in await here.episodic.get_recent()}
    assert [read[one].importance_score for one in (kept.id, other.id, noted.id)] == [0.0] * 3
    assert read[kept.id].duration_seconds == 0.0
    assert (await stage.kept(doubted, scope)).confidence == 0.0
    for nothing in (0, "", {}, [], False, None, 0.0):
        await here.working.set("k", "something")
        await here.working.set("k", nothing)
        assert same(nothing, await here.working.get("k", "missing"))
    for field, call in (
        ("content", lambda text: memory.remember(text, scope=scope)),
        ("object", lambda text: memory.store_fact(a_fact(object=text), scope=scope)),
    ):
        await refused(call(""), field=field, control=call("a text"))


@pytest.mark.parametrize("name", [42, 0, True, 4.5, None, b"u-1", ["u-1"]])
def test_e20_what_is_no_text_is_no_name_of_an_owner(name: Any) -> None:
    person = Scope.user("42")
    makers = (
        *(Scope.user, Scope.organisation, person.project),
        *(person.agent_type, person.agent, person.session),
    )

    for make in makers:
        with pytest.raises(InvalidInput, match="must be"):
            make(name)
        assert "42" in repr(make("42"))


@pytest.mark.parametrize("identity", ["not-a-uuid", "", "0" * 4_096, "{}", "\x00", 7, None])
async def test_e21_what_is_no_id_is_refused_and_one_of_nothing_is_not_found(
    memory: MemoryManager, scope: Scope, identity: Any
) -> None:
    kept = await memory.store_fact(a_fact(), scope=scope)
    here = memory.at(scope)
    doors: list[tuple[str, Callable[[Any], Any]]] = [
        ("ids", lambda one: memory.forget([one], scope=scope)),
        ("memory_id", lambda one: memory.why_not("x", one, scope=scope)),
        ("fact_id", here.semantic.reinforce_fact),
        ("fact_id", here.semantic.verify_fact),
        ("episode_id", lambda one: here.episodic.update_importance(one, 0.5)),
    ]

    for field, door in doors:
        with pytest.raises(InvalidInput) as told:
            await door(identity)
        assert told.value.field.startswith(field)
        with pytest.raises(NotFound):
            await door(uuid4())
    async with Client(build_server(memory, scope)) as client:
        answer = await client.call_tool("forget", {"ids": [identity]})
    assert answer.is_error
    assert answer.content[0].text.startswith("invalid_input: ids")
    assert (await memory.forget([str(kept.id)], scope=scope)).counts == {"fact": 1}  # type: ignore[list-item]


@pytest.mark.parametrize("limit", [-1, -(2**63), 0])
async def test_e22_a_negative_limit_never_reaches_the_database(
    memory: MemoryManager, scope: Scope, limit: int
) -> None:
    await memory.store_fact(a_fact(), scope=scope)

    await refused(
        memory.recall("PostgreSQL", scope=scope, limit=limit),
        field="limit",
        control=memory.recall("PostgreSQL", scope=scope, limit=1),
    )
    async with Client(build_server(memory, scope)) as client:
        answers = [
            await client.call_tool("recall", {"query": "PostgreSQL", "limit": asked})
            for asked in (limit, 1)
        ]
    assert [one.is_error for one in answers] == [True, False]
    assert answers[0].content[0].text.startswith("invalid_input: limit")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
async def test_e24_a_number_that_json_has_not_is_refused_by_its_path_and_spoils_no_batch(
    memory: MemoryManager, scope: Scope, number: float
) -> None:
    session, poisoned = scope.session("s"), {"deep": [{"score": number}]}

    for call in (
        lambda held: memory.remember("A deploy", scope=scope, metadata=held),
        lambda held: memory.store_fact(a_fact(metadata=held), scope=scope),
        lambda held: memory.sessions.append([a_turn(metadata=held)], scope=session),
        lambda held: memory.at(scope).episodic.record_episode(
            EpisodeCreate(task_description="A deploy", occurred_at=AT, metadata=held)
        ),
    ):
        await refused(
            call(poisoned), field="metadata.deep[0].score", control=call({"deep": [{"score": 1}]})
        )
    said = [a_turn(f"Line {at}", external_id=f"m-{at}") for at in range(3)]
    said[1] = a_turn("Line 1", external_id="m-1", metadata=poisoned)
    entries = [Utterance(session="t", turn=turn, line=at) for at, turn in enumerate(said, 1)]
    report = await memory.transcripts.ingest(entries, scope=scope)

    assert (report.turns_added, [one.line for one in report.problems]) == (2, [2])


async def test_e25_a_time_alone_can_be_asked_for(memory: MemoryManager, scope: Scope) -> None:
    days = [AT + timedelta(days=day) for day in range(4)]
    said = [a_turn(f"Day {day}.", occurred_at=at) for day, at in enumerate(days)]
    await memory.sessions.append(said, scope=scope.session("s"))
    asked: dict[str, Any] = {
        "filters": {"occurred_at": {"ge": days[1].isoformat(), "lt": days[3].isoformat()}}
    }

    found = await memory.recall("", scope=scope.session("s"), **asked)
    async with Client(build_server(memory, scope.session("s"))) as client:
        answer = await client.call_tool("recall", {"query": "", **asked})

    assert [hit.text for hit in found.hits] == ["User: Day 2.", "User: Day 1."]
    assert not answer.is_error
    assert [hit["id"] for hit in answer.structured_content["hits"]] == [
        str(hit.id) for hit in found.hits
    ]
    assert found.notes == ("nothing else that is remembered here passes the filter",)
