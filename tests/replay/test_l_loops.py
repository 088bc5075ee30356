"""L: loops, forks, pools and servers that go away: it works, or says what is wrong."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest
from away import postgres_behind, valkey_behind
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemic import (
    MemoryManager,
    MemorySettings,
    Scope,
    ThinkerUnavailable,
    Unavailable,
    VectorState,
)
from mnemic.embedded import EmbeddedServers
from mnemic.service.tools import Tools
from mnemic.store.unit import Database
from mnemic.testing import HashingEmbedder, a_fact, a_scope, a_turn
from mnemic.wiring import Wiring
from oracles.degraded import answer_or_fault, tells
from oracles.ranked import assert_ranked
from oracles.together import HeldEmbedder, HeldThinker, at_once

NOT_APPLICABLE: dict[str, str] = {}

PATIENCE_SECONDS = 60.0
generated = settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

PROGRAM = """
import asyncio, gc, os, sys, warnings
from mnemic import MemoryManager, MemorySettings
from mnemic.testing import HashingEmbedder, a_fact, a_scope
from mnemic.wiring import Wiring

settings = MemorySettings(database={"require_durable": False})
memory = MemoryManager(Wiring(settings, embedder=HashingEmbedder()))
scope = a_scope(sys.argv[1])

async def backend(unit):
    return await unit.connection.fetchval("SELECT pg_backend_pid()")

async def kept():
    return [one.object for one in await memory.at(scope).semantic.get_by_entity("User")]
"""


def pooled(given: MemorySettings, **changed: Any) -> MemorySettings:
    database = given.database.model_copy(update=changed)
    return given.model_copy(update={"database": database})


def in_a_loop_of_its_own(job: Coroutine[Any, Any, Any]) -> Any:
    """What the job gives, run by `asyncio.run` as a task queue would."""
    return asyncio.run(asyncio.wait_for(job, PATIENCE_SECONDS))


async def program(body: str, servers: EmbeddedServers, given: MemorySettings) -> str:
    """What a program of its own prints; it must end well and complain of nothing."""
    assert given.database_url is not None
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-W", "error", "-c", PROGRAM + textwrap.dedent(body), a_scope().tenant.external_id),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={
            **os.environ,
            "MEM_DATABASE_URL": given.database_url.get_secret_value(),
            "MEM_REDIS_URL": servers.redis_url,
        },
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        out, complaints = await process.communicate()
    assert (process.returncode, complaints.decode()) == (0, "")
    return out.decode()


async def once_back(call: Callable[[], Any]) -> Any:
    """What the call gives once it can be answered again."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE_SECONDS
    while loop.time() < end:
        answer = await answer_or_fault(call())
        if not isinstance(answer, Unavailable):
            return answer
        await asyncio.sleep(0.02)  # who is back tells nobody: only a call finds it
    raise AssertionError


async def test_l01_a_manager_serves_one_loop_after_another(
    servers: EmbeddedServers, memory: MemoryManager
) -> None:
    loops = """
        async def job(*, first, last):
            if first:
                await memory.start()
            receipt = await memory.store_fact(a_fact(), scope=scope)
            await memory.at(scope).working.set(f"k{receipt.version}", 1)
            print(receipt.version, await memory.at(scope).working.list_keys())
            if last:
                await memory.close()

        for number in range(3):
            asyncio.run(job(first=number == 0, last=number == 2))
    """

    printed = await program(loops, servers, memory.settings)

    assert printed.splitlines() == ["1 ['k1']", "2 ['k1', 'k2']", "3 ['k1', 'k2', 'k3']"]


async def test_l01_a_job_that_opens_and_closes_works_each_time(
    replay_settings: MemorySettings, scope: Scope
) -> None:
    async def job() -> int:
        wiring = Wiring(replay_settings, embedder=HashingEmbedder())
        async with MemoryManager(wiring) as memory:
            receipt = await memory.store_fact(a_fact(), scope=scope)
            return receipt.version

    versions = [await asyncio.to_thread(in_a_loop_of_its_own, job()) for _ in range(3)]

    assert versions == [1, 2, 3]


async def test_l02_a_pool_of_an_ended_loop_holds_up_nobody(
    replay_settings: MemorySettings, memory: MemoryManager
) -> None:
    assert replay_settings.database_url is not None
    url = replay_settings.database_url.get_secret_value()
    database = Database(url, pooled(replay_settings, pool_max=1).database)

    async def ask(*, last: bool) -> int:
        async with database.open_unit(None) as unit:
            answer: int = await unit.connection.fetchval("SELECT 7")
        if last:
            await database.close()
        return answer

    def in_turn() -> list[int]:
        return [in_a_loop_of_its_own(ask(last=True)) for _ in range(3)]

    assert await asyncio.to_thread(in_turn) == [7, 7, 7]
    assert await ask(last=True) == 7


async def test_l03_a_program_that_forgets_to_close_ends_without_a_complaint(
    servers: EmbeddedServers, memory: MemoryManager
) -> None:
    forgets = """
        async def main():
            await memory.start()
            await memory.store_fact(a_fact(), scope=scope)
            print(await kept())
            {ending}
        asyncio.run(main())
    """

    closed = await program(forgets.format(ending="await memory.close()"), servers, memory.settings)
    left = await program(forgets.format(ending="pass"), servers, memory.settings)

    assert closed == left == "['PostgreSQL']\n"


async def test_l05_a_forked_child_has_connections_of_its_own(
    servers: EmbeddedServers, memory: MemoryManager
) -> None:
    forks = """
        async def main(name):
            await memory.store_fact(a_fact(object=name), scope=scope)
            await memory.at(scope).working.set(name, 1)
            return await memory._tools.transact(scope.tenant.id, backend)

        async def opened():
            await memory.start()
            return await main("before")

        first = asyncio.run(opened())
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
        if not child:
            own = asyncio.run(main("child"))
            os._exit(0 if own != first else 1)
        _, status = os.waitpid(child, 0)
        print(status)
        asyncio.run(main("parent"))
        async def last():
            print(sorted(await kept()), await memory.at(scope).working.list_keys())
            await memory.close()
        asyncio.run(last())
    """

    printed = await program(forks, servers, memory.settings)

    names = ["before", "child", "parent"]
    assert printed == f"0\n{names} {names}\n"


@pytest.mark.parametrize("pgbouncer", [True, False])
async def test_l09_behind_a_pooler_no_statement_has_a_name(
    opened: Callable[..., Any], replay_settings: MemorySettings, scope: Scope, *, pgbouncer: bool
) -> None:
    async with opened(pooled(replay_settings, pgbouncer=pgbouncer, pool_max=1)) as memory:
        for _ in range(2):
            await memory.store_fact(a_fact(), scope=scope)
            await memory.recall("PostgreSQL", scope=scope)

        async def named(unit: Any) -> list[Any]:
            rows = await unit.connection.fetch(
                "SELECT name FROM pg_prepared_statements WHERE statement NOT LIKE '%pg_prepared%'"
            )
            return [row["name"] for row in rows]

        names = await memory._tools.transact(scope.tenant.id, named)
        assert (names == []) is pgbouncer


async def test_l10_callers_that_are_cancelled_leave_the_pool_whole(
    opened: Callable[..., Any], replay_settings: MemorySettings, scope: Scope, seen: Any
) -> None:
    async with opened(pooled(replay_settings, pool_max=4, acquire_timeout_seconds=20)) as memory:
        for number in range(50):
            call = asyncio.ensure_future(memory.store_fact(a_fact(), scope=scope))
            for _ in range(number % 25):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)

        for _ in range(13):
            await at_once(
                *(memory.store_fact(a_fact(object="after"), scope=scope) for _ in range(4))
            )
        left = await seen.fetchval(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
        )

        facts = await memory.at(scope).semantic.get_by_entity("User")
        assert left == 0
        assert {fact.object: fact.reinforcement_count for fact in facts}["after"] == 52


async def test_l11_more_callers_than_connections_all_get_an_answer(
    opened: Callable[..., Any], replay_settings: MemorySettings, scope: Scope
) -> None:
    settings = pooled(replay_settings, pool_max=2, acquire_timeout_seconds=20)
    async with opened(settings) as memory:
        session = scope.session("s")
        calls = [
            [
                memory.remember(f"The lease number {number} is red.", scope=scope),
                memory.sessions.append([a_turn(f"t{number}")], scope=session),
                memory.recall("lease", scope=session, floor=0.0),
                memory.context("lease", scope=session),
            ]
            for number in range(10)
        ]

        answers = await at_once(*(call for group in calls for call in group))

        assert len(answers) == 40
        assert (await memory.recall("lease", scope=session, floor=0.0, limit=100)).searched == 20


async def test_l12_no_connection_is_held_while_a_model_is_asked(
    opened: Callable[..., Any], replay_settings: MemorySettings, scope: Scope
) -> None:
    embedder = HeldEmbedder()
    settings = pooled(replay_settings, pool_max=2, acquire_timeout_seconds=5)
    async with opened(settings, embedder=embedder) as memory:
        embedder.gate.close(places=10)
        waiting = [
            asyncio.ensure_future(memory.store_fact(a_fact(object=f"o{n}"), scope=scope))
            for n in range(10)
        ]
        async with asyncio.timeout(PATIENCE_SECONDS):
            await embedder.gate.reached.wait()

        meanwhile = await at_once(*(memory.at(scope).episodic.get_recent() for _ in range(10)))
        landed = sum(one.done() for one in waiting)
        embedder.gate.open()
        receipts = await at_once(*waiting)

        assert meanwhile == [[]] * 10
        assert landed == 0
        assert all(receipt.created for receipt in receipts)


async def test_l12_no_connection_is_held_while_the_thinker_thinks(
    opened: Callable[..., Any], replay_settings: MemorySettings, scope: Scope
) -> None:
    thinker = HeldThinker()
    settings = pooled(replay_settings, pool_max=1, acquire_timeout_seconds=5)
    async with opened(settings, thinker=thinker) as memory:
        await memory.sessions.append([a_turn("The lease is red.")], scope=scope.session("s"))
        thinker.gate.close()
        ending = asyncio.ensure_future(memory.sessions.end(scope=scope.session("s")))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await thinker.gate.reached.wait()

        meanwhile = await memory.at(scope).episodic.get_recent()
        thinker.gate.open()

        assert meanwhile == []
        assert (await ending).created


async def test_l13_a_unit_whose_body_fails_runs_it_once(tools: Tools, scope: Scope) -> None:
    ran = []

    async def fails(unit: Any) -> None:
        ran.append("work")
        await unit.scopes.ensure(scope)
        raise RuntimeError("no")

    async def busy(unit: Any) -> int:
        ran.append("busy")
        if len(ran) < 4:
            await unit.connection.execute(
                "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = 'deadlock_detected'; END $$"
            )
        return len(ran)

    with pytest.raises(RuntimeError):
        async with tools.database.open_unit(scope.tenant.id):
            ran.append("body")
            raise RuntimeError("no")
    with pytest.raises(RuntimeError):
        await tools.transact(scope.tenant.id, fails)
    tries = await tools.transact(scope.tenant.id, busy)

    assert (ran, tries) == (["body", "work", "busy", "busy"], 4)


async def test_l17_with_postgresql_away_no_answer_reads_like_an_empty_memory(
    opened: Callable[..., Any],
    replay_settings: MemorySettings,
    scope: Scope,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    assert replay_settings.database_url is not None
    url = replay_settings.database_url.get_secret_value()
    async with postgres_behind(tmp_path_factory.mktemp("p"), url) as (proxy, through):
        secret = type(replay_settings.database_url)(through)
        settings = replay_settings.model_copy(update={"database_url": secret})
        async with opened(settings) as memory:
            here = memory.at(scope)
            await memory.store_fact(a_fact(), scope=scope)
            calls: dict[str, Callable[[], Any]] = {
                "recall": lambda: memory.recall("PostgreSQL", scope=scope),
                "context": lambda: memory.context("PostgreSQL", scope=scope),
                "recent": here.episodic.get_recent,
                "facts": lambda: here.semantic.search_facts("PostgreSQL"),
                "entity": lambda: here.semantic.get_by_entity("User"),
                "matching": lambda: here.procedural.find_matching("deploy"),
                "working": lambda: here.working.get("unknown"),
                "checkpoints": here.working.checkpoints,
                "end": lambda: memory.sessions.end(scope=scope.session("s")),
                "remember": lambda: memory.remember("The lease is red.", scope=scope),
                "maintenance": memory.maintenance.embed_missing,
            }
            whole = await memory.recall("PostgreSQL", scope=scope, floor=0.0)
            await proxy.cut()

            answers = {name: await answer_or_fault(call()) for name, call in calls.items()}

            await proxy.open()
            assert {name for name, answer in answers.items() if not tells(answer)} == set()
            assert (whole.degraded, whole.returned) == ((), 1)
            assert (await memory.recall("PostgreSQL", scope=scope, floor=0.0)).returned == 1


async def test_l17_with_valkey_away_no_answer_reads_like_an_empty_memory(
    opened: Callable[..., Any],
    replay_settings: MemorySettings,
    scope: Scope,
    servers: EmbeddedServers,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with valkey_behind(tmp_path_factory.mktemp("p"), servers.redis_url) as proxy:
        secret = type(replay_settings.redis_url)(proxy.url)  # type: ignore[call-arg]
        settings = replay_settings.model_copy(update={"redis_url": secret})
        async with opened(settings) as memory:
            working = memory.at(scope).working
            await working.set("k", 1)
            whole = await working.status()
            await proxy.cut()

            answers = [
                await answer_or_fault(call)
                for call in (
                    working.get("k"),
                    working.get_all(),
                    working.list_keys(),
                    working.get_scratchpad(),
                    working.record(),
                    working.status(),
                )
            ]

            await proxy.open()
            assert all(tells(answer) for answer in answers)
            assert not tells(whole)
            assert await once_back(working.get_all) == {"k": 1}


@pytest.mark.parametrize(
    "fault", [Unavailable("away"), RuntimeError("no"), TimeoutError(), ValueError("no")], ids=repr
)
async def test_l18_a_model_that_fails_is_told_and_never_an_empty_answer(
    opened: Callable[..., Any], memory: MemoryManager, scope: Scope, fault: Exception
) -> None:
    embedder, thinker = HeldEmbedder(), HeldThinker()
    await memory.remember("The lease is red.", scope=scope)
    async with opened(embedder=embedder, thinker=thinker) as failing:
        embedder.fault = fault
        thinker.faults["lease"] = fault

        found = await answer_or_fault(failing.recall("lease", scope=scope, floor=0.0))
        section = await answer_or_fault(failing.context("lease", scope=scope))
        kept = await answer_or_fault(
            failing.remember("The lease is due.", scope=scope, memory_type="episodic")
        )

        assert tells(found)
        assert tells(section)
        assert isinstance(kept, Unavailable)
        if not isinstance(fault, Unavailable):
            assert isinstance(kept, ThinkerUnavailable)
            assert found.returned == 1
    assert (await memory.recall("lease", scope=scope, floor=0.0)).degraded == ()


async def test_l19_what_is_kept_without_its_vector_says_so_and_gets_it_later(
    opened: Callable[..., Any], alone: MemoryManager
) -> None:
    embedder, scope = HeldEmbedder(), a_scope()
    async with opened(alone.settings, embedder=embedder) as memory:
        whole = await memory.remember("The lease is red.", scope=scope)
        embedder.fault = RuntimeError("no")

        kept = await memory.remember("The vault is green.", scope=scope)
        by_words = await memory.recall("vault", scope=scope, floor=0.0)
        with pytest.raises(Unavailable):
            await memory.maintenance.embed_missing()
        embedder.fault = None
        report = await memory.maintenance.embed_missing()

        by_meaning = await memory.recall("vault", scope=scope, floor=0.0)
        assert (whole.vector, kept.vector) == (VectorState.READY, VectorState.PENDING)
        assert by_words.hits[0].id == kept.id
        assert by_words.degraded
        assert (report.done, report.failed) == (1, 0)
        assert by_meaning.hits[0].near_place == 1
        assert by_meaning.degraded == ()


async def test_l20_the_id_of_a_write_is_the_id_afterwards(alone: MemoryManager, clock: Any) -> None:
    scope = a_scope()
    here = alone.at(scope)
    fact = await alone.store_fact(a_fact(), scope=scope)
    episode = await alone.remember("It went well.", scope=scope, memory_type="episodic")
    skill = await alone.remember("Deploy\n1. Tag it", scope=scope, memory_type="procedural")
    said = await alone.sessions.append([a_turn("The lease is red.")], scope=scope.session("s"))
    told = await alone.store_fact(a_fact(subject="Team"), scope=scope.session("s"))
    clock.advance(timedelta(hours=1))
    for job in (
        alone.maintenance.embed_missing,
        alone.maintenance.count_terms,
        alone.maintenance.end_idle_sessions,
    ):
        await job()

    [found] = await here.semantic.get_by_entity("User")
    hits = (await alone.recall("lease", scope=scope, floor=0.0, limit=100)).hits

    assert found.id == fact.id
    assert said[0].id in {hit.id for hit in hits}
    await here.episodic.update_importance(episode.id, 0.5)
    await here.procedural.record_outcome(skill.id, success=True)
    for one in (fact, told):
        assert (await here.semantic.reinforce_fact(one.id)).reinforcement_count == 2
    assert (await alone.recall("Team", scope=scope, floor=0.0)).hits[0].near_place is not None
    assert (await alone.forget([told.id], scope=scope)).counts == {"fact": 1}
    assert await here.semantic.get_by_entity("Team") == []


async def test_l21_what_was_acknowledged_is_there_at_once_two_hundred_times(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope)

    for number in range(200):
        receipt = await memory.store_fact(a_fact(object=f"o{number}"), scope=scope)
        [read] = await here.semantic.get_by_entity(f"o{number}")
        assert read.id == receipt.id


@generated
@given(
    st.lists(
        st.lists(st.sampled_from(["red", "lease", "due", "?", "me"]), min_size=1, max_size=6),
        min_size=1,
        max_size=25,
    ),
    st.integers(1, 30),
)
async def test_l18_scores_are_finite_bounded_and_in_one_order(
    memory: MemoryManager, texts: list[list[str]], limit: int
) -> None:
    scope = a_scope()
    session = scope.session("s")
    said = [" ".join(words) for words in texts]
    await memory.sessions.append([a_turn(text) for text in said], scope=session)
    for text in said[:3]:
        await memory.remember(f"Once: {text}", scope=scope, memory_type="episodic")
        await memory.store_fact(a_fact(object=text), scope=scope)

    found = await memory.recall("Is the lease red?", scope=session, limit=limit, floor=0.0)
    again = await memory.recall("Is the lease red?", scope=session, limit=limit, floor=0.0)

    assert_ranked(found)
    assert [hit.id for hit in again.hits] == [hit.id for hit in found.hits]
