"""Where a task stands: what can be held, and what is refused by its field."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mnemic.errors import InvalidInput
from mnemic.model.working import TaskState, WorkingRecord


def test_a_state_reads_back_equal_from_its_json() -> None:
    state = TaskState(
        current_step="deploy",
        status="blocked",
        progress=0.25,
        description="waits for review",
        metadata={"tries": 2, "by": ["ann"]},
    )

    told = state.to_json()

    assert told == {
        "current_step": "deploy",
        "status": "blocked",
        "progress": 0.25,
        "description": "waits for review",
        "metadata": {"tries": 2, "by": ["ann"]},
    }
    assert TaskState.from_json(told) == state


def test_a_new_task_is_in_progress_and_nowhere_yet() -> None:
    assert TaskState().to_json() == {
        "current_step": None,
        "status": "in_progress",
        "progress": 0.0,
        "description": "",
        "metadata": {},
    }


@pytest.mark.parametrize("step", [None, 0, -3, 2**63 - 1, -(2**63 - 1), "a", "x" * 2_000])
def test_a_step_is_a_name_a_number_or_nothing(step: Any) -> None:
    assert TaskState(current_step=step).current_step == step


@pytest.mark.parametrize(
    ("field", "values", "word"),
    [
        ("current_step", {"current_step": 2**63}, "the integer is beyond 64 bits; pass it as text"),
        (
            "current_step",
            {"current_step": -(2**63)},
            "the integer is beyond 64 bits; pass it as text",
        ),
        ("current_step", {"current_step": True}, "must be text, not bool"),
        ("current_step", {"current_step": 1.5}, "must be text, not float"),
        ("current_step", {"current_step": ""}, "must not be blank; give it visible text"),
        (
            "current_step",
            {"current_step": "x" * 2_001},
            "is 2001 characters long; the most is 2000. Split it",
        ),
        ("status", {"status": " "}, "must not be blank; give it visible text"),
        ("status", {"status": "x" * 201}, "is 201 characters long; the most is 200. Split it"),
        ("description", {"description": " "}, "must not be blank; give it visible text"),
        (
            "description",
            {"description": "x" * 20_001},
            "is 20001 characters long; the most is 20000. Split it",
        ),
        ("progress", {"progress": 1.01}, "must be a number from 0 to 1, not 1.01"),
        ("progress", {"progress": -0.5}, "must be a number from 0 to 1, not -0.5"),
        ("progress", {"progress": math.nan}, "must be a number from 0 to 1, not nan"),
        ("progress", {"progress": True}, "must be a number from 0 to 1, not bool"),
        ("progress", {"progress": "1"}, "must be a number from 0 to 1, not str"),
        ("metadata", {"metadata": []}, "must be an object with text keys"),
        ("metadata", {"metadata": {1: 2}}, "the key 1 is not text; pass text keys"),
        (
            "metadata.x",
            {"metadata": {"x": math.inf}},
            "inf is not a JSON number; pass null or text",
        ),
    ],
)
def test_what_cannot_be_held_is_refused_by_its_field(
    field: str, values: dict[str, Any], word: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        TaskState(**values)

    assert caught.value.field == field
    assert str(caught.value) == f"{field}: {word}"


@pytest.mark.parametrize(
    ("record", "is_empty"),
    [
        (WorkingRecord(values={}, task_state=None, scratchpad=()), True),
        (WorkingRecord(values={"a": None}, task_state=None, scratchpad=()), False),
        (WorkingRecord(values={}, task_state=TaskState(), scratchpad=()), False),
        (WorkingRecord(values={}, task_state=None, scratchpad=("note",)), False),
    ],
)
def test_a_record_is_empty_when_nothing_at_all_is_held(
    record: WorkingRecord, *, is_empty: bool
) -> None:
    assert record.is_empty is is_empty
