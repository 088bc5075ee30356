"""What a scope holds so that every filter has something to let through, and to keep out."""

from __future__ import annotations

from datetime import timedelta

from mnemic import EpisodeCreate, MemoryManager, Outcome, Scope
from mnemic.testing import a_fact, a_turn
from oracles.applied import KEYS, OBJECTS, START, TYPES

__all__ = ["EPISODES", "furnish"]

EPISODES = 40


async def furnish(memory: MemoryManager, scope: Scope) -> None:
    """Episodes of each type and outcome, three at a time; facts, turns, a procedure and keys."""
    here = memory.at(scope)
    for place in range(EPISODES):
        told = EpisodeCreate(
            task_description=f"Task {place}",
            occurred_at=START + timedelta(hours=place // 3),
            task_type=TYPES[place % 3],
            outcome=list(Outcome)[place % 5 % 3],
        )
        await here.episodic.record_episode(told)
    for name in OBJECTS:
        await memory.store_fact(a_fact(object=name), scope=scope)
    await memory.remember("User uses\n1. Tag it", scope=scope, memory_type="procedural")
    session = scope.session("s")
    await memory.sessions.append([a_turn(f"User uses {name}") for name in OBJECTS], scope=session)
    await memory.sessions.end(scope=session)
    for key in KEYS:
        await here.working.set(key, key)
