"""What is done with procedures beside recording them: match, judge, choose, change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from uuid import UUID, uuid5

from mnemic.errors import NotFound
from mnemic.model.normalise import clean_name, clean_text
from mnemic.model.procedure import Procedure, Standing, Step
from mnemic.model.ranking_values import QueryWords, Scored
from mnemic.model.receipt import Receipt
from mnemic.model.reliability import TRIALS_MIN, reliability
from mnemic.model.scope import MemoryScope, Scope
from mnemic.service.arms import respelt, words_asked
from mnemic.service.calibration import scale_of
from mnemic.service.parsing import (
    checked_flag,
    checked_id,
    checked_idempotency_key,
    checked_scope,
)
from mnemic.service.question import arms_at_hand, arms_for
from mnemic.service.record_procedure import PROCEDURE, checked_steps
from mnemic.service.rights import require_write
from mnemic.service.tools import Tools
from mnemic.service.triggers import matching
from mnemic.service.weighing import Weighing
from mnemic.service.witness import Write, committed, land_and_show, land_once, request_digest
from mnemic.store.embedding_models import RegisteredModel
from mnemic.store.retrieval import CandidateQuery
from mnemic.store.statistics import ScopeStatistics
from mnemic.store.tombstones import procedure_mark
from mnemic.store.unit import Unit
from mnemic.store.wording import stems_of

__all__ = ["best_procedure", "match_procedures", "record_outcome", "update_steps"]

PATTERNS_MAX = 500
CANDIDATES_MAX = 50
CONDITIONS_CACHED_MAX = 1_024
NOTE_CHARS_MAX = 2_000
TRIGGER_BONUS = 1.0
READY_BONUS = 0.2
# Below this score, without a common word, two texts share nothing but their language.
LIKE_MIN = 0.25


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
    checked_scope(scope)
    search = _Search(tools, scope, text, stems_of(text), limit)
    done = await tools.transact(scope.tenant.id, search.first, read_only=True)
    if isinstance(done, list):
        return done
    words, statistics = await respelt(tools, scope, done.words, done.statistics)
    arms, model = await arms_for(tools, words, statistics, scope)
    learnt = replace(done, words=words, statistics=statistics)
    return await tools.transact(
        scope.tenant.id, lambda unit: search.choose(unit, learnt, arms, model), read_only=True
    )


@dataclass(frozen=True, slots=True)
class _Learnt:
    """What the scope tells of the question before anything is looked for."""

    words: QueryWords
    statistics: ScopeStatistics
    asked: _Asked


@dataclass(frozen=True, slots=True)
class _Search:
    """The steps of `match_procedures`, in one unit or in two."""

    tools: Tools
    scope: Scope
    text: str
    stems: tuple[str, ...]
    limit: int

    async def first(self, unit: Unit) -> list[Procedure] | _Learnt:
        """The answer, if the vector of the text is known already; else what is learnt so far.

        The embedder is never waited for with a connection in hand.
        """
        learnt = await self._learn(unit)
        at_hand = arms_at_hand(self.tools, learnt.words, learnt.statistics, self.scope)
        return learnt if at_hand is None else await self.choose(unit, learnt, *at_hand)

    async def _learn(self, unit: Unit) -> _Learnt:
        statistics = await unit.statistics.read(self.scope, list(dict.fromkeys(self.stems)))
        patterns = await unit.procedures.triggers(self.scope, limit=PATTERNS_MAX)
        matched = matching([pattern for _, pattern in patterns], self.text)
        return _Learnt(
            words_asked(self.tools, self.text, statistics),
            statistics,
            _Asked(frozenset(self.stems), frozenset(patterns[place][0] for place in matched)),
        )

    async def choose(
        self, unit: Unit, learnt: _Learnt, arms: CandidateQuery, model: RegisteredModel | None
    ) -> list[Procedure]:
        """The procedures that fit, the best first."""
        found = await unit.retrieval.procedures(self.scope, arms)
        candidates = [candidate for candidate, _ in found]
        scale = scale_of(self.tools, model)
        scored = Weighing(self.tools, learnt.words, learnt.statistics, scale).all(candidates)
        learnt.asked.like(scored[:CANDIDATES_MAX])
        # Only those that may be among the answers are read as a whole: the best by what they are
        # weighed by, and those of which no more is known than that their trigger matches.
        known = {candidate.id: standing for candidate, standing in found}
        asked = learnt.asked
        wanted = [*asked.best(known, self.limit), *(asked.triggered - known.keys())]
        rows = await unit.procedures.by_ids(self.scope, wanted) if wanted else []
        whole: dict[UUID, Procedure] = {one.id: one for one in rows}
        return [whole[identity] for identity in asked.best(whole, self.limit)]


class _Asked:
    """What was asked, as far as it weighs procedures: how well each fits."""

    def __init__(self, stems: frozenset[str], triggered: frozenset[UUID]) -> None:
        self.triggered = triggered
        self._stems = stems
        self._scores: dict[UUID, float] = {}

    def like(self, scored: Sequence[Scored]) -> None:
        """These are as like to what was asked as they score, those with a trigger more so."""
        self._scores = {
            one.candidate.id: one.score
            for one in scored
            if one.score >= 0.0 and (one.parts.lex[one.place] > 0 or one.score > LIKE_MIN)
        }
        for identity in self.triggered:
            self._scores[identity] = self._scores.get(identity, 0.0) + TRIGGER_BONUS

    def best(self, known: Mapping[UUID, Standing | Procedure], limit: int) -> list[UUID]:
        """Those that fit, the best first; of equals the lower id."""
        fit: list[tuple[float, UUID]] = []
        for identity, score in self._scores.items():
            one = known.get(identity)
            if one is None or (one.avoid_conditions and _avoided(one, self._stems)):
                continue
            ready = _readiness(one, self._stems) if one.preconditions else 1.0
            fit.append((-score * _weight(one) * ready, identity))
        fit.sort()
        return [identity for _, identity in fit[:limit]]


def _avoided(procedure: Standing | Procedure, words: frozenset[str]) -> bool:
    return any(_holds(one, words) for one in procedure.avoid_conditions)


def _readiness(procedure: Standing | Procedure, words: frozenset[str]) -> float:
    """1 to 1 + `READY_BONUS`, by the share of the preconditions that are told to hold.

    What is not told may hold all the same, so that nothing is left out for it.
    """
    told = [_holds(one, words) for one in procedure.preconditions]
    return 1.0 + READY_BONUS * sum(told) / len(told)


def _holds(condition: str, words: frozenset[str]) -> bool:
    stems = _stems_of(condition)
    return bool(stems) and stems <= words


@lru_cache(maxsize=CONDITIONS_CACHED_MAX)
def _stems_of(condition: str) -> frozenset[str]:
    return frozenset(stems_of(condition))


def _weight(procedure: Standing | Procedure) -> float:
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

    The same idempotency key gives it again as it was then, until it is forgotten.
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
    return await land_and_show(tools, write, land, PROCEDURE, scope=scope)
