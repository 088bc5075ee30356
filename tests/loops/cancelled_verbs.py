"""Every public verb as a call that can be made again: what it needs, and the call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mnemic import MemoryManager, Scope
from mnemic.model.episode import EpisodeCreate
from mnemic.model.procedure import ProcedureCreate, Step
from mnemic.model.transcript import StatedFact, Utterance
from mnemic.model.working import TaskState
from mnemic.testing import a_conversation, a_fact, a_turn

__all__ = ["REPEATING", "VERBS", "Verb"]

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
KEY = "the one key"
SAID = ["We keep the rota weekly.", "Understood."]

Memory = MemoryManager
Ready = Callable[[Memory, Scope], Awaitable[Any]]
Call = Callable[[Memory, Scope, Any], Awaitable[Any]]


async def _nothing(memory: Memory, scope: Scope) -> None:
    """The tenant is new."""


@dataclass(frozen=True)
class Verb:
    """`ready` makes what the call needs; made twice, the call has the effect of one.

    With `one_unit`, the call is seen whole or not at all. Without, it works in steps, each of
    which stands for itself and is completed by the same call made again.
    """

    call: Call
    ready: Ready = _nothing
    one_unit: bool = True


def _s(scope: Scope) -> Scope:
    return scope.session("s")


async def _said(memory: Memory, scope: Scope) -> None:
    await memory.sessions.append(a_conversation(SAID), scope=_s(scope))


async def _paused(memory: Memory, scope: Scope) -> None:
    await _said(memory, scope)
    await memory.sessions.pause(scope=_s(scope))


async def _a_fact(memory: Memory, scope: Scope) -> Any:
    return (await memory.store_fact(a_fact(), scope=scope)).id


async def _an_alias(memory: Memory, scope: Scope) -> Any:
    await memory.at(scope).semantic.add_alias("User", "Ann")


async def _two_facts(memory: Memory, scope: Scope) -> Any:
    made = [await memory.store_fact(a_fact(object=one), scope=scope) for one in ("Vim", "Emacs")]
    return [one.id for one in made]


async def _an_episode(memory: Memory, scope: Scope) -> Any:
    episode = EpisodeCreate(task_description="I use PostgreSQL for the ledger.", occurred_at=AT)
    await memory.at(scope).episodic.record_episode(episode)
    (kept,) = await memory.at(scope).episodic.get_recent(1)
    return kept


async def _a_procedure(memory: Memory, scope: Scope) -> Any:
    made = ProcedureCreate(name="Deploy", steps=(Step(action="Tag"),), task_type="deploy")
    return (await memory.at(scope).procedural.record_procedure(made)).id


async def _held(memory: Memory, scope: Scope) -> Any:
    here = memory.at(scope).working
    await here.set("k", 1)
    await here.append_scratchpad("before")
    return await here.create_checkpoint()


def _told() -> list[Any]:
    turn = a_turn("The ledger runs on PostgreSQL.", external_id="line 1")
    fact = StatedFact(fact=a_fact(), external_id="f1", line=2)
    return [Utterance(session="told", turn=turn, line=1), fact]


VERBS: dict[str, Verb] = {
    "remember": Verb(
        lambda m, s, _: m.remember("Fridays are quiet.", scope=s, idempotency_key=KEY)
    ),
    "store_fact": Verb(lambda m, s, _: m.store_fact(a_fact(), scope=s, idempotency_key=KEY)),
    "recall": Verb(lambda m, s, _: m.recall("rota", scope=s), _said),
    "context": Verb(lambda m, s, _: m.context("rota", scope=s), _said),
    "why_not": Verb(lambda m, s, x: m.why_not("database", x, scope=s), _a_fact),
    "tool_affinities": Verb(lambda m, s, _: m.tool_affinities(s), _a_fact),
    "forget": Verb(lambda m, s, x: m.forget([x], scope=s, idempotency_key=KEY), _a_fact),
    "grants.allow": Verb(lambda m, s, _: m.grants.allow(s.project("p"), to=s)),
    "grants.revoke": Verb(lambda m, s, _: m.grants.revoke(s.project("p"), to=s)),
    "sessions.start": Verb(lambda m, s, _: m.sessions.start(scope=_s(s))),
    "sessions.append": Verb(
        lambda m, s, _: m.sessions.append(a_conversation(SAID), scope=_s(s), idempotency_key=KEY)
    ),
    "sessions.pause": Verb(lambda m, s, _: m.sessions.pause(scope=_s(s)), _said),
    "sessions.resume": Verb(lambda m, s, _: m.sessions.resume(scope=_s(s)), _paused),
    "sessions.end": Verb(lambda m, s, _: m.sessions.end(scope=_s(s)), _said, one_unit=False),
    "lifecycle.spawn": Verb(
        lambda m, s, _: m.lifecycle.spawn(scope=_s(s), task="rota"), one_unit=False
    ),
    "lifecycle.pause": Verb(lambda m, s, _: m.lifecycle.pause(scope=_s(s)), _said, one_unit=False),
    "lifecycle.resume": Verb(
        lambda m, s, _: m.lifecycle.resume(scope=_s(s)), _paused, one_unit=False
    ),
    "lifecycle.terminate": Verb(
        lambda m, s, _: m.lifecycle.terminate(scope=_s(s)), _said, one_unit=False
    ),
    "maintenance.end_idle_sessions": Verb(lambda m, *_: m.maintenance.end_idle_sessions()),
    "maintenance.embed_missing": Verb(lambda m, *_: m.maintenance.embed_missing()),
    "maintenance.count_terms": Verb(lambda m, *_: m.maintenance.count_terms()),
    "maintenance.expire": Verb(lambda m, *_: m.maintenance.expire()),
    "maintenance.caches": Verb(lambda m, *_: m.maintenance.caches()),
    "maintenance.promote_vectors": Verb(lambda m, *_: m.maintenance.promote_vectors()),
    "maintenance.promote": Verb(lambda m, s, _: m.maintenance.promote(scope=s)),
    "maintenance.demote": Verb(lambda m, s, _: m.maintenance.demote(scope=s)),
    "maintenance.isolate": Verb(
        lambda m, s, _: m.maintenance.isolate(scope=s, isolation="dedicated"),
        _a_fact,
        one_unit=False,
    ),
    "transcripts.ingest": Verb(
        lambda m, s, _: m.transcripts.ingest(_told(), scope=s), one_unit=False
    ),
    "episodic.record_episode": Verb(
        lambda m, s, _: m.at(s).episodic.record_episode(
            EpisodeCreate(task_description="It went well.", occurred_at=AT), idempotency_key=KEY
        )
    ),
    "episodic.search_similar": Verb(
        lambda m, s, _: m.at(s).episodic.search_similar("ledger"), _an_episode
    ),
    "episodic.get_recent": Verb(lambda m, s, _: m.at(s).episodic.get_recent(), _an_episode),
    "episodic.get_by_outcome": Verb(lambda m, s, _: m.at(s).episodic.get_by_outcome("success")),
    "episodic.get_by_task_type": Verb(lambda m, s, _: m.at(s).episodic.get_by_task_type("deploy")),
    "episodic.update_importance": Verb(
        lambda m, s, x: m.at(s).episodic.update_importance(x.id, 0.9, idempotency_key=KEY),
        _an_episode,
    ),
    "episodic.summarize_episodes": Verb(
        lambda m, s, x: m.at(s).episodic.summarize_episodes([x.id]), _an_episode
    ),
    "semantic.store_fact": Verb(
        lambda m, s, _: m.at(s).semantic.store_fact(a_fact(), idempotency_key=KEY)
    ),
    "semantic.search_facts": Verb(lambda m, s, _: m.at(s).semantic.search_facts("use"), _a_fact),
    "semantic.get_by_entity": Verb(lambda m, s, _: m.at(s).semantic.get_by_entity("User"), _a_fact),
    "semantic.reinforce_fact": Verb(
        lambda m, s, x: m.at(s).semantic.reinforce_fact(x, idempotency_key=KEY), _a_fact
    ),
    "semantic.deprecate_fact": Verb(
        lambda m, s, x: m.at(s).semantic.deprecate_fact(x, "wrong", idempotency_key=KEY), _a_fact
    ),
    "semantic.extract_facts_from_episode": Verb(
        lambda m, s, x: m.at(s).semantic.extract_facts_from_episode(x), _an_episode
    ),
    "semantic.resolve_conflict": Verb(
        lambda m, s, x: m.at(s).semantic.resolve_conflict(x, idempotency_key=KEY), _two_facts
    ),
    "semantic.verify_fact": Verb(
        lambda m, s, x: m.at(s).semantic.verify_fact(x, idempotency_key=KEY), _a_fact
    ),
    "semantic.add_alias": Verb(
        lambda m, s, _: m.at(s).semantic.add_alias("User", "Ann", idempotency_key=KEY), _a_fact
    ),
    "semantic.remove_alias": Verb(
        lambda m, s, _: m.at(s).semantic.remove_alias("User", "Ann", idempotency_key=KEY), _an_alias
    ),
    "procedural.record_procedure": Verb(
        lambda m, s, _: m.at(s).procedural.record_procedure(
            ProcedureCreate(name="Brew", steps=(Step(action="Boil"),)), idempotency_key=KEY
        )
    ),
    "procedural.find_matching": Verb(
        lambda m, s, _: m.at(s).procedural.find_matching("deploy"), _a_procedure
    ),
    "procedural.get_best_procedure": Verb(
        lambda m, s, _: m.at(s).procedural.get_best_procedure("deploy"), _a_procedure
    ),
    "procedural.record_outcome": Verb(
        lambda m, s, x: m.at(s).procedural.record_outcome(x, success=True, idempotency_key=KEY),
        _a_procedure,
    ),
    "procedural.update_steps": Verb(
        lambda m, s, x: m.at(s).procedural.update_steps(
            x, [Step(action="Ship")], idempotency_key=KEY
        ),
        _a_procedure,
    ),
    "working.set": Verb(lambda m, s, _: m.at(s).working.set("k", [1, 2], durable=True)),
    "working.get": Verb(lambda m, s, _: m.at(s).working.get("k"), _held),
    "working.delete": Verb(lambda m, s, _: m.at(s).working.delete("k"), _held),
    "working.exists": Verb(lambda m, s, _: m.at(s).working.exists("k"), _held),
    "working.list_keys": Verb(lambda m, s, _: m.at(s).working.list_keys(), _held),
    "working.get_all": Verb(lambda m, s, _: m.at(s).working.get_all(), _held),
    "working.clear": Verb(lambda m, s, _: m.at(s).working.clear(), _held, one_unit=False),
    "working.set_task_state": Verb(
        lambda m, s, _: m.at(s).working.set_task_state(TaskState(status="done"))
    ),
    "working.get_task_state": Verb(lambda m, s, _: m.at(s).working.get_task_state(), _held),
    "working.append_scratchpad": Verb(
        lambda m, s, _: m.at(s).working.append_scratchpad("note"), one_unit=False
    ),
    "working.get_scratchpad": Verb(lambda m, s, _: m.at(s).working.get_scratchpad(), _held),
    "working.create_checkpoint": Verb(
        lambda m, s, _: m.at(s).working.create_checkpoint(), _held, one_unit=False
    ),
    "working.restore_checkpoint": Verb(
        lambda m, s, x: m.at(s).working.restore_checkpoint(x), _held, one_unit=False
    ),
    "working.checkpoints": Verb(lambda m, s, _: m.at(s).working.checkpoints(), _held),
    "working.record": Verb(lambda m, s, _: m.at(s).working.record(), _held),
    "working.status": Verb(lambda m, s, _: m.at(s).working.status(), _held),
}
REPEATING = frozenset(
    {
        "lifecycle.pause",  # a checkpoint more for each call
        "working.append_scratchpad",
        "working.create_checkpoint",
        "working.restore_checkpoint",  # what it replaced is kept, for each call
    }
)
"""Those that take no key and do it once more when they are called once more."""
