"""Every verb that writes leaves its witness, and no job makes anything more believable."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemic import MemoryManager, Scope, Trust
from mnemic.model.trust import derived_trust
from mnemic.testing import a_fact, a_scope, a_turn
from oracles.stage import Stage
from oracles.witnessed import assert_no_rise, assert_witnessed, trusts_of

sys.path.append(str(Path(__file__).parents[1] / "wire"))

from wire_verbs import VERBS

# What an agent holds while it works is its own, and ends with its time; all else is witnessed.
NOT_WITNESSED = {"remember_working", "set_durable", "delete_durable", "set_volatile", "clear"}


@pytest.mark.parametrize("name", sorted(VERBS.keys() - NOT_WITNESSED))
async def test_a_verb_that_writes_leaves_its_witness_or_nothing(
    memory: MemoryManager, seen: asyncpg.Connection, scope: Scope, name: str
) -> None:
    verb = VERBS[name]
    made = await verb.prepare(memory, scope)

    await assert_witnessed(seen, scope, lambda: verb.act(memory, scope, made, "k"))


def test_what_is_not_witnessed_is_there() -> None:
    assert VERBS.keys() >= NOT_WITNESSED
    assert len(VERBS.keys() - NOT_WITNESSED) > 15


async def test_a_change_without_a_witness_is_seen(
    memory: MemoryManager, seen: asyncpg.Connection, scope: Scope
) -> None:
    await memory.store_fact(a_fact(), scope=scope)

    async def unwitnessed() -> None:
        await seen.execute(
            "UPDATE mnemic.facts SET source = source || 'x' WHERE tenant_id = $1", scope.tenant.id
        )

    async def nothing() -> None:
        """Nothing."""

    async def away() -> None:
        await memory.store_fact(a_fact(), scope=scope)

    with pytest.raises(AssertionError, match=r"changed without a witness: \['facts'\]"):
        await assert_witnessed(seen, scope, unwitnessed)
    with pytest.raises(AssertionError, match="answered without a witness"):
        await assert_witnessed(seen, scope, nothing)
    await assert_witnessed(seen, scope, away)


trusts = st.sampled_from(list(Trust))


@settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(told=st.lists(st.tuples(trusts, trusts), min_size=1, max_size=4))
async def test_no_job_makes_a_memory_more_believable(
    stage: Stage, memory: MemoryManager, told: list[tuple[Trust, Trust]]
) -> None:
    scope = a_scope(f"trusted {told} {id(told)}")
    session = scope.session("s")
    said = [
        a_turn(f"I use Tool{at}. I live in Oslo.", trust=of_turn, external_id=str(at))
        for at, (of_turn, _) in enumerate(told)
    ]
    await memory.sessions.append(said, scope=session)
    for at, (_, of_fact) in enumerate(told):
        for place in (session, scope) if at % 2 else (session,):
            await memory.store_fact(a_fact(object=f"Tool{at}", trust=of_fact), scope=place)
    before = await trusts_of(stage.seen, scope)

    await memory.sessions.end(scope=session)
    [episode] = await memory.at(scope).episodic.get_recent()
    facts = await memory.at(scope).semantic.extract_facts_from_episode(episode)
    for one in facts:
        await memory.at(scope).semantic.verify_fact(one.id)
    await memory.maintenance.embed_missing()
    await memory.maintenance.count_terms()

    after = await trusts_of(stage.seen, scope)
    worst = derived_trust([Trust.INFERRED, *(of_turn for of_turn, _ in told)])
    assert_no_rise(before, after, worst=worst)
    assert episode.trust is worst
    assert facts


def test_a_memory_that_is_believed_more_is_seen() -> None:
    before = {("facts", "a"): 4, ("facts", "b"): 2}
    worst: Any = Trust.EXTERNAL

    assert_no_rise(before, {**before, ("facts", "c"): 4}, worst=worst)
    assert_no_rise(before, {("facts", "a"): 5}, worst=worst)
    with pytest.raises(AssertionError, match="more than before"):
        assert_no_rise(before, {**before, ("facts", "a"): 3}, worst=worst)
    with pytest.raises(AssertionError, match="of which they were made"):
        assert_no_rise(before, {**before, ("episodes", "c"): 3}, worst=worst)
