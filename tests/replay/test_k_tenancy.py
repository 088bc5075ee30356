"""K: who may see and do what, whichever way it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from proof.canaries import shape_of, shown_error

from mnemic import (
    ConfigurationError,
    Forbidden,
    InvalidInput,
    MemoryManager,
    NotFound,
    Scope,
    Step,
    Unavailable,
)
from mnemic.settings import DatabaseSettings
from mnemic.store.unit import Database
from mnemic.testing import TickingClock, a_conversation, a_fact, a_scope, a_turn
from oracles.closure import assert_closed, plant
from oracles.reading import shown
from oracles.stored import assert_changes_nothing, rows_of

NOT_APPLICABLE: dict[str, str] = {}

TENANT = """
    SELECT current_setting('mnemic.tenant_id', true) AS tenant, count(*) AS rows FROM mnemic.facts
"""

names = st.sampled_from(["a", "A", "ab", "a:b", "*", "%", "a_", "\u0430", " a", "{a}", "a\\"])
generated = settings(
    max_examples=4,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


async def test_k02_without_a_tenant_no_table_shows_or_takes_a_row(
    alone: MemoryManager, app: asyncpg.Connection, admin: asyncpg.Connection, clock: TickingClock
) -> None:
    scope = a_scope()
    await plant(alone, [scope])
    await alone.sessions.append(a_conversation(["The lease is red."]), scope=scope.session("s"))
    await alone.maintenance.count_terms()
    rows = await rows_of(admin, scope)

    seen, taken = [], []
    for table, texts in rows.items():
        seen.append(await app.fetchval(f"SELECT count(*) FROM mnemic.{table}"))
        try:
            await app.execute(
                f"INSERT INTO mnemic.{table}"
                f" SELECT * FROM jsonb_populate_record(NULL::mnemic.{table}, $1)",
                texts[0],
            )
            taken.append(table)
        except asyncpg.InsufficientPrivilegeError:
            pass

    async with app.transaction():
        await app.execute(f"SET LOCAL mnemic.tenant_id = '{scope.tenant.id}'")
        own = [await app.fetchval(f"SELECT count(*) FROM mnemic.{table}") for table in rows]
    assert len(rows) > 10
    assert seen == [0] * len(rows)
    assert taken == []
    assert own == [len(texts) for texts in rows.values()]


async def test_k03_the_tenant_of_one_request_is_not_the_next_ones(
    memory: MemoryManager, scope: Scope
) -> None:
    one, other = scope, a_scope()
    await memory.store_fact(a_fact(), scope=one)
    settings = memory.settings
    database = Database(
        settings.database_url.get_secret_value(),  # type: ignore[union-attr]
        DatabaseSettings(pool_max=1),
    )

    async def ask(tenant: Any) -> tuple[str, int]:
        async with database.open_unit(tenant) as unit:
            row = await unit.connection.fetchrow(TENANT)
            return row["tenant"], row["rows"]

    found = [await ask(one.tenant.id), await ask(other.tenant.id), await ask(None)]
    async with (await database._pool()).acquire() as connection:
        between = await connection.fetchval("SELECT current_setting('mnemic.tenant_id', true)")

    await database.close()
    assert found == [(str(one.tenant.id), 1), (str(other.tenant.id), 0), (str(UUID(int=0)), 0)]
    assert between == ""


async def test_k04_a_role_that_walls_do_not_hold_cannot_serve(
    opened: Callable[..., Any], memory: MemoryManager, database: Any
) -> None:
    unfit = [database.admin_url, database.owner_url, "postgresql://nobody@/nowhere?host=/nowhere"]

    refusals = []
    for url in unfit:
        settings = memory.settings.model_copy(
            update={"database_url": type(memory.settings.database_url)(url)}
        )
        with pytest.raises((ConfigurationError, Unavailable)) as refused:
            async with opened(settings):
                raise AssertionError(url)
        refusals.append(str(refused.value))

    assert all(refusals)
    assert len(set(refusals)) == 3


async def test_k05_jobs_mix_no_owners_of_equal_texts(
    alone: MemoryManager, clock: TickingClock, admin: asyncpg.Connection
) -> None:
    people = [Scope.user("a"), Scope.organisation("a"), Scope.user("A")]
    for person in people:
        session = person.session("s")
        await alone.sessions.append([a_turn("The lease is red.", external_id="m-1")], scope=session)
        await alone.store_fact(a_fact(), scope=session)
    clock.advance(timedelta(hours=1))

    report = await alone.maintenance.end_idle_sessions()
    await alone.maintenance.count_terms()

    assert report.done == 3
    ids: dict[str, set[str]] = {}
    for person in people:
        found = await shown(alone, person, "lease PostgreSQL")
        assert "lease is red" in found["recall episodic"]
        assert "PostgreSQL" in found["recall semantic"]
        rows = await rows_of(admin, person)
        ids[str(person.tenant)] = {row for texts in rows.values() for row in texts}
        strangers = [str(one.tenant.id) for one in people if one != person]
        assert not [row for row in ids[str(person.tenant)] if any(s in row for s in strangers)]


@generated
@given(st.lists(names, min_size=2, max_size=4, unique=True))
async def test_k05_from_each_scope_its_own_chain_is_seen_and_no_other(
    memory: MemoryManager, found: list[str]
) -> None:
    person = a_scope()
    scopes = [person, *(person.project(name) for name in found)]
    scopes += [person.project(found[0]).agent(name) for name in found[:2]]

    places = await plant(memory, scopes)

    await assert_closed(memory, places, "PostgreSQL")


async def test_k07_asking_a_scope_that_nobody_made_makes_none(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    place = scope.project("p").agent("a").session("s")
    calls: list[Callable[[], Any]] = [
        lambda: shown(memory, place, "anything"),
        lambda: memory.sessions.end(scope=place),
        lambda: memory.sessions.pause(scope=place),
        lambda: memory.sessions.resume(scope=place),
        lambda: memory.forget([uuid4()], scope=place),
        lambda: memory.sessions.append([], scope=place),
        lambda: memory.grants.revoke(place, to=scope),
        lambda: memory.at(place).semantic.reinforce_fact(uuid4()),
    ]

    answers = [await assert_changes_nothing(seen, scope, call) for call in calls]

    assert await rows_of(seen, scope) == {}
    assert [type(one) for one in answers[1:5]] == [NotFound] * 4
    await memory.store_fact(a_fact(), scope=place)
    assert len((await rows_of(seen, scope))["scopes"]) == 4


@pytest.mark.parametrize("pattern", ["*", "", "%", ".*", "all", None])
async def test_k10_no_pattern_forgets_anything(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, pattern: Any
) -> None:
    receipt = await memory.store_fact(a_fact(), scope=scope)
    await memory.at(scope).working.set("k", 1)
    given: list[Any] = [pattern, [pattern], [], {}, [receipt.id, pattern]]

    faults = [
        await assert_changes_nothing(seen, scope, lambda ids=ids: memory.forget(ids, scope=scope))
        for ids in given
    ]
    if pattern:
        assert await memory.at(scope).working.delete(pattern) is False

    assert [type(fault) for fault in faults] == [InvalidInput] * len(given)
    assert {fault.field for fault in faults} == {"ids"}
    assert await memory.at(scope).working.get("k") == 1
    assert (await memory.forget([receipt.id], scope=scope)).total == 1


async def test_k10_more_than_a_batch_is_not_forgotten_at_once(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    receipt = await memory.store_fact(a_fact(), scope=scope)
    many = [receipt.id, *(uuid4() for _ in range(memory.settings.limits.batch_max))]

    fault = await assert_changes_nothing(seen, scope, lambda: memory.forget(many, scope=scope))

    assert isinstance(fault, InvalidInput)
    assert (fault.field, "the most is" in str(fault)) == ("ids", True)


async def test_k11_what_was_private_to_a_session_moves_one_level_up_and_no_further(
    memory: MemoryManager, scope: Scope
) -> None:
    agent = scope.project("p").agent_type("coder").agent("1")
    session = agent.session("s")
    await memory.store_fact(a_fact(object="heliotrope"), scope=session)
    await memory.sessions.append([a_turn("It is heliotrope.")], scope=session)
    wider = [*agent.chain[1:], agent.parent.agent("2"), scope.project("q")]  # type: ignore[union-attr]
    before = ["heliotrope" in str(await shown(memory, agent, "heliotrope"))]

    await memory.sessions.end(scope=session)

    after = ["heliotrope" in str(await shown(memory, one, "heliotrope")) for one in wider]
    assert before == [False]
    assert "heliotrope" in str(await shown(memory, agent, "heliotrope"))
    assert after == [False] * len(wider)


async def test_k11_nobody_writes_above_himself_unless_he_was_told_that_he_may(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    fact = await memory.store_fact(a_fact(), scope=scope)
    below = scope.project("p")
    await memory.store_fact(a_fact(object="Valkey"), scope=below)

    fault = await assert_changes_nothing(
        seen, scope, lambda: memory.at(below).semantic.deprecate_fact(fact.id, "no")
    )
    await memory.grants.allow(below, to=scope)
    await memory.at(below).semantic.deprecate_fact(fact.id, "no")

    assert isinstance(fault, Forbidden)
    assert [one.object for one in await memory.at(below).semantic.get_by_entity("User")] == [
        "Valkey"
    ]


async def test_k12_a_foreign_id_is_answered_as_one_that_nobody_has(
    memory: MemoryManager, scope: Scope
) -> None:
    stranger, own = a_scope(), memory.at(scope)
    fact = (await memory.store_fact(a_fact(), scope=stranger)).id
    episode = (await memory.remember("x y", scope=stranger, memory_type="episodic")).id
    skill = (await memory.remember("D\n1. T", scope=stranger, memory_type="procedural")).id
    await memory.at(stranger).working.set("k", 1)
    saved = UUID(await memory.at(stranger).working.create_checkpoint())
    asked: list[tuple[UUID, Callable[[MemoryManager, Scope, UUID], Any]]] = [
        (fact, lambda m, s, one: m.forget([one], scope=s)),
        (fact, lambda m, s, one: m.at(s).semantic.reinforce_fact(one)),
        (fact, lambda m, s, one: m.at(s).semantic.deprecate_fact(one, "no")),
        (fact, lambda m, s, one: m.at(s).semantic.verify_fact(one)),
        (episode, lambda m, s, one: m.at(s).episodic.update_importance(one, 0.5)),
        (episode, lambda m, s, one: m.at(s).episodic.summarize_episodes([one])),
        (skill, lambda m, s, one: m.at(s).procedural.record_outcome(one, success=True)),
        (skill, lambda m, s, one: m.at(s).procedural.update_steps(one, [Step(action="x")])),
        (saved, lambda m, s, one: m.at(s).working.restore_checkpoint(str(one))),
    ]

    for identity, ask in asked:
        shapes = []
        for one in (identity, uuid4()):
            with pytest.raises(NotFound) as refused:
                await ask(memory, scope, one)
            shapes.append(shape_of(shown_error(refused.value)))
        assert shapes[0] == shapes[1]

    for identity, ask in asked[1:]:
        await ask(memory, stranger, identity) if identity != fact else None
    assert (await memory.forget([fact], scope=stranger)).total == 1
    assert await own.semantic.get_by_entity("User") == []
