from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest

from mnemic import (
    Conflict,
    EpisodeCreate,
    Forbidden,
    InvalidInput,
    MemoryManager,
    NotFound,
    Outcome,
    Retracted,
    Scope,
    Trust,
)
from mnemic.store.fact_ledger import FactLanding
from mnemic.store.unit import Unit
from mnemic.testing import a_fact

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


async def test_a_fact_reads_back_as_it_was_told(memory: MemoryManager, scope: Scope) -> None:
    given = a_fact(
        subject="The ledger",
        predicate="Uses",
        object="PostgreSQL 18",
        content="The ledger uses PostgreSQL 18.",
        confidence=0.9,
        category="use",
        valid_from=AT,
        metadata={"n": 1},
        tags=("db",),
        trust=Trust.APPROVED,
        source="review",
    )

    kept = await memory.at(scope).semantic.store_fact(given)

    assert (kept.subject, kept.predicate, kept.object) == ("The ledger", "uses", "PostgreSQL 18")
    assert (kept.content, kept.category, kept.confidence) == (given.content, "use", 0.9)
    assert (kept.valid_from, kept.metadata, kept.tags) == (AT, {"n": 1}, ("db",))
    assert (kept.trust, kept.source, kept.status) == (Trust.APPROVED, "review", "live")


async def test_a_confirmation_counts_once_for_each_key(memory: MemoryManager, scope: Scope) -> None:
    here = memory.at(scope).semantic
    kept = await here.store_fact(a_fact())

    await asyncio.gather(*(here.reinforce_fact(kept.id, idempotency_key="k") for _ in range(8)))
    surer = await here.reinforce_fact(kept.id)

    assert surer.reinforcement_count == 3
    assert surer.confidence == pytest.approx(0.7)


async def test_a_thousand_confirmations_stay_within_one(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope).semantic
    kept = await here.store_fact(a_fact(confidence=0.95))

    for _ in range(20):
        kept = await here.reinforce_fact(kept.id)

    assert kept.confidence == 1.0
    assert kept.reinforcement_count == 21


async def test_facts_are_found_by_subject_and_object_in_any_spelling(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope).semantic
    one = await here.store_fact(a_fact(subject="Checkout", object="PostgreSQL"))
    two = await here.store_fact(a_fact(subject="PostgreSQL", predicate="runs_in", object="Oslo"))
    await here.store_fact(a_fact(subject="Billing", object="Valkey"))

    found = await here.get_by_entity(" postgresql ")

    assert {fact.id for fact in found} == {one.id, two.id}
    assert await here.get_by_entity("postgre") == []
    assert len(await here.get_by_entity("PostgreSQL", limit=1)) == 1


async def test_an_alias_finds_what_its_name_finds(memory: MemoryManager, scope: Scope) -> None:
    here = memory.at(scope).semantic
    kept = await here.store_fact(a_fact(object="PostgreSQL"))

    await here.add_alias("PostgreSQL", "Postgres")
    await here.add_alias("PostgreSQL", "pg")
    await here.add_alias("PostgreSQL", "pg")

    for name in ("Postgres", "PG", "postgresql"):
        assert [fact.id for fact in await here.get_by_entity(name)] == [kept.id], name
    assert await memory.at(Scope.user(f"x{uuid4()}")).semantic.get_by_entity("pg") == []


async def test_an_alias_is_taken_away_and_nothing_is_kept_of_it(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    here = memory.at(scope).semantic
    kept = await here.store_fact(a_fact(object="PostgreSQL"))
    await here.add_alias("PostgreSQL", "Postgres")
    await here.add_alias("PostgreSQL", "Zanzacanary")

    await here.remove_alias("postgresql", "ZANZACANARY")

    assert await here.get_by_entity("Zanzacanary") == []
    assert [fact.id for fact in await here.get_by_entity("Postgres")] == [kept.id]
    await here.remove_alias("PostgreSQL", "Postgres")
    assert await seen.fetch("SELECT 1 FROM mnemic.entities WHERE tenant_id = $1", scope.id) == []
    for below in (scope, scope.project("a")):
        with pytest.raises(NotFound, match="No such alias"):
            await memory.at(below).semantic.remove_alias("PostgreSQL", "Postgres")


async def test_an_alias_is_taken_away_where_it_was_given(
    memory: MemoryManager, scope: Scope
) -> None:
    await memory.at(scope).semantic.add_alias("PostgreSQL", "pg")
    below = memory.at(scope.project("a")).semantic
    kept = await below.store_fact(a_fact(object="PostgreSQL"))

    with pytest.raises(NotFound):
        await below.remove_alias("PostgreSQL", "pg")

    assert [fact.id for fact in await below.get_by_entity("pg")] == [kept.id]


async def test_a_deprecated_fact_is_gone_with_its_reason_and_refused(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    here = memory.at(scope).semantic
    kept = await here.store_fact(a_fact())

    await here.deprecate_fact(kept.id, "We moved to SQLite.")

    row = await seen.fetchrow("SELECT * FROM mnemic.facts WHERE id = $1", kept.id)
    assert row is not None
    assert (row["status"], row["status_reason"]) == ("deprecated", "We moved to SQLite.")
    assert await here.search_facts("PostgreSQL") == []
    assert await here.get_by_entity("PostgreSQL") == []
    with pytest.raises(Retracted):
        await here.store_fact(a_fact())
    with pytest.raises(Conflict, match="deprecated already"):
        await here.reinforce_fact(kept.id)
    with pytest.raises(Conflict, match="deprecated already"):
        await here.deprecate_fact(kept.id, "Again.")
    with pytest.raises(NotFound):
        await here.deprecate_fact(uuid4(), "Unknown.")


async def test_facts_of_an_episode_are_extracted_once_with_it_as_evidence(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    here = memory.at(scope)
    episode = await here.episodic.record_episode(
        EpisodeCreate(
            task_description="We use Valkey for the carts. Deploys are frozen on Fridays.",
            occurred_at=AT,
            outcome=Outcome.SUCCESS,
            trust=Trust.EXTERNAL,
        )
    )

    first = await here.semantic.extract_facts_from_episode(episode)
    second = await here.semantic.extract_facts_from_episode(episode)

    assert {(fact.predicate, fact.object) for fact in first} == {
        ("uses", "Valkey"),
        ("frozen_on", "Fridays"),
    }
    assert [fact.id for fact in second] == [fact.id for fact in first]
    assert {fact.reinforcement_count for fact in second} == {1}
    assert {fact.trust for fact in first} == {Trust.EXTERNAL}
    sources = await seen.fetch(
        "SELECT source_kind, source_id FROM mnemic.fact_evidence WHERE tenant_id = $1",
        scope.tenant.id,
    )
    assert {tuple(row) for row in sources} == {("episode", episode.id)}


async def test_extraction_leaves_out_what_was_retracted(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope)
    episode = await here.episodic.record_episode(
        EpisodeCreate(task_description="We use Valkey for the carts.", occurred_at=AT)
    )
    [fact] = await here.semantic.extract_facts_from_episode(episode)
    await here.semantic.deprecate_fact(fact.id, "No longer.")

    assert await here.semantic.extract_facts_from_episode(episode) == []


async def test_a_conflict_is_won_by_the_most_trusted_then_the_newest(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    here = memory.at(scope).semantic
    approved = await here.store_fact(
        a_fact(predicate="deploys_to", object="Oslo", trust=Trust.APPROVED)
    )
    told = await here.store_fact(a_fact(predicate="deploys_to", object="Bergen"))
    newer = await here.store_fact(
        a_fact(predicate="deploys_to", object="Malmö", valid_from=datetime(2027, 1, 1, tzinfo=UTC))
    )

    first = await here.resolve_conflict([told.id, newer.id])
    second = await here.resolve_conflict([newer.id, approved.id])

    assert first.id == newer.id
    assert second.id == approved.id
    reasons = dict(
        await seen.fetch(
            "SELECT object, status_reason FROM mnemic.facts WHERE tenant_id = $1"
            " AND status = 'superseded'",
            scope.tenant.id,
        )
    )
    assert reasons == {
        "Bergen": "conflict resolved: the other value became true later",
        "Malmö": "conflict resolved: the other value comes from a more trusted source",
    }


async def test_facts_that_do_not_contradict_are_not_resolved(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope).semantic
    one = await here.store_fact(a_fact(predicate="uses"))
    two = await here.store_fact(a_fact(predicate="likes"))

    with pytest.raises(InvalidInput, match="do not conflict"):
        await here.resolve_conflict([one.id, two.id])
    with pytest.raises(InvalidInput, match="2 to"):
        await here.resolve_conflict([one.id])
    with pytest.raises(NotFound):
        await here.resolve_conflict([one.id, uuid4()])


async def test_a_fact_is_verified_against_its_evidence(memory: MemoryManager, scope: Scope) -> None:
    session = scope.session("s")
    told = EpisodeCreate(task_description="We use Valkey for the carts.", occurred_at=AT)
    here = memory.at(session)
    episode = await here.episodic.record_episode(told)
    [fact] = await here.semantic.extract_facts_from_episode(episode)

    supported = await here.semantic.verify_fact(fact.id)
    # What is forgotten above does not move there, and so is not to be seen from there.
    above = await memory.at(scope).episodic.record_episode(told)
    await memory.forget([above.id], scope=scope)
    await memory.sessions.end(scope=session)
    [moved] = await memory.at(scope).semantic.search_facts("Valkey")
    unsupported = await memory.at(scope).semantic.verify_fact(moved.id)

    assert supported.verification == "supported"
    assert supported.verified_at is not None
    assert unsupported.verification == "unsupported"


async def test_what_stands_above_is_read_and_not_changed(
    memory: MemoryManager, scope: Scope
) -> None:
    above = await memory.at(scope).semantic.store_fact(a_fact())
    below = memory.at(scope.project("p")).semantic

    assert [fact.id for fact in await below.get_by_entity("PostgreSQL")] == [above.id]
    with pytest.raises(Forbidden):
        await below.reinforce_fact(above.id)
    with pytest.raises(Forbidden):
        await below.deprecate_fact(above.id, "No.")
    own = await below.store_fact(a_fact())
    assert own.id != above.id


async def test_history_is_returned_as_history(memory: MemoryManager, scope: Scope) -> None:
    here = memory.at(scope).semantic
    await here.store_fact(a_fact(predicate="lives_in", object="Oslo", valid_from=AT))

    before = await here.store_fact(
        a_fact(predicate="lives_in", object="Lisbon", valid_from=datetime(2019, 1, 1, tzinfo=UTC))
    )

    assert before.status == "superseded"
    assert before.valid_to == AT


async def test_history_that_is_told_again_says_how_often_it_was_told(
    memory: MemoryManager, scope: Scope
) -> None:
    past = a_fact(predicate="lives_in", object="Lisbon", valid_from=AT)
    later = AT + timedelta(days=1)
    await memory.store_fact(
        a_fact(predicate="lives_in", object="Oslo", valid_from=later), scope=scope
    )

    receipts = [
        await memory.store_fact(past, scope=scope, idempotency_key=key) for key in ("a", "b", "c")
    ]

    assert [receipt.version for receipt in receipts] == [1, 2, 3]
    assert len({receipt.id for receipt in receipts}) == 1


async def test_history_told_by_a_source_that_counted_keeps_its_count(
    memory: MemoryManager, scope: Scope
) -> None:
    here, tools = memory.at(scope).semantic, memory._tools
    told = a_fact(predicate="lives_in", object="Lisbon", valid_from=AT)
    await here.store_fact(
        a_fact(predicate="lives_in", object="Oslo", valid_from=AT + timedelta(days=1))
    )
    await here.store_fact(told)
    past = await here.store_fact(told)

    async def again(unit: Unit) -> FactLanding:
        evidence = await unit.ledger.evidence_of(past.id)
        return await unit.ledger.put(scope, past, evidence, now=tools.now())

    landing = await tools.transact(scope.tenant.id, again)

    assert landing == FactLanding(id=past.id, created=False, version=2, live=False)


async def test_a_rival_is_found_among_any_number_of_facts(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope)
    child = memory.at(scope.project("p")).semantic
    told = await child.store_fact(a_fact(predicate="lives_in", object="Oslo", confidence=0.9))
    await here.semantic.store_fact(
        a_fact(predicate="lives_in", object="Bergen", confidence=0.1, trust=Trust.APPROVED)
    )
    for number in range(105):
        await here.semantic.store_fact(a_fact(object=f"tool {number}", confidence=0.8))

    verified = await child.verify_fact(told.id)

    assert verified.verification == "contradicted"


async def test_every_change_of_a_fact_counts_once_for_each_key(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    here = memory.at(scope).semantic
    one = await here.store_fact(a_fact(predicate="deploys_to", object="Oslo"))
    two = await here.store_fact(a_fact(predicate="deploys_to", object="Bergen"))

    for _ in range(2):
        winner = await here.resolve_conflict([one.id, two.id], idempotency_key="resolve")
        await here.verify_fact(winner.id, idempotency_key="verify")
        await here.add_alias("Bergen", "BGO", idempotency_key="alias")

    with pytest.raises(Conflict):
        await here.add_alias("Bergen", "Bryggen", idempotency_key="alias")
    actions = await seen.fetch(
        "SELECT action FROM mnemic.audit_log WHERE tenant_id = $1 AND action <> 'memory.remember'"
        " ORDER BY action",
        scope.tenant.id,
    )
    assert [row["action"] for row in actions] == ["entity.alias", "fact.resolve", "fact.verify"]
