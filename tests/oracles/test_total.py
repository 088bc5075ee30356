"""Whatever bytes come in by the front door are refused by name, or are kept like anything else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic import InvalidInput, MnemicError, Scope
from mnemic.testing import a_fact, a_scope
from oracles.doors import DOORS, Door, Sent, raw, readings
from oracles.stage import Stage
from oracles.total import NEIGHBOUR, assert_total, assert_usable

EXAMPLES = 4  # of each door
_numbers = count(1)
Run = Callable[[Awaitable[Any]], Any]


async def beside_a_neighbour(stage: Stage) -> Scope:
    """A scope in which a fact stands that must stay readable."""
    scope = a_scope(f"total-{next(_numbers)}")
    told = a_fact(subject="Bird", predicate="is", object=NEIGHBOUR)
    await stage.memory.store_fact(told, scope=scope)
    return scope


@pytest.mark.parametrize("door", DOORS, ids=str)
@settings(max_examples=EXAMPLES)
@given(given_bytes=raw, reading=st.sampled_from(sorted(readings)))
def test_generated_bytes_are_refused_by_their_field_or_kept_to_be_used(
    stage: Stage, run_here: Run, door: Door, given_bytes: bytes, reading: str
) -> None:
    text = readings[reading](given_bytes)

    async def sent() -> None:
        scope = await beside_a_neighbour(stage)
        answer = await assert_total(door.send(stage.memory, scope, text), door.fields)
        if isinstance(answer.reply, Sent):
            if answer.reply.scope.tenant != scope.tenant:
                told = a_fact(subject="Bird", predicate="is", object=NEIGHBOUR)
                await stage.memory.store_fact(told, scope=answer.reply.scope)
            await assert_usable(stage, answer.reply)

    run_here(sent())


@pytest.mark.parametrize("door", DOORS, ids=str)
async def test_every_door_takes_what_is_harmless(stage: Stage, door: Door) -> None:
    scope = await beside_a_neighbour(stage)
    harmless = "00000000-0000-4000-8000-000000000001" if "id" in door.name else "release 7"

    answer = await assert_total(door.send(stage.memory, scope, harmless), door.fields)

    assert answer.refusal is None
    if isinstance(answer.reply, Sent) and answer.reply.scope.tenant == scope.tenant:
        await assert_usable(stage, answer.reply)


async def _answers(reply: Any = None, error: Exception | None = None, after: float = 0) -> Any:
    await asyncio.sleep(after)
    if error is not None:
        raise error
    return reply


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (MnemicError("What nobody foresaw."), "inner fault"),
        (InvalidInput("must be text; pass text", field="limit"), "not precise"),
        (InvalidInput("invalid byte sequence for encoding", field="query"), "not precise"),
        (InvalidInput(f"must be {'x' * 700}", field="query"), "not precise"),
    ],
)
async def test_an_answer_that_helps_nobody_is_seen(error: MnemicError, fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        await assert_total(_answers(error=error), {"query"})


async def test_a_driver_error_and_a_late_answer_are_seen() -> None:
    with pytest.raises(UnicodeError):
        await assert_total(_answers(error=UnicodeError("codec")), {"query"})
    with pytest.raises(AssertionError, match="no answer"):
        await assert_total(_answers(after=60), {"query"}, seconds_max=0.01)
    assert (await assert_total(_answers(5), {"query"})).reply == 5


async def test_what_was_taken_and_cannot_be_used_is_seen(stage: Stage) -> None:
    scope = await beside_a_neighbour(stage)
    kept = await stage.memory.store_fact(a_fact(), scope=scope)
    sent = Sent(scope, (kept,))

    with pytest.raises(AssertionError, match="tells of what is not there"):
        await assert_usable(stage, replace(sent, scope=scope.session("s"), kept=(_other(kept),)))
    with pytest.raises(AssertionError, match="taken, and not there"):
        await assert_usable(stage, Sent(scope, key="never set"))
    with pytest.raises(AssertionError, match="neighbour"):
        await assert_usable(stage, replace(sent, scope=a_scope()))
    async with stage.seen.transaction():
        await stage.seen.execute(_EVIDENCE_ELSEWHERE, scope.tenant.id, kept.id)
    with pytest.raises(AssertionError, match="still in"):
        await assert_usable(stage, sent)


# A row that names the memory, and that no deletion of it finds.
_EVIDENCE_ELSEWHERE = """
    UPDATE mnemic.facts SET metadata = jsonb_build_object('beside', $2::text)
     WHERE tenant_id = $1 AND id <> $2
"""


def _other(kept: Any) -> Any:
    return replace(kept, id=Scope.user("nobody").id)
