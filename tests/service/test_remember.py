from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

import asyncpg
import pytest

from mnemic import Conflict, Durability, InvalidInput, MemoryManager, NaiveTimestamp, Scope
from mnemic.testing import a_fact

NAIVE = datetime(2026, 3, 2)  # noqa: DTZ001 - naive on purpose
STEPS = "Deploy the service:\n1. Run the tests\n2. Tag the release\n- Tell the support rota"


async def test_a_statement_is_committed_and_found(memory: MemoryManager, scope: Scope) -> None:
    receipt = await memory.remember("Deploys are frozen on Fridays", scope=scope)

    found = await memory.recall("can I deploy today?", scope=scope)
    assert receipt.durability is Durability.COMMITTED
    assert receipt.created
    assert [hit.id for hit in found.hits] == [receipt.id]
    assert "Deploys are frozen on Fridays" in found.hits[0].text


async def test_equal_statements_reinforce_one_row(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    spellings = ["PostgreSQL", "postgresql", "  PostgreSQL ", "Postgre\u200dSQL"]

    receipts = [
        await memory.store_fact(a_fact(object=spelling), scope=scope) for spelling in spellings
    ]

    assert len({receipt.id for receipt in receipts}) == 1
    assert [receipt.version for receipt in receipts] == [1, 2, 3, 4]
    row = await seen.fetchrow("SELECT * FROM mnemic.facts WHERE id = $1", receipts[0].id)
    assert row is not None
    assert (row["reinforcement_count"], row["object"]) == (4, "PostgreSQL")
    assert row["confidence"] == pytest.approx(0.8)


async def test_twenty_equal_writes_at_once_are_one_row_with_all_its_evidence(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    receipts = await asyncio.gather(*(memory.store_fact(a_fact(), scope=scope) for _ in range(20)))

    assert len({receipt.id for receipt in receipts}) == 1
    row = await seen.fetchrow("SELECT * FROM mnemic.facts WHERE id = $1", receipts[0].id)
    assert row is not None
    assert row["reinforcement_count"] == 20
    assert row["confidence"] == 1.0
    evidence = "SELECT count(*) FROM mnemic.fact_evidence WHERE fact_id = $1"
    assert await seen.fetchval(evidence, receipts[0].id) == 20


async def test_a_single_valued_predicate_keeps_one_live_value(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    cities = [f"City {n}" for n in range(32)]

    await asyncio.gather(
        *(
            memory.store_fact(a_fact(predicate="lives_in", object=city), scope=scope)
            for city in cities
        )
    )

    rows = await seen.fetch(
        "SELECT status, superseded_by FROM mnemic.facts WHERE tenant_id = $1", scope.tenant.id
    )
    assert sorted(row["status"] for row in rows) == ["live", *["superseded"] * 31]
    assert all(row["superseded_by"] for row in rows if row["status"] == "superseded")


async def test_a_multi_valued_predicate_adds(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    await memory.store_fact(a_fact(object="PostgreSQL"), scope=scope)

    await memory.store_fact(a_fact(object="Valkey"), scope=scope)

    live = "SELECT count(*) FROM mnemic.facts WHERE tenant_id = $1 AND status = 'live'"
    assert await seen.fetchval(live, scope.tenant.id) == 2


async def test_the_same_key_has_one_effect_and_one_answer(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    receipts = await asyncio.gather(
        *(
            memory.remember("The rota is weekly.", scope=scope, idempotency_key="k")
            for _ in range(32)
        )
    )

    assert len(set(receipts)) == 1
    rows = await seen.fetch(
        "SELECT reinforcement_count FROM mnemic.facts WHERE tenant_id = $1", scope.tenant.id
    )
    assert [row["reinforcement_count"] for row in rows] == [1]


async def test_the_same_key_with_another_content_is_refused(
    memory: MemoryManager, scope: Scope
) -> None:
    await memory.remember("The rota is weekly.", scope=scope, idempotency_key="k")

    with pytest.raises(Conflict, match="idempotency key"):
        await memory.remember("The rota is daily.", scope=scope, idempotency_key="k")


async def test_an_experience_becomes_an_episode_with_its_own_words(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    text = "The March release failed because a migration locked the orders table for an hour."

    receipt = await memory.remember(
        text, scope=scope, memory_type="episodic", outcome="failure", importance=0.9
    )

    row = await seen.fetchrow("SELECT * FROM mnemic.episodes WHERE id = $1", receipt.id)
    assert row is not None
    assert (row["summary"], row["outcome"], row["importance_score"]) == (text, "failure", 0.9)
    found = await memory.recall("what went wrong with the March release?", scope=scope)
    assert found.hits[0].id == receipt.id


async def test_listed_lines_become_the_steps_of_a_procedure(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    receipt = await memory.remember(STEPS, scope=scope, memory_type="procedural")

    row = await seen.fetchrow("SELECT * FROM mnemic.procedures WHERE id = $1", receipt.id)
    assert row is not None
    assert row["name"] == "Deploy the service"
    found = await memory.recall("how do I deploy the service?", scope=scope)
    assert found.hits[0].id == receipt.id
    assert [step.action for step in found.hits[0].memory.steps] == [
        "Run the tests",
        "Tag the release",
        "Tell the support rota",
    ]


async def test_a_changed_procedure_gets_a_version_and_an_equal_one_does_not(
    memory: MemoryManager, scope: Scope
) -> None:
    first = await memory.remember(STEPS, scope=scope, memory_type="procedural")
    same = await memory.remember(STEPS, scope=scope, memory_type="procedural")

    changed = await memory.remember(
        f"{STEPS}\n- Watch the dashboards", scope=scope, memory_type="procedural"
    )

    assert (first.id, first.version, first.created) == (same.id, 1, True)
    assert (same.version, same.created) == (1, False)
    assert (changed.id, changed.version) == (first.id, 2)


async def test_every_change_is_witnessed_without_its_content(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    receipt = await memory.remember("The vault code word is heliotrope.", scope=scope)

    row = await seen.fetchrow("SELECT * FROM mnemic.audit_log WHERE subject_id = $1", receipt.id)
    assert row is not None
    assert row["action"] == "memory.remember"
    assert "heliotrope" not in str(dict(row))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"content": ""}, "content"),
        ({"content": "\u3000\u200b"}, "content"),
        ({"content": "a\x00b"}, "content"),
        ({"content": "\ud800"}, "content"),
        ({"content": "x" * 100_001}, "content"),
        ({"memory_type": "magic"}, "memory_type"),
        ({"importance": 1.5}, "importance"),
        ({"importance": float("nan")}, "importance"),
        ({"importance": True}, "importance"),
        ({"metadata": {"score": float("inf")}}, "metadata.score"),
        ({"metadata": {"a": {"b": [1, 2**70]}}}, "metadata.a.b[1]"),
        ({"metadata": {"k": "v" * 70_000}}, "metadata"),
        ({"tags": "red"}, "tags"),
        ({"tags": ["t"] * 101}, "tags"),
        ({"outcome": "splendid"}, "outcome"),
        ({"idempotency_key": " "}, "idempotency_key"),
        ({"memory_type": "procedural"}, "content"),
    ],
)
async def test_what_cannot_be_held_is_refused_by_the_name_of_its_field(
    memory: MemoryManager, scope: Scope, given: dict[str, object], field: str
) -> None:
    values = {"content": "Good content.", **given}

    with pytest.raises(InvalidInput) as refused:
        await memory.remember(scope=scope, **values)

    assert refused.value.field == field


async def test_a_time_without_a_zone_is_refused(memory: MemoryManager, scope: Scope) -> None:
    with pytest.raises(NaiveTimestamp, match="occurred_at"):
        await memory.remember("Then.", scope=scope, occurred_at=NAIVE)


async def test_metadata_and_tags_read_back_equal(memory: MemoryManager, scope: Scope) -> None:
    metadata = {"n": 1, "f": 0.5, "l": [1, None, "x"], "d": {}, "t": True, "名": "値"}

    await memory.remember(
        "The rota is weekly.", scope=scope, metadata=metadata, tags=["red, green", "ops"]
    )

    found = await memory.recall("rota", scope=scope, floor=0.0)
    assert {key: found.hits[0].memory.metadata[key] for key in metadata} == metadata
    assert found.hits[0].memory.tags == ("red, green", "ops")


async def test_facts_wholly_in_other_scripts_are_kept_apart(
    memory: MemoryManager, scope: Scope
) -> None:
    one = await memory.remember("用户喜欢绿茶", scope=scope)
    two = await memory.remember("用户喜欢咖啡", scope=scope)

    found = await memory.recall("绿茶", scope=scope)
    assert one.id != two.id
    assert found.hits[0].id == one.id


async def test_when_it_happened_and_when_it_was_learned_are_apart(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    happened = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)

    receipt = await memory.remember("The rota is weekly.", scope=scope, occurred_at=happened)

    row = await seen.fetchrow("SELECT * FROM mnemic.facts WHERE id = $1", receipt.id)
    assert row is not None
    assert row["first_learned"] == happened
    assert row["recorded_at"] > happened


async def test_an_unknown_person_sees_nothing_of_another(
    memory: MemoryManager, scope: Scope
) -> None:
    await memory.remember("The rota is weekly.", scope=scope)

    found = await memory.recall("rota", scope=Scope.user(f"stranger-{uuid4()}"), floor=0.0)

    assert found.hits == ()
    assert found.searched == 0


@pytest.mark.parametrize(("predicate", "live"), [("favourite_editor", 1), ("likes", 2)])
async def test_families_of_predicates_share_their_cardinality(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, predicate: str, live: int
) -> None:
    await memory.store_fact(a_fact(predicate=predicate, object="Vim"), scope=scope)

    await memory.store_fact(a_fact(predicate=predicate, object="Emacs"), scope=scope)

    count = "SELECT count(*) FROM mnemic.facts WHERE tenant_id = $1 AND status = 'live'"
    assert await seen.fetchval(count, scope.tenant.id) == live


async def test_what_no_rule_reads_is_kept_in_its_own_words(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    text = "We use Valkey for the carts. Heliotrope is such a lovely colour, is it not?"

    receipt = await memory.remember(text, scope=scope)

    rows = await seen.fetch(
        "SELECT predicate, content FROM mnemic.facts WHERE tenant_id = $1", scope.tenant.id
    )
    assert {row["predicate"]: row["content"] for row in rows} == {
        "uses": "We use Valkey for the carts.",
        "noted": "Heliotrope is such a lovely colour, is it not?",
    }
    assert len(receipt.also) == 1


async def test_marks_alone_are_kept_as_they_are(memory: MemoryManager, scope: Scope) -> None:
    receipt = await memory.remember("!!! ???", scope=scope)

    assert receipt.created
