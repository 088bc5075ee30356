from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from mnemic import Forbidden, InvalidInput, MemoryManager, NotFound, ProcedureCreate, Scope, Step
from mnemic.embed import CachedEmbedder
from mnemic.model.reliability import UNTRIED, lower_bound, reliability
from mnemic.service.procedures import match_procedures
from mnemic.service.tools import Tools
from mnemic.store.measuring.bare import Recorder
from mnemic.tier.tiers import Tiers


def a_procedure(name: str = "Deploy the service", **given: Any) -> ProcedureCreate:
    steps = (Step(action="Run the tests", expected="all pass"), Step(action="Tag the release"))
    return ProcedureCreate(**{"name": name, "steps": steps, "task_type": "deploy", **given})


async def _try(memory: MemoryManager, scope: Scope, one: Any, outcomes: str) -> None:
    for outcome in outcomes:
        await memory.at(scope).procedural.record_outcome(one.id, outcome == "+")


async def test_a_procedure_reads_back_as_it_was_told(memory: MemoryManager, scope: Scope) -> None:
    given = a_procedure(
        trigger_pattern="(?i)deploy|release",
        preconditions=("CI is green",),
        avoid_conditions=("it is Friday",),
        metadata={"n": 1},
        tags=("ops",),
    )

    kept = await memory.at(scope).procedural.record_procedure(given)

    for field in (
        "name",
        "steps",
        "task_type",
        "trigger_pattern",
        "preconditions",
        "avoid_conditions",
        "metadata",
        "tags",
    ):
        assert getattr(kept, field) == getattr(given, field), field
    assert (kept.version, kept.success_count, kept.failure_count) == (1, 0, 0)


async def test_new_steps_are_a_version_and_the_old_ones_stay(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    here = memory.at(scope).procedural
    kept = await here.record_procedure(a_procedure())

    changed = await here.update_steps(kept.id, [Step(action="Ship it")])

    assert (changed.id, changed.version) == (kept.id, 2)
    assert [step.action for step in changed.steps] == ["Ship it"]
    versions = await seen.fetch(
        "SELECT version, steps FROM mnemic.procedure_versions WHERE procedure_id = $1"
        " ORDER BY version",
        kept.id,
    )
    assert [row["version"] for row in versions] == [1, 2]
    assert "Run the tests" in versions[0]["steps"]
    [found] = await here.find_matching("ship it")
    assert found.version == 2


async def test_procedures_match_by_pattern_words_and_meaning(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope).procedural
    patterned = await here.record_procedure(
        a_procedure("Handle an incident", trigger_pattern=r"\bP[12]\b")
    )
    worded = await here.record_procedure(a_procedure("Rotate the database credentials"))

    assert [one.id for one in await here.find_matching("we have a P1 in checkout")] == [
        patterned.id
    ]
    assert (await here.find_matching("rotate credentials"))[0].id == worded.id
    assert (await here.find_matching("renew the passwords of the db"))[0].id == worded.id


async def test_one_to_be_avoided_here_is_left_out(memory: MemoryManager, scope: Scope) -> None:
    here = memory.at(scope).procedural
    kept = await here.record_procedure(a_procedure(avoid_conditions=("on a Friday",)))

    monday = await here.find_matching("deploy the service on Monday")
    friday = await here.find_matching("deploy the service on Friday")

    assert [one.id for one in monday] == [kept.id]
    assert friday == []


async def test_of_two_alike_the_one_whose_preconditions_are_told_comes_first(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope).procedural
    staging = await here.record_procedure(
        a_procedure("Deploy A", preconditions=("the staging cluster is up", "CI is green"))
    )
    canary = await here.record_procedure(
        a_procedure("Deploy B", preconditions=("a canary is running",))
    )

    untold = await here.find_matching("Deploy the service")
    one = await here.find_matching("Deploy the service; the staging cluster is up")
    other = await here.find_matching("Deploy the service; a canary is running")

    assert {found.id for found in untold} == {staging.id, canary.id}
    assert (one[0].id, other[0].id) == (staging.id, canary.id)


async def test_outcomes_count_once_for_each_key_whoever_tells_them(
    memory: MemoryManager, scope: Scope
) -> None:
    kept = await memory.at(scope).procedural.record_procedure(a_procedure())
    below = memory.at(scope.project("p").session("s")).procedural

    await asyncio.gather(
        *(below.record_outcome(kept.id, success=True, idempotency_key="k") for _ in range(8))
    )
    await below.record_outcome(kept.id, success=False, note="the tag existed already")

    [again] = await below.find_matching("deploy the service")
    assert (again.success_count, again.failure_count) == (1, 1)
    assert again.last_used is not None


async def test_outcomes_told_at_once_all_count(memory: MemoryManager, scope: Scope) -> None:
    here = memory.at(scope).procedural
    kept = await here.record_procedure(a_procedure())

    await asyncio.gather(*(here.record_outcome(kept.id, n % 2 == 0) for n in range(20)))

    best = await here.get_best_procedure("deploy")
    assert best is not None
    assert (best.success_count, best.failure_count) == (10, 10)


async def test_nothing_is_concluded_from_four_trials(memory: MemoryManager, scope: Scope) -> None:
    here = memory.at(scope).procedural
    first = await here.record_procedure(a_procedure("Deploy by hand"))
    second = await here.record_procedure(a_procedure("Deploy by script"))
    before = await here.get_best_procedure("deploy")

    await _try(memory, scope, first, "----")
    await _try(memory, scope, second, "++++")

    after = await here.get_best_procedure("deploy")
    assert before is not None
    assert after is not None
    assert after.id == before.id
    await _try(memory, scope, second, "+")
    await _try(memory, scope, first, "-")
    best = await here.get_best_procedure("deploy")
    assert best is not None
    assert best.id == second.id
    assert await here.get_best_procedure("gardening") is None


async def test_what_often_fails_is_suggested_after_what_works(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope).procedural
    shaky = await here.record_procedure(a_procedure("Deploy the service by hand"))
    solid = await here.record_procedure(a_procedure("Deploy the service by script"))

    await _try(memory, scope, shaky, "------")
    await _try(memory, scope, solid, "++++++")

    found = await here.find_matching("deploy the service")
    assert [one.id for one in found] == [solid.id, shaky.id]


async def test_a_hostile_pattern_is_refused_or_runs_in_linear_time(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope).procedural
    for pattern in (r"(?=look)ahead", r"(a)\1", "(", "a{1001}{1001}", "x" * 1_001):
        with pytest.raises(InvalidInput) as refused:
            await here.record_procedure(a_procedure(trigger_pattern=pattern))
        assert refused.value.field == "trigger_pattern", pattern

    await here.record_procedure(a_procedure("Odd", trigger_pattern="(a+)+$"))

    async with asyncio.timeout(5):
        await here.find_matching("a" * 5_000 + "!")


async def test_what_is_unknown_or_above_is_not_changed(memory: MemoryManager, scope: Scope) -> None:
    kept = await memory.at(scope).procedural.record_procedure(a_procedure())
    below = memory.at(scope.project("p")).procedural

    with pytest.raises(Forbidden):
        await below.update_steps(kept.id, [Step(action="Ship it")])
    with pytest.raises(NotFound):
        await below.record_outcome(uuid4(), success=True)
    with pytest.raises(InvalidInput, match="steps"):
        await memory.at(scope).procedural.update_steps(kept.id, [])


def test_the_lower_bound_is_the_quantile_of_the_posterior() -> None:
    # Beta(1 + n, 1) has the distribution function x^(n+1): its quantile is known exactly.
    assert lower_bound(9, 0) == pytest.approx(0.05 ** (1 / 10), abs=1e-9)
    assert lower_bound(0, 9) == pytest.approx(1 - 0.95 ** (1 / 10), abs=1e-9)
    assert lower_bound(10, 10) == pytest.approx(1 - lower_bound(10, 10, 0.95), abs=1e-9)


def test_more_successes_are_never_less_reliable() -> None:
    bounds = [reliability(n, 3) for n in range(2, 200)]

    assert bounds == sorted(bounds)
    assert reliability(4, 0) == reliability(0, 4) == UNTRIED
    assert reliability(10**6, 0) < 1


async def test_what_is_told_anew_of_a_procedure_is_what_is_kept(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope).procedural
    first = await here.record_procedure(a_procedure("Deploy it", tags=("old",)))

    again = await here.record_procedure(
        a_procedure("DEPLOY it", tags=("new",), metadata={"owner": "rota"}, source="handbook")
    )

    assert (again.id, again.version) == (first.id, 1)
    assert (again.name, again.tags, again.metadata, again.source) == (
        "DEPLOY it",
        ("new",),
        {"owner": "rota"},
        "handbook",
    )


async def test_a_context_whose_vector_is_known_is_matched_in_one_unit(
    tools: Tools, scope: Scope
) -> None:
    recorder = Recorder(tools.database)
    cached = CachedEmbedder(tools.embedder, entries_max=10)
    noting = replace(tools, database=recorder, embedder=cached)
    here = Tiers(tools, scope).procedural
    for name in ("Deploy the service", "Rotate the database credentials", "Deploy a hotfix"):
        await here.record_procedure(a_procedure(name))

    async def matched(text: str) -> tuple[list[UUID], int]:
        recorder.transactions.clear()
        found = await match_procedures(noting, text, scope=scope, limit=5)
        return [one.id for one in found], len(recorder.transactions)

    first, units = await matched("deploy the service now")
    again, units_then = await matched("deploy the service now")
    misspelt = [await matched("rotaet credentialz"), await matched("rotaet credentialz")]

    assert len(first) == 2
    assert again == first
    assert (units, units_then) == (2, 1)
    assert misspelt[0][0] == misspelt[1][0] != []
    assert [count for _, count in misspelt] == [3, 3], "the spelling is asked for in its own"
