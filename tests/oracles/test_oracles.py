"""An oracle that never failed proves nothing: each is shown a fault here, and must see it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemic import InvalidInput, MemoryManager, MnemicError, Outcome, Scope
from mnemic.testing import a_fact
from oracles.answers import answer_of, is_precise, refused
from oracles.reach import nothing_wider, within_budget, within_limit
from oracles.round_trip import reads_back, same

AT = datetime(2026, 3, 1, tzinfo=UTC)


async def _answers(reply: Any = None, error: Exception | None = None) -> Any:
    if error is not None:
        raise error
    return reply


async def test_an_inner_fault_is_no_answer_and_a_refusal_is_one() -> None:
    with pytest.raises(AssertionError, match="inner fault"):
        await answer_of(_answers(error=MnemicError("What nobody foresaw.")))
    with pytest.raises(ZeroDivisionError):
        await answer_of(_answers(error=ZeroDivisionError()))

    refusal = InvalidInput("must be text; pass text", field="query")
    assert (await answer_of(_answers(error=refusal))).refusal is refusal
    assert (await answer_of(_answers(reply=5))).reply == 5


@pytest.mark.parametrize(
    ("detail", "field", "is_good"),
    [
        ("must not hold a NUL character; remove it", "query", True),
        ("must not hold a NUL character; remove it", "query.k[3]", True),
        ("must not hold a NUL character; remove it", "value", False),
        ("the database cannot hold this value", "query", False),
        (f"must be {'x' * 700}", "query", False),
    ],
)
def test_a_refusal_names_the_field_and_the_remedy_in_a_line(
    detail: str, field: str, *, is_good: bool
) -> None:
    assert is_precise(InvalidInput(detail, field=field), {"query"}) == is_good


async def test_a_refusal_counts_only_beside_a_harmless_twin_that_is_answered() -> None:
    refusal = InvalidInput("must not be blank; give it visible text", field="query")

    with pytest.raises(AssertionError, match="was taken"):
        await refused(_answers(reply=5), field="query", control=_answers())
    with pytest.raises(AssertionError, match="harmless twin failed"):
        control = _answers(error=InvalidInput("must be text", field="query"))
        await refused(_answers(error=refusal), field="query", control=control)
    assert await refused(_answers(error=refusal), field="query", control=_answers()) is refusal


@pytest.mark.parametrize(
    ("given_value", "kept", "is_same"),
    [
        ({"a": [1, 2.0]}, {"a": [1, 2.0]}, True),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": None}, {}, False),
        (("a", "b"), ["a", "b"], True),
        (["a"], ["a", "a"], False),
        (AT, AT.astimezone(), True),
        (AT, AT + timedelta(microseconds=1), False),
        (Outcome.SUCCESS, "success", True),
    ],
)
def test_what_reads_back_has_the_value_and_the_type(
    given_value: Any, kept: Any, *, is_same: bool
) -> None:
    assert same(given_value, kept) == is_same


def test_a_changed_value_reads_back_only_if_that_is_documented_or_noted() -> None:
    assert reads_back("subject", "Ada\nLovelace", "Ada Lovelace")
    assert not reads_back("object", "Ada\nLovelace", "Ada Lovelace")
    assert reads_back("object", "a", "b", ("object is kept as 'b'",))
    assert not reads_back("object", "a", "b", ("subject is kept as 'b'",))
    assert reads_back("tags", ["a", "a"], ("a",))
    assert not reads_back("tags", ["a", "b"], ("a",))


async def test_what_comes_from_elsewhere_or_beyond_a_bound_is_seen(
    memory: MemoryManager, scope: Scope
) -> None:
    project = scope.project("p")
    fact = await memory.at(project).semantic.store_fact(a_fact())
    found = await memory.recall("User uses", scope=project, floor=0.0)
    section = await memory.context("User uses", scope=project)

    nothing_wider([fact], project, own={fact.id})
    within_limit(found, 10, 100)
    within_budget(section)
    with pytest.raises(AssertionError, match="outside"):
        nothing_wider([fact], scope, own={fact.id})
    with pytest.raises(AssertionError, match="something else"):
        nothing_wider([fact], project, own=set())
    with pytest.raises(AssertionError):
        within_limit(found, 5, 100)
    with pytest.raises(AssertionError):
        within_limit(replace(found, limit=100), 5_000, 100)
    with pytest.raises(AssertionError):
        within_budget(replace(section, budget=section.tokens - 1))
    with pytest.raises(AssertionError):
        within_budget(replace(section, tokens=section.tokens - 1))
