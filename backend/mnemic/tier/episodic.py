"""Episodic memory: what happened, and how it went."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from mnemic.model.episode import Episode, EpisodeCreate, Outcome
from mnemic.model.normalise import clean_name
from mnemic.model.recall import RecallQuery
from mnemic.model.scope import Scope
from mnemic.service.episodes import (
    browse_episodes,
    summarize_episodes,
    update_importance,
)
from mnemic.service.parsing import (
    checked_idempotency_key,
    checked_limit,
    checked_query,
    one_outcome,
)
from mnemic.service.recall import recall
from mnemic.service.record_episode import checked_episode, keep_episode
from mnemic.service.tools import Tools

__all__ = ["EpisodicMemory"]


class EpisodicMemory:
    """The episodes of a scope and of those above it.

    `limit` is 1 to `recall.limit_max`; a larger one is cut to it.
    """

    def __init__(self, tools: Tools, scope: Scope) -> None:
        self._tools = tools
        self._scope = scope

    async def record_episode(
        self, episode: EpisodeCreate, *, idempotency_key: str | None = None, lift: bool = False
    ) -> Episode:
        """The episode as it is kept in this scope.

        Title, topics, outcome and importance are filled in where they are not given. Raises
        `InvalidInput`, `Conflict` for a used key, `Retracted` for what was forgotten here,
        `NotFound` if the key's episode was forgotten since.
        """
        return await keep_episode(
            self._tools,
            checked_episode(self._tools, episode),
            scope=self._scope,
            key=checked_idempotency_key(idempotency_key),
            lift=lift,
        )

    async def search_similar(self, query: str, limit: int = 10) -> list[Episode]:
        """The episodes most like `query` in meaning and words, best first."""
        asked = RecallQuery(
            text=checked_query(query, self._tools.settings.limits),
            limit=self._limit(limit),
            kinds=("episode",),
            floor=0.0,
        )
        found = await recall(self._tools, asked, scope=self._scope)
        return [hit.memory for hit in found.hits if isinstance(hit.memory, Episode)]

    async def get_recent(self, limit: int = 10, since: datetime | None = None) -> list[Episode]:
        """The newest episodes, those before `since` (with a zone) left out."""
        return await browse_episodes(
            self._tools, scope=self._scope, limit=self._limit(limit), since=since
        )

    async def get_by_outcome(self, outcome: Outcome, limit: int = 10) -> list[Episode]:
        """The newest episodes that went that way."""
        return await browse_episodes(
            self._tools,
            scope=self._scope,
            limit=self._limit(limit),
            outcome=one_outcome(outcome),
        )

    async def get_by_task_type(self, task_type: str, limit: int = 10) -> list[Episode]:
        """The newest episodes of that type of task."""
        return await browse_episodes(
            self._tools,
            scope=self._scope,
            limit=self._limit(limit),
            task_type=clean_name(task_type, field="task_type"),
        )

    async def update_importance(
        self, episode_id: UUID, score: float, *, idempotency_key: str | None = None
    ) -> None:
        """The episode matters this much, from 0 to 1. Raises `NotFound`, `Forbidden`."""
        await update_importance(
            self._tools, episode_id, score, scope=self._scope, key=idempotency_key
        )

    async def summarize_episodes(self, episode_ids: list[UUID]) -> str:
        """The episodes in a few sentences and a line each. Raises `NotFound`."""
        return await summarize_episodes(self._tools, episode_ids, scope=self._scope)

    def _limit(self, limit: int) -> int:
        return checked_limit(limit, largest=self._tools.settings.recall.limit_max)[0]
