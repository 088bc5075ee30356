"""Arguments that every method takes; a new method finds its own by the kinds of its parameters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

from hostile.surface import Leaf, Method
from mnemic import (
    EpisodeCreate,
    MemoryManager,
    Outcome,
    ProcedureCreate,
    Scope,
    Step,
    TaskState,
    Trust,
)
from mnemic.model.transcript import Utterance
from mnemic.testing import a_fact, a_turn
from oracles.stage import Stage

__all__ = ["arguments", "home_of", "placed"]

AT = datetime(2026, 3, 1, tzinfo=UTC)
_numbers = count(1)

_BY_KIND: dict[str, Any] = {
    "text": "Deploys are frozen on Fridays",
    "whole": 3,
    "number": 0.5,
    "flag": False,
    "time": AT,
    "json": {"n": 1},
    "object": {"n": 1},
    "objects": [{"n": 1}],
    "texts": ["red"],
    "choice": Outcome.SUCCESS,
    "trust": Trust.USER,
    "filter": {"outcome": "success"},
}


def an_episode() -> EpisodeCreate:
    return EpisodeCreate(task_description="Deployed the service", occurred_at=AT)


def a_procedure() -> ProcedureCreate:
    # Of one name there is one procedure, and what comes again is its next version.
    return ProcedureCreate(name=f"Deploy {next(_numbers)}", steps=(Step(action="Tag it"),))


_BY_NAME: dict[str, Callable[[], Any]] = {
    "fact": lambda: a_fact(object=f"tool {next(_numbers)}"),
    "episode": an_episode,
    "procedure": a_procedure,
    "steps": lambda: [Step(action="Tag it"), Step(action=f"Build it {next(_numbers)}")],
    "turns": lambda: [a_turn()],
    "entries": lambda: [Utterance(session="s", turn=a_turn(external_id="e"), line=1)],
    "state": lambda: TaskState("one"),
    "settings": lambda: None,
    "data_dir": lambda: "data",
    "isolation": lambda: "shared",
    "memory_type": lambda: "semantic",
    "content": lambda: f"It is release {next(_numbers)}.",
}


async def _a_fact_id(memory: MemoryManager, scope: Scope) -> Any:
    return (await memory.store_fact(_BY_NAME["fact"](), scope=scope)).id


async def _an_episode_id(memory: MemoryManager, scope: Scope) -> Any:
    return (await memory.at(scope).episodic.record_episode(an_episode())).id


async def _a_procedure_id(memory: MemoryManager, scope: Scope) -> Any:
    return (await memory.at(scope).procedural.record_procedure(a_procedure())).id


async def _two_facts(memory: MemoryManager, scope: Scope) -> Any:
    return [await _a_fact_id(memory, scope) for _ in range(2)]


async def _a_kept_episode(memory: MemoryManager, scope: Scope) -> Any:
    return await memory.at(scope).episodic.record_episode(an_episode())


_SEEDS: dict[str, Callable[[MemoryManager, Scope], Awaitable[Any]]] = {
    "fact_id": _a_fact_id,
    "episode_id": _an_episode_id,
    "procedure_id": _a_procedure_id,
    "fact_ids": _two_facts,
    "memory_id": _a_fact_id,
    "checkpoint_id": lambda memory, scope: memory.at(scope).working.create_checkpoint(),
}


async def _seeded(stage: Stage, leaf: Leaf, scope: Scope) -> Any:
    if leaf.name in {"ids", "episode_ids"}:
        seed = _a_fact_id if leaf.name == "ids" else _an_episode_id
        return [await seed(stage.memory, scope)]
    return await _SEEDS[leaf.name](stage.memory, scope)


async def home_of(stage: Stage, method: Method, scope: Scope) -> Scope:
    """The scope to call in: a session where the method is about one, and that has begun."""
    if method.path[0] == "grants":
        return scope.project("p")
    if method.path[0] not in {"sessions", "lifecycle"}:
        return scope
    session = scope.session(f"s-{next(_numbers)}")
    if method.path[-1] not in {"start", "spawn"}:
        await stage.memory.sessions.start(scope=session)
    return session


async def arguments(stage: Stage, method: Method, home: Scope) -> dict[str, Any]:
    """What the method needs at least, all of it good."""
    given: dict[str, Any] = {}
    for leaf in method.required:
        if leaf.kind == "scope":
            given[leaf.name] = home.parent if leaf.name == "to" else home
        elif getattr(leaf.annotation, "__name__", "") == "Episode":
            given[leaf.name] = await _a_kept_episode(stage.memory, home)
        elif leaf.name in _SEEDS or leaf.kind == "ids":
            given[leaf.name] = await _seeded(stage, leaf, home)
        else:
            made = _BY_NAME.get(leaf.name)
            given[leaf.name] = made() if made else _BY_KIND[leaf.kind]
    if method.path[-1] == "remove_alias":
        await stage.memory.at(home).semantic.add_alias(**given)
    return given


def placed(given: dict[str, Any], leaf: Leaf, value: Any) -> dict[str, Any]:
    """The arguments with `value` in the place of the leaf. Raises what that place itself does."""
    first, *rest = leaf.path
    changed = dict(given)
    changed[first] = _within(given[first], rest, value) if rest else value
    if leaf.path in {("key",), ("ttl_seconds",)} and "content" in given:
        changed["memory_type"] = "working"
    return changed


def _within(held: Any, path: list[str], value: Any) -> Any:
    if isinstance(held, (list, tuple)):
        return [_within(held[0], path, value), *held[1:]]
    first, *rest = path
    return replace(held, **{first: _within(getattr(held, first), rest, value) if rest else value})
