"""Values for tests; each fills in what the test is not about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from mnemic.model.fact import FactCreate
from mnemic.model.scope import Scope
from mnemic.model.turn import TurnCreate

__all__ = ["a_conversation", "a_fact", "a_scope", "a_turn"]

_numbers = count(1)
AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def a_scope(tenant: str | None = None) -> Scope:
    """The global scope of a person; another one on each call unless `tenant` names it."""
    return Scope.user(tenant or f"person-{next(_numbers)}")


def a_turn(text: str = "The staging cluster runs in Frankfurt.", **given: Any) -> TurnCreate:
    """Something that User said."""
    return TurnCreate(**{"text": text, "actor": "User", "occurred_at": AT, **given})


def a_conversation(texts: Sequence[str], *, at: datetime = AT, name: str = "c") -> list[TurnCreate]:
    """User and Assistant in turn, a minute apart, each turn with an id of its own."""
    speakers = (("User", "user"), ("Assistant", "assistant"))
    return [
        TurnCreate(
            text=text,
            actor=speakers[place % 2][0],
            role=speakers[place % 2][1],
            occurred_at=at + timedelta(minutes=place),
            external_id=f"{name}-{place}",
        )
        for place, text in enumerate(texts)
    ]


def a_fact(**given: Any) -> FactCreate:
    """A statement with a predicate that may have many values."""
    values = {"subject": "User", "predicate": "uses", "object": "PostgreSQL", **given}
    return FactCreate(**values)
