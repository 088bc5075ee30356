"""What is done with episodes beside recording them: browse, weigh, summarise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from mnemic.errors import NotFound
from mnemic.model.episode import Episode, Outcome
from mnemic.model.normalise import checked_time, checked_unit, clean_name
from mnemic.model.receipt import Receipt
from mnemic.model.scope import Scope
from mnemic.service.parsing import checked_id, checked_idempotency_key, checked_ids
from mnemic.service.rights import require_write
from mnemic.service.tools import Tools
from mnemic.service.witness import Write, committed, land_once, request_digest
from mnemic.store.unit import Unit

__all__ = ["browse_episodes", "get_episodes", "summarize_episodes", "update_importance"]

SUMMARISED_MAX = 200
LESSONS_SHOWN_MAX = 5
TOPICS_SHOWN_MAX = 7


async def browse_episodes(
    tools: Tools,
    *,
    scope: Scope,
    limit: int,
    since: datetime | None = None,
    outcome: Outcome | None = None,
    task_type: str | None = None,
) -> list[Episode]:
    """Episodes visible from `scope`, the newest first. Raises `InvalidInput`."""
    start = None if since is None else checked_time(since, field="since")
    kind = None if task_type is None else clean_name(task_type, field="task_type")
    return await tools.transact(
        scope.tenant.id,
        lambda unit: unit.episodes.browse(
            scope, limit=limit, since=start, outcome=outcome, task_type=kind
        ),
        read_only=True,
    )


async def get_episodes(tools: Tools, ids: Sequence[UUID], *, scope: Scope) -> list[Episode]:
    """The episodes of these ids in the order given. Raises `NotFound` if one is not visible."""
    wanted = list(dict.fromkeys(ids))
    found = await tools.transact(
        scope.tenant.id, lambda unit: unit.episodes.by_ids(scope, wanted), read_only=True
    )
    by_id: dict[UUID, Episode] = {episode.id: episode for episode in found}
    if missing := [one for one in wanted if one not in by_id]:
        raise NotFound(f"No episode {missing[0]} in this scope.", id=missing[0])
    return [by_id[one] for one in wanted]


async def update_importance(
    tools: Tools, identity: UUID, score: float, *, scope: Scope, key: str | None = None
) -> None:
    """The episode matters this much, from 0 to 1.

    Raises `NotFound`, and `Forbidden` if it stands in a wider scope without a grant.
    """
    identity = checked_id(identity, field="episode_id")
    value = checked_unit(score, field="score")

    async def land(unit: Unit, now: datetime) -> Receipt:
        found = await unit.episodes.by_ids(scope, [identity])
        if not found:
            raise NotFound("No such episode in this scope.", id=identity)
        await require_write(unit, scope, found[0].scope_id)
        await unit.episodes.set_importance(found[0], value, now=now)
        return committed(identity, "episode", created=False)

    write = Write(
        operation="episode.importance",
        request=request_digest("episode.importance", str(identity), value),
        key=checked_idempotency_key(key),
    )
    await land_once(tools, write, land, scope=scope)


async def summarize_episodes(tools: Tools, ids: Sequence[UUID], *, scope: Scope) -> str:
    """The episodes in a few sentences: how many, when, how they went, about what, lessons, titles.

    The same episodes give the same text in whichever order they are named. Raises `NotFound`.
    """
    wanted = checked_ids(ids, field="episode_ids", items_max=SUMMARISED_MAX)
    episodes = sorted(
        await get_episodes(tools, wanted, scope=scope), key=lambda one: (one.occurred_at, one.id)
    )
    return "\n".join([_overview(episodes), *(_line(episode) for episode in episodes)])


def _overview(episodes: Sequence[Episode]) -> str:
    counts = Counter(episode.outcome.value for episode in episodes)
    outcomes = ", ".join(f"{counts[name]} {name}" for name in Outcome if counts[name])
    first, last = episodes[0].occurred_at, episodes[-1].occurred_at
    noun = "episode" if len(episodes) == 1 else "episodes"
    when = f"on {first:%Y-%m-%d}"
    if first.date() != last.date():
        when = f"from {first:%Y-%m-%d} to {last:%Y-%m-%d}"
    parts = [f"{len(episodes)} {noun} {when}: {outcomes}."]
    topics = Counter(topic for episode in episodes for topic in episode.key_topics)
    if topics:
        ranked = sorted(topics, key=lambda topic: (-topics[topic], topic))[:TOPICS_SHOWN_MAX]
        parts.append(f"About {', '.join(ranked)}.")
    lessons = dict.fromkeys(lesson for episode in episodes for lesson in episode.lessons_learned)
    parts += [f"Lesson: {lesson}" for lesson in list(lessons)[-LESSONS_SHOWN_MAX:]]
    return " ".join(parts)


def _line(episode: Episode) -> str:
    return f"- {episode.occurred_at:%Y-%m-%d} ({episode.outcome.value}) {episode.title}"
