"""What is done with procedures beside recording them: match, judge, choose, change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID, uuid5

import re2

from mnemic.errors import NotFound
from mnemic.model.normalise import clean_name, clean_text
from mnemic.model.procedure import Procedure, Step
from mnemic.model.recall import RecallQuery
from mnemic.model.receipt import Receipt
from mnemic.model.reliability import TRIALS_MIN, reliability
from mnemic.model.scope import MemoryScope, Scope
from mnemic.service.parsing import checked_flag, checked_id, checked_idempotency_key
from mnemic.service.recall import recall
from mnemic.service.record_procedure import checked_steps, trigger_of
from mnemic.service.rights import require_write
from mnemic.service.tools import Tools
from mnemic.service.witness import Write, committed, land_once, request_digest
from mnemic.store.faults import after_landing
from mnemic.store.tombstones import procedure_mark
from mnemic.store.unit import Unit
from mnemic.store.wording import words_of

__all__ = ["best_procedure", "get_procedure", "match_procedures", "record_outcome", "update_steps"]

PATTERNS_MAX = 500
CANDIDATES_MAX = 50
NOTE_CHARS_MAX = 2_000
TRIGGER_BONUS = 1.0
READY_BONUS = 0.2
# Below this score, without a common word, two texts share nothing but their language.
LIKE_MIN = 0.25


async def get_procedure(tools: Tools, identity: UUID, *, scope: Scope) -> Procedure:
    """The live procedure, if it is visible from `scope`. Raises `NotFound`."""
    found = await _by_ids(tools, [identity], scope)
    if not found:
        raise NotFound("No such procedure in this scope.", id=identity)
    return found[0]


async def match_procedures(
    tools: Tools, context: str, *, scope: Scope, limit: int
) -> list[Procedure]:
    """Procedures that fit what is to be done, the best first.

    A trigger pattern that matches counts most, then likeness by words and meaning; both are
    weighed by how reliable the procedure is once it was tried five times, and by up to a fifth more
    by how many of its preconditions are told to hold. One whose avoid-condition holds is left out.
    A condition holds when all its content words stand in `context`.
    """
    text = clean_text(context, field="context", chars_max=tools.settings.limits.query_chars_max)
    query = RecallQuery(text=text, limit=CANDIDATES_MAX, kinds=("procedure",), floor=0.0)
    found = await recall(tools, query, scope=scope)
    scores: dict[UUID, float] = {}
    known: dict[UUID, Procedure] = {}
    for hit in found.hits:
        if isinstance(hit.memory, Procedure) and (hit.reasons.lex > 0 or hit.score > LIKE_MIN):
            known[hit.id] = hit.memory
            scores[hit.id] = hit.score
    triggered = await _triggered(tools, text, scope)
    unseen = [one for one in triggered if one not in known]
    known |= {one.id: one for one in await _by_ids(tools, unseen, scope)}
    for identity in known.keys() & triggered:
        scores[identity] = scores.get(identity, 0.0) + TRIGGER_BONUS
    words = frozenset(words_of(text).stems)
    fit = [one for one in known.values() if not _avoided(one, words)]
    fit.sort(key=lambda one: (-scores[one.id] * _weight(one) * _readiness(one, words), one.id))
    return fit[:limit]


async def _triggered(tools: Tools, text: str, scope: Scope) -> frozenset[UUID]:
    """The procedures whose trigger pattern matches; most do not, so their rows are not read."""
    patterns = await tools.transact(
        scope.tenant.id,
        lambda unit: unit.procedures.triggers(scope, limit=PATTERNS_MAX),
        read_only=True,
    )
    return frozenset(identity for identity, pattern in patterns if _matches(pattern, text))


def _matches(pattern: str, text: str) -> bool:
    try:
        return trigger_of(pattern).search(text) is not None
    except re2.error:  # taken by a release with a larger bound
        return False


async def _by_ids(tools: Tools, ids: Sequence[UUID], scope: Scope) -> list[Procedure]:
    if not ids:
        return []
    return await tools.transact(
        scope.tenant.id, lambda unit: unit.procedures.by_ids(scope, ids), read_only=True
    )


def _avoided(procedure: Procedure, words: frozenset[str]) -> bool:
    return any(_holds(one, words) for one in procedure.avoid_conditions)


def _readiness(procedure: Procedure, words: frozenset[str]) -> float:
    """1 to 1 + `READY_BONUS`, by the share of the preconditions that are told to hold.

    What is not told may hold all the same, so that nothing is left out for it.
    """
    told = [_holds(one, words) for one in procedure.preconditions]
    return 1.0 + READY_BONUS * sum(told) / len(told) if told else 1.0


def _holds(condition: str, words: frozenset[str]) -> bool:
    stems = frozenset(words_of(condition).stems)
    return bool(stems) and stems <= words


def _weight(procedure: Procedure) -> float:
    """½ to 1½, and 1 until there were enough trials."""
    return 0.5 + reliability(procedure.success_count, procedure.failure_count)


async def best_procedure(tools: Tools, task_type: str, *, scope: Scope) -> Procedure | None:
    """The most reliable live procedure for a type of task, if there is one.

    Untried ones count ½; of equals the one with more trials, then the lower id.
    """
    kind = clean_name(task_type, field="task_type")
    found = await tools.transact(
        scope.tenant.id,
        lambda unit: unit.procedures.of_task(scope, kind, limit=PATTERNS_MAX),
        read_only=True,
    )
    return min(found, key=_rank, default=None)


def _rank(procedure: Procedure) -> tuple[float, int, int]:
    trials = procedure.success_count + procedure.failure_count
    bound = reliability(procedure.success_count, procedure.failure_count)
    return (-bound, -trials if trials >= TRIALS_MIN else 0, procedure.id.int)


async def record_outcome(
    tools: Tools,
    identity: UUID,
    *,
    success: bool,
    scope: Scope,
    note: str | None = None,
    key: str | None = None,
) -> Receipt:
    """The outcome is in the procedure's ledger, once for each idempotency key.

    Outcomes may be told from any scope that sees the procedure. Raises `NotFound`.
    """
    identity = checked_id(identity, field="procedure_id")
    checked_flag(success, field="success")
    told = None if note is None else clean_text(note, field="note", chars_max=NOTE_CHARS_MAX)
    key = checked_idempotency_key(key)
    outcome = uuid5(identity, f"outcome;{scope.id};{key}") if key else tools.new_id()
    session = scope.ancestor(MemoryScope.SESSION)

    async def land(unit: Unit, now: datetime) -> Receipt:
        procedure = await unit.procedures.lock(scope, identity)
        if procedure is None:
            raise NotFound("No such procedure in this scope.", id=identity)
        await unit.procedures.add_outcome(
            procedure,
            outcome,
            success=success,
            session=session.id if session else None,
            note=told,
            now=now,
        )
        return committed(identity, "procedure", version=procedure.version, created=False)

    write = Write(
        operation="procedure.outcome",
        request=request_digest("procedure.outcome", str(identity), success, told),
        key=key,
    )
    return await land_once(tools, write, land, scope=scope)


async def update_steps(
    tools: Tools, identity: UUID, steps: Sequence[Step], *, scope: Scope, key: str | None = None
) -> Procedure:
    """The procedure has new steps under its next version; the old ones stay in its history.

    Raises `NotFound`, `Forbidden` if it stands in a wider scope without a grant, and `Retracted` if
    it was forgotten there with these steps.
    """
    identity = checked_id(identity, field="procedure_id")
    checked = checked_steps(steps)

    async def land(unit: Unit, now: datetime) -> Receipt:
        procedure = await unit.procedures.lock(scope, identity)
        if procedure is None:
            raise NotFound("No such procedure in this scope.", id=identity)
        place = await require_write(unit, scope, procedure.scope_id)
        mark = procedure_mark(procedure.name, [step.action for step in checked])
        await unit.tombstones.respect(place, mark, now=now, lift=False)
        version = await unit.procedures.set_steps(replace(procedure, steps=checked), now=now)
        return committed(identity, "procedure", version=version)

    write = Write(
        operation="procedure.steps",
        request=request_digest(
            "procedure.steps", str(identity), [[one.action, one.expected] for one in checked]
        ),
        key=checked_idempotency_key(key),
    )
    await land_once(tools, write, land, scope=scope)
    with after_landing():
        return await get_procedure(tools, identity, scope=scope)
