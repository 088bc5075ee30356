"""What `explain` and `why_not` say is what recall did."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest

from mnemic import (
    EpisodeCreate,
    InvalidInput,
    MemoryManager,
    NotFound,
    Outcome,
    ProcedureCreate,
    RecallStage,
    Scope,
    Step,
)
from mnemic.model.embedding import Embedder
from mnemic.model.filter_matching import matches
from mnemic.model.filters import Filter
from mnemic.settings import MemorySettings
from mnemic.store.unit import Unit
from mnemic.testing import TickingClock, a_fact, a_turn
from mnemic.wiring import Wiring

CASES = 500
IDS_A_QUESTION = 20
AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
WORDS = (
    *("deploy", "ledger", "release", "frozen", "Friday", "tea", "coffee", "cat", "sofa"),
    *("PostgreSQL", "index", "vector", "Berlin", "Frankfurt", "staging", "cluster", "Vera", "Bob"),
    *("green", "broken", "test", "suite", "review", "holiday"),
)
FILTERS: tuple[dict[str, Any] | None, ...] = (
    *(None,) * 4,
    {"outcome": "success"},
    {"kind": {"in": ["turn", "fact"]}},
    {"metadata.n": {"lt": 5}},
    {"not": {"tags": "red"}},
    {"or": [{"actor": "Vera"}, {"confidence": {"ge": 0.5}}]},
    {"tags": {"in": []}},
)
TYPES = (None, None, None, ("episodic",), ("semantic", "procedural"), ("semantic",))


def _text(chance: Random) -> str:
    return f"The {' '.join(chance.choice(WORDS) for _ in range(chance.randrange(2, 8)))} it was."


def _told(chance: Random) -> dict[str, Any]:
    tags = tuple(tag for tag in ("red", "blue") if chance.random() < 0.4)
    return {"metadata": {"n": chance.randrange(10)}, "tags": tags}


async def _fill(memory: MemoryManager, scope: Scope, chance: Random) -> list[UUID]:
    """Memories of every kind, some of them not live any more."""
    here = memory.at(scope)
    turns = [
        a_turn(
            _text(chance),
            actor=chance.choice(("Vera", "Bob")),
            occurred_at=AT + timedelta(minutes=minute),
            **_told(chance),
        )
        for minute in range(120)
    ]
    ids = [one.id for one in await memory.sessions.append(turns, scope=scope)]
    for number in range(25):
        fact = a_fact(
            subject=chance.choice(("Vera", "Bob")),
            object=f"{chance.choice(WORDS)} {number}",
            predicate="works_at" if number % 3 == 0 else "uses",
            confidence=chance.choice((0.2, 0.5, 0.9)),
            valid_from=AT + timedelta(hours=number),
            **_told(chance),
        )
        ids.append((await here.semantic.store_fact(fact)).id)
    for one in ids[-5:]:
        if one in {fact.id for fact in await here.semantic.search_facts("uses", limit=100)}:
            await here.semantic.deprecate_fact(one, "wrong")
    for number in range(12):
        episode = EpisodeCreate(
            task_description=f"{_text(chance)} {number}",
            occurred_at=AT,
            outcome=chance.choice(tuple(Outcome)),
            **_told(chance),
        )
        ids.append((await here.episodic.record_episode(episode)).id)
        procedure = ProcedureCreate(
            name=f"{chance.choice(WORDS)} {number}",
            steps=(Step(action=_text(chance)),),
            **_told(chance),
        )
        ids.append((await here.procedural.record_procedure(procedure)).id)
    return list(dict.fromkeys(ids))


@dataclass(frozen=True, slots=True)
class World:
    """A scope with memories of all kinds, by id, as they are kept."""

    memory: MemoryManager
    scope: Scope
    kept: dict[UUID, Any]


@pytest.fixture(scope="module")
async def world(settings: MemorySettings, embedder: Embedder) -> AsyncIterator[World]:
    scope = Scope.user("asked").session("s")
    wiring = Wiring(settings, clock=TickingClock(), embedder=embedder)
    async with MemoryManager(wiring) as memory:
        ids = await _fill(memory, scope, Random(11))

        async def read(unit: Unit) -> dict[UUID, Any]:
            found = [
                *await unit.facts.by_ids(scope, ids, live_only=False),
                *await unit.episodes.by_ids(scope, ids),
                *await unit.procedures.by_ids(scope, ids),
            ]
            turns = await unit.retrieval.hits.by_ids(scope, [("turn", one) for one in ids])
            return turns | {one.id: one for one in found}

        kept = await memory._tools.transact(scope.tenant.id, read, read_only=True)
        yield World(memory, scope, kept)


KIND_OF = {"Turn": "turn", "Episode": "episode", "Fact": "fact", "Procedure": "procedure"}
TYPE_OF = {"turn": "episodic", "episode": "episodic", "fact": "semantic", "procedure": "procedural"}


def _dropped_before(one: Any, asked: dict[str, Any]) -> RecallStage | None:
    """What keeps a memory from being searched, told from how it is kept alone."""
    status = getattr(one, "status", "live")
    if status != "live":
        return RecallStage.TOMBSTONE if status == "deprecated" else RecallStage.STATUS
    if asked["memory_types"] and TYPE_OF[KIND_OF[type(one).__name__]] not in asked["memory_types"]:
        return RecallStage.TYPE
    filters = Filter.from_json(asked["filters"])
    out = filters is not None and not matches(filters, one)
    return RecallStage.FILTER if out else None


async def test_why_not_agrees_with_what_recall_does(
    world: World,
) -> None:
    memory, scope, kept = world.memory, world.scope, world.kept
    chance = Random(5)
    stages: Counter[RecallStage] = Counter()
    per_arm = memory.settings.recall.candidates_max

    for _ in range(CASES // IDS_A_QUESTION):
        query = " ".join(chance.choice(WORDS) for _ in range(chance.randrange(1, 5)))
        asked = {
            "filters": chance.choice(FILTERS),
            "memory_types": chance.choice(TYPES),
            "floor": chance.choice((0.0, 0.2, None, 0.6)),
            "limit": chance.choice((1, 3, 10, 30)),
        }
        found = await memory.recall(query, scope=scope, **asked)
        places = {hit.id: place for place, hit in enumerate(found.hits, start=1)}
        for identity in chance.sample(sorted(kept), IDS_A_QUESTION):
            answer = await memory.why_not(query, identity, scope=scope, **asked)

            stages[answer.stage] += 1
            before = _dropped_before(kept[identity], asked)
            assert answer.returned is (identity in places), answer
            assert (answer.stage is before) or (before is None and answer.stage not in _EARLY)
            if answer.returned:
                assert answer.place == places[identity]
            elif answer.stage is RecallStage.LIMIT:
                assert len(places) == asked["limit"] < answer.place
                assert found.hits[-1].score >= answer.score
            elif answer.stage is RecallStage.FLOOR:
                floor = asked["floor"] or memory.settings.recall.score_floor
                assert answer.score < floor
            elif answer.stage is RecallStage.ARMS:
                assert all(rank > per_arm for rank in answer.ranks.values()), answer

    assert sum(stages.values()) == CASES
    assert set(stages) == set(RecallStage), f"a stage was never met: {stages}"


_EARLY = {RecallStage.TOMBSTONE, RecallStage.STATUS, RecallStage.TYPE, RecallStage.FILTER}


async def test_a_memory_below_the_floor_or_behind_the_limit_comes_back_without_it(
    world: World,
) -> None:
    memory, scope, kept = world.memory, world.scope, world.kept
    query = "the broken ledger of Berlin"
    answers = [await memory.why_not(query, one, scope=scope, limit=2) for one in list(kept)[:40]]
    below = next(one for one in answers if one.stage is RecallStage.FLOOR)
    behind = next(one for one in answers if one.stage is RecallStage.LIMIT)

    without_floor = await memory.recall(query, scope=scope, floor=0.0, limit=100)
    with_more = await memory.recall(query, scope=scope, limit=behind.place)

    assert below.id in {hit.id for hit in without_floor.hits}
    assert with_more.hits[-1].id == behind.id


async def test_what_nobody_has_and_what_another_scope_owns_are_not_found_alike(
    memory: MemoryManager, scope: Scope
) -> None:
    foreign = await memory.remember("Deploys are frozen.", scope=scope.project("other"))
    faults = []
    for identity in (foreign.id, uuid4()):
        with pytest.raises(NotFound) as raised:
            await memory.why_not("deploys", identity, scope=scope, filters={"source": "caller"})
        faults.append(str(raised.value).replace(str(identity), "…"))

    assert faults[0] == faults[1]
    with pytest.raises(InvalidInput, match="memory_id"):
        await memory.why_not("deploys", "no id", scope=scope)  # type: ignore[arg-type]


@pytest.mark.parametrize("filters", [None, {"not": {"tags": "red"}}])
async def test_an_explanation_lists_what_each_arm_found(
    world: World, filters: dict[str, Any] | None
) -> None:
    memory, scope, kept = world.memory, world.scope, world.kept

    found = await memory.recall(
        "which release does Vera like?", scope=scope, filters=filters, explain=True, floor=0.0
    )

    told = found.explanation
    assert told is not None
    passing = [one for one in kept.values() if filters is None or "red" not in one.tags]
    turns = sum(type(one).__name__ == "Turn" for one in passing)
    assert {(one.kind, one.plan) for one in told.searches} == {
        (kind, "exact" if filters is None else "filtered") for kind in TYPE_OF
    }
    assert next(one.rows for one in told.searches if one.kind == "turn") == turns
    names = {kind: {arm.name for arm in told.arms if arm.kind == kind} for kind in TYPE_OF}
    assert names["turn"] == {"near", "words", "actor_near", "actor_words"}
    assert ("newest" in names["episode"]) is (filters is not None)
    for arm in told.arms:
        assert [hit.place for hit in arm.hits] == list(range(1, len(arm.hits) + 1))
        values = [hit.value for hit in arm.hits if hit.value is not None]
        assert values == sorted(values, reverse=True)
    for hit in found.hits:
        places = told.places(hit.id)
        assert places.get("near") == hit.near_place
        assert places.get("words") == hit.words_place


async def test_nothing_is_explained_unasked(memory: MemoryManager, scope: Scope) -> None:
    found = await memory.recall("deploys", scope=scope)

    assert found.explanation is None


async def test_a_kind_that_cannot_pass_is_not_searched_and_that_is_said(
    memory: MemoryManager, scope: Scope
) -> None:
    found = await memory.recall(
        "deploys", scope=scope, filters={"outcome": "success"}, explain=True
    )

    assert found.explanation is not None
    assert [(one.kind, one.plan) for one in found.explanation.searches] == [
        ("turn", "none"),
        ("episode", "filtered"),
        ("fact", "none"),
        ("procedure", "none"),
    ]
