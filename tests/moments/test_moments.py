"""What was true at a time, of what was known at a time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from mnemic import InvalidInput, MemoryManager, NaiveTimestamp, ProcedureCreate, Scope, Step
from mnemic.model.moment import Moment
from mnemic.service.recall import parse_query, recall
from mnemic.testing import TickingClock, a_conversation, a_fact, a_scope, a_turn

HOUR = timedelta(hours=1)
CANARY = "zanzibar"
EVERYTHING = """
    SELECT string_agg(h::text, ' ') FROM mnemic.memory_history h WHERE h.tenant_id = $1
"""


@pytest.fixture
def scope() -> Scope:
    return a_scope()


def _year(year: int, month: int = 1) -> datetime:
    return datetime(year, month, 1, tzinfo=UTC)


async def _tell(memory: MemoryManager, scope: Scope, place: str, **given: Any) -> Any:
    fact = a_fact(predicate="lives_in", object=place, **given)
    return await memory.at(scope).semantic.store_fact(fact)


async def _home(memory: MemoryManager, scope: Scope, **moment: datetime) -> list[str]:
    """As every way of asking tells it; they must agree."""
    facts = memory.at(scope).semantic
    by_entity = {one.object for one in await facts.get_by_entity("User", **moment)}
    by_words = {one.object for one in await facts.search_facts("lives in", **moment)}
    found = await memory.recall("User lives in", scope=scope, floor=0.0, **moment)
    by_recall = {hit.memory.object for hit in found.hits if hit.kind == "fact"}
    context = await memory.context("User lives in", scope=scope, **moment)
    told = {name for name in ("Oslo", "Bergen", "Lima") if f"lives in {name}" in context.text}

    assert by_entity == by_words == by_recall == told
    return sorted(by_entity)


async def test_what_was_true_then_is_told_of_what_was_known_then(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    await _tell(memory, scope, "Oslo", valid_from=_year(2020))
    before = clock()
    clock.advance(HOUR)
    await _tell(memory, scope, "Bergen", valid_from=_year(2022))

    assert await _home(memory, scope) == ["Bergen"]
    assert await _home(memory, scope, as_of=_year(2021)) == ["Oslo"]
    assert await _home(memory, scope, as_of=_year(2023)) == ["Bergen"]
    assert await _home(memory, scope, as_of=_year(2019)) == []
    assert await _home(memory, scope, as_of=_year(2023), known_at=before) == ["Oslo"]
    assert await _home(memory, scope, known_at=before) == ["Oslo"]
    assert await _home(memory, scope, known_at=before - HOUR) == []


async def test_what_ends_is_not_true_afterwards_and_both_times_give_what_was_live(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    await _tell(memory, scope, "Lima", valid_from=_year(2024), valid_to=_year(2025))

    assert await _home(memory, scope, as_of=_year(2024, 6)) == ["Lima"]
    assert await _home(memory, scope, as_of=_year(2025)) == []
    assert await _home(memory, scope, as_of=_year(2030)) == []
    assert await _home(memory, scope, as_of=clock(), known_at=clock()) == ["Lima"]
    assert await _home(memory, scope) == ["Lima"]


async def test_what_was_retracted_was_never_true_but_was_known(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    fact = await _tell(memory, scope, "Oslo", valid_from=_year(2020))
    before = clock()
    clock.advance(HOUR)
    await memory.at(scope).semantic.deprecate_fact(fact.id, "a mistake")

    assert await _home(memory, scope, as_of=_year(2021)) == []
    assert await _home(memory, scope, as_of=_year(2021), known_at=before) == ["Oslo"]


async def test_the_loser_of_a_conflict_was_true_until_the_winner(
    memory: MemoryManager, scope: Scope
) -> None:
    told = [
        await memory.at(scope).semantic.store_fact(
            a_fact(predicate="deploys_with", object=name, valid_from=_year(year))
        )
        for name, year in (("Ansible", 2020), ("Argo", 2022))
    ]

    await memory.at(scope).semantic.resolve_conflict([one.id for one in told])

    facts = memory.at(scope).semantic
    found = [
        [one.object for one in await facts.get_by_entity("User", as_of=_year(year))]
        for year in (2021, 2023)
    ]
    assert found == [["Ansible"], ["Argo"]]


def _true_at(told: Sequence[tuple[str, int]], year: int) -> list[str]:
    """The value that was told to be true since last, by then."""
    begun = [(since, place) for place, (_, since) in enumerate(told) if since <= year]
    return [told[max(begun)[1]][0]] if begun else []


async def test_of_a_single_valued_statement_one_value_is_true_at_any_time(
    memory: MemoryManager, pytestconfig: pytest.Config
) -> None:
    chance = random.Random(pytestconfig.getoption("seed"))
    wrong = []

    for _ in range(12):
        scope = a_scope()
        years = chance.sample(range(2000, 2020), 4)
        told = [(chance.choice(("Oslo", "Bergen", "Lima")), year) for year in years]
        for name, year in told:
            await _tell(memory, scope, name, valid_from=_year(year))
        for year in range(1999, 2021, 2):
            found = await memory.at(scope).semantic.get_by_entity("User", as_of=_year(year, 6))
            if [one.object for one in found] != _true_at(told, year):
                wrong.append((told, year, [one.object for one in found]))

    assert wrong == []


async def test_what_was_replaced_is_found_by_its_meaning(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    await _tell(memory, scope, "Oslo", valid_from=_year(2020))
    before = clock()
    clock.advance(HOUR)
    await _tell(memory, scope, "Bergen", valid_from=_year(2022))

    found = [
        await memory.recall("Oslo", scope=scope, floor=0.0, **moment)
        for moment in ({"as_of": _year(2021)}, {"known_at": before})
    ]

    assert [one.hits[0].near_place for one in found] == [1, 1]
    assert all(one.hits[0].reasons.cosine > 0 for one in found)


async def test_a_filter_and_an_explanation_are_of_the_past_too(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    await _tell(memory, scope, "Oslo", valid_from=_year(2020))
    before = clock()
    clock.advance(HOUR)
    await _tell(memory, scope, "Bergen", valid_from=_year(2022))

    asked: dict[str, Any] = {"scope": scope, "floor": 0.0, "filters": {"subject": "User"}}
    found = [
        await memory.recall("lives in", **asked, explain=True, **moment)
        for moment in ({}, {"as_of": _year(2021)}, {"known_at": before})
    ]

    told = [[hit.text for hit in one.hits] for one in found]
    assert told == [["User lives in Bergen"], ["User lives in Oslo"], ["User lives in Oslo"]]
    assert all(one.explanation is not None for one in found)


async def test_what_had_not_happened_yet_is_left_out(memory: MemoryManager, scope: Scope) -> None:
    said = [
        a_turn(f"The cat is called {name}.", occurred_at=_year(year))
        for name, year in (("Tom", 2020), ("Kit", 2024))
    ]
    await memory.sessions.append(said, scope=scope.session("s"))

    found = await memory.recall("cat", scope=scope.session("s"), as_of=_year(2022))

    assert [hit.text for hit in found.hits] == ["User: The cat is called Tom."]


async def test_what_was_forgotten_is_in_no_past(
    memory: MemoryManager, scope: Scope, clock: TickingClock, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    said = a_conversation([f"The key is {CANARY}.", "The cat is called Tom."])
    receipts = await memory.sessions.append(said, scope=session)
    await memory.sessions.end(scope=session)
    fact = await memory.store_fact(a_fact(object=CANARY), scope=scope)
    skill = await memory.at(scope).procedural.record_procedure(
        ProcedureCreate(name="Open", steps=(Step(action=f"Say {CANARY}"),))
    )
    clock.advance(HOUR)
    await memory.at(scope).procedural.update_steps(skill.id, [Step(action="Say please")])
    await memory.at(scope).semantic.reinforce_fact(fact.id)
    before = clock()
    clock.advance(HOUR)

    await memory.forget([receipts[0].id, fact.id, skill.id], scope=scope)

    then = await memory.recall(CANARY, scope=scope, floor=0.0, known_at=before)
    context = await memory.context(f"{CANARY} cat", scope=scope, as_of=before, known_at=before)
    assert CANARY not in "".join(hit.text for hit in then.hits) + context.text
    assert "The cat is called Tom." in context.text
    assert CANARY not in (await seen.fetchval(EVERYTHING, scope.tenant.id) or "")


async def test_a_procedure_that_became_a_version_of_another_is_forgotten_with_it(
    memory: MemoryManager, scope: Scope, clock: TickingClock, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    made = [
        await memory.at(place).procedural.record_procedure(
            ProcedureCreate(name="Open", steps=(Step(action=f"Say {CANARY} {place.name}"),))
        )
        for place in (scope, session)
    ]
    before = clock()
    clock.advance(HOUR)
    await memory.sessions.end(scope=session)
    known = await memory.recall(CANARY, scope=session, floor=0.0, known_at=before)

    await memory.forget([made[0].id], scope=scope)

    rows = "SELECT count(*) FROM mnemic.procedures WHERE tenant_id = $1"
    assert {hit.id for hit in known.hits} == {one.id for one in made}
    assert await seen.fetchval(rows, scope.tenant.id) == 0


async def test_an_alias_is_known_since_it_was_given_and_never_once_it_was_taken_away(
    memory: MemoryManager, scope: Scope, clock: TickingClock, seen: asyncpg.Connection
) -> None:
    facts = memory.at(scope).semantic
    await facts.store_fact(a_fact())
    for alias in ("pg", CANARY):
        await facts.add_alias("PostgreSQL", alias)
        known = clock()
        clock.advance(HOUR)

    found = [
        len(await facts.get_by_entity(name, known_at=at))
        for name in ("pg", CANARY)
        for at in (known - HOUR, known)
    ]
    await facts.remove_alias("PostgreSQL", CANARY)

    assert found == [1, 1, 0, 1]
    assert await facts.get_by_entity(CANARY, known_at=known) == []
    assert len(await facts.get_by_entity("pg", known_at=known)) == 1
    assert CANARY not in await seen.fetchval(EVERYTHING, scope.tenant.id)


@pytest.mark.parametrize("name", ["as_of", "known_at"])
async def test_a_time_without_a_zone_is_refused(
    memory: MemoryManager, scope: Scope, name: str
) -> None:
    naive = {name: datetime(2026, 1, 1)}  # noqa: DTZ001 - the point

    for asking in (
        memory.recall("x", scope=scope, **naive),
        memory.context("x", scope=scope, **naive),
        memory.at(scope).semantic.search_facts("x", **naive),
        memory.at(scope).semantic.get_by_entity("x", **naive),
    ):
        with pytest.raises(NaiveTimestamp, match=name):
            await asking
    with pytest.raises(InvalidInput, match=name):
        await memory.recall("x", scope=scope, **{name: "2026-01-01"})  # type: ignore[arg-type]


async def test_the_past_of_a_large_tenant_is_searched_without_its_index(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    await memory.sessions.append(
        a_conversation(["The vault is green.", "It is."]), scope=scope.session("s")
    )
    await memory.sessions.end(scope=scope.session("s"))
    await memory.maintenance.count_terms()
    then = clock()
    settings = memory.settings.recall.model_copy(update={"exact_scan_rows_max": 1})
    tools = replace(memory._tools, settings=memory.settings.model_copy(update={"recall": settings}))
    query, _ = parse_query(tools, "the vault", limit=5, memory_types=None, floor=0.0)

    now = await recall(tools, query, scope=scope)
    past = await recall(tools.at(Moment(known_at=then)), query, scope=scope)

    assert [hit.id for hit in past.hits] == [hit.id for hit in now.hits]
    assert {leg.why for leg in past.route} == {"an index holds no past"}
    assert "no valid index of the tenant's own" in {leg.why for leg in now.route}
