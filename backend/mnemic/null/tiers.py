"""The tiers of a scope that holds nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Unpack
from uuid import UUID

from mnemic.errors import NotFound
from mnemic.model.episode import Episode, EpisodeCreate, EpisodeId, Outcome
from mnemic.model.fact import Fact, FactCreate, FactId
from mnemic.model.procedure import Procedure, ProcedureCreate, ProcedureId, Step
from mnemic.model.scope import Scope
from mnemic.model.working import TaskState, WorkingCheckpoint, WorkingRecord, WorkingStatus
from mnemic.service.memory_input import MemoryOptions
from mnemic.tier.episodic import EpisodicMemory
from mnemic.tier.procedural import ProceduralMemory
from mnemic.tier.semantic import SemanticMemory
from mnemic.tier.tiers import Tiers
from mnemic.tier.working import WorkingMemory

__all__ = ["NOBODY", "NullTiers"]

NOBODY = UUID(int=0)
NEVER = datetime(1, 1, 2, tzinfo=UTC)


class NullWorking(WorkingMemory):
    """Holds nothing."""

    def __init__(self) -> None:
        """Nothing to hold."""

    async def set(self, key: str, value: Any, *given: Any, **options: Any) -> None:
        """Nothing is held."""

    async def get(self, key: str, default: Any = None) -> Any:
        """The default."""
        del key
        return default

    async def delete(self, key: str) -> bool:
        """There was no such key."""
        del key
        return False

    async def exists(self, key: str) -> bool:
        """There is no such key."""
        del key
        return False

    async def list_keys(self, pattern: str = "*") -> list[str]:
        """None."""
        del pattern
        return []

    async def get_all(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    async def clear(self) -> int:
        """None."""
        return 0

    async def set_task_state(self, state: TaskState) -> None:
        """Nothing is held."""

    async def get_task_state(self) -> TaskState | None:
        """None."""
        return None

    async def append_scratchpad(self, content: str) -> None:
        """Nothing is held."""

    async def get_scratchpad(self) -> list[str]:
        """None."""
        return []

    async def create_checkpoint(self) -> str:
        """The id of a checkpoint that holds nothing."""
        return str(NOBODY)

    async def restore_checkpoint(self, checkpoint_id: str) -> None:
        """Nothing is restored; an id that `create_checkpoint` did not give raises `NotFound`."""
        if checkpoint_id != str(NOBODY):
            raise NotFound("No such checkpoint in this scope.")

    async def checkpoints(self) -> list[WorkingCheckpoint]:
        """None."""
        return []

    async def record(self) -> WorkingRecord:
        """Nothing."""
        return WorkingRecord(values={}, task_state=None, scratchpad=())

    async def status(self) -> WorkingStatus:
        """Nowhere, and degraded: nothing is kept."""
        return WorkingStatus(place="null", degraded=True, epoch=0)


class NullEpisodic(EpisodicMemory):
    """Holds no episode."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def record_episode(
        self, episode: EpisodeCreate, *, idempotency_key: str | None = None, lift: bool = False
    ) -> Episode:
        """The episode as it was told; it is not kept."""
        del idempotency_key, lift
        return Episode(
            id=EpisodeId(NOBODY),
            scope_id=self._scope.id,
            title=episode.task_description[:100],
            summary=episode.context_summary or episode.task_description,
            key_topics=(),
            user_intents=(),
            tools_used=(),
            agents_used=(),
            task_type=episode.task_type,
            task_description=episode.task_description,
            outcome=episode.outcome or Outcome.SUCCESS,
            outcome_details=episode.outcome_details,
            actions=episode.actions,
            context_summary=episode.context_summary,
            lessons_learned=episode.lessons_learned,
            duration_seconds=episode.duration_seconds,
            tokens_used=episode.tokens_used,
            importance_score=episode.importance_score or 0.0,
            message_count=0,
            started_at=None,
            ended_at=None,
            occurred_at=episode.occurred_at,
            recorded_at=episode.occurred_at,
            session_id=None,
            trust=episode.trust,
            source=episode.source,
            metadata=episode.metadata,
            tags=episode.tags,
        )

    async def search_similar(self, query: str, limit: int = 10) -> list[Episode]:
        """None."""
        del query, limit
        return []

    async def get_recent(self, limit: int = 10, since: datetime | None = None) -> list[Episode]:
        """None."""
        del limit, since
        return []

    async def get_by_outcome(self, outcome: Outcome, limit: int = 10) -> list[Episode]:
        """None."""
        del outcome, limit
        return []

    async def get_by_task_type(self, task_type: str, limit: int = 10) -> list[Episode]:
        """None."""
        del task_type, limit
        return []

    async def update_importance(
        self, episode_id: UUID, score: float, *, idempotency_key: str | None = None
    ) -> None:
        """Raises `NotFound`."""
        del score, idempotency_key
        raise NotFound("No such episode in this scope.", id=episode_id)

    async def summarize_episodes(self, episode_ids: list[UUID]) -> str:
        """Raises `NotFound`."""
        raise NotFound("No such episode in this scope.", ids=episode_ids)


class NullSemantic(SemanticMemory):
    """Holds no fact."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def store_fact(self, fact: FactCreate, **options: Unpack[MemoryOptions]) -> Fact:
        """The fact as it was told; it is not kept."""
        del options
        return Fact(
            id=FactId(NOBODY),
            scope_id=self._scope.id,
            subject=fact.subject,
            predicate=fact.predicate,
            object=fact.object,
            content=fact.content or f"{fact.subject} {fact.predicate} {fact.object}",
            category=fact.category or "general",
            confidence=fact.confidence,
            reinforcement_count=1,
            first_learned=fact.valid_from or NEVER,
            last_reinforced=fact.valid_from or NEVER,
            valid_from=fact.valid_from,
            valid_to=fact.valid_to,
            recorded_at=fact.valid_from or NEVER,
            retired_at=None,
            status="forgotten",
            pinned=False,
            trust=fact.trust,
            source=fact.source,
            metadata=fact.metadata,
            tags=fact.tags,
        )

    async def search_facts(self, query: str, limit: int = 10, **moment: Any) -> list[Fact]:
        """None."""
        del query, limit, moment
        return []

    async def get_by_entity(self, entity: str, limit: int = 20, **moment: Any) -> list[Fact]:
        """None."""
        del entity, limit, moment
        return []

    async def reinforce_fact(self, fact_id: UUID, *, idempotency_key: str | None = None) -> Fact:
        """Raises `NotFound`."""
        del idempotency_key
        raise NotFound("No such fact in this scope.", id=fact_id)

    async def deprecate_fact(
        self, fact_id: UUID, reason: str, *, idempotency_key: str | None = None
    ) -> None:
        """Raises `NotFound`."""
        del reason, idempotency_key
        raise NotFound("No such fact in this scope.", id=fact_id)

    async def extract_facts_from_episode(self, episode: Episode) -> list[Fact]:
        """None."""
        del episode
        return []

    async def resolve_conflict(
        self, fact_ids: list[UUID], *, idempotency_key: str | None = None
    ) -> Fact:
        """Raises `NotFound`."""
        del idempotency_key
        raise NotFound("Not all of these facts are live in this scope.", ids=fact_ids)

    async def verify_fact(self, fact_id: UUID, *, idempotency_key: str | None = None) -> Fact:
        """Raises `NotFound`."""
        del idempotency_key
        raise NotFound("No such fact in this scope.", id=fact_id)

    async def add_alias(self, name: str, alias: str, *, idempotency_key: str | None = None) -> None:
        """Nothing is kept."""

    async def remove_alias(
        self, name: str, alias: str, *, idempotency_key: str | None = None
    ) -> None:
        """Raises `NotFound`."""
        del name, alias, idempotency_key
        raise NotFound("No such alias of this name in this scope.")


class NullProcedural(ProceduralMemory):
    """Holds no procedure."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def record_procedure(
        self,
        procedure: ProcedureCreate,
        *,
        idempotency_key: str | None = None,
        lift: bool = False,
    ) -> Procedure:
        """The procedure as it was told; it is not kept."""
        del idempotency_key, lift
        return Procedure(
            id=ProcedureId(NOBODY),
            scope_id=self._scope.id,
            name=procedure.name,
            task_type=procedure.task_type,
            trigger_pattern=procedure.trigger_pattern,
            steps=procedure.steps,
            version=1,
            preconditions=procedure.preconditions,
            avoid_conditions=procedure.avoid_conditions,
            success_count=0,
            failure_count=0,
            last_used=None,
            recorded_at=NEVER,
            trust=procedure.trust,
            source=procedure.source,
            metadata=procedure.metadata,
            tags=procedure.tags,
        )

    async def find_matching(self, context: str, limit: int = 5) -> list[Procedure]:
        """None."""
        del context, limit
        return []

    async def record_outcome(
        self,
        procedure_id: UUID,
        success: bool,  # noqa: FBT001 - the plan's own signature
        *,
        note: str | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """Raises `NotFound`."""
        del success, note, idempotency_key
        raise NotFound("No such procedure in this scope.", id=procedure_id)

    async def get_best_procedure(self, task_type: str) -> Procedure | None:
        """None."""
        del task_type
        return None

    async def update_steps(
        self, procedure_id: UUID, steps: list[Step], *, idempotency_key: str | None = None
    ) -> Procedure:
        """Raises `NotFound`."""
        del steps, idempotency_key
        raise NotFound("No such procedure in this scope.", id=procedure_id)


class NullTiers(Tiers):
    """The tiers of a scope that holds nothing."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.working = NullWorking()
        self.episodic = NullEpisodic(scope)
        self.semantic = NullSemantic(scope)
        self.procedural = NullProcedural(scope)
