"""The front door to nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Self, Unpack
from uuid import UUID

from mnemic.errors import NotFound
from mnemic.manager import MemoryManager
from mnemic.model.cache_counts import CacheCounts
from mnemic.model.context import Context, ContextForm
from mnemic.model.episode import Outcome
from mnemic.model.explanation import Explanation, WhyNot
from mnemic.model.fact import FactCreate
from mnemic.model.recall import Recall
from mnemic.model.receipt import Durability, Receipt, VectorState
from mnemic.model.scope import Scope
from mnemic.model.session import Session, SessionState
from mnemic.model.turn import TurnCreate
from mnemic.null.tiers import NEVER, NOBODY, NullTiers
from mnemic.service.context import checked_budget, checked_form
from mnemic.service.forget import Forgotten
from mnemic.service.ingest import IngestReport
from mnemic.service.maintain import MaintenanceReport
from mnemic.service.memory_input import MemoryOptions
from mnemic.service.promote import Change
from mnemic.settings import MemorySettings
from mnemic.tier.grants import Grants
from mnemic.tier.lifecycle import Lifecycle
from mnemic.tier.maintenance import Maintenance
from mnemic.tier.sessions import Sessions
from mnemic.tier.transcripts import Transcripts

__all__ = ["NullMemoryManager"]

NOTHING = "memory is switched off"
_KINDS = {"semantic": "fact", "episodic": "episode", "procedural": "procedure"}


def _receipt(kind: str) -> Receipt:
    return Receipt(
        id=NOBODY,
        kind=kind,
        version=0,
        durability=Durability.NONE,
        vector=VectorState.NONE,
        created=False,
    )


def _session(scope: Scope, state: SessionState) -> Session:
    return Session(
        id=scope.id,
        scope_id=scope.id,
        name=scope.name,
        state=state,
        started_at=NEVER,
        last_active_at=NEVER,
        ended_at=None,
        episode_id=None,
        turn_count=0,
    )


class NullSessions(Sessions):
    """Sessions of which nothing is kept."""

    def __init__(self) -> None:
        """Nothing to keep."""

    async def start(self, *, scope: Scope) -> Session:
        """Active."""
        return _session(scope, SessionState.ACTIVE)

    async def append(
        self,
        turns: Sequence[TurnCreate],
        *,
        scope: Scope,
        idempotency_key: str | None = None,
    ) -> list[Receipt]:
        """Nothing is kept; one receipt each that says so."""
        del scope, idempotency_key
        return [_receipt("turn") for _ in turns]

    async def pause(self, *, scope: Scope) -> Session:
        """Paused."""
        return _session(scope, SessionState.PAUSED)

    async def resume(self, *, scope: Scope) -> Session:
        """Active."""
        return _session(scope, SessionState.ACTIVE)

    async def end(self, *, scope: Scope, outcome: Outcome | str | None = None) -> Receipt | None:
        """No episode."""
        del scope, outcome
        return None


class NullLifecycle(Lifecycle):
    """Hooks that do nothing."""

    def __init__(self) -> None:
        """Nothing to do."""

    async def spawn(self, *, scope: Scope, task: str, budget: int | str | None = None) -> Context:
        """An empty section."""
        del scope, task
        return _nothing(budget)

    async def pause(self, *, scope: Scope) -> str:
        """The id of a checkpoint that holds nothing."""
        return await NullTiers(scope).working.create_checkpoint()

    async def resume(self, *, scope: Scope, checkpoint_id: str | None = None) -> Session:
        """Active."""
        del checkpoint_id
        return _session(scope, SessionState.ACTIVE)

    async def terminate(
        self, *, scope: Scope, outcome: Outcome | str | None = None
    ) -> Receipt | None:
        """No episode."""
        del scope, outcome
        return None


class NullTranscripts(Transcripts):
    """Transcripts of which nothing is kept."""

    def __init__(self) -> None:
        """Nothing to keep."""

    async def ingest(self, entries: Iterable[Any], *, scope: Scope, **options: Any) -> IngestReport:
        """Nothing is read or kept."""
        del entries, scope, options
        return IngestReport(sessions=(), facts_added=0, facts_known=0, problems=(), problem_count=0)


class NullMaintenance(Maintenance):
    """Nothing is ever due."""

    def __init__(self) -> None:
        """Nothing to do."""

    async def end_idle_sessions(self) -> MaintenanceReport:
        """None."""
        return MaintenanceReport(job="end_idle_sessions", tenants=0, done=0, failed=0)

    async def embed_missing(self) -> MaintenanceReport:
        """None."""
        return MaintenanceReport(job="embed_missing", tenants=0, done=0, failed=0)

    async def count_terms(self) -> MaintenanceReport:
        """None."""
        return MaintenanceReport(job="count_terms", tenants=0, done=0, failed=0)

    async def caches(self) -> dict[str, CacheCounts]:
        """Nothing is kept."""
        return dict.fromkeys(("vectors", "recalls", "facts"), CacheCounts())

    async def expire(self) -> MaintenanceReport:
        """None."""
        return MaintenanceReport(job="expire", tenants=0, done=0, failed=0)

    async def promote_vectors(self) -> MaintenanceReport:
        """None."""
        return MaintenanceReport(job="promote_vectors", tenants=0, done=0, failed=0)

    async def promote(self, *, scope: Scope) -> list[Change]:
        """None."""
        del scope
        return []

    async def demote(self, *, scope: Scope) -> list[Change]:
        """None."""
        del scope
        return []

    async def isolate(self, *, scope: Scope, isolation: str) -> int:
        """None."""
        del scope, isolation
        return 0


class NullGrants(Grants):
    """Rights on nothing."""

    def __init__(self) -> None:
        """Nothing to grant."""

    async def allow(self, scope: Scope, *, to: Scope) -> None:
        """Nothing is kept."""

    async def revoke(self, scope: Scope, *, to: Scope) -> bool:
        """There was no such right."""
        del scope, to
        return False


def _nothing(budget: int | str | None, form: ContextForm | str = ContextForm.MARKDOWN) -> Context:
    settings = MemorySettings().context
    return Context(
        budget=checked_budget(budget, settings), form=checked_form(form), degraded=(NOTHING,)
    )


class NullMemoryManager(MemoryManager):
    """Remembers nothing, and says so: receipts of durability "none", answers `degraded`."""

    def __init__(self) -> None:
        """No server is needed."""

    async def start(self) -> Self:
        """Ready at once."""
        return self

    async def close(self) -> None:
        """Nothing is open."""

    async def remember(
        self,
        content: str,
        *,
        scope: Scope,
        memory_type: str = "semantic",
        **options: Unpack[MemoryOptions],
    ) -> Receipt:
        """Nothing is kept; the receipt says so."""
        del content, scope, options
        return _receipt(_KINDS.get(memory_type, memory_type))

    async def store_fact(
        self, fact: FactCreate, *, scope: Scope, **options: Unpack[MemoryOptions]
    ) -> Receipt:
        """Nothing is kept; the receipt says so."""
        del fact, scope, options
        return _receipt("fact")

    async def recall(self, query: str, *, scope: Scope, **options: Any) -> Recall:
        """No hits, of low confidence."""
        del query, scope
        return Recall(
            hits=(),
            confidence=0.0,
            low_confidence=True,
            about_other_actor=False,
            searched=0,
            limit=options.get("limit") or 0,
            took=timedelta(0),
            degraded=(NOTHING,),
            explanation=Explanation(searches=(), arms=()) if options.get("explain") else None,
        )

    async def why_not(self, query: str, memory_id: UUID, *, scope: Scope, **options: Any) -> WhyNot:
        """Raises `NotFound`: there is nothing to find."""
        del query, scope, options
        raise NotFound("There is no memory to find.", id=memory_id)

    async def context(
        self,
        query: str,
        *,
        scope: Scope,
        budget: int | str | None = None,
        form: ContextForm | str = ContextForm.MARKDOWN,
        **moment: Any,
    ) -> Context:
        """An empty section."""
        del query, scope, moment
        return _nothing(budget, form)

    async def tool_affinities(self, scope: Scope) -> dict[str, float]:
        """None is known."""
        del scope
        return {}

    async def forget(self, ids: Sequence[UUID], *, scope: Scope, **options: Any) -> Forgotten:
        """Raises `NotFound`: there is nothing to forget."""
        del scope, options
        raise NotFound("There is no memory to forget.", ids=tuple(ids))

    def at(self, scope: Scope) -> NullTiers:
        """Tiers that hold nothing."""
        return NullTiers(scope)

    @property
    def grants(self) -> Grants:
        """Rights on nothing."""
        return NullGrants()

    @property
    def sessions(self) -> Sessions:
        """Sessions of which nothing is kept."""
        return NullSessions()

    @property
    def lifecycle(self) -> Lifecycle:
        """Hooks that do nothing."""
        return NullLifecycle()

    @property
    def transcripts(self) -> Transcripts:
        """Transcripts of which nothing is kept."""
        return NullTranscripts()

    @property
    def maintenance(self) -> Maintenance:
        """Nothing is ever due."""
        return NullMaintenance()

    @property
    def settings(self) -> MemorySettings:
        """What is set, though nothing asks."""
        return MemorySettings()
