"""The part of the demo that shows each tier by the methods of the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from mnemic.model.scope import Scope

if TYPE_CHECKING:
    from mnemic.manager import MemoryManager
    from mnemic.tier.tiers import Tiers

__all__ = ["TierShown", "show_tiers"]

TRIALS = 5


@dataclass(frozen=True, slots=True)
class TierShown:
    """What was done in a tier, and what it answered."""

    name: str
    line: str
    values: dict[str, Any]


async def show_tiers(memory: MemoryManager, scope: Scope) -> list[TierShown]:
    """Each tier, used once; doing it again changes nothing that lasts."""
    here = memory.at(scope)
    return [
        # A session of its own, as two demos at once are two agents at work.
        await _working(memory.at(scope.session(f"demo-{uuid4()}"))),
        await _episodic(here),
        await _semantic(here),
        await _procedural(here),
    ]


async def _working(here: Tiers) -> TierShown:
    from mnemic.model.working import TaskState

    working = here.working
    await working.set("branch", "release-1.6", ttl_seconds=3_600)
    await working.set_task_state(TaskState("rehearse the migration", "in_progress", 0.4))
    checkpoint = await working.create_checkpoint()
    await working.set("branch", "a mistake")
    await working.restore_checkpoint(checkpoint)
    branch, state = await working.get("branch"), await working.get_task_state()
    step = state.current_step if state else None
    progress = state.progress if state else 0.0
    await working.clear()
    return TierShown(
        "working",
        f"“{step}” is {progress:.0%} done on {branch}, restored from a checkpoint",
        {"branch": branch, "current_step": step, "progress": progress},
    )


async def _episodic(here: Tiers) -> TierShown:
    [nearest, *_] = await here.episodic.search_similar("what went wrong in production", limit=1)
    recent = await here.episodic.get_recent(limit=100)
    return TierShown(
        "episodic",
        f"{len(recent)} episodes; most like “what went wrong in production”: {nearest.title}",
        {"episodes": len(recent), "most_alike": nearest.title},
    )


async def _semantic(here: Tiers) -> TierShown:
    await here.semantic.add_alias("PostgreSQL", "Postgres")
    known = await here.semantic.get_by_entity("Postgres")
    contents = [fact.content for fact in known]
    return TierShown(
        "semantic",
        f"about Postgres, an alias of PostgreSQL: {'; '.join(contents)}",
        {"entity": "Postgres", "facts": contents},
    )


async def _procedural(here: Tiers) -> TierShown:
    from mnemic.model.procedure import ProcedureCreate, Step

    steps = ("Rehearse the migration", "Build indexes concurrently", "Tag the release", "Deploy")
    skill = await here.procedural.record_procedure(
        ProcedureCreate(
            name="Release the ledger",
            task_type="release",
            trigger_pattern=r"(?i)\b(release|deploy)",
            steps=tuple(Step(action=action) for action in steps),
            avoid_conditions=("on a Friday",),
        ),
        idempotency_key="demo;release",
    )
    for trial in range(TRIALS):
        await here.procedural.record_outcome(
            skill.id, success=trial > 0, idempotency_key=f"demo;trial;{trial}"
        )
    fit = await here.procedural.find_matching("release version 1.6")
    friday = await here.procedural.find_matching("release version 1.6 on Friday")
    best = fit[0]
    return TierShown(
        "procedural",
        f"for “release version 1.6”: {best.name}, {best.success_count} of "
        f"{best.success_count + best.failure_count} worked; on a Friday: "
        f"{friday[0].name if friday else 'nothing fits'}",
        {
            "procedure": best.name,
            "success_count": best.success_count,
            "failure_count": best.failure_count,
            "on_friday": [one.name for one in friday],
        },
    )
