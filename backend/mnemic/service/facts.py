"""What is done with facts beside recording them: confirm, retract, compare, check."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from uuid import UUID, uuid5

from mnemic.errors import Conflict, InvalidInput, NotFound, Retracted
from mnemic.model.episode import Episode
from mnemic.model.fact import Fact
from mnemic.model.normalise import clean_name, clean_text, comparison_key
from mnemic.model.receipt import Receipt
from mnemic.model.scope import Scope
from mnemic.service.memory_input import parse_memory
from mnemic.service.parsing import (
    REASON_CHARS_MAX,
    checked_given,
    checked_id,
    checked_idempotency_key,
    checked_ids,
)
from mnemic.service.record_fact import FACT, record_facts
from mnemic.service.reword_episode import statements_of
from mnemic.service.rights import require_write
from mnemic.service.tools import Tools
from mnemic.service.witness import Write, committed, land_and_show, land_once, request_digest
from mnemic.store.fact_ledger import Evidence
from mnemic.store.faults import after_landing
from mnemic.store.tombstones import fact_mark
from mnemic.store.unit import Unit

__all__ = [
    "add_alias",
    "deprecate_fact",
    "extract_facts",
    "facts_of_entity",
    "get_facts",
    "reinforce_fact",
    "remove_alias",
    "resolve_conflict",
    "verify_fact",
]

CONFLICT_FACTS_MIN, CONFLICT_FACTS_MAX = 2, 100


async def get_facts(
    tools: Tools, ids: Sequence[UUID], *, scope: Scope, live_only: bool = True
) -> list[Fact]:
    """The facts of these ids that are visible from `scope`, in the order given."""
    found = await tools.transact(
        scope.tenant.id,
        lambda unit: unit.facts.by_ids(scope, ids, live_only=live_only),
        read_only=True,
    )
    by_id: dict[UUID, Fact] = {fact.id: fact for fact in found}
    return [by_id[one] for one in ids if one in by_id]


async def facts_of_entity(tools: Tools, entity: str, *, scope: Scope, limit: int) -> list[Fact]:
    """Live facts about `entity`, or an alias of it, as subject or object; the surest first."""
    name = clean_name(entity, field="entity")

    async def find(unit: Unit) -> list[Fact]:
        names = await unit.entities.names_of(scope, name)
        return await unit.facts.by_entity(scope, names, limit=limit)

    return await tools.transact(scope.tenant.id, find, read_only=True)


async def add_alias(
    tools: Tools, name: str, alias: str, *, scope: Scope, key: str | None = None
) -> None:
    """In `scope` and below, `alias` means what `name` means."""
    name = clean_name(name, field="name")
    other = clean_name(alias, field="alias")
    identity = _entity_id(scope, name)

    async def land(unit: Unit, now: datetime) -> Receipt:
        await unit.entities.add_alias(scope, identity, name, other, now=now)
        return committed(identity, "entity", created=False)

    write = Write(
        operation="entity.alias",
        request=request_digest("entity.alias", name, other),
        key=checked_idempotency_key(key),
    )
    await land_once(tools, write, land, scope=scope)


async def remove_alias(
    tools: Tools, name: str, alias: str, *, scope: Scope, key: str | None = None
) -> None:
    """In `scope` the alias does not mean the name any more, and nothing is kept of it.

    Raises `NotFound` if it did not mean it in exactly this scope.
    """
    name = clean_name(name, field="name")
    other = clean_name(alias, field="alias")

    async def land(unit: Unit, now: datetime) -> Receipt:
        if not await unit.entities.remove_alias(scope, name, other, now=now):
            raise NotFound("No such alias of this name in this scope.")
        return committed(_entity_id(scope, name), "entity", created=False)

    write = Write(
        operation="entity.unalias",
        request=request_digest("entity.unalias", name, other),
        key=checked_idempotency_key(key),
    )
    await land_once(tools, write, land, scope=scope)


def _entity_id(scope: Scope, name: str) -> UUID:
    return uuid5(scope.id, f"entity;{comparison_key(name)}")


async def reinforce_fact(
    tools: Tools, identity: UUID, *, scope: Scope, key: str | None = None
) -> Fact:
    """The fact is surer by one confirmation, which counts once for each idempotency key.

    The same key gives the fact again as it was then, until it is forgotten.
    Raises `NotFound`, and `Forbidden` if it stands in a wider scope without a grant.
    """
    identity = checked_id(identity, field="fact_id")
    key = checked_idempotency_key(key)
    source = uuid5(scope.id, f"reinforce;{key}") if key else tools.new_id()

    async def land(unit: Unit, now: datetime) -> Receipt:
        fact = await _held(unit, scope, identity)
        await require_write(unit, scope, fact.scope_id)
        evidence = Evidence(kind="call", source_id=source, observed_at=now)
        version = await unit.ledger.reinforce(fact.id, [evidence], now=now)
        return committed(
            fact.id, "fact", version=version or fact.reinforcement_count, created=False
        )

    write = Write(
        operation="fact.reinforce",
        request=request_digest("fact.reinforce", str(identity)),
        key=key,
    )
    return await land_and_show(tools, write, land, FACT, scope=scope)


async def deprecate_fact(
    tools: Tools, identity: UUID, reason: str, *, scope: Scope, key: str | None = None
) -> None:
    """The fact is retired with a reason, and its value refused until it is lifted.

    Raises `NotFound`, and `Forbidden` if it stands in a wider scope without a grant.
    """
    identity = checked_id(identity, field="fact_id")
    why = clean_text(reason, field="reason", chars_max=REASON_CHARS_MAX)

    async def land(unit: Unit, now: datetime) -> Receipt:
        fact = await _held(unit, scope, identity)
        place = await require_write(unit, scope, fact.scope_id)
        mark = fact_mark(fact.subject, fact.predicate, fact.object)
        await unit.tombstones.add(place, [mark], kind="fact", reason=why, now=now)
        await unit.facts.retire(place, fact.id, status="deprecated", reason=why, now=now)
        return committed(fact.id, "fact", version=fact.reinforcement_count, created=False)

    write = Write(
        operation="fact.deprecate",
        request=request_digest("fact.deprecate", str(identity), why),
        key=checked_idempotency_key(key),
        reason=why,
    )
    await land_once(tools, write, land, scope=scope)


async def extract_facts(tools: Tools, episode: Episode, *, scope: Scope) -> list[Fact]:
    """The statements that the rules read in an episode are facts of `scope`.

    The episode is their evidence and they are as believable as it is; doing it again changes
    nothing. What was retracted here is left out; a value that is outdated already stands in the
    history, and comes with its `status`. Only the id of `episode` is believed: the rest is read
    again. Raises `NotFound`, and `Conflict` if `scope` is a session that has ended.
    """
    given = checked_given(episode, Episode, field="episode")
    episode = await _episode(tools, given.id, scope)
    drafts = statements_of(tools, episode)
    if not drafts:
        return []
    memory = parse_memory(
        tools,
        episode.summary,
        "semantic",
        occurred_at=episode.occurred_at,
        trust=episode.trust,
        source="episode",
    )
    landed: list[UUID] = []
    for draft in drafts.values():
        with _again(landed), suppress(Retracted):
            receipt = await record_facts(tools, [draft], memory, scope=scope, source=episode)
            landed.append(receipt.id)
    with _again(landed):
        return await get_facts(tools, landed, scope=scope, live_only=False)


def _again(landed: Sequence[UUID]) -> AbstractContextManager[None]:
    """What fails now fails after a statement has landed, if any has; once more changes nothing."""
    return after_landing("extract them again") if landed else nullcontext()


async def _episode(tools: Tools, identity: UUID, scope: Scope) -> Episode:
    found = await tools.transact(
        scope.tenant.id, lambda unit: unit.episodes.by_ids(scope, [identity]), read_only=True
    )
    if not found:
        raise NotFound("No such episode in this scope.", id=identity)
    return found[0]


async def resolve_conflict(
    tools: Tools, ids: Sequence[UUID], *, scope: Scope, key: str | None = None
) -> Fact:
    """Of live facts with one subject and predicate the winner stays, the others are its history.

    The winner is the most trusted; of equally trusted ones the one that became true last, then
    the surest, then the lowest id. Why each of the others lost stands in its `status_reason`.
    Raises `InvalidInput` for facts that do not contradict each other, `NotFound`, `Forbidden`.
    """
    wanted = checked_ids(ids, field="fact_ids", items_max=CONFLICT_FACTS_MAX)
    if len(wanted) < CONFLICT_FACTS_MIN:
        raise InvalidInput(f"must name 2 to {CONFLICT_FACTS_MAX} facts", field="fact_ids")

    async def land(unit: Unit, now: datetime) -> Receipt:
        held = await unit.facts.lock(scope, wanted)
        facts = [held[one] for one in wanted if one in held and held[one].status == "live"]
        if len(facts) < len(wanted):
            raise NotFound("Not all of these facts are live in this scope.")
        if len({(comparison_key(fact.subject), fact.predicate) for fact in facts}) > 1:
            raise InvalidInput(
                "the facts are about different subjects or predicates, so they do not conflict",
                field="fact_ids",
            )
        winner = min(facts, key=_precedence)
        for fact in facts:
            if fact.id != winner.id:
                place = await require_write(unit, scope, fact.scope_id)
                await unit.facts.retire(
                    place,
                    fact.id,
                    status="superseded",
                    reason=f"conflict resolved: {_why(winner, fact)}",
                    superseded_by=winner.id,
                    now=now,
                )
        return committed(winner.id, "fact", version=winner.reinforcement_count, created=False)

    write = Write(
        operation="fact.resolve",
        request=request_digest("fact.resolve", sorted(str(one) for one in wanted)),
        key=checked_idempotency_key(key),
    )
    return await land_and_show(tools, write, land, FACT, scope=scope)


def _precedence(fact: Fact) -> tuple[int, float, float, int]:
    since = fact.valid_from or fact.first_learned
    return (int(fact.trust), -since.timestamp(), -fact.confidence, fact.id.int)


def _why(winner: Fact, loser: Fact) -> str:
    if winner.trust != loser.trust:
        return "the other value comes from a more trusted source"
    if (winner.valid_from or winner.first_learned) != (loser.valid_from or loser.first_learned):
        return "the other value became true later"
    return "the other value is better supported"


async def verify_fact(
    tools: Tools, identity: UUID, *, scope: Scope, key: str | None = None
) -> Fact:
    """The fact with what its evidence says now, stored with the date in `verification`.

    "supported" while a source of it still exists, "unsupported" when none does, "contradicted"
    when another live value of the same subject and single-valued predicate is more trusted or
    newer. Raises `NotFound`, `Conflict` if it is not live, and `Forbidden` if it stands in a wider
    scope without a grant.
    """
    identity = checked_id(identity, field="fact_id")

    async def land(unit: Unit, now: datetime) -> Receipt:
        fact = await _held(unit, scope, identity)
        await require_write(unit, scope, fact.scope_id)
        await unit.facts.set_verification(fact, await _verdict(unit, scope, fact), now=now)
        return committed(fact.id, "fact", version=fact.reinforcement_count, created=False)

    write = Write(
        operation="fact.verify",
        request=request_digest("fact.verify", str(identity)),
        key=checked_idempotency_key(key),
    )
    return await land_and_show(tools, write, land, FACT, scope=scope)


async def _verdict(unit: Unit, scope: Scope, fact: Fact) -> str:
    if await unit.ledger.is_single(fact.predicate):
        best = await unit.facts.rivals(scope, fact, limit=1)
        if best and _precedence(best[0]) < _precedence(fact):
            return "contradicted"
    if await unit.ledger.has_live_evidence(scope, fact.id):
        return "supported"
    return "unsupported"


async def _held(unit: Unit, scope: Scope, identity: UUID) -> Fact:
    held = (await unit.facts.lock(scope, [identity])).get(identity)
    if held is None:
        raise NotFound("No such fact in this scope.", id=identity)
    if held.status != "live":
        raise Conflict(f"The fact is {held.status} already: {held.status_reason}.", id=identity)
    return held
