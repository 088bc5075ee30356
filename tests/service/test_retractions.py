from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from mnemic import FactCreate, Forbidden, MemoryManager, Retracted, Scope, Step, TurnCreate
from mnemic.store.tombstones import fact_mark
from mnemic.testing import a_conversation, a_fact

TALK = ["The vault code is heliotrope.", "Understood."]
AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
STEPS = "Deploy\n1. Tag the release"


async def _live(seen: asyncpg.Connection, scope: Scope) -> list[str]:
    rows = await seen.fetch(
        "SELECT object FROM mnemic.facts WHERE tenant_id = $1 AND status = 'live'", scope.tenant.id
    )
    return sorted(row["object"] for row in rows)


@pytest.mark.parametrize(
    ("kept", "again"),
    [
        ("v2.1", "v2.1"),
        ("42", " 42 "),
        ("2026-01-02", "2026-01-02"),
        ("admin", "ad\u200dmin"),
        ("café", "cafe\u0301"),
        ("PostgreSQL", "POSTGRESQL"),
        ("don't ask", "don\u2019t ask"),
        ("the \u201cvault\u201d", 'the "vault"'),
        ("2026\u20132027", "2026-2027"),
    ],
)
async def test_a_forgotten_value_is_refused_in_every_spelling(
    memory: MemoryManager, scope: Scope, kept: str, again: str
) -> None:
    receipt = await memory.store_fact(a_fact(object=kept), scope=scope)
    await memory.forget([receipt.id], scope=scope)

    with pytest.raises(Retracted, match="lift=True"):
        await memory.store_fact(a_fact(object=again), scope=scope)


async def test_it_is_refused_below_its_scope_and_not_beside_it(
    memory: MemoryManager, scope: Scope
) -> None:
    project, other = scope.project("a"), scope.project("b")
    receipt = await memory.store_fact(a_fact(), scope=project)
    await memory.forget([receipt.id], scope=project)

    beside = await memory.store_fact(a_fact(), scope=other)

    assert beside.created
    with pytest.raises(Retracted):
        await memory.store_fact(a_fact(), scope=project.agent("x"))


async def test_lifting_takes_it_back_for_good(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    receipt = await memory.store_fact(a_fact(), scope=scope)
    await memory.forget([receipt.id], scope=scope)

    lifted = await memory.store_fact(a_fact(), scope=scope, lift=True)
    again = await memory.store_fact(a_fact(), scope=scope)

    assert lifted.created
    assert again.id == lifted.id
    assert await _live(seen, scope) == ["PostgreSQL"]
    witnessed = await seen.fetch(
        "SELECT subject_kind, content_digest FROM mnemic.audit_log"
        " WHERE tenant_id = $1 AND action = 'tombstone.lift'",
        scope.tenant.id,
    )
    assert [tuple(row) for row in witnessed] == [("fact", fact_mark("User", "uses", "PostgreSQL"))]


async def test_what_was_retracted_above_is_lifted_there_alone(
    memory: MemoryManager, scope: Scope
) -> None:
    receipt = await memory.store_fact(a_fact(), scope=scope)
    await memory.forget([receipt.id], scope=scope)

    with pytest.raises(Retracted, match="lift it from there"):
        await memory.store_fact(a_fact(), scope=scope.project("p"), lift=True)


async def test_a_retracted_value_does_not_come_back_by_way_of_another(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    oslo = await memory.store_fact(a_fact(predicate="lives_in", object="Oslo"), scope=scope)
    await memory.forget([oslo.id], scope=scope)
    await memory.store_fact(a_fact(predicate="lives_in", object="Bergen"), scope=scope)

    with pytest.raises(Retracted):
        await memory.store_fact(a_fact(predicate="lives_in", object="Oslo"), scope=scope)

    assert await _live(seen, scope) == ["Bergen"]


async def test_a_session_does_not_carry_it_up_when_it_ends(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    await memory.store_fact(a_fact(), scope=session)
    receipt = await memory.store_fact(a_fact(), scope=scope)
    await memory.forget([receipt.id], scope=scope)
    await memory.sessions.append(a_conversation(TALK), scope=session)

    ended = await memory.sessions.end(scope=session)

    assert ended is not None
    assert await _live(seen, scope) == []


@pytest.mark.parametrize(
    ("content", "memory_type"),
    [("The rota is weekly.", "semantic"), ("It went well.", "episodic"), (STEPS, "procedural")],
)
async def test_every_type_is_refused_after_it_was_forgotten(
    memory: MemoryManager, scope: Scope, content: str, memory_type: str
) -> None:
    receipt = await memory.remember(content, scope=scope, memory_type=memory_type)
    await memory.forget([receipt.id], scope=scope)

    with pytest.raises(Retracted):
        await memory.remember(content, scope=scope, memory_type=memory_type)
    lifted = await memory.remember(content, scope=scope, memory_type=memory_type, lift=True)

    assert lifted.created


async def test_a_forgotten_turn_is_not_added_by_a_second_ingest(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    first, _ = await memory.sessions.append(a_conversation(TALK), scope=session)
    await memory.forget([first.id], scope=session)

    again = await memory.sessions.append(a_conversation(TALK), scope=session)

    found = await memory.recall("vault code", scope=session, floor=0.0)
    assert [receipt.created for receipt in again] == [False, False]
    assert [receipt.refused for receipt in again] == [True, False]
    assert "heliotrope" not in str(found.hits)


async def test_a_turn_forgotten_after_its_session_ended_stays_forgotten(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    first, _ = await memory.sessions.append(a_conversation(TALK), scope=session)
    await memory.sessions.end(scope=session)
    await memory.forget([first.id], scope=scope)

    again = await memory.sessions.append(a_conversation(TALK), scope=session)

    assert [receipt.refused for receipt in again] == [True, False]


async def test_history_that_comes_late_does_not_replace_what_is_true_now(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    now = a_fact(predicate="lives_in", object="Oslo", valid_from=datetime(2025, 6, 1, tzinfo=UTC))
    before = a_fact(
        predicate="lives_in", object="Lisbon", valid_from=datetime(2019, 1, 1, tzinfo=UTC)
    )

    current = await memory.store_fact(now, scope=scope)
    await memory.store_fact(before, scope=scope)

    rows = await seen.fetch(
        "SELECT object, status, valid_to, superseded_by FROM mnemic.facts WHERE tenant_id = $1"
        " ORDER BY valid_from",
        scope.tenant.id,
    )
    assert [tuple(row) for row in rows] == [
        ("Lisbon", "superseded", datetime(2025, 6, 1, tzinfo=UTC), current.id),
        ("Oslo", "live", None, None),
    ]


@pytest.mark.parametrize(
    "again",
    [
        "The launch code is 7731",
        "the launch code is 7731!",
        "\u201cThe  launch code is 7731.\u201d",
    ],
)
async def test_a_forgotten_note_is_refused_below_too_whatever_ends_it(
    memory: MemoryManager, scope: Scope, again: str
) -> None:
    project = scope.project("atlas")
    receipt = await memory.remember("The launch code is 7731.", scope=project)
    await memory.forget([receipt.id], scope=project)

    for place in (project, project.agent("x")):
        with pytest.raises(Retracted):
            await memory.remember(again, scope=place)
    assert (await memory.remember("The launch code is 7732.", scope=project)).created


async def test_a_forgotten_experience_is_refused_on_another_day_too(
    memory: MemoryManager, scope: Scope
) -> None:
    receipt = await memory.remember("It went well.", scope=scope, memory_type="episodic")
    await memory.forget([receipt.id], scope=scope)

    with pytest.raises(Retracted):
        await memory.remember(
            "It went well.",
            scope=scope,
            memory_type="episodic",
            occurred_at=datetime(2024, 5, 6, tzinfo=UTC),
        )


@pytest.mark.parametrize(
    ("content", "memory_type", "table"),
    [("It went well.", "episodic", "episodes"), (STEPS, "procedural", "procedures")],
)
async def test_what_was_forgotten_above_stays_in_the_session_when_it_ends(
    memory: MemoryManager,
    scope: Scope,
    seen: asyncpg.Connection,
    content: str,
    memory_type: str,
    table: str,
) -> None:
    session = scope.session("s")
    kept = await memory.remember(content, scope=session, memory_type=memory_type)
    above = await memory.remember(content, scope=scope, memory_type=memory_type)
    await memory.forget([above.id], scope=scope)
    other = await memory.remember(f"Other: {content}", scope=session, memory_type=memory_type)
    await memory.sessions.append(a_conversation(TALK), scope=session)

    await memory.sessions.end(scope=session)

    rows = await seen.fetch(
        f"SELECT id, scope_id FROM mnemic.{table} WHERE id = ANY($1)",
        [kept.id, other.id],
    )
    assert {row["id"]: row["scope_id"] for row in rows} == {kept.id: session.id, other.id: scope.id}


async def test_new_steps_do_not_bring_back_what_was_forgotten(
    memory: MemoryManager, scope: Scope
) -> None:
    forgotten = await memory.remember(STEPS, scope=scope, memory_type="procedural")
    await memory.forget([forgotten.id], scope=scope)
    other = await memory.remember("Deploy\n1. Ask the rota", scope=scope, memory_type="procedural")

    with pytest.raises(Retracted):
        await memory.at(scope).procedural.update_steps(other.id, [Step(action="Tag the release")])


async def test_every_version_of_a_forgotten_procedure_is_refused(
    memory: MemoryManager, scope: Scope
) -> None:
    first = await memory.remember(STEPS, scope=scope, memory_type="procedural")
    await memory.at(scope).procedural.update_steps(first.id, [Step(action="Press the button")])
    await memory.forget([first.id], scope=scope)

    for told in (STEPS, "Deploy\n1. Press the button"):
        with pytest.raises(Retracted):
            await memory.remember(told, scope=scope, memory_type="procedural")


async def test_no_word_of_what_was_forgotten_stays_in_the_counts(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    first = await memory.remember("The vault word is heliotrope", scope=scope)
    await memory.remember("The vault is green", scope=scope)
    await memory.maintenance.count_terms()

    await memory.forget([first.id], scope=scope)

    rows = await seen.fetch(
        "SELECT term, documents FROM mnemic.term_stats WHERE tenant_id = $1", scope.tenant.id
    )
    assert {row["term"]: row["documents"] for row in rows} == {"vault": 1, "green": 1, "": 1}


async def test_forgetting_a_fact_that_moved_up_leaves_none_of_it_in_the_session(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    await memory.store_fact(a_fact(), scope=session)
    await memory.sessions.append(a_conversation(TALK), scope=session)
    await memory.sessions.end(scope=session)
    [moved] = await memory.at(scope).semantic.search_facts("PostgreSQL")

    await memory.forget([moved.id], scope=scope)

    left = await seen.fetchval(
        "SELECT count(*) FROM mnemic.facts WHERE tenant_id = $1", scope.tenant.id
    )
    assert left == 0


@pytest.mark.parametrize("value_above", ["PostgreSQL", "MySQL"])
async def test_the_id_of_what_a_session_left_behind_stands_for_what_is_above(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, value_above: str
) -> None:
    session = scope.session("s")
    single = {"subject": "User", "predicate": "lives_in"}
    told = FactCreate(**single, object="PostgreSQL", valid_from=AT)
    left = await memory.store_fact(told, scope=session)
    newer = replace(told, object=value_above, valid_from=AT + timedelta(days=1))
    above = await memory.store_fact(newer, scope=scope)
    await memory.sessions.end(scope=session)
    await memory.grants.allow(session, to=scope)

    gone = await memory.forget([left.id], scope=session)

    rows = await seen.fetch("SELECT id FROM mnemic.facts WHERE tenant_id = $1", scope.tenant.id)
    stays = [] if value_above == "PostgreSQL" else [above.id]
    assert [row["id"] for row in rows] == stays
    assert gone.counts == {"fact": 1}
    with pytest.raises(Retracted):
        await memory.store_fact(told, scope=scope)


async def test_what_is_above_is_not_forgotten_from_below_without_a_grant(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    above = await memory.store_fact(a_fact(), scope=scope)
    left = await memory.store_fact(a_fact(), scope=session)
    await memory.sessions.end(scope=session)

    with pytest.raises(Forbidden):
        await memory.forget([left.id], scope=session)

    assert [hit.id for hit in (await memory.recall("PostgreSQL", scope=scope)).hits] == [above.id]


@pytest.mark.parametrize("name", ["another", None])
async def test_a_forgotten_turn_is_refused_at_its_moment_under_any_name(
    memory: MemoryManager, scope: Scope, name: str | None
) -> None:
    session = scope.session("s")
    said = TurnCreate(
        text="The vault code is heliotrope.", actor="User", occurred_at=AT, external_id="first"
    )
    [kept] = await memory.sessions.append([said], scope=session)
    await memory.forget([kept.id], scope=session)

    again, later = await memory.sessions.append(
        [
            replace(said, external_id=name),
            replace(said, external_id="later", occurred_at=AT + timedelta(minutes=1)),
        ],
        scope=session,
    )

    assert (again.refused, again.created) == (True, False)
    assert (later.refused, later.created) == (False, True)


async def test_an_option_that_does_not_exist_is_an_error(
    memory: MemoryManager, scope: Scope
) -> None:
    with pytest.raises(TypeError, match="unknown option 'importence'"):
        await memory.remember("The rota is weekly.", scope=scope, importence=0.5)  # type: ignore[call-arg]
