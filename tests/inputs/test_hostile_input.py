"""No method takes what it cannot give back, whatever is sent, and no refusal leaves anything."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
from hostile.harmless import arguments, home_of, placed
from hostile.judging import UNREADABLE, as_kept, notes_of
from hostile.surface import Leaf, Method, methods
from hostile.values import Value, hostile

from mnemic import MemoryManager, MnemicError, Scope
from mnemic.service.ingest import IngestReport
from mnemic.testing import a_scope
from oracles.answers import Answer, answer_of, is_precise
from oracles.round_trip import reads_back
from oracles.stage import Stage

ALL = methods()
WITH_PARAMETERS = [method for method in ALL if method.leaves]


async def called(
    stage: Stage, method: Method, scope: Scope, given: dict[str, Any], leaf: Leaf, value: Value
) -> Answer:
    """The answer of a call with the value in its place; a value may refuse to be made at all."""
    try:
        changed = placed(given, leaf, value.given)
        made = method.bound(stage.memory, scope)(**changed)
    except MnemicError as error:
        return await answer_of(_raised(error))
    return await answer_of(made)


async def _raised(error: MnemicError) -> None:
    raise error


def cases(method: Method) -> Iterator[tuple[Leaf, Value]]:
    """Each leaf with each value, what must be refused first."""
    found = [(leaf, value) for leaf in method.leaves for value in hostile(leaf)]
    yield from sorted(found, key=lambda one: not one[1].refused)


def named(leaf: Leaf) -> set[str]:
    """What an error about the leaf may be named for."""
    return set(leaf.path)


def is_refused(answer: Answer, leaf: Leaf) -> bool:
    """Whether the value was refused precisely; a report of many entries names each that was."""
    if isinstance(answer.reply, IngestReport):
        return any(one.reason.startswith(leaf.path[0]) for one in answer.reply.problems)
    return answer.refusal is not None and is_precise(answer.refusal, named(leaf))


@pytest.mark.parametrize("method", WITH_PARAMETERS, ids=str)
async def test_harmless_input_is_taken(stage: Stage, method: Method) -> None:
    scope = a_scope()
    home = await home_of(stage, method, scope)
    given = await arguments(stage, method, home)

    made = method.bound(stage.memory, home)(**given)
    answer = await answer_of(made)

    assert answer.error is None


@pytest.mark.parametrize("method", WITH_PARAMETERS, ids=str)
async def test_what_cannot_be_held_is_refused_by_its_name_and_leaves_nothing(
    stage: Stage, method: Method
) -> None:
    home = await home_of(stage, method, a_scope())
    given = await arguments(stage, method, home)
    before = await stage.stored(home)

    faults = []
    for leaf, value in cases(method):
        if value.refused:
            answer = await called(stage, method, home, given, leaf, value)
            if not is_refused(answer, leaf):
                faults.append(f"{'.'.join(leaf.path)} = {value.label}: {shown(answer)}")

    assert faults == []
    assert await stage.stored(home) == before


@pytest.mark.parametrize("method", WITH_PARAMETERS, ids=str)
async def test_what_is_odd_is_refused_by_its_name_or_reads_back(
    stage: Stage, method: Method
) -> None:
    scope = a_scope()

    faults = []
    for leaf, value in cases(method):
        if not value.refused:
            home = await home_of(stage, method, scope)
            given = await arguments(stage, method, home)
            answer = await called(stage, method, home, given, leaf, value)
            if not await is_right(stage, method, leaf, value, answer, home, given):
                faults.append(f"{'.'.join(leaf.path)} = {value.label}: {shown(answer)}")

    assert faults == []


async def is_right(
    stage: Stage,
    method: Method,
    leaf: Leaf,
    value: Value,
    answer: Answer,
    home: Scope,
    given: dict[str, Any],
) -> bool:
    """Whether an odd value was refused precisely, found nothing, or is kept."""
    if answer.error is not None:
        return answer.refusal is None or is_refused(answer, leaf)
    sent = placed(given, leaf, value.given)
    kept = await as_kept(stage, method, leaf, sent, answer.reply, home)
    notes = notes_of(answer.reply)
    return kept is UNREADABLE or reads_back(leaf.name, value.given, kept, notes)


def shown(answer: Answer) -> str:
    told = answer.error or answer.reply
    return f"{type(told).__name__}: {str(told)[:200]}"


def test_every_kind_of_parameter_is_met_with_something_hostile() -> None:
    unmet = [
        f"{method}: {'.'.join(leaf.path)}"
        for method in WITH_PARAMETERS
        for leaf in method.leaves
        if not any(value.refused for value in hostile(leaf)) and leaf.name != "default"
    ]

    assert len(ALL) > 40
    assert unmet == []


async def test_a_call_that_answers_with_an_inner_fault_fails_the_oracle() -> None:
    with pytest.raises(AssertionError, match="inner fault"):
        await answer_of(_raised(MnemicError("The database answered with an error.")))
    with pytest.raises(ValueError, match="digits"):
        await answer_of(_broken())


def _broken() -> Awaitable[Any]:
    async def call() -> str:
        return str(10**5_000)

    return call()


class _Louder(MemoryManager):
    """A front door with a method more."""

    async def shout(self, words: str, *, scope: Scope, times: list[int] | None = None) -> None:
        """Nothing."""


class _Stranger(MemoryManager):
    """A front door whose new method takes what nobody knows how to misuse."""

    async def turn(self, angle: complex) -> None:
        """Nothing."""


def test_a_method_that_is_added_is_met_without_being_named() -> None:
    [added] = [method for method in methods(_Louder) if method not in ALL]

    assert str(added) == "shout"
    assert [(leaf.name, leaf.kind) for leaf in added.leaves] == [
        ("words", "text"),
        ("scope", "scope"),
        ("times", "many"),
    ]
    with pytest.raises(AssertionError, match="say in surface"):
        methods(_Stranger)
