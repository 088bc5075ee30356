"""G: duplicates, many callers, jobs that are run twice, broken off or overtaken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemic import (
    Conflict,
    InvalidInput,
    MemoryManager,
    NotFound,
    Retracted,
    Scope,
    Step,
    Unavailable,
)
from mnemic.model.context_form import parse
from mnemic.testing import TickingClock, a_conversation, a_fact, a_scope, a_turn
from oracles.closure import assert_closed, plant
from oracles.failing import failing
from oracles.reading import shown
from oracles.stored import assert_changes_nothing, canonical_facts, digest_of, rows_of
from oracles.together import HeldEmbedder, HeldThinker, at_once, meanwhile

NOT_APPLICABLE: dict[str, str] = {}

generated = settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


async def _live(memory: MemoryManager, scope: Scope, entity: str = "User") -> dict[str, int]:
    facts = await memory.at(scope).semantic.get_by_entity(entity, 100)
    return {fact.object: fact.reinforcement_count for fact in facts}


async def _texts(seen: asyncpg.Connection, scope: Scope) -> list[tuple[int, str]]:
    rows = await seen.fetch(
        "SELECT seq, text FROM mnemic.turns WHERE tenant_id = $1 ORDER BY seq", scope.tenant.id
    )
    return [(row["seq"], row["text"]) for row in rows]


async def test_g01_twenty_equal_writes_make_one_row(memory: MemoryManager, scope: Scope) -> None:
    writes = [memory.store_fact(a_fact(), scope=scope) for _ in range(20)]

    receipts = await at_once(*writes, memory.store_fact(a_fact(object="Valkey"), scope=scope))

    assert len({one.id for one in receipts[:20]}) == 1
    assert sum(one.created for one in receipts[:20]) == 1
    assert await _live(memory, scope) == {"PostgreSQL": 20, "Valkey": 1}


@generated
@given(st.lists(st.sampled_from(["a", "A ", "b", "c"]), min_size=1, max_size=8))
async def test_g01_writes_at_once_are_some_order_of_the_writes(
    memory: MemoryManager, seen: asyncpg.Connection, values: list[str]
) -> None:
    scope, serial = a_scope(), a_scope()
    for value in values:
        await memory.store_fact(a_fact(object=value), scope=serial)

    await at_once(*(memory.store_fact(a_fact(object=value), scope=scope) for value in values))

    known = await canonical_facts(seen, scope)
    assert known
    assert known == await canonical_facts(seen, serial)


@generated
@given(
    st.permutations(["Oslo", "Bergen", "Lima"]).flatmap(
        lambda order: st.tuples(st.just(order), st.integers(0, 3))
    )
)
async def test_g01_facts_are_the_same_in_whichever_order_and_batches_they_come(
    memory: MemoryManager, seen: asyncpg.Connection, told: tuple[list[str], int]
) -> None:
    order, again = told
    since = {name: at for at, name in enumerate(("Oslo", "Bergen", "Lima"))}

    def fact(name: str) -> Any:
        start = TickingClock()() + timedelta(days=since[name])
        return a_fact(predicate="lives_in", object=name, valid_from=start)

    scope, sorted_scope = a_scope(), a_scope()
    for name in since:
        await memory.store_fact(fact(name), scope=sorted_scope, idempotency_key=name)

    for name in order + order[:again]:
        await memory.store_fact(fact(name), scope=scope, idempotency_key=name)

    known = [(row[2], row[3], row[6], row[7]) for row in await canonical_facts(seen, scope)]
    assert known == [
        (row[2], row[3], row[6], row[7]) for row in await canonical_facts(seen, sorted_scope)
    ]
    assert await _live(memory, scope) == {"Lima": 1}


async def test_g03_what_a_session_carries_up_twice_stands_there_once(
    memory: MemoryManager, scope: Scope
) -> None:
    for name in ("one", "two"):
        session = scope.session(name)
        await memory.store_fact(a_fact(), scope=session)
        await memory.store_fact(a_fact(object=name), scope=session)
        await memory.sessions.append(a_conversation(["Noted."], name=name), scope=session)

    ends = [memory.sessions.end(scope=scope.session(name)) for name in ("one", "two", "one")]
    receipts = await at_once(*ends)

    assert receipts[0].id == receipts[2].id
    assert await _live(memory, scope) == {"PostgreSQL": 2, "one": 1, "two": 1}


async def test_g04_a_duplicate_raises_the_count(memory: MemoryManager, scope: Scope) -> None:
    first = await memory.store_fact(a_fact(), scope=scope)
    once = await _live(memory, scope)

    second = await memory.store_fact(a_fact(), scope=scope)

    assert (first.created, second.created, second.id) == (True, False, first.id)
    assert (once, await _live(memory, scope)) == ({"PostgreSQL": 1}, {"PostgreSQL": 2})


async def test_g05_ten_clients_that_append_at_once_lose_no_turn(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")

    await at_once(*(memory.sessions.append([a_turn(f"t{n}")], scope=session) for n in range(10)))

    stored = await _texts(seen, scope)
    assert [seq for seq, _ in stored] == list(range(10))
    assert {text for _, text in stored} == {f"t{number}" for number in range(10)}


async def test_g06_two_processes_that_append_notes_keep_both(
    opened: Callable[..., Any], memory: MemoryManager, scope: Scope
) -> None:
    notes = [f"n{number}" for number in range(20)]
    async with opened() as other:
        hands = [memory.at(scope).working, other.at(scope).working]
        writes = [hands[at % 2].append_scratchpad(note) for at, note in enumerate(notes)]
        changes = [hands[at % 2].set(note, at) for at, note in enumerate(notes)]

        await at_once(*writes, *changes)

        assert sorted(await hands[0].get_scratchpad()) == sorted(notes)
        assert await hands[1].get_all() == dict(sorted((note, at) for at, note in enumerate(notes)))


async def test_g06_a_writer_that_is_cancelled_leaves_the_notes_whole(
    memory: MemoryManager, scope: Scope
) -> None:
    working = memory.at(scope).working
    await working.append_scratchpad("first")

    for number in range(10):
        writing = asyncio.ensure_future(working.append_scratchpad(f"n{number}"))
        for _ in range(number):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    await working.append_scratchpad("last")

    notes = await working.get_scratchpad()
    assert (notes[0], notes[-1]) == ("first", "last")
    assert len(set(notes)) == len(notes)


async def test_g07_a_turn_said_while_the_session_ends_is_in_its_episode(
    opened: Callable[..., Any], scope: Scope
) -> None:
    thinker, session = HeldThinker(), scope.session("s")
    async with opened(thinker=thinker) as memory:
        await memory.sessions.append([a_turn("The lease is red.")], scope=session)

        ended = await meanwhile(
            thinker.gate,
            memory.sessions.end(scope=session),
            lambda: memory.sessions.append([a_turn("The door is heliotrope.")], scope=session),
        )

        [episode] = await memory.at(scope).episodic.get_recent()
        assert (episode.id, episode.message_count) == (ended.id, 2)
        found = await memory.recall("heliotrope", scope=scope, floor=0.0)
        assert {hit.kind for hit in found.hits} >= {"turn"}


@pytest.mark.parametrize(
    "write", ["store_fact", "importance", "forget", "append", "remember", "steps"]
)
async def test_g07_what_is_written_while_vectors_are_made_survives(
    opened: Callable[..., Any], scope: Scope, write: str
) -> None:
    embedder, session = HeldEmbedder(), scope.session("s")
    async with opened(embedder=embedder) as memory:
        here = memory.at(scope)
        embedder.fail()
        fact = await memory.store_fact(a_fact(), scope=scope)
        episode = await memory.remember("It went well.", scope=scope, memory_type="episodic")
        skill = await memory.remember("Deploy\n1. Tag it", scope=scope, memory_type="procedural")
        embedder.fault = None
        writes: dict[str, Callable[[], Any]] = {
            "store_fact": lambda: memory.store_fact(a_fact(), scope=scope),
            "importance": lambda: here.episodic.update_importance(episode.id, 0.9),
            "forget": lambda: memory.forget([fact.id], scope=scope),
            "append": lambda: memory.sessions.append([], scope=session),
            "remember": lambda: here.working.set("k", 1),
            "steps": lambda: here.procedural.record_outcome(skill.id, success=True),
        }

        await meanwhile(embedder.gate, memory.maintenance.embed_missing(), writes[write])

        live = await _live(memory, scope)
        assert live == {"store_fact": {"PostgreSQL": 2}, "forget": {}}.get(write, {"PostgreSQL": 1})
        [kept] = await here.episodic.get_recent()
        assert kept.importance_score == (0.9 if write == "importance" else pytest.approx(0.3, 0.9))
        best = await here.procedural.get_best_procedure("general")
        assert best is not None
        assert best.success_count == (write == "steps")
        assert await here.working.get_all() == ({"k": 1} if write == "remember" else {})


async def test_g07_a_value_retracted_while_it_is_told_again_stays_away(
    opened: Callable[..., Any], scope: Scope
) -> None:
    embedder = HeldEmbedder()
    async with opened(embedder=embedder) as memory:
        kept = await memory.store_fact(a_fact(), scope=scope)

        with pytest.raises(Retracted):
            await meanwhile(
                embedder.gate,
                memory.store_fact(a_fact(), scope=scope),
                lambda: memory.forget([kept.id], scope=scope),
            )

        assert await _live(memory, scope) == {}


async def test_g09_a_session_that_is_overtaken_is_tried_again_and_can_end_later(
    opened: Callable[..., Any], scope: Scope
) -> None:
    class Talkative(HeldThinker):
        busy = True

        async def summarise(self, session: Any) -> Any:
            if self.busy:
                await memory.sessions.append([a_turn(f"One more, {self.read}.")], scope=talk)
            return await super().summarise(session)

    thinker, talk = Talkative(), scope.session("s")
    async with opened(thinker=thinker) as memory:
        await memory.sessions.append([a_turn("Hello there.")], scope=talk)
        with pytest.raises(Conflict, match="still being written"):
            await memory.sessions.end(scope=talk)
        tried, thinker.busy = thinker.read, False

        ended = await memory.sessions.end(scope=talk)

        assert tried > 1
        assert ended.created
        [episode] = await memory.at(scope).episodic.get_recent()
        assert episode.message_count == 1 + tried


@pytest.mark.parametrize(
    ("table", "event"),
    [("audit_log", "INSERT"), ("turn_vectors", "UPDATE"), ("episodes", "INSERT")],
)
async def test_g10_an_end_that_fails_half_way_has_moved_nothing(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, table: str, event: str
) -> None:
    session = scope.session("s")
    await memory.sessions.append(a_conversation(["The lease is red.", "Noted."]), scope=session)
    await memory.store_fact(a_fact(), scope=session)

    async with failing(seen, scope, table, event):
        fault = await assert_changes_nothing(
            seen, scope, lambda: memory.sessions.end(scope=session)
        )

    assert isinstance(fault, Unavailable)
    ended = await memory.sessions.end(scope=session)
    assert ended is not None
    assert ended.created
    assert await _live(memory, scope) == {"PostgreSQL": 1}


@pytest.mark.parametrize(
    "fault", [InvalidInput("no", field="turns"), RuntimeError("no")], ids=["ours", "any"]
)
async def test_g11_a_session_that_fails_holds_up_no_other_and_stays_due(
    opened: Callable[..., Any], alone: MemoryManager, clock: TickingClock, fault: Exception
) -> None:
    thinker, scope = HeldThinker(), a_scope()
    thinker.faults["heliotrope"] = fault
    names = ["a", "b", "c"]
    async with opened(alone.settings, thinker=thinker) as memory:
        for name, word in zip(names, ["red", "heliotrope", "blue"], strict=True):
            said = [a_turn(f"The lease is {word}.")]
            await memory.sessions.append(said, scope=scope.session(name))
        clock.advance(timedelta(hours=1))

        first = await memory.maintenance.end_idle_sessions()
        thinker.faults.clear()
        second = await memory.maintenance.end_idle_sessions()

        assert (first.done, first.failed) == (2, 1)
        assert (second.done, second.failed) == (1, 0)
        assert len(await memory.at(scope).episodic.get_recent()) == 3


async def test_g11_many_sessions_that_fail_do_not_stand_before_the_others(
    opened: Callable[..., Any], alone: MemoryManager, clock: TickingClock
) -> None:
    thinker, scope = HeldThinker(), a_scope()
    thinker.faults["heliotrope"] = InvalidInput("no", field="turns")
    few = alone.settings.maintenance.model_copy(update={"batch_max": 2})
    settings = alone.settings.model_copy(update={"maintenance": few})
    async with opened(settings, thinker=thinker) as memory:
        for name in "abc":
            said = [a_turn("The lease is heliotrope.")]
            await memory.sessions.append(said, scope=scope.session(name))
        await memory.sessions.append([a_turn("The lease is red.")], scope=scope.session("d"))
        clock.advance(timedelta(hours=1))

        report = await memory.maintenance.end_idle_sessions()

        assert (report.done, report.failed) == (1, 3)
        assert len(await memory.at(scope).episodic.get_recent()) == 1


async def test_g13_a_failed_run_moves_nothing_and_a_run_is_no_work_for_the_next(
    opened: Callable[..., Any], alone: MemoryManager, clock: TickingClock, admin: asyncpg.Connection
) -> None:
    thinker, scope = HeldThinker(), a_scope()
    async with opened(alone.settings, thinker=thinker) as memory:
        thinker.faults["lease"] = InvalidInput("no", field="turns")
        await memory.sessions.append([a_turn("The lease is red.")], scope=scope.session("s"))
        clock.advance(timedelta(hours=1))

        failed = await assert_changes_nothing(admin, scope, memory.maintenance.end_idle_sessions)
        thinker.faults.clear()
        done = await memory.maintenance.end_idle_sessions()
        clock.advance(timedelta(days=1))
        idle = await assert_changes_nothing(admin, scope, memory.maintenance.end_idle_sessions)

    assert (failed.failed, done.done) == (1, 1)
    assert (idle.tenants, idle.done) == (0, 0)


async def test_g15_a_repeated_request_has_one_effect_and_one_answer(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    here, key = memory.at(scope), {"idempotency_key": "k"}
    calls: list[Callable[[], Any]] = [
        lambda: memory.store_fact(a_fact(), scope=scope, **key),
        lambda: memory.remember("It went well.", scope=scope, memory_type="episodic", **key),
    ]
    answers = []
    for number, call in enumerate(calls):
        key["idempotency_key"] = f"k{number}"
        first = await call()
        again = await assert_changes_nothing(seen, scope, call)
        answers.append((first, again))

    with pytest.raises(Conflict, match="another request"):
        await memory.store_fact(a_fact(object="Valkey"), scope=scope, idempotency_key="k0")

    assert all(first == again for first, again in answers)
    assert len(await here.episodic.get_recent()) == 1
    assert await _live(memory, scope) == {"PostgreSQL": 1}


async def test_g15_every_verb_with_a_key_is_done_once(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    here = memory.at(scope)
    facts = [await memory.store_fact(a_fact(object=one), scope=scope) for one in "abcde"]
    episode = await memory.remember("It went well.", scope=scope, memory_type="episodic")
    skill = await memory.remember("Deploy\n1. Tag it", scope=scope, memory_type="procedural")
    verbs: dict[str, Callable[[str], Any]] = {
        "append": lambda key: memory.sessions.append(
            [a_turn()], scope=scope.session("s"), idempotency_key=key
        ),
        "reinforce": lambda key: here.semantic.reinforce_fact(facts[0].id, idempotency_key=key),
        "alias": lambda key: here.semantic.add_alias("User", "Me", idempotency_key=key),
        "unalias": lambda key: here.semantic.remove_alias("User", "Me", idempotency_key=key),
        "verify": lambda key: here.semantic.verify_fact(facts[0].id, idempotency_key=key),
        "outcome": lambda key: here.procedural.record_outcome(
            skill.id, success=True, idempotency_key=key
        ),
        "steps": lambda key: here.procedural.update_steps(
            skill.id, [Step(action="Press it")], idempotency_key=key
        ),
        "importance": lambda key: here.episodic.update_importance(
            episode.id, 0.9, idempotency_key=key
        ),
        "deprecate": lambda key: here.semantic.deprecate_fact(
            facts[1].id, "no", idempotency_key=key
        ),
        "resolve": lambda key: here.semantic.resolve_conflict(
            [one.id for one in facts[2:4]], idempotency_key=key
        ),
        "forget": lambda key: memory.forget([facts[4].id], scope=scope, idempotency_key=key),
    }

    for name, verb in verbs.items():
        before = await digest_of(seen, scope)
        first = await verb(name)
        assert await digest_of(seen, scope) != before, name
        again = await assert_changes_nothing(seen, scope, lambda v=verb, n=name: v(n))
        assert first == again, name


async def test_g17_a_job_that_is_asked_for_twenty_times_is_done_once(
    opened: Callable[..., Any], alone: MemoryManager, clock: TickingClock, admin: asyncpg.Connection
) -> None:
    scope = a_scope()
    for name in "ab":
        await alone.sessions.append([a_turn("The lease is red.")], scope=scope.session(name))
    clock.advance(timedelta(hours=1))

    ends = await at_once(*(alone.maintenance.end_idle_sessions() for _ in range(20)))
    await at_once(*(alone.maintenance.count_terms() for _ in range(5)))

    counted = await admin.fetchval(
        "SELECT documents FROM mnemic.term_stats WHERE tenant_id = $1 AND term = 'leas'",
        scope.tenant.id,
    )
    assert sum(report.done for report in ends) == 2
    assert len(await alone.at(scope).episodic.get_recent()) == 2
    assert counted == 4  # two turns, two episodes


async def test_g18_batches_that_touch_the_same_rows_in_opposite_order_both_land(
    memory: MemoryManager, scope: Scope
) -> None:
    forward = "I use Postgres. I use Valkey. I use Celery."
    backward = "I use Celery. I use Valkey. I use Postgres."

    texts = [forward, backward] * 5
    receipts = await at_once(*(memory.remember(text, scope=scope) for text in texts))

    assert len(receipts) == 10
    assert await _live(memory, scope) == {"Postgres": 10, "Valkey": 10, "Celery": 10}


async def test_g18_two_that_forget_the_same_in_opposite_order_both_get_an_answer(
    memory: MemoryManager, scope: Scope
) -> None:
    facts = [await memory.store_fact(a_fact(object=f"o{n}"), scope=scope) for n in range(10)]
    ids = [fact.id for fact in facts]

    answers = await asyncio.gather(
        memory.forget(ids, scope=scope),
        memory.forget(ids[::-1], scope=scope),
        return_exceptions=True,
    )

    [refused] = [one for one in answers if isinstance(one, Exception)]
    assert isinstance(refused, NotFound)
    assert await _live(memory, scope) == {}


async def test_g21_what_is_gone_cannot_be_changed_and_has_no_history(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    here = memory.at(scope)
    kept = await memory.store_fact(a_fact(object="kept"), scope=scope)
    fact = await memory.store_fact(a_fact(), scope=scope)
    episode = await memory.remember("It went well.", scope=scope, memory_type="episodic")
    skill = await memory.remember("Deploy\n1. Tag it", scope=scope, memory_type="procedural")
    await memory.forget([fact.id, episode.id, skill.id], scope=scope)
    changes: list[Callable[[], Any]] = [
        lambda: here.semantic.reinforce_fact(fact.id),
        lambda: here.semantic.deprecate_fact(fact.id, "no"),
        lambda: here.semantic.verify_fact(fact.id),
        lambda: here.semantic.resolve_conflict([fact.id, kept.id]),
        lambda: here.episodic.update_importance(episode.id, 0.5),
        lambda: here.procedural.record_outcome(skill.id, success=True),
        lambda: here.procedural.update_steps(skill.id, [Step(action="x")]),
        lambda: memory.forget([fact.id], scope=scope),
    ]

    faults = [await assert_changes_nothing(seen, scope, change) for change in changes]

    assert [type(fault) for fault in faults] == [NotFound] * len(changes)
    assert (await here.semantic.reinforce_fact(kept.id)).reinforcement_count == 2


async def test_g22_what_is_named_twice_in_one_call_counts_once(
    memory: MemoryManager, scope: Scope
) -> None:
    here, session = memory.at(scope), scope.session("s")
    fact = await memory.store_fact(a_fact(), scope=scope)
    other = await memory.store_fact(a_fact(object="Valkey"), scope=scope)
    episode = await memory.remember("It went well.", scope=scope, memory_type="episodic")

    turns = await memory.sessions.append([a_turn(external_id="m")] * 3, scope=session)
    summary = await here.episodic.summarize_episodes([episode.id, episode.id])
    winner = await here.semantic.resolve_conflict([fact.id, other.id, fact.id])
    gone = await memory.forget([winner.id, winner.id], scope=scope)

    assert [one.created for one in turns] == [True, False, False]
    assert len({one.id for one in turns}) == 1
    assert summary == await here.episodic.summarize_episodes([episode.id])
    assert gone.counts == {"fact": 1}


async def test_g23_posts_at_once_have_places_of_their_own_in_their_own_order(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    posts = [[a_turn(f"{client}.{n}") for n in range(3)] for client in range(20)]

    await at_once(*(memory.sessions.append(post, scope=session) for post in posts))

    stored = await _texts(seen, scope)
    assert [seq for seq, _ in stored] == list(range(60))
    for client in range(20):
        own = [seq for seq, text in stored if text.startswith(f"{client}.")]
        assert own == list(range(own[0], own[0] + 3))


async def test_g25_a_bulk_deletion_takes_all_or_none(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    facts = [await memory.store_fact(a_fact(object=f"o{n}"), scope=scope) for n in range(3)]
    episode = await memory.remember("It went well.", scope=scope, memory_type="episodic")
    skill = await memory.remember("Deploy\n1. Tag it", scope=scope, memory_type="procedural")
    ids = [one.id for one in (*facts, episode, skill)]
    unknown = [*ids[:2], UUID(int=7), *ids[2:]]

    missing = await assert_changes_nothing(seen, scope, lambda: memory.forget(unknown, scope=scope))
    async with failing(seen, scope, "procedures", "DELETE"):
        full = await assert_changes_nothing(seen, scope, lambda: memory.forget(ids, scope=scope))

    assert (type(missing), isinstance(full, Unavailable)) == (NotFound, True)
    assert (await memory.forget(ids, scope=scope)).total == 5


async def test_g28_what_the_prompt_section_tells_is_no_new_memory_when_it_is_told_again(
    memory: MemoryManager, scope: Scope
) -> None:
    receipt = await memory.remember("The vault code is heliotrope.", scope=scope)
    section = await memory.context("What is the vault code?", scope=scope)
    [told] = [item for part in parse(section.text) for item in part.items]

    again = await memory.remember(told.partition(" (")[0], scope=scope)
    await memory.forget([receipt.id], scope=scope)

    assert (again.id, again.created) == (receipt.id, False)
    with pytest.raises(Retracted):
        await memory.remember(told.partition(" (")[0], scope=scope)


async def test_g29_maintenance_mixes_no_owners(alone: MemoryManager, clock: TickingClock) -> None:
    people = [a_scope() for _ in range(3)]
    for person in people:
        said = a_conversation(["The lease is red.", "Noted."])
        await alone.sessions.append(said, scope=person.session("s"))
        await alone.store_fact(a_fact(), scope=person.session("s"))
    places = await plant(alone, people)
    clock.advance(timedelta(hours=1))

    ended = await alone.maintenance.end_idle_sessions()
    await alone.maintenance.embed_missing()
    await alone.maintenance.count_terms()

    await assert_closed(alone, places, "lease")
    assert (ended.tenants, ended.done) == (3, 3)
    for person in people:
        assert len(await alone.at(person).episodic.get_by_task_type("conversation")) == 1
        assert (await _live(alone, person))["PostgreSQL"] == 1


async def test_g30_no_way_of_reading_changes_a_row(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    await memory.store_fact(a_fact(), scope=scope)
    await memory.remember("It went well.", scope=scope, memory_type="episodic")
    await memory.remember("Deploy\n1. Tag it", scope=scope, memory_type="procedural")
    await memory.sessions.append(a_conversation(["The lease is red."]), scope=session)

    answers = await assert_changes_nothing(
        seen, scope, lambda: shown(memory, session, "PostgreSQL")
    )

    assert "PostgreSQL" in answers["recall semantic"]
    assert "memory_usage" not in await rows_of(seen, scope)
