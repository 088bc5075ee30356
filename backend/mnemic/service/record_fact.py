"""Keep statements as facts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID, uuid5

from mnemic.errors import Conflict, NotFound
from mnemic.model.embedding import Vector
from mnemic.model.episode import Episode
from mnemic.model.fact import Fact, FactCreate, FactId
from mnemic.model.normalise import clean_text, comparison_key, digest
from mnemic.model.receipt import Receipt
from mnemic.model.scope import Scope
from mnemic.service.memory_input import Memory
from mnemic.service.parsing import changes, checked_fact, checked_scope
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
from mnemic.store.fact_ledger import Evidence, FactLanding
from mnemic.store.unit import Unit

__all__ = ["FACT", "facts_request", "record_fact", "record_facts"]


async def _read(unit: Unit, scope: Scope, identity: UUID) -> Fact | None:
    return (await unit.facts.lock(scope, [identity])).get(identity)


FACT = View(Fact, _read)
"""A fact, live or not."""


async def record_facts(
    tools: Tools,
    drafts: Sequence[FactCreate],
    memory: Memory,
    *,
    scope: Scope,
    source: Episode | None = None,
    stated: bool = True,
) -> Receipt:
    """The statements stand in `scope`, all or none; the receipt names the first.

    Their evidence is this call, or the episode that they were read in. Raises `Retracted` if one of
    them was retracted here, unless `memory.lift`; `NotFound` if the episode is gone, and `Conflict`
    if it was told anew meanwhile.
    """
    write, work = await _prepared(tools, drafts, memory, scope=scope, source=source, stated=stated)
    return await land_once(tools, write, work, scope=scope)


async def record_fact(tools: Tools, draft: FactCreate, memory: Memory, *, scope: Scope) -> Fact:
    """The statement stands in `scope`, by the rules of `record_facts`: as it is kept."""
    write, work = await _prepared(tools, [draft], memory, scope=scope)
    return await land_and_show(tools, write, work, FACT, scope=scope)


async def _prepared(
    tools: Tools,
    drafts: Sequence[FactCreate],
    memory: Memory,
    *,
    scope: Scope,
    source: Episode | None = None,
    stated: bool = True,
) -> tuple[Write, Work]:
    checked_scope(scope)
    facts = [_fact(tools, draft, memory, scope) for draft in drafts]
    notes = [*memory.notes, *(changes(drafts[0], facts[0]) if stated else ())]
    vectors = await tools.vectors([fact.content for fact in facts])
    model = await tools.live_model() if vectors else None
    source_id = uuid5(scope.id, f"call;{memory.key}") if memory.key else tools.new_id()
    call = Evidence(kind="call", source_id=source_id, observed_at=memory.occurred_at)
    sources = [call if source is None else _evidence(source)]

    async def land(unit: Unit, now: datetime) -> Receipt:
        if source is not None:
            await _hold(unit, scope, source)
        ready: list[tuple[UUID, Vector]] = []
        landings = await unit.ledger.put_all(scope, facts, sources, now=now, lift=memory.lift)
        if vectors:
            pairs = zip(landings, vectors, strict=True)
            ready = [(landing.id, vector) for landing, vector in pairs if _searched(landing)]
        if ready and model:
            await unit.vectors.put("fact", ready, model=model.id)
        first = landings[0]
        return committed(
            first.id,
            "fact",
            vectors=vectors,
            version=first.version,
            created=first.created,
            also=tuple(landing.id for landing in landings[1:]),
            notes=tuple(notes),
        )

    write = Write(
        operation="memory.remember",
        keeps=True,
        request=facts_request(drafts, memory, stated=stated),
        content_digest=digest(memory.content),
        key=memory.key,
    )
    return write, land


def _evidence(source: Episode) -> Evidence:
    return Evidence(
        kind="episode",
        source_id=source.id,
        observed_at=source.occurred_at,
        session_id=source.session_id,
    )


async def _hold(unit: Unit, scope: Scope, source: Episode) -> None:
    """The episode stands, and says what it said; whoever forgets of it waits."""
    held = await unit.episodes.hold(scope, source.id)
    if held is None:
        raise NotFound("No such episode in this scope.", id=source.id)
    if _told(held) != _told(source):
        raise Conflict("The episode was told anew at this moment; extract again.", id=source.id)


def _told(episode: Episode) -> tuple[str, ...]:
    return (episode.summary, episode.task_description, *episode.lessons_learned)


def _searched(landing: FactLanding) -> bool:
    return landing.created and landing.live


def facts_request(drafts: Sequence[FactCreate], memory: Memory, *, stated: bool = True) -> bytes:
    """What an idempotency key stands for when these statements are recorded under it.

    The times of statements that rules read in a text may follow from when they read it, which a
    repeated call would not share; those of `stated` ones are the caller's own.
    """
    asked = [
        (
            (draft.subject, draft.predicate, draft.object, draft.content, draft.category),
            (draft.confidence, draft.metadata, draft.tags),
            (draft.valid_from, draft.valid_to) if stated else (),
        )
        for draft in drafts
    ]
    told = (memory.metadata, memory.tags, memory.importance, memory.trust, memory.source)
    return request_digest("fact", memory.content, asked, *told)


def _fact(tools: Tools, draft: FactCreate, memory: Memory, scope: Scope) -> Fact:
    limits = tools.settings.limits
    told = checked_fact(draft, limits)
    content = told.content
    if content is None:
        content = f"{told.subject} {told.predicate.replace('_', ' ')} {told.object}"
    metadata = {**told.metadata, **memory.metadata}
    if memory.importance is not None:
        metadata.setdefault("importance", memory.importance)
    return Fact(
        id=FactId(tools.new_id()),
        scope_id=scope.id,
        subject=told.subject,
        predicate=comparison_key(told.predicate),
        object=told.object,
        content=clean_text(content, field="content", chars_max=2 * limits.text_chars_max),
        category="general" if told.category is None else told.category,
        confidence=told.confidence,
        reinforcement_count=1,
        first_learned=memory.occurred_at,
        last_reinforced=memory.occurred_at,
        valid_from=told.valid_from,
        valid_to=told.valid_to,
        recorded_at=memory.occurred_at,
        retired_at=None,
        status="live",
        pinned=False,
        trust=memory.trust,
        source=memory.source,
        metadata=metadata,
        tags=tuple(dict.fromkeys((*told.tags, *memory.tags))),
    )
