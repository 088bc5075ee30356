"""Keep an experience as an episode."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from mnemic.errors import InvalidInput
from mnemic.model.episode import Episode, EpisodeCreate, EpisodeDraft, EpisodeId
from mnemic.model.normalise import (
    checked_json,
    checked_time,
    checked_unit,
    clean_name,
    clean_text,
    digest,
    shown,
)
from mnemic.model.receipt import Receipt
from mnemic.model.scope import MemoryScope, Scope
from mnemic.model.turn import Turn, TurnId
from mnemic.service.novelty import with_novelty
from mnemic.service.parsing import (
    TASK_TYPE_CHARS_MAX,
    checked_flag,
    checked_given,
    checked_list,
    checked_metadata,
    checked_outcome,
    checked_scope,
    checked_source,
    checked_tags,
    checked_trust,
)
from mnemic.service.thinking import summarise
from mnemic.service.tools import Tools
from mnemic.service.witness import (
    View,
    Work,
    Write,
    committed,
    land_and_show,
    land_once,
    request_digest,
)
from mnemic.store.episodes import episode_text
from mnemic.store.tombstones import episode_mark
from mnemic.store.unit import Unit
from mnemic.think import SessionRecord

__all__ = ["checked_episode", "keep_episode", "record_episode"]

ITEMS_MAX = 1_000
AMOUNT_MAX = 2**53
ACTIONS_BYTES_MAX = 1_048_576
_ANY_TIME = datetime(1, 1, 1, tzinfo=UTC)


async def _read(unit: Unit, scope: Scope, identity: UUID) -> Episode | None:
    return await unit.episodes.hold(scope, identity)


_EPISODE = View(Episode, _read)


def checked_episode(tools: Tools, given: EpisodeCreate) -> EpisodeCreate:
    """The experience if it can be held. Raises `InvalidInput` that names the field."""
    limits = tools.settings.limits
    longest = limits.text_chars_max
    checked_given(given, EpisodeCreate, field="episode")

    def text(value: str | None, field: str) -> str | None:
        return None if value is None else clean_text(value, field=field, chars_max=longest)

    return replace(
        given,
        task_description=clean_text(
            given.task_description, field="task_description", chars_max=longest
        ),
        task_type=clean_name(given.task_type, field="task_type", chars_max=TASK_TYPE_CHARS_MAX),
        outcome=checked_outcome(given.outcome),
        outcome_details=text(given.outcome_details, "outcome_details"),
        context_summary=text(given.context_summary, "context_summary"),
        occurred_at=checked_time(given.occurred_at, field="occurred_at"),
        actions=_actions(given.actions),
        lessons_learned=tuple(
            clean_text(one, field="lessons_learned", chars_max=longest)
            for one in _few(given.lessons_learned, "lessons_learned")
        ),
        duration_seconds=_amount(given.duration_seconds, "duration_seconds"),
        tokens_used=_whole(_amount(given.tokens_used, "tokens_used"), "tokens_used"),
        importance_score=None
        if given.importance_score is None
        else checked_unit(given.importance_score, field="importance_score"),
        metadata=checked_metadata(given.metadata, limits),
        tags=checked_tags(given.tags, limits),
        trust=checked_trust(given.trust),
        source=checked_source(given.source),
    )


def _actions(values: object) -> tuple[dict[str, Any], ...]:
    actions = checked_json(_few(values, "actions"), field="actions")
    for place, action in enumerate(actions):
        if not isinstance(action, dict):
            raise InvalidInput(
                f"must be an object with text keys, not {type(action).__name__}",
                field=f"actions[{place}]",
            )
    size = len(orjson.dumps(actions))
    if size > ACTIONS_BYTES_MAX:
        raise InvalidInput(
            f"is {size} bytes long; the most is {ACTIONS_BYTES_MAX}. Shorten it", field="actions"
        )
    return tuple(actions)


def _few(values: object, field: str) -> list[Any]:
    return checked_list(values, field=field, items_max=ITEMS_MAX)


def _whole(value: Any, field: str) -> Any:
    if isinstance(value, float) and not value.is_integer():
        raise InvalidInput(f"must be a whole number, not {value!r}", field=field)
    return value if value is None else int(value)


def _amount(value: Any, field: str) -> Any:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(f"must be a number, not {type(value).__name__}", field=field)
    if not 0 <= value <= AMOUNT_MAX:
        raise InvalidInput(f"must lie between 0 and {AMOUNT_MAX}, not {shown(value)}", field=field)
    return value


async def record_episode(
    tools: Tools,
    given: EpisodeCreate,
    *,
    scope: Scope,
    key: str | None = None,
    lift: bool = False,
    notes: tuple[str, ...] = (),
) -> Receipt:
    """The experience, checked before, is an episode of `scope`.

    Title, topics and, unless given, the importance are the Thinker's; the summary is the caller's
    own text. Raises `Retracted` if the same was forgotten here, unless `lift`.
    """
    write, work = await _prepared(tools, given, scope=scope, key=key, lift=lift, notes=notes)
    return await land_once(tools, write, work, scope=scope)


async def keep_episode(
    tools: Tools, given: EpisodeCreate, *, scope: Scope, key: str | None = None, lift: bool = False
) -> Episode:
    """As `record_episode`: the episode as it is kept."""
    write, work = await _prepared(tools, given, scope=scope, key=key, lift=lift)
    return await land_and_show(tools, write, work, _EPISODE, scope=scope)


async def _prepared(
    tools: Tools,
    given: EpisodeCreate,
    *,
    scope: Scope,
    key: str | None,
    lift: bool,
    notes: tuple[str, ...] = (),
) -> tuple[Write, Work]:
    checked_scope(scope)
    checked_flag(lift, field="lift")
    identity = EpisodeId(tools.new_id())
    draft = await summarise(tools, _record(tools, identity, given, scope))
    episode = _episode(tools, identity, given, draft, scope)
    vectors = await tools.vectors(
        [episode_text(episode.title, episode.summary, episode.key_topics)]
    )
    model = await tools.live_model() if vectors else None
    if given.importance_score is None:
        weighed = await with_novelty(tools, episode.importance_score, vectors, scope=scope)
        episode = replace(episode, importance_score=weighed)

    async def land(unit: Unit, now: datetime) -> Receipt:
        mark = episode_mark(episode.summary)
        await unit.tombstones.respect(scope, mark, now=now, lift=lift)
        await unit.episodes.add(scope, replace(episode, recorded_at=now))
        if vectors and model:
            await unit.vectors.put("episode", [(identity, vectors[0])], model=model.id)
        return committed(identity, "episode", vectors=vectors, notes=notes)

    write = Write(
        operation="memory.remember",
        keeps=True,
        # The time may be that of the call, which a repeated one would not have.
        request=request_digest("episode", replace(given, occurred_at=_ANY_TIME)),
        content_digest=digest(given.task_description),
        key=key,
    )
    return write, land


def _record(tools: Tools, identity: EpisodeId, given: EpisodeCreate, scope: Scope) -> SessionRecord:
    spoken = Turn(
        id=TurnId(identity),
        scope_id=scope.id,
        session_id=scope.id,
        seq=0,
        role="user",
        actor="User",
        text=given.task_description,
        caption=None,
        occurred_at=given.occurred_at,
        recorded_at=tools.now(),
        trust=given.trust,
        source=given.source,
    )
    return SessionRecord(turns=(spoken,), tokens_used=given.tokens_used, outcome_hint=given.outcome)


def _episode(
    tools: Tools, identity: EpisodeId, given: EpisodeCreate, draft: EpisodeDraft, scope: Scope
) -> Episode:
    importance = given.importance_score
    session = scope.ancestor(MemoryScope.SESSION)
    return Episode(
        id=identity,
        scope_id=scope.id,
        title=draft.title,
        summary=given.context_summary or given.task_description,
        key_topics=draft.key_topics,
        user_intents=draft.user_intents,
        tools_used=draft.tools_used,
        agents_used=draft.agents_used,
        task_type=given.task_type,
        task_description=given.task_description,
        outcome=draft.outcome,
        outcome_details=given.outcome_details,
        actions=given.actions,
        context_summary=given.context_summary,
        lessons_learned=given.lessons_learned or draft.lessons_learned,
        duration_seconds=given.duration_seconds,
        tokens_used=given.tokens_used,
        importance_score=draft.importance_score if importance is None else importance,
        message_count=0,
        started_at=None,
        ended_at=None,
        occurred_at=given.occurred_at,
        recorded_at=tools.now(),
        session_id=None,
        trust=given.trust,
        source=given.source,
        metadata={**given.metadata, **({"session": session.name} if session else {})},
        tags=given.tags,
    )
