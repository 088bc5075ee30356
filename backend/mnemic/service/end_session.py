"""End a session: one episode, exactly once, whatever is retried, killed or concurrent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

import structlog

from mnemic.errors import Conflict, Unavailable
from mnemic.model.embedding import Vector
from mnemic.model.episode import Episode, EpisodeDraft, EpisodeId, Outcome
from mnemic.model.receipt import Durability, Receipt, VectorState
from mnemic.model.scope import Scope
from mnemic.model.session import Session, SessionState
from mnemic.model.trust import Trust, derived_trust
from mnemic.model.turn import Turn
from mnemic.model.working import WorkingRecord
from mnemic.service.novelty import with_novelty
from mnemic.service.parsing import session_scope
from mnemic.service.sessions import turns_of
from mnemic.service.thinking import summarise
from mnemic.service.tools import Tools
from mnemic.service.working import read_working
from mnemic.store.episodes import episode_text
from mnemic.store.guards import AuditEntry
from mnemic.store.unit import Unit
from mnemic.think import SessionRecord

__all__ = ["end_session", "episode_id_of"]

log = structlog.get_logger("mnemic")

ATTEMPTS_MAX = 5


@dataclass(frozen=True, slots=True)
class _Read:
    session: Session
    turns: list[Turn]
    working: WorkingRecord | None = None


def episode_id_of(scope: Scope) -> EpisodeId:
    """The id of the episode that the session of `scope` becomes; known before it exists."""
    return EpisodeId(uuid5(scope.id, "episode"))


async def end_session(
    tools: Tools, *, scope: Scope, outcome: Outcome | None = None
) -> Receipt | None:
    """The session is over; what it held stands in the scope above it, with one episode.

    Turns, facts, episodes and procedures of the session move to the parent scope, where later
    sessions see them. Ending it again gives the same receipt with `created` false; a session in
    which nothing was said ends without an episode (nothing is returned). Raises `NotFound`.
    """
    session_scope(scope)
    for _ in range(ATTEMPTS_MAX):
        read = await _read(tools, scope)
        if read.session.state is SessionState.ENDED:
            ended = read.session.episode_id
            return _receipt(ended, VectorState.NONE, created=False) if ended else None
        episode, vector = await _think(tools, scope, read, outcome)
        try:
            await _land(tools, scope, read, episode, vector, outcome)
        except _Overtaken:
            continue
        if episode is None:
            return None
        state = VectorState.READY if vector is not None else VectorState.PENDING
        return _receipt(episode.id, state, created=True)
    raise Conflict("The session is still being written to; end it when the writers are done.")


class _Overtaken(Exception):
    """Turns came or were forgotten, or the session ended, while the Thinker was thinking."""


async def _read(tools: Tools, scope: Scope) -> _Read:
    async def load(unit: Unit) -> _Read:
        session = await unit.sessions.get(scope)
        if session.state is SessionState.ENDED:
            return _Read(session, [])
        return _Read(session, await turns_of(unit, scope, scope.id))

    read = await tools.transact(scope.tenant.id, load, read_only=True)
    if read.session.state is SessionState.ENDED:
        return read
    return replace(read, working=await _working_of(tools, scope))


async def _working_of(tools: Tools, scope: Scope) -> WorkingRecord | None:
    """What the session worked with; nothing while its place is away: the episode does without."""
    try:
        return await read_working(tools.working, scope)
    except Unavailable as fault:
        log.warning("working_memory_not_read", session=str(scope.id), reason=str(fault))
        return None


async def _think(
    tools: Tools, scope: Scope, read: _Read, outcome: Outcome | None
) -> tuple[Episode | None, Vector | None]:
    record = _record(read, outcome)
    if not record.turns and not record.task and not record.scratchpad:
        return None, None
    draft = await summarise(tools, record)
    episode = _episode(scope, read, draft, tools.now())
    vectors = await tools.vectors(
        [episode_text(episode.title, episode.summary, episode.key_topics)]
    )
    weighed = await with_novelty(tools, episode.importance_score, vectors, scope=_above(scope))
    return replace(episode, importance_score=weighed), vectors[0] if vectors else None


def _record(read: _Read, outcome: Outcome | None) -> SessionRecord:
    """The session as the Thinker is told it: what was said, and what was held while working."""
    held = read.working
    state = held.task_state if held else None
    task = None
    if state is not None:
        step = None if state.current_step is None else str(state.current_step)
        task = state.description or step
    return SessionRecord(
        turns=tuple(read.turns),
        task=task,
        status=state.status if state else None,
        scratchpad=held.scratchpad if held else (),
        outcome_hint=outcome,
    )


def _episode(scope: Scope, read: _Read, draft: EpisodeDraft, now: datetime) -> Episode:
    times = [turn.occurred_at for turn in read.turns] or [read.session.started_at, now]
    metadata: dict[str, Any] = {"session": scope.name}
    return Episode(
        id=episode_id_of(scope),
        scope_id=_above(scope).id,
        title=draft.title,
        summary=draft.summary,
        key_topics=draft.key_topics,
        user_intents=draft.user_intents,
        tools_used=draft.tools_used,
        agents_used=draft.agents_used,
        task_type="conversation",
        task_description=draft.title,
        outcome=draft.outcome,
        outcome_details=None,
        actions=(),
        context_summary=None,
        lessons_learned=draft.lessons_learned,
        duration_seconds=(max(times) - min(times)).total_seconds(),
        tokens_used=None,
        importance_score=draft.importance_score,
        message_count=len(read.turns),
        started_at=min(times),
        ended_at=max(times),
        occurred_at=min(times),
        recorded_at=now,
        session_id=scope.id,
        trust=derived_trust([Trust.INFERRED, *(turn.trust for turn in read.turns)]),
        source="session_end",
        metadata=metadata,
    )


def _above(scope: Scope) -> Scope:
    """The scope that outlives the session."""
    parent = scope.parent
    if parent is None:
        raise AssertionError(scope)
    return parent


async def _land(
    tools: Tools,
    scope: Scope,
    read: _Read,
    episode: Episode | None,
    vector: Vector | None,
    outcome: Outcome | None,
) -> None:
    model = await tools.live_model() if vector is not None else None
    now = tools.now()
    parent = _above(scope)

    async def land(unit: Unit) -> None:
        session = await unit.sessions.lock(scope)
        if session.state is SessionState.ENDED or session.turn_count != read.session.turn_count:
            raise _Overtaken
        await unit.lifting.facts(scope, parent=parent, now=now)
        await unit.episodes.lift(scope, parent=parent, now=now)
        await unit.procedures.lift(scope, parent=parent, now=now)
        # Waits for whoever is forgetting one of them: its text must not stand in the episode.
        if await unit.turns.lift(scope, parent=parent) < len(read.turns):
            raise _Overtaken
        await unit.vectors.lift(scope, parent=parent)
        await unit.statistics.drop(scope)
        await tools.working.drop_rows(unit, scope)
        if episode is not None:
            await unit.episodes.add(parent, replace(episode, recorded_at=now))
            if vector is not None and model is not None:
                await unit.vectors.put("episode", [(episode.id, vector)], model=model.id)
        await unit.sessions.end(
            scope,
            at=max(now, session.started_at),
            now=now,
            episode_id=episode.id if episode else None,
            outcome=episode.outcome if episode else outcome,
        )
        entry = AuditEntry(
            id=tools.new_id(),
            action="session.end",
            subject_kind="session",
            subject_id=scope.id,
        )
        await unit.guards.audit(scope, entry, now=now)

    await tools.transact(scope.tenant.id, land)
    try:
        await tools.working.drop_rest(scope)
    except Unavailable as fault:
        log.warning("working_memory_not_dropped", session=str(scope.id), reason=str(fault))


def _receipt(identity: UUID, vector: VectorState, *, created: bool) -> Receipt:
    return Receipt(
        id=identity,
        kind="episode",
        version=1,
        durability=Durability.COMMITTED,
        vector=vector,
        created=created,
    )
