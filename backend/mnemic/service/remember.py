"""Keep what the caller tells: a statement, an experience, or a way of doing something."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

import orjson

from mnemic.errors import InvalidInput
from mnemic.model.embedding import Vector
from mnemic.model.episode import Episode, EpisodeId, Outcome
from mnemic.model.fact import Fact, FactCreate, FactId
from mnemic.model.normalise import (
    checked_time,
    checked_unit,
    clean_name,
    clean_text,
    comparison_key,
    digest,
)
from mnemic.model.procedure import Procedure, ProcedureId, Step
from mnemic.model.receipt import Durability, Receipt, VectorState
from mnemic.model.scope import Scope
from mnemic.model.trust import Trust
from mnemic.model.turn import Turn, TurnId
from mnemic.service.parsing import checked_key, checked_metadata, checked_outcome, checked_tags
from mnemic.service.tools import Tools
from mnemic.store.episodes import episode_text
from mnemic.store.fact_ledger import Evidence
from mnemic.store.guards import AuditEntry
from mnemic.store.procedures import procedure_text
from mnemic.store.unit import Unit
from mnemic.think import SessionRecord

__all__ = ["MEMORY_TYPES", "Memory", "parse_memory", "remember", "store_facts"]

MEMORY_TYPES = ("semantic", "episodic", "procedural")
NOTED = "noted"
OBJECT_CHARS_MAX = 2_000
STEPS_MAX = 200
_STEP = re.compile(r"^\s*(?:[-*•]|\(?\d{1,3}[.)])\s+(?P<action>\S.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What is to be remembered, checked."""

    content: str
    memory_type: str
    occurred_at: datetime
    importance: float | None = None
    outcome: Outcome | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    key: str | None = None
    trust: Trust = Trust.USER
    source: str = "caller"

    @property
    def request_digest(self) -> bytes:
        """What the idempotency key stands for: everything but the time it was sent."""
        rest = [self.importance, self.outcome, self.metadata, list(self.tags)]
        return digest(self.memory_type, self.content, orjson.dumps(rest).decode())


def parse_memory(tools: Tools, content: str, memory_type: str, **given: Any) -> Memory:
    """The memory if it can be held. Raises `InvalidInput` that names the field."""
    if memory_type not in MEMORY_TYPES:
        raise InvalidInput(
            f"must be one of {', '.join(MEMORY_TYPES)}, not {memory_type!r}", field="memory_type"
        )
    limits = tools.settings.limits
    occurred_at = given.get("occurred_at")
    importance = given.get("importance")
    return Memory(
        content=clean_text(content, field="content", chars_max=limits.text_chars_max),
        memory_type=memory_type,
        occurred_at=tools.now()
        if occurred_at is None
        else checked_time(occurred_at, field="occurred_at"),
        importance=None if importance is None else checked_unit(importance, field="importance"),
        outcome=checked_outcome(given.get("outcome")),
        metadata=checked_metadata(given.get("metadata") or {}, limits),
        tags=checked_tags(given.get("tags") or (), limits),
        key=checked_key(given.get("idempotency_key")),
        trust=given.get("trust", Trust.USER),
        source=given.get("source", "caller"),
    )


async def remember(tools: Tools, memory: Memory, *, scope: Scope) -> Receipt:
    """The memory is committed in `scope`.

    *semantic*: each statement that the rules find is kept as a fact, and what they do not read as
    one fact with the predicate `noted`; equal knowledge reinforces what is there. *episodic*: an
    episode. *procedural*: numbered or bulleted lines become steps. The same idempotency key with
    the same content gives the first answer again; with another one it raises `Conflict`. Without
    the embedder it is kept all the same, and gets its vector later.
    """
    if memory.memory_type == "episodic":
        return await _remember_episode(tools, memory, scope)
    if memory.memory_type == "procedural":
        return await _remember_procedure(tools, memory, scope)
    return await store_facts(tools, _statements(tools, memory, scope), memory, scope=scope)


def _statements(tools: Tools, memory: Memory, scope: Scope) -> list[FactCreate]:
    found = tools.thinker.extract_facts(
        memory.content, actor="User", occurred_at=memory.occurred_at
    )
    rest = memory.content
    for fact in found:
        rest = rest.replace(fact.content or "", "", 1)
    if found and not any(character.isalnum() for character in rest):
        return list(found)
    # What no rule reads is kept all the same, in its own words.
    noted = rest.strip() if found else memory.content
    subject = clean_name(scope.name or scope.tenant.external_id, field="scope", chars_max=20_000)
    note = FactCreate(
        subject=subject[:500], predicate=NOTED, object=noted, content=noted, category="note"
    )
    return [*found, note]


async def store_facts(
    tools: Tools, drafts: Sequence[FactCreate], memory: Memory, *, scope: Scope
) -> Receipt:
    """The statements are live in `scope`, all or none; the receipt names the first."""
    now = tools.now()
    facts = [_fact(tools, draft, memory, scope, now) for draft in drafts]
    vectors = await tools.vectors([fact.content for fact in facts])
    model = await tools.live_model() if vectors else None
    source_id = uuid5(scope.id, f"call;{memory.key}") if memory.key else tools.new_id()
    evidence = [Evidence(kind="call", source_id=source_id, observed_at=memory.occurred_at)]

    async def land(unit: Unit) -> Receipt:
        await unit.scopes.ensure(scope)
        if (answer := await _claim(unit, scope, memory, now)) is not None:
            return answer
        ready: list[tuple[UUID, Vector]] = []
        landings = []
        for place, fact in enumerate(facts):
            landing = await unit.ledger.put(scope, fact, evidence, now=now)
            landings.append(landing)
            if landing.created and vectors:
                ready.append((landing.id, vectors[place]))
        if ready and model:
            await unit.vectors.put("fact", ready, model=model.id)
        first = landings[0]
        receipt = Receipt(
            id=first.id,
            kind="fact",
            version=first.version,
            durability=Durability.COMMITTED,
            vector=_state(vectors, created=first.created),
            created=first.created,
            also=tuple(landing.id for landing in landings[1:]),
        )
        return await _witness(tools, unit, scope, memory, receipt, now)

    return await tools.transact(scope.tenant.id, land)


def _fact(tools: Tools, draft: FactCreate, memory: Memory, scope: Scope, now: datetime) -> Fact:
    limits = tools.settings.limits
    subject = clean_name(draft.subject, field="subject")
    spoken = clean_text(draft.object, field="object", chars_max=limits.text_chars_max)
    content = draft.content or f"{subject} {draft.predicate.replace('_', ' ')} {spoken}"
    valid_from = draft.valid_from or None
    metadata = dict(memory.metadata)
    if memory.importance is not None:
        metadata.setdefault("importance", memory.importance)
    return Fact(
        id=FactId(tools.new_id()),
        scope_id=scope.id,
        subject=subject,
        predicate=comparison_key(clean_name(draft.predicate, field="predicate", chars_max=100)),
        object=spoken,
        content=content,
        category=draft.category or "general",
        confidence=checked_unit(draft.confidence, field="confidence"),
        reinforcement_count=1,
        first_learned=memory.occurred_at,
        last_reinforced=memory.occurred_at,
        valid_from=checked_time(valid_from, field="valid_from") if valid_from else None,
        valid_to=checked_time(draft.valid_to, field="valid_to") if draft.valid_to else None,
        recorded_at=now,
        retired_at=None,
        status="live",
        pinned=False,
        trust=memory.trust,
        source=memory.source,
        metadata={**draft.metadata, **metadata},
        tags=tuple(dict.fromkeys((*draft.tags, *memory.tags))),
    )


async def _remember_episode(tools: Tools, memory: Memory, scope: Scope) -> Receipt:
    now = tools.now()
    identity = EpisodeId(tools.new_id())
    spoken = Turn(
        id=TurnId(identity),
        scope_id=scope.id,
        session_id=scope.id,
        seq=0,
        role="user",
        actor="User",
        text=memory.content,
        caption=None,
        occurred_at=memory.occurred_at,
        recorded_at=now,
        trust=memory.trust,
        source=memory.source,
    )
    draft = await tools.thinker.summarise(
        SessionRecord(turns=(spoken,), outcome_hint=memory.outcome)
    )
    episode = Episode(
        id=identity,
        scope_id=scope.id,
        title=draft.title,
        summary=memory.content,
        key_topics=draft.key_topics,
        user_intents=draft.user_intents,
        tools_used=draft.tools_used,
        agents_used=draft.agents_used,
        task_type="note",
        task_description=memory.content,
        outcome=draft.outcome,
        outcome_details=None,
        actions=(),
        context_summary=None,
        lessons_learned=draft.lessons_learned,
        duration_seconds=None,
        tokens_used=None,
        importance_score=draft.importance_score if memory.importance is None else memory.importance,
        message_count=0,
        started_at=None,
        ended_at=None,
        occurred_at=memory.occurred_at,
        recorded_at=now,
        session_id=None,
        trust=memory.trust,
        source=memory.source,
        metadata=memory.metadata,
        tags=memory.tags,
    )
    vectors = await tools.vectors(
        [episode_text(episode.title, episode.summary, episode.key_topics)]
    )
    model = await tools.live_model() if vectors else None

    async def land(unit: Unit) -> Receipt:
        await unit.scopes.ensure(scope)
        if (answer := await _claim(unit, scope, memory, now)) is not None:
            return answer
        await unit.episodes.add(scope, episode)
        if vectors and model:
            await unit.vectors.put("episode", [(identity, vectors[0])], model=model.id)
        receipt = Receipt(
            id=identity,
            kind="episode",
            version=1,
            durability=Durability.COMMITTED,
            vector=_state(vectors),
        )
        return await _witness(tools, unit, scope, memory, receipt, now)

    return await tools.transact(scope.tenant.id, land)


async def _remember_procedure(tools: Tools, memory: Memory, scope: Scope) -> Receipt:
    now = tools.now()
    name, steps = _parsed_steps(memory.content)
    procedure = Procedure(
        id=ProcedureId(tools.new_id()),
        scope_id=scope.id,
        name=name,
        task_type="general",
        trigger_pattern=None,
        steps=steps,
        version=1,
        preconditions=(),
        avoid_conditions=(),
        success_count=0,
        failure_count=0,
        last_used=None,
        recorded_at=now,
        trust=memory.trust,
        source=memory.source,
        metadata=memory.metadata,
        tags=memory.tags,
    )
    vectors = await tools.vectors([procedure_text(procedure)])
    model = await tools.live_model() if vectors else None

    async def land(unit: Unit) -> Receipt:
        await unit.scopes.ensure(scope)
        if (answer := await _claim(unit, scope, memory, now)) is not None:
            return answer
        identity, version, created = await unit.procedures.put(scope, procedure)
        if vectors and model:
            await unit.vectors.put("procedure", [(identity, vectors[0])], model=model.id)
        receipt = Receipt(
            id=identity,
            kind="procedure",
            version=version,
            durability=Durability.COMMITTED,
            vector=_state(vectors),
            created=created,
        )
        return await _witness(tools, unit, scope, memory, receipt, now)

    return await tools.transact(scope.tenant.id, land)


def _parsed_steps(content: str) -> tuple[str, tuple[Step, ...]]:
    """The name before the list, and the actions of its lines."""
    steps: list[Step] = []
    heading: list[str] = []
    for line in content.splitlines():
        if match := _STEP.match(line):
            steps.append(Step(action=match["action"].strip()))
        elif not steps and line.strip():
            heading.append(line.strip())
    if not steps or not heading or len(steps) > STEPS_MAX:
        raise InvalidInput(
            "a procedure is a name on the first line, then 1 to "
            f"{STEPS_MAX} steps, each on a line of its own:\nDeploy the service\n"
            "1. Run the tests\n2. Tag the release",
            field="content",
        )
    return clean_name(" ".join(heading).rstrip(":"), field="content"), tuple(steps)


def _state(vectors: list[Vector] | None, *, created: bool = True) -> VectorState:
    if not created:
        return VectorState.NONE
    return VectorState.READY if vectors else VectorState.PENDING


async def _claim(unit: Unit, scope: Scope, memory: Memory, now: datetime) -> Receipt | None:
    """The answer that was given to the same key before, if there was one."""
    if memory.key is None:
        return None
    answer = await unit.guards.claim(
        scope, memory.key, operation="remember", request=memory.request_digest, now=now
    )
    return None if answer is None else Receipt.from_json(answer)


async def _witness(
    tools: Tools, unit: Unit, scope: Scope, memory: Memory, receipt: Receipt, now: datetime
) -> Receipt:
    """The change is in the audit log, and the key holds its answer."""
    entry = AuditEntry(
        id=tools.new_id(),
        action="memory.remember",
        subject_kind=receipt.kind,
        subject_id=receipt.id,
        content_digest=digest(memory.content),
    )
    await unit.guards.audit(scope, entry, now=now)
    if memory.key is not None:
        await unit.guards.answer(scope, memory.key, receipt.to_json())
    return receipt
