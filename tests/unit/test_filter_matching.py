"""Filters by their rules: what passes, of each kind and each value."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from held_memories import ONE, a_held_episode, a_held_fact, a_held_procedure, a_held_turn

from mnemic.model.filter_fields import FIELDS, KINDS, METADATA, FieldType, instant_of
from mnemic.model.filter_matching import matches
from mnemic.model.filters import checked_filter

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
THEN: dict[str, Any] = {"occurred_at": AT, "recorded_at": AT}

TURN = a_held_turn(
    actor="Ada",
    tags=("red", "blue"),
    metadata={"n": 5, "draft": True, "team": {"name": "billing"}, "labels": ["x", 7], "no": None},
    **THEN,
)
EPISODE = a_held_episode(key_topics=("deploy",), tools_used=("helm",), **THEN)
FACT = a_held_fact(
    subject="Ada",
    confidence=0.75,
    first_learned=AT - timedelta(days=9),
    last_reinforced=AT,
    valid_to=AT,
    pinned=True,
    recorded_at=AT,
)
PROCEDURE = a_held_procedure(recorded_at=AT)


@pytest.mark.parametrize(
    ("value", "passing"),
    [
        ({"kind": "turn"}, {"turn"}),
        ({"kind": {"ne": "turn"}}, {"episode", "fact", "procedure"}),
        ({"kind": {"in": ["turn", "fact"]}}, {"turn", "fact"}),
        ({"outcome": "success"}, {"episode"}),
        ({"outcome": {"ne": "success"}}, {"turn", "fact", "procedure"}),
        ({"not": {"outcome": {"exists": True}}}, {"turn", "fact", "procedure"}),
        ({"task_type": "release"}, {"episode", "procedure"}),
        ({"task_type": None}, {"turn", "fact"}),
        ({"tags": "red"}, {"turn"}),
        ({"tags": {"in": ["green", "blue"]}}, {"turn"}),
        ({"tags": {"in": []}}, set()),
        ({"tags": {"exists": False}}, {"episode", "fact", "procedure"}),
        ({"tags": None}, {"episode", "fact", "procedure"}),
        ({"tags": {"ne": None}}, {"turn"}),
        ({"tags": {"in": ["green", None]}}, {"episode", "fact", "procedure"}),
        ({"trust": {"le": "approved"}}, set()),
        ({"trust": {"lt": 3}}, set(KINDS)),
        ({"occurred_at": {"ge": AT, "lt": AT + timedelta(microseconds=1)}}, set(KINDS)),
        ({"occurred_at": {"gt": AT}}, set()),
        ({"confidence": {"gt": 0.7}}, {"fact"}),
        ({"confidence": {"le": 0.7}}, set()),
        ({"importance": {"in": [0.5]}}, {"episode"}),
        ({"actor": "Ada"}, {"turn"}),
        ({"actor": "ada"}, set()),
        ({"subject": {"ge": "Ada", "lt": "Adb"}}, {"fact"}),
        ({"session": str(ONE)}, {"turn"}),
        ({"session": {"exists": False}}, {"episode", "fact", "procedure"}),
        ({"pinned": True}, {"fact"}),
        ({"pinned": {"ne": True}}, {"turn", "episode", "procedure"}),
        ({"valid_to": AT}, {"fact"}),
        ({"valid_from": {"lt": AT}}, set()),
        ({"name": "Roll back"}, {"procedure"}),
        ({"key_topics": "deploy", "tools_used": "helm"}, {"episode"}),
        ({"metadata.n": {"ge": 5.0, "le": 5}}, {"turn"}),
        ({"metadata.n": {"lt": 10}}, {"turn"}),
        ({"metadata.n": 5.0}, {"turn"}),
        ({"metadata.n": "5"}, set()),
        ({"metadata.n": {"lt": "9"}}, set()),
        ({"metadata.draft": True}, {"turn"}),
        ({"metadata.draft": 1}, set()),
        ({"metadata.draft": {"ge": 1}}, set()),
        ({"metadata.team.name": "billing"}, {"turn"}),
        ({"metadata.team": "billing"}, set()),
        ({"metadata.labels": 7}, {"turn"}),
        ({"metadata.labels": {"in": ["y", "x"]}}, {"turn"}),
        ({"metadata.labels.x": 7}, set()),
        ({"metadata.labels": {"lt": 9}}, set()),
        ({"metadata.no": None}, set(KINDS)),
        ({"metadata.no": {"exists": True}}, set()),
        ({"metadata.n": None}, {"episode", "fact", "procedure"}),
        ({"and": [{"kind": "turn"}, {"metadata.n": 6}]}, set()),
        ({"or": [{"kind": "fact"}, {"metadata.n": 5}]}, {"turn", "fact"}),
    ],
)
def test_what_passes(value: dict[str, Any], passing: set[str]) -> None:
    asked = checked_filter(value)
    memories = {"turn": TURN, "episode": EPISODE, "fact": FACT, "procedure": PROCEDURE}

    assert asked is not None
    assert {kind for kind, one in memories.items() if matches(asked, one)} == passing


@pytest.mark.parametrize(
    ("held", "operator", "value", "passes"),
    [
        (0.1, "eq", 0.1, True),
        (0.30000000000000004, "eq", 0.3, False),
        (2**53 + 1, "eq", float(2**53), False),
        (1e22, "eq", 10**18, False),
        # JSON writes the float as 1.2345678901234568e+18.
        (1234567890123456800, "eq", 1234567890123456768.0, True),
        (1234567890123456768, "eq", 1234567890123456768.0, False),
        ("b", "gt", "Z", True),
        ("b", "lt", "Z", False),
        ("2026-03-01T09:00:00Z", "eq", "2026-03-01T10:00:00+01:00", True),
        ("2026-03-01T09:00:00Z", "ne", "2026-03-01T10:00:00+01:00", False),
        ("2026-03-01T09:00:01Z", "gt", "2026-03-01T10:00:00+01:00", True),
        ("2026-03-01T09:00:01Z", "le", "2026-03-01T10:00:00+01:00", False),
        ("2026-03-01", "lt", "2026-03-01T10:00:00Z", False),
        ("2026-03-01", "gt", "2026-03-01T10:00:00Z", False),
        ("2026-03-01", "lt", "2026-03-02", True),
        ("2026-02-30T00:00:00Z", "eq", "2026-02-30T00:00:00Z", True),
    ],
)
def test_values_of_the_metadata_compare_as_what_they_are(
    held: Any, operator: str, value: Any, *, passes: bool
) -> None:
    asked = checked_filter({"metadata.it": {operator: value}})

    assert asked is not None
    assert matches(asked, replace(TURN, metadata={"it": held})) is passes


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-01T09:00:00Z", AT),
        ("2026-03-01 09:00:00+00:00", AT),
        ("2026-03-01T10:00:00.000000+01:00", AT),
        ("1000-01-01T00:00:00Z", datetime(1000, 1, 1, tzinfo=UTC)),
        ("8999-12-31T23:59:59Z", datetime(8999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("0999-12-31T23:59:59Z", None),
        ("9000-01-01T00:00:00Z", None),
        ("2026-02-30T00:00:00Z", None),
        ("2026-03-01T24:00:00Z", None),
        ("2026-03-01T09:00:00", None),
        ("2026-03-01T09:00:00Z\n", None),
        ("2026-03-01", None),
        ("2026-03-01T09:00:00.1234567Z", None),
        ("2026-03-01T09:00:00+15:00", None),
    ],
)
def test_an_instant_is_a_full_time_with_a_zone(text: str, instant: datetime | None) -> None:
    assert instant_of(text) == instant


def test_each_field_is_of_kinds_that_have_it() -> None:
    memories = {"turn": TURN, "episode": EPISODE, "fact": FACT, "procedure": PROCEDURE}

    for name, field in FIELDS.items():
        assert set(field.of) <= set(KINDS), name
        assert all(hasattr(memories[kind], column) for kind, column in field.of.items()), name
    assert FIELDS[METADATA].type is FieldType.JSON
    assert [name for name, field in FIELDS.items() if not field.of] == ["kind"]
