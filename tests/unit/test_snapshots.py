"""A memory that was written down reads back equal in every field and type."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from held_memories import ONE, TWO, a_held_episode, a_held_fact, a_held_procedure

from mnemic.model.episode import Outcome
from mnemic.model.fact import Fact
from mnemic.model.procedure import Step
from mnemic.model.snapshot import memory_of, snapshot_of
from mnemic.model.trust import Trust

AT = datetime(2026, 3, 2, 9, 0, 0, 1, tzinfo=UTC)
SHARED: dict[str, Any] = {
    "recorded_at": AT,
    "trust": Trust.EXTERNAL,
    "source": 'a "source"\\',
    "metadata": {"z": -0.0, "a": [1, 1.0, 1e300, {"deep": [None, False]}], "": {}},
    "tags": ("b", "a", "名"),
}
FACT = a_held_fact(
    object="2026-03-02T09:00:00+00:00",
    content=str(ONE),
    confidence=0.1 + 0.2,
    first_learned=AT,
    valid_to=AT,
    pinned=True,
    **SHARED,
)
EPISODE = a_held_episode(
    summary="line\nline",
    key_topics=("a",),
    agents_used=("User",),
    outcome=Outcome.PARTIAL,
    actions=({"n": 1, "when": "2026"}, {}),
    lessons_learned=("l",),
    duration_seconds=1.0,
    tokens_used=2**53,
    importance_score=0.0,
    ended_at=AT,
    session_id=TWO,
    **SHARED,
)
PROCEDURE = a_held_procedure(
    steps=(Step(action="one"), Step(action="two", expected="e")),
    preconditions=("p",),
    last_used=AT,
    **SHARED,
)


@pytest.mark.parametrize("memory", [FACT, EPISODE, PROCEDURE], ids=lambda one: type(one).__name__)
def test_a_memory_reads_back_in_its_types_and_order(memory: Any) -> None:
    read = memory_of(type(memory), snapshot_of(memory))

    assert read == memory
    assert repr(read) == repr(memory)
    for one in fields(memory):
        assert type(getattr(read, one.name)) is type(getattr(memory, one.name)), one.name


def test_a_snapshot_is_short_and_keeps_every_script_as_it_is() -> None:
    text = snapshot_of(FACT)

    assert f'"scope_id":"{TWO}"' in text
    assert '"tags":["b","a","名"]' in text


def test_what_a_later_release_tells_beyond_this_one_is_left_out() -> None:
    told = json.loads(snapshot_of(FACT)) | {"mood": "blue"}

    assert memory_of(Fact, json.dumps(told)) == FACT


def test_what_an_earlier_release_did_not_tell_is_as_if_it_was_not_given() -> None:
    told = json.loads(snapshot_of(replace(FACT, verification="supported")))
    del told["verification"]

    assert memory_of(Fact, json.dumps(told)) == FACT


@pytest.mark.parametrize(
    ("memory", "change"),
    [
        (FACT, lambda told: told.pop("confidence")),
        (PROCEDURE, lambda told: told["steps"][1].pop("action")),
        (EPISODE, lambda told: told.update(outcome="splendid")),
    ],
    ids=["a field is missing", "a part of it is", "a value is unknown"],
)
def test_what_this_release_tells_otherwise_does_not_read_back(memory: Any, change: Any) -> None:
    told = json.loads(snapshot_of(memory))
    change(told)

    assert memory_of(type(memory), json.dumps(told)) is None
