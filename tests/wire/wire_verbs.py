"""Every verb that writes, with what it needs beforehand and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from mnemic import (
    EpisodeCreate,
    MemoryManager,
    Outcome,
    ProcedureCreate,
    Scope,
    Step,
)
from mnemic.model.transcript import read
from mnemic.testing import a_conversation, a_fact
from mnemic.testing.builders import AT

TRANSCRIPT = b"""
{"type":"turn","session":"s-1","actor":"User","text":"Use tabs.","at":"2026-03-02T09:00:00Z"}
{"type":"turn","session":"s-2","actor":"User","text":"Use spaces.","at":"2026-03-03T09:00:00Z"}
"""
Prepare = Callable[[MemoryManager, Scope], Awaitable[Any]]
Act = Callable[[MemoryManager, Scope, Any, str], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Verb:
    """`act` is given what `prepare` made and an idempotency key; calling it again is a retry.

    A verb that takes no key has one effect however often it is called, and a witness for each. One
    `in_steps` is completed by the next call, and may stand in part until then.
    """

    name: str
    act: Act
    prepare: Prepare
    takes_key: bool
    in_steps: bool


async def _nothing(_memory: MemoryManager, _scope: Scope) -> None:
    return None


VERBS: dict[str, Verb] = {}


def _verb(
    prepare: Prepare = _nothing, *, takes_key: bool = True, in_steps: bool = False
) -> Callable[[Act], Act]:
    def register(act: Act) -> Act:
        name = getattr(act, "__name__", "")
        VERBS[name] = Verb(name, act, prepare, takes_key, in_steps)
        return act

    return register


def _episode() -> EpisodeCreate:
    return EpisodeCreate(
        task_description="I prefer small releases. A migration locked the orders table.",
        occurred_at=AT,
        outcome=Outcome.FAILURE,
    )


def _procedure(*actions: str) -> ProcedureCreate:
    steps = tuple(Step(action=one) for one in actions or ("Tag the commit", "Push the image"))
    return ProcedureCreate(name="release", steps=steps)


async def _a_fact(memory: MemoryManager, scope: Scope) -> Any:
    return (await memory.store_fact(a_fact(), scope=scope)).id


async def _an_alias(memory: MemoryManager, scope: Scope) -> Any:
    await memory.at(scope).semantic.add_alias("PostgreSQL", "pg")


async def _two_values(memory: MemoryManager, scope: Scope) -> Any:
    made = [
        await memory.store_fact(a_fact(object=value), scope=scope) for value in ("tabs", "spaces")
    ]
    return [one.id for one in made]


async def _an_episode(memory: MemoryManager, scope: Scope) -> Any:
    return await memory.at(scope).episodic.record_episode(_episode())


async def _a_procedure(memory: MemoryManager, scope: Scope) -> Any:
    return (await memory.at(scope).procedural.record_procedure(_procedure())).id


async def _a_talk(memory: MemoryManager, scope: Scope) -> Any:
    talk = scope.session("s-1")
    await memory.sessions.append(
        a_conversation(["I prefer dark mode.", "Noted, dark mode it is."]), scope=talk
    )
    return talk


@_verb()
async def remember_semantic(memory: MemoryManager, scope: Scope, _: Any, key: str) -> Any:
    return await memory.remember(
        "I prefer tea. I live in Berlin.", scope=scope, idempotency_key=key
    )


@_verb()
async def remember_episodic(memory: MemoryManager, scope: Scope, _: Any, key: str) -> Any:
    return await memory.remember(
        "The deploy failed at noon.", scope=scope, memory_type="episodic", idempotency_key=key
    )


@_verb()
async def remember_procedural(memory: MemoryManager, scope: Scope, _: Any, key: str) -> Any:
    text = "Release\n1. Tag the commit\n2. Push the image"
    return await memory.remember(text, scope=scope, memory_type="procedural", idempotency_key=key)


@_verb(in_steps=True)
async def remember_working(memory: MemoryManager, scope: Scope, _: Any, key: str) -> Any:
    return await memory.remember(
        "step 4 of 9", scope=scope, memory_type="working", idempotency_key=key
    )


@_verb()
async def store_fact(memory: MemoryManager, scope: Scope, _: Any, key: str) -> Any:
    return await memory.store_fact(a_fact(), scope=scope, idempotency_key=key)


@_verb()
async def semantic_store_fact(memory: MemoryManager, scope: Scope, _: Any, key: str) -> Any:
    return await memory.at(scope).semantic.store_fact(a_fact(), idempotency_key=key)


@_verb(_a_fact)
async def reinforce_fact(memory: MemoryManager, scope: Scope, made: Any, key: str) -> Any:
    return await memory.at(scope).semantic.reinforce_fact(made, idempotency_key=key)


@_verb(_a_fact)
async def deprecate_fact(memory: MemoryManager, scope: Scope, made: Any, key: str) -> Any:
    return await memory.at(scope).semantic.deprecate_fact(made, "outdated", idempotency_key=key)


@_verb(_a_fact)
async def verify_fact(memory: MemoryManager, scope: Scope, made: Any, key: str) -> Any:
    return await memory.at(scope).semantic.verify_fact(made, idempotency_key=key)


@_verb(_two_values)
async def resolve_conflict(memory: MemoryManager, scope: Scope, made: Any, key: str) -> Any:
    return await memory.at(scope).semantic.resolve_conflict(made, idempotency_key=key)


@_verb()
async def add_alias(memory: MemoryManager, scope: Scope, _: Any, key: str) -> Any:
    return await memory.at(scope).semantic.add_alias("PostgreSQL", "pg", idempotency_key=key)


@_verb(_an_alias)
async def remove_alias(memory: MemoryManager, scope: Scope, _: Any, key: str) -> Any:
    return await memory.at(scope).semantic.remove_alias("PostgreSQL", "pg", idempotency_key=key)


@_verb(_an_episode, takes_key=False)
async def extract_facts(memory: MemoryManager, scope: Scope, made: Any, _key: str) -> Any:
    return await memory.at(scope).semantic.extract_facts_from_episode(made)


@_verb()
async def record_episode(memory: MemoryManager, scope: Scope, _: Any, key: str) -> Any:
    return await memory.at(scope).episodic.record_episode(_episode(), idempotency_key=key)


@_verb(_an_episode)
async def update_importance(memory: MemoryManager, scope: Scope, made: Any, key: str) -> Any:
    return await memory.at(scope).episodic.update_importance(made.id, 0.9, idempotency_key=key)


@_verb()
async def record_procedure(memory: MemoryManager, scope: Scope, _: Any, key: str) -> Any:
    return await memory.at(scope).procedural.record_procedure(_procedure(), idempotency_key=key)


@_verb(_a_procedure)
async def record_outcome(memory: MemoryManager, scope: Scope, made: Any, key: str) -> Any:
    return await memory.at(scope).procedural.record_outcome(made, success=True, idempotency_key=key)


@_verb(_a_procedure)
async def update_steps(memory: MemoryManager, scope: Scope, made: Any, key: str) -> Any:
    steps = [Step(action="Tag the commit"), Step(action="Announce it")]
    return await memory.at(scope).procedural.update_steps(made, steps, idempotency_key=key)


@_verb(_two_values)
async def forget(memory: MemoryManager, scope: Scope, made: Any, key: str) -> Any:
    return await memory.forget(made, scope=scope, idempotency_key=key)


@_verb()
async def append(memory: MemoryManager, scope: Scope, _: Any, key: str) -> Any:
    said = a_conversation(["Which port?", "5432, as always."])
    return await memory.sessions.append(said, scope=scope.session("s-1"), idempotency_key=key)


@_verb(takes_key=False)
async def start(memory: MemoryManager, scope: Scope, _: Any, _key: str) -> Any:
    return (await memory.sessions.start(scope=scope.session("s-1"))).state


@_verb(_a_talk, takes_key=False)
async def pause(memory: MemoryManager, _: Scope, made: Any, _key: str) -> Any:
    return (await memory.sessions.pause(scope=made)).state


@_verb(_a_talk, takes_key=False)
async def end(memory: MemoryManager, _: Scope, made: Any, _key: str) -> Any:
    ended = await memory.sessions.end(scope=made)
    return None if ended is None else ended.id


@_verb(takes_key=False)
async def allow(memory: MemoryManager, scope: Scope, _: Any, _key: str) -> Any:
    return await memory.grants.allow(scope.session("s-1"), to=scope)


@_verb(takes_key=False)
async def set_durable(memory: MemoryManager, scope: Scope, _: Any, _key: str) -> Any:
    return await memory.at(scope).working.set("plan", {"step": 4}, durable=True)


async def _a_durable_value(memory: MemoryManager, scope: Scope) -> Any:
    await memory.at(scope).working.set("plan", {"step": 3}, durable=True)


@_verb(_a_durable_value, takes_key=False)
async def delete_durable(memory: MemoryManager, scope: Scope, _: Any, _key: str) -> Any:
    await memory.at(scope).working.delete("plan")


@_verb(_a_durable_value, takes_key=False, in_steps=True)
async def set_volatile(memory: MemoryManager, scope: Scope, _: Any, _key: str) -> Any:
    return await memory.at(scope).working.set("plan", {"step": 4}, durable=False)


@_verb(_a_durable_value, takes_key=False)
async def clear(memory: MemoryManager, scope: Scope, _: Any, _key: str) -> Any:
    await memory.at(scope).working.clear()


@_verb(_a_talk, takes_key=False)
async def resume(memory: MemoryManager, _: Scope, made: Any, _key: str) -> Any:
    return (await memory.lifecycle.resume(scope=made)).state


@_verb(takes_key=False, in_steps=True)
async def ingest(memory: MemoryManager, scope: Scope, _: Any, _key: str) -> Any:
    report = await memory.transcripts.ingest(list(read(BytesIO(TRANSCRIPT))), scope=scope)
    return [one.episode_id for one in report.sessions]
