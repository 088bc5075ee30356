"""Tell a session's episode anew, when something that was said there is forgotten."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from mnemic.errors import InvalidInput
from mnemic.model.embedding import Vector
from mnemic.model.episode import Episode
from mnemic.model.fact import FactCreate
from mnemic.model.normalise import comparison_key
from mnemic.model.scope import Scope
from mnemic.model.turn import Turn
from mnemic.service.sessions import turns_of
from mnemic.service.thinking import read_statements, summarise
from mnemic.service.tools import Tools
from mnemic.store.episodes import episode_text
from mnemic.store.unit import Unit
from mnemic.think import SessionRecord

__all__ = ["Rewording", "StatementKey", "land_rewording", "reword", "statements_of"]


StatementKey = tuple[str, str, str]
"""Subject, predicate and object of a statement, as they are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewording:
    """An episode as what is left tells it, with what it states; none if nothing is left to tell.

    `turns` are those that were left when it was thought of.
    """

    turns: int
    episode: Episode | None
    stated: frozenset[StatementKey] = frozenset()
    vector: Vector | None = None
    model: int | None = None


async def reword(
    tools: Tools, episode: Episode, *, scope: Scope, without: Collection[UUID]
) -> Rewording:
    """What the session of `episode` comes to without those turns. No transaction is open.

    Outcome, importance, trust and tags stay: they are nobody's words. What the session worked with
    is gone since its end, so that the turns alone tell it. Raises `ThinkerUnavailable`.
    """
    session = episode.session_id
    if session is None:
        raise AssertionError(episode)

    async def read(unit: Unit) -> tuple[list[Turn], int]:
        count = await unit.turns.count(scope, session=session, without=without)
        return await turns_of(unit, scope, session), count

    said, count = await tools.transact(scope.tenant.id, read, read_only=True)
    left = [turn for turn in said if turn.id not in without]
    try:
        draft = await summarise(
            tools, SessionRecord(turns=tuple(left), outcome_hint=episode.outcome)
        )
    except InvalidInput:  # nothing is left to tell
        return Rewording(turns=count, episode=None)
    first, last = (pick(turn.occurred_at for turn in left) for pick in (min, max))
    told = replace(
        episode,
        title=draft.title,
        summary=draft.summary,
        key_topics=draft.key_topics,
        user_intents=draft.user_intents,
        tools_used=draft.tools_used,
        agents_used=draft.agents_used,
        task_description=draft.title,
        lessons_learned=draft.lessons_learned,
        duration_seconds=(last - first).total_seconds(),
        message_count=len(left),
        started_at=first,
        ended_at=last,
        occurred_at=first,
    )
    vectors = await tools.vectors([episode_text(told.title, told.summary, told.key_topics)])
    new = Rewording(turns=count, episode=told, stated=frozenset(statements_of(tools, told)))
    if not vectors:
        return new
    return replace(new, vector=vectors[0], model=(await tools.live_model()).id)


async def land_rewording(
    unit: Unit, place: Scope, episode: Episode, rewording: Rewording, *, now: datetime
) -> None:
    """The episode of `place`, whose row is held, has its new words, or is gone with the last turn.

    No answer that a key was given quotes the old ones. A vector that could not be made follows
    later.
    """
    told = rewording.episode
    if told is None:
        await unit.forgetting.delete(place, "episode", [episode.id])
        return
    await unit.episodes.reword(place, told, now=now)
    await unit.guards.unquote([told.id])
    if rewording.vector is not None and rewording.model is not None:
        await unit.vectors.put("episode", [(told.id, rewording.vector)], model=rewording.model)


def statements_of(tools: Tools, episode: Episode) -> dict[StatementKey, FactCreate]:
    """The statements that the rules read in an episode, each once."""
    found: dict[StatementKey, FactCreate] = {}
    for text in (episode.summary, episode.task_description, *episode.lessons_learned):
        for draft in read_statements(tools, text, occurred_at=episode.occurred_at):
            parts = (draft.subject, draft.predicate, draft.object)
            key = (comparison_key(parts[0]), comparison_key(parts[1]), comparison_key(parts[2]))
            found.setdefault(key, draft)
    return found
