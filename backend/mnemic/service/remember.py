"""Keep what the caller tells: a statement, an experience, or a way of doing something."""

from __future__ import annotations

from uuid import uuid5

from mnemic.model.episode import EpisodeCreate
from mnemic.model.fact import FactCreate
from mnemic.model.normalise import clean_name, digest
from mnemic.model.procedure import ProcedureCreate
from mnemic.model.receipt import Durability, Receipt, VectorState
from mnemic.model.scope import Scope
from mnemic.model.working import WorkingStatus
from mnemic.service.memory_input import Memory
from mnemic.service.parsing import checked_scope
from mnemic.service.record_episode import record_episode
from mnemic.service.record_fact import record_facts
from mnemic.service.record_procedure import checked_procedure, parse_steps, record_procedure
from mnemic.service.thinking import read_statements
from mnemic.service.tools import Tools
from mnemic.service.witness import Write, answer_afterwards, claim_beforehand, request_digest
from mnemic.service.working import checked_put
from mnemic.store.faults import after_landing
from mnemic.store.tombstones import NOTED

__all__ = ["remember"]


async def remember(tools: Tools, memory: Memory, *, scope: Scope) -> Receipt:
    """The memory is committed in `scope`.

    *semantic*: each statement that the rules find is kept as a fact, and what they do not read as
    one fact with the predicate `noted`; equal knowledge reinforces what is there. *episodic*: an
    episode. *procedural*: numbered or bulleted lines become steps. *working*: the value of a key of
    this scope alone, made if none is given, until its time is over. The same idempotency key with
    the same content gives the first answer again; with another one it raises `Conflict`. Without
    the embedder it is kept all the same, and gets its vector later.
    """
    checked_scope(scope)
    if memory.memory_type == "working":
        return await _remember_working(tools, memory, scope)
    if memory.memory_type == "episodic":
        return await record_episode(
            tools,
            _experience(memory),
            scope=scope,
            key=memory.key,
            lift=memory.lift,
            notes=memory.notes,
        )
    if memory.memory_type == "procedural":
        procedure = checked_procedure(tools, _way(memory), scope)
        return await record_procedure(
            tools,
            procedure,
            scope=scope,
            key=memory.key,
            lift=memory.lift,
            notes=memory.notes,
        )
    statements = _statements(tools, memory, scope)
    return await record_facts(tools, statements, memory, scope=scope, stated=False)


async def _remember_working(tools: Tools, memory: Memory, scope: Scope) -> Receipt:
    """The receipt names the key, and says whether the value would survive this process.

    No transaction is open while Valkey is written to, so that an idempotency key is claimed before:
    of two texts with one key the second is refused, and not put. The same text is put again if
    whoever claimed the key did not come back to answer it.
    """
    write = Write(
        operation="memory.remember",
        request=request_digest("working", memory.content, memory.working_key, memory.ttl_seconds),
        content_digest=digest(memory.content),
        key=memory.key,
    )
    # A made key follows from the idempotency key, so that two calls at once write one value.
    made = uuid5(scope.id, f"working;{memory.key}") if memory.key else tools.new_id()
    key = memory.working_key or f"note-{made.hex[-12:]}"
    places = tools.working
    put = checked_put(places, key, memory.content, ttl_seconds=memory.ttl_seconds)
    if (known := await claim_beforehand(tools, write, scope=scope)) is not None:
        return known
    await places.place.put(scope, put, places.now())
    receipt = Receipt(
        id=uuid5(scope.id, f"working;{key}"),
        kind="working",
        version=1,
        durability=_durability(places.place.status(scope)),
        vector=VectorState.NONE,
        key=key,
        notes=memory.notes,
    )
    with after_landing():
        return await answer_afterwards(tools, write, receipt, scope=scope)


def _durability(status: WorkingStatus) -> Durability:
    if status.degraded or status.place == "local":
        return Durability.PROCESS
    return Durability.COMMITTED if status.place == "postgres" else Durability.VALKEY


def _statements(tools: Tools, memory: Memory, scope: Scope) -> list[FactCreate]:
    found = read_statements(tools, memory.content, occurred_at=memory.occurred_at)
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


def _experience(memory: Memory) -> EpisodeCreate:
    return EpisodeCreate(
        task_description=memory.content,
        occurred_at=memory.occurred_at,
        task_type="note",
        outcome=memory.outcome,
        importance_score=memory.importance,
        metadata=memory.metadata,
        tags=memory.tags,
        trust=memory.trust,
        source=memory.source,
    )


def _way(memory: Memory) -> ProcedureCreate:
    name, steps = parse_steps(memory.content)
    return ProcedureCreate(
        name=name,
        steps=steps,
        metadata=memory.metadata,
        tags=memory.tags,
        trust=memory.trust,
        source=memory.source,
    )
