"""Generated input: whatever a client makes up is refused precisely, or kept and given back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mnemic import Fact, Scope
from mnemic.testing import a_fact
from oracles.answers import Answer, answer_of, is_precise
from oracles.round_trip import reads_back, same
from oracles.stage import Stage

EXAMPLES = 30
_numbers = count(1)

zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
texts = st.text(max_size=30)  # lone surrogates and NUL among them
numbers = st.integers() | st.floats()
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def everybody() -> Scope:
    return Scope.user("generated")


def is_right(answer: Answer, names: set[str], name: str, given_value: Any) -> bool:
    """Whether the value was refused by one of the names, or is kept."""
    if answer.refusal is not None:
        return is_precise(answer.refusal, names)
    kept: Fact = answer.reply
    return answer.error is None and reads_back(name, given_value, getattr(kept, name))


@settings(max_examples=EXAMPLES)
@given(
    name=st.sampled_from(["subject", "object", "category", "source"]),
    value=texts,
    metadata=st.dictionaries(texts, json_values, max_size=3),
    at=st.datetimes(timezones=st.none() | zones),
)
@example(name="object", value="\ud800", metadata={}, at=datetime(2026, 1, 1, tzinfo=UTC))
@example(name="object", value="a", metadata={"a": [1e308]}, at=datetime(2026, 1, 1, tzinfo=UTC))
def test_a_generated_fact_is_refused_by_its_field_or_kept(
    stage: Stage,
    everybody: Scope,
    run_here: Callable[[Any], Any],
    name: str,
    value: str,
    metadata: dict[str, Any],
    at: datetime,
) -> None:
    here = stage.memory.at(everybody).semantic

    def told(**changed: Any) -> Answer:
        fresh = {"predicate": f"knows {next(_numbers)}", **changed}
        answer: Answer = run_here(answer_of(here.store_fact(a_fact(**fresh))))
        return answer

    assert is_right(told(**{name: value}), {name}, name, value)
    assert is_right(told(metadata=metadata), {"metadata"}, "metadata", metadata)
    assert is_right(told(valid_from=at), {"valid_from"}, "valid_from", at)


@settings(max_examples=EXAMPLES)
@given(key=texts, value=json_values)
@example(key="\x00", value={"\u202e": [-0.0, 1e17]})
def test_a_generated_value_is_refused_by_its_field_or_kept(
    stage: Stage, everybody: Scope, run_here: Callable[[Any], Any], key: str, value: Any
) -> None:
    working = stage.memory.at(everybody).working

    answer = run_here(answer_of(working.set(key, value)))

    if answer.refusal is not None:
        assert is_precise(answer.refusal, {"key", "value"})
    else:
        assert answer.error is None
        assert same(value, run_here(working.get(key)))
        assert run_here(working.delete(key))


@settings(max_examples=EXAMPLES)
@given(query=texts, limit=st.integers(), floor=st.floats())
def test_a_generated_question_is_refused_by_its_field_or_answered(
    stage: Stage,
    everybody: Scope,
    run_here: Callable[[Any], Any],
    query: str,
    limit: int,
    floor: float,
) -> None:
    asked = stage.memory.recall(query, scope=everybody, limit=limit, floor=floor)

    answer = run_here(answer_of(asked))

    if answer.refusal is not None:
        assert is_precise(answer.refusal, {"query", "limit", "floor"})
    else:
        assert answer.error is None
        assert answer.reply.returned <= min(limit, 100)
