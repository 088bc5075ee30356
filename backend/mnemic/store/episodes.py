"""Experiences."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.model.episode import Episode, EpisodeId, Outcome
from mnemic.model.normalise import digest
from mnemic.model.scope import MemoryScope, Scope
from mnemic.model.trust import Trust
from mnemic.store.columns import wording_values
from mnemic.store.statement import Statement
from mnemic.store.tombstones import episode_mark
from mnemic.store.wording import words_of

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["EpisodeStore", "episode_text"]

ADD = Statement("""
    INSERT INTO mnemic.episodes (tenant_id, id, scope_id, project_id, agent_type_id,
                                 agent_instance_id, session_id, task_type, task_description,
                                 actions, context_summary, outcome, outcome_details,
                                 duration_seconds, tokens_used, lessons_learned, importance_score,
                                 occurred_at, title, summary, key_topics, user_intents, tools_used,
                                 agents_used, message_count, started_at, ended_at, content_digest,
                                 metadata, tags, trust, source, recorded_at, updated_at, stems,
                                 stem_count, word_count, tsv)
    VALUES (:tenant, :id, :scope, :project, :agent_type, :agent_instance, :session, :task_type,
            :task_description, :actions, :context_summary, CAST(:outcome AS mnemic.outcome),
            :outcome_details, :duration_seconds, :tokens_used, :lessons_learned, :importance_score,
            :occurred_at, :title, :summary, :key_topics, :user_intents, :tools_used, :agents_used,
            :message_count, :started_at, :ended_at, :content_digest, :metadata, :tags, :trust,
            :source, :recorded_at, :recorded_at, :stems, :stem_count, :word_count,
            CAST(CAST(:tsv AS text) AS tsvector))
""")

# What an episode is made of: its words are as long as itself, and nobody asks for them.
COLUMNS = (
    *("id", "scope_id", "title", "summary", "key_topics", "user_intents", "tools_used"),
    *("agents_used", "task_type", "task_description", "outcome", "outcome_details"),
    *("actions", "context_summary", "lessons_learned", "duration_seconds", "tokens_used"),
    *("importance_score", "message_count", "started_at", "ended_at", "occurred_at"),
    *("recorded_at", "session_id", "trust", "source", "metadata", "tags"),
)
_COLUMNS = ", ".join(f"e.{name}" for name in COLUMNS)

BY_IDS = Statement(f"""
    SELECT {_COLUMNS} FROM mnemic.episodes e
     WHERE {{keyed:e}} AND e.id = ANY(CAST(:ids AS uuid[]))
""")

# One statement for every way of browsing; what is not asked for is null.
BROWSE = Statement(f"""
    SELECT {_COLUMNS} FROM mnemic.episodes e
     WHERE {{owned:e}} AND e.archived_at IS NULL
       AND (CAST(:since AS timestamptz) IS NULL OR e.occurred_at >= :since)
       AND (CAST(:outcome AS text) IS NULL OR e.outcome = CAST(:outcome AS mnemic.outcome))
       AND (CAST(:task_type AS text) IS NULL OR e.task_type = :task_type)
     ORDER BY e.occurred_at DESC, e.id DESC
     LIMIT :limit
""")

HOLD = Statement(f"""
    SELECT {_COLUMNS} FROM mnemic.episodes e WHERE {{keyed:e}} AND e.id = :id FOR SHARE
""")

SET_IMPORTANCE = Statement("""
    UPDATE mnemic.episodes e SET importance_score = :score, updated_at = :now
     WHERE {tenant:e} AND e.id = :id
""")

# What was worded without what is forgotten now; the rest of the row is nobody's words.
REWORD = Statement("""
    UPDATE mnemic.episodes e
       SET title = :title, summary = :summary, task_description = :task_description,
           key_topics = :key_topics, user_intents = :user_intents, tools_used = :tools_used,
           agents_used = :agents_used, lessons_learned = :lessons_learned,
           message_count = :message_count, started_at = :started_at, ended_at = :ended_at,
           occurred_at = :occurred_at, duration_seconds = :duration_seconds,
           content_digest = :content_digest, updated_at = :now, needs_vector = true,
           stems = :stems, stem_count = :stem_count, word_count = :word_count,
           tsv = CAST(CAST(:tsv AS text) AS tsvector)
     WHERE {tenant:e} AND e.scope_id = :scope AND e.id = :id
""")

OF_SCOPE = Statement("""
    SELECT e.id, e.summary FROM mnemic.episodes e
     WHERE {tenant:e} AND e.scope_id = :scope ORDER BY e.id FOR UPDATE
""")

LIFT = Statement("""
    UPDATE mnemic.episodes e SET scope_id = :parent, stats_counted = false, updated_at = :now
     WHERE {tenant:e} AND e.scope_id = :session AND e.id = ANY(CAST(:ids AS uuid[]))
""")

_WORDING = frozenset(
    {
        *("id", "scope", "title", "summary", "task_description", "key_topics", "user_intents"),
        *("tools_used", "agents_used", "lessons_learned", "message_count", "started_at"),
        *("ended_at", "occurred_at", "duration_seconds", "content_digest"),
    }
)


def episode_text(title: str, summary: str, key_topics: Sequence[str]) -> str:
    """What is embedded and searched of an episode."""
    topics = f" ({', '.join(key_topics)})" if key_topics else ""
    return f"{title}. {summary}{topics}"


class EpisodeStore:
    """Appends episodes and finds them again. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, scope: Scope, episode: Episode) -> None:
        """The episode stands in `scope`. Raises `Conflict` if the session has one already."""
        words = words_of(episode_text(episode.title, episode.summary, episode.key_topics))
        await self._unit.execute(ADD, **_values(scope, episode), **wording_values(words))

    async def by_ids(self, scope: Scope, ids: Sequence[UUID]) -> list[Episode]:
        """The episodes among `ids` that are visible from `scope`, in no order."""
        rows = await self._unit.fetch(BY_IDS, scopes=scope.visible_ids, ids=list(ids))
        return [episode_of(row) for row in rows]

    async def hold(self, scope: Scope, identity: UUID) -> Episode | None:
        """The episode if it is visible from `scope`; until the unit ends it stays as it is."""
        row = await self._unit.fetch_one(HOLD, scopes=scope.visible_ids, id=identity)
        return None if row is None else episode_of(row)

    async def browse(
        self,
        scope: Scope,
        *,
        limit: int,
        since: datetime | None = None,
        outcome: Outcome | None = None,
        task_type: str | None = None,
    ) -> list[Episode]:
        """Episodes visible from `scope`, the newest first, of the outcome and type asked for."""
        rows = await self._unit.fetch(
            BROWSE,
            scopes=scope.visible_ids,
            limit=limit,
            since=since,
            outcome=outcome.value if outcome else None,
            task_type=task_type,
        )
        return [episode_of(row) for row in rows]

    async def set_importance(self, episode: Episode, score: float, *, now: datetime) -> None:
        """The episode, whose own row was read in this unit, has this importance."""
        await self._unit.execute(SET_IMPORTANCE, id=episode.id, score=score, now=now)

    async def reword(self, scope: Scope, episode: Episode, *, now: datetime) -> None:
        """The episode of exactly this scope, whose row is held, has these words.

        They are to be counted and have no vector yet.
        """
        values = {
            name: value for name, value in _values(scope, episode).items() if name in _WORDING
        }
        words = words_of(episode_text(episode.title, episode.summary, episode.key_topics))
        await self._unit.statistics.uncount("episode", episode.id)
        await self._unit.vectors.drop("episode", [episode.id], now=None)
        await self._unit.execute(REWORD, **values, **wording_values(words), now=now)

    async def lift(self, scope: Scope, *, parent: Scope, now: datetime) -> int:
        """The episodes of a session's scope stand in its parent's; how many moved.

        One that the parent retracted stays behind.
        """
        rows = await self._unit.fetch(OF_SCOPE, scope=scope.id)
        marks = {row["id"]: episode_mark(row["summary"]) for row in rows}
        refused = await self._unit.tombstones.refused(parent, sorted(set(marks.values())))
        ids = [one for one, mark in marks.items() if mark not in refused]
        return await self._unit.execute(LIFT, session=scope.id, parent=parent.id, ids=ids, now=now)


def _level(scope: Scope, level: MemoryScope) -> UUID | None:
    found = scope.ancestor(level)
    return found.id if found else None


def _values(scope: Scope, episode: Episode) -> dict[str, object]:
    return {
        "id": episode.id,
        "scope": scope.id,
        "project": _level(scope, MemoryScope.PROJECT),
        "agent_type": _level(scope, MemoryScope.AGENT_TYPE),
        "agent_instance": _level(scope, MemoryScope.AGENT_INSTANCE),
        "session": episode.session_id,
        "task_type": episode.task_type,
        "task_description": episode.task_description,
        "actions": list(episode.actions),
        "context_summary": episode.context_summary,
        "outcome": episode.outcome.value,
        "outcome_details": episode.outcome_details,
        "duration_seconds": episode.duration_seconds,
        "tokens_used": episode.tokens_used,
        "lessons_learned": list(episode.lessons_learned),
        "importance_score": episode.importance_score,
        "occurred_at": episode.occurred_at,
        "title": episode.title,
        "summary": episode.summary,
        "key_topics": list(episode.key_topics),
        "user_intents": list(episode.user_intents),
        "tools_used": list(episode.tools_used),
        "agents_used": list(episode.agents_used),
        "message_count": episode.message_count,
        "started_at": episode.started_at,
        "ended_at": episode.ended_at,
        "content_digest": digest(episode.task_type, episode.title, episode.summary),
        "metadata": episode.metadata,
        "tags": list(episode.tags),
        "trust": int(episode.trust),
        "source": episode.source,
        "recorded_at": episode.recorded_at,
    }


def episode_of(row: Any) -> Episode:
    """The value of a row of `episodes`."""
    return Episode(
        id=EpisodeId(row["id"]),
        scope_id=row["scope_id"],
        title=row["title"],
        summary=row["summary"],
        key_topics=tuple(row["key_topics"]),
        user_intents=tuple(row["user_intents"]),
        tools_used=tuple(row["tools_used"]),
        agents_used=tuple(row["agents_used"]),
        task_type=row["task_type"],
        task_description=row["task_description"],
        outcome=Outcome(row["outcome"]),
        outcome_details=row["outcome_details"],
        actions=tuple(row["actions"]),
        context_summary=row["context_summary"],
        lessons_learned=tuple(row["lessons_learned"]),
        duration_seconds=row["duration_seconds"],
        tokens_used=row["tokens_used"],
        importance_score=row["importance_score"],
        message_count=row["message_count"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        occurred_at=row["occurred_at"],
        recorded_at=row["recorded_at"],
        session_id=row["session_id"],
        trust=Trust(row["trust"]),
        source=row["source"],
        metadata=row["metadata"],
        tags=tuple(row["tags"]),
    )
