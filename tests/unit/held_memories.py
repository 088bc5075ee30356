"""Memories as they are held, whole; each fills in what the test is not about."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from mnemic.model.episode import Episode, EpisodeId, Outcome
from mnemic.model.fact import Fact, FactId
from mnemic.model.procedure import Procedure, ProcedureId
from mnemic.model.trust import Trust
from mnemic.model.turn import Turn, TurnId
from mnemic.testing.builders import AT

__all__ = ["a_held_episode", "a_held_fact", "a_held_procedure", "a_held_turn"]

ONE, TWO = UUID(int=1), UUID(int=2)
_SHARED: dict[str, Any] = {
    "scope_id": TWO,
    "recorded_at": AT,
    "trust": Trust.USER,
    "source": "caller",
}


def a_held_turn(**given: Any) -> Turn:
    """Something that User said."""
    values: dict[str, Any] = {
        "id": TurnId(ONE),
        "session_id": ONE,
        "seq": 0,
        "role": "user",
        "actor": "User",
        "text": "The staging cluster runs in Frankfurt.",
        "caption": None,
        "occurred_at": AT,
    }
    return Turn(**_SHARED | values | given)


def a_held_episode(**given: Any) -> Episode:
    """Something that went well."""
    values: dict[str, Any] = {
        "id": EpisodeId(ONE),
        "title": "Deploy",
        "summary": "The ledger was deployed.",
        "key_topics": (),
        "user_intents": (),
        "tools_used": (),
        "agents_used": (),
        "task_type": "release",
        "task_description": "Deploy the ledger",
        "outcome": Outcome.SUCCESS,
        "outcome_details": None,
        "actions": (),
        "context_summary": None,
        "lessons_learned": (),
        "duration_seconds": None,
        "tokens_used": None,
        "importance_score": 0.5,
        "message_count": 2,
        "started_at": None,
        "ended_at": None,
        "occurred_at": AT,
        "session_id": None,
    }
    return Episode(**_SHARED | values | given)


def a_held_fact(**given: Any) -> Fact:
    """A statement that was made once."""
    values: dict[str, Any] = {
        "id": FactId(ONE),
        "subject": "User",
        "predicate": "uses",
        "object": "PostgreSQL",
        "content": "User uses PostgreSQL",
        "category": "general",
        "confidence": 0.5,
        "reinforcement_count": 1,
        "first_learned": AT,
        "last_reinforced": AT,
        "valid_from": None,
        "valid_to": None,
        "retired_at": None,
        "status": "live",
        "pinned": False,
    }
    return Fact(**_SHARED | values | given)


def a_held_procedure(**given: Any) -> Procedure:
    """A way of working that nobody has tried."""
    values: dict[str, Any] = {
        "id": ProcedureId(ONE),
        "name": "Roll back",
        "task_type": "release",
        "trigger_pattern": None,
        "steps": (),
        "version": 1,
        "preconditions": (),
        "avoid_conditions": (),
        "success_count": 0,
        "failure_count": 0,
        "last_used": None,
    }
    return Procedure(**_SHARED | values | given)
