"""*Total input handling*: whatever comes in is answered within bounds, and what is taken is usable.

`assert_total` judges an answer, `assert_usable` what was taken: it is read and listed, leaves every
neighbour readable, and goes when it is forgotten. Where texts come in is said in `oracles.doors`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from mnemic import MemoryManager, NotFound, Receipt, Scope
from oracles.answers import MESSAGE_CHARS_MAX, Answer, answer_of, is_precise
from oracles.doors import Kept, Sent
from oracles.reading import LIMIT, shown
from oracles.stage import Stage
from oracles.stored import tables_that_hold

__all__ = ["NEIGHBOUR", "assert_total", "assert_usable"]

SECONDS_MAX = 20.0
NEIGHBOUR = "gyrfalcon"
# They tell that something was there, and not what.
_WITNESSES = {"audit_log", "idempotency_keys", "tombstones"}


async def assert_total(
    call: Awaitable[Any], fields: set[str] | frozenset[str], *, seconds_max: float = SECONDS_MAX
) -> Answer:
    """The answer: a reply, or an error that can be shown; neither late nor an inner fault."""
    try:
        async with asyncio.timeout(seconds_max):
            answer = await answer_of(call)
    except TimeoutError as late:
        raise AssertionError(f"no answer in {seconds_max} s") from late
    if answer.refusal is not None:
        assert is_precise(answer.refusal, set(fields)), f"not precise: {answer.refusal}"
    elif answer.error is not None:
        told = str(answer.error)
        told.encode()
        assert 0 < len(told) <= MESSAGE_CHARS_MAX, f"{len(told)} characters of an error"
    return answer


async def assert_usable(stage: Stage, sent: Sent) -> None:
    """What was taken is read, listed and forgotten like anything else; its neighbours are shown.

    In the scope, or above it, `NEIGHBOUR` must stand as a fact.
    """
    memory, scope = stage.memory, sent.scope
    await _assert_neighbours(memory, scope)
    if sent.key is not None:
        working = memory.at(scope).working
        assert await working.exists(sent.key), "taken, and not there"
        assert sent.key in await working.list_keys(), "there, and not listed"
        assert sent.key in await working.get_all(), "there, and not exported"
        assert await working.delete(sent.key), "there, and cannot be deleted"
        assert not await working.exists(sent.key), "deleted, and still there"
    for kept in sent.kept:
        await _assert_kept_and_gone(stage, scope, kept)


async def _assert_neighbours(memory: MemoryManager, scope: Scope) -> None:
    """Every way of reading answers, and those that show facts show the neighbour."""
    answers = await shown(memory, scope, f"What is the {NEIGHBOUR}?")
    for way in ("recall semantic", "facts", "context"):
        assert NEIGHBOUR in answers[way], f"{way} shows the neighbour no longer"


async def _assert_kept_and_gone(stage: Stage, scope: Scope, named: Kept | Receipt) -> None:
    memory = stage.memory
    held = await stage.kept(named, scope)
    assert named.id in await _listed(memory, scope, held), f"{named.kind} is kept, and not listed"

    gone = await memory.forget([named.id], scope=scope)

    assert gone.counts.get(named.kind) == 1, f"forgotten: {gone.counts}"
    tables = await tables_that_hold(stage.seen, scope, str(named.id))
    assert tables <= _WITNESSES, f"forgotten, and still in {tables - _WITNESSES}"
    again = await answer_of(memory.forget([named.id], scope=scope))
    assert isinstance(again.error, NotFound), f"forgotten, and answered: {again}"


async def _listed(memory: MemoryManager, scope: Scope, held: Any) -> set[Any]:
    """The ids that the lists show of memories like this one."""
    here = memory.at(scope)
    about = next(
        (
            text
            for name in ("text", "content", "task_description")
            if (text := getattr(held, name, 0))
        ),
        getattr(held, "name", ""),
    )
    found = await memory.recall(about, scope=scope, limit=LIMIT, floor=0.0)
    listed = {one.id for one in found.hits}
    listed |= {one.id for one in await here.episodic.get_recent(LIMIT)}
    if subject := getattr(held, "subject", ""):
        listed |= {one.id for one in await here.semantic.get_by_entity(subject, LIMIT)}
    if task_type := getattr(held, "task_type", ""):
        best = await here.procedural.get_best_procedure(task_type)
        listed |= {best.id} if best else set()
    return listed
