"""What was made of a memory follows it when it is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from mnemic import Conflict, EpisodeCreate, FactCreate, Forbidden, MemoryManager, NotFound, Scope
from mnemic.errors import EmbedderUnavailable, InvalidInput, ThinkerUnavailable
from mnemic.model.embedding import Vector
from mnemic.model.episode import Episode, EpisodeDraft
from mnemic.model.receipt import Receipt
from mnemic.settings import MemorySettings
from mnemic.testing import TickingClock, a_conversation, a_fact
from mnemic.think import RulesThinker, SessionRecord
from mnemic.wiring import Wiring

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
TALK = [
    "I use Heliotrope for the vault codes.",
    "Noted: Heliotrope for the vault codes.",
    "We use Valkey for the carts.",
    "Valkey for the carts, fine.",
]
SECRET = "heliotrop"  # as its stem is counted


async def _ended(
    memory: MemoryManager, scope: Scope, talk: list[str] | None = None
) -> tuple[list[Receipt], Episode]:
    """The turns of a session that has ended, and its episode."""
    session = scope.session("monday")
    turns = await memory.sessions.append(a_conversation(talk or TALK), scope=session)
    await memory.sessions.end(scope=session)
    [episode] = await memory.at(scope).episodic.get_by_task_type("conversation")
    return turns, episode


async def _rows_with(seen: asyncpg.Connection, scope: Scope, word: str) -> list[str]:
    """The tables in which a row of the tenant holds the word, in any column."""
    names = await seen.fetch(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
        " WHERE c.relnamespace = 'mnemic'::regnamespace AND c.relkind IN ('r', 'p')"
        " AND a.attname = 'tenant_id'"
    )
    return [
        row["relname"]
        for row in names
        if await seen.fetchval(
            f"SELECT count(*) FROM mnemic.{row['relname']} r"
            " WHERE r.tenant_id = $1 AND strpos(lower(r::text), $2) > 0",
            scope.tenant.id,
            word,
        )
    ]


async def test_no_word_of_a_forgotten_turn_stays_anywhere(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    turns, episode = await _ended(memory, scope)
    await memory.at(scope).semantic.extract_facts_from_episode(episode)
    await memory.maintenance.count_terms()
    before = await _rows_with(seen, scope, SECRET)

    gone = await memory.forget([turns[0].id, turns[1].id], scope=scope)

    assert {"turns", "episodes", "facts", "term_stats"} <= set(before)
    assert await _rows_with(seen, scope, SECRET) == []
    assert (gone.counts, gone.reworded) == ({"turn": 2, "fact": 1}, 1)


async def test_the_episode_is_told_anew_by_what_is_left(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    turns, episode = await _ended(memory, scope)
    await memory.at(scope).episodic.update_importance(episode.id, 0.9)

    await memory.forget([turns[0].id, turns[1].id], scope=scope)

    [told] = await memory.at(scope).episodic.get_by_task_type("conversation")
    assert (told.id, told.session_id, told.importance_score) == (
        episode.id,
        episode.session_id,
        0.9,
    )
    assert (told.outcome, told.recorded_at) == (episode.outcome, episode.recorded_at)
    assert (told.message_count, told.started_at) == (2, episode.started_at + timedelta(minutes=2))
    assert "Valkey" in told.title + told.summary
    found = await memory.recall("Valkey carts", scope=scope, memory_types=("episodic",), floor=0.0)
    assert told.id in {hit.id for hit in found.hits}
    vectors = await seen.fetchval(
        "SELECT count(*) FROM mnemic.episode_vectors WHERE memory_id = $1", episode.id
    )
    linked = await seen.fetchval(
        "SELECT episode_id FROM mnemic.sessions WHERE id = $1", episode.session_id
    )
    assert (vectors, linked) == (1, episode.id)


async def test_a_fact_that_the_episode_still_states_stays(
    memory: MemoryManager, scope: Scope
) -> None:
    turns, episode = await _ended(memory, scope)
    facts = await memory.at(scope).semantic.extract_facts_from_episode(episode)

    await memory.forget([turns[0].id, turns[1].id], scope=scope)

    left = await memory.at(scope).semantic.search_facts("use", limit=50)
    assert {fact.object for fact in facts} == {"Heliotrope", "Valkey"}
    assert [fact.object for fact in left] == ["Valkey"]
    verified = await memory.at(scope).semantic.verify_fact(left[0].id)
    assert verified.verification == "supported"


async def test_with_its_last_turn_the_episode_is_gone(memory: MemoryManager, scope: Scope) -> None:
    turns, episode = await _ended(memory, scope)
    await memory.at(scope).semantic.extract_facts_from_episode(episode)

    gone = await memory.forget([turn.id for turn in turns], scope=scope)

    assert gone.counts == {"turn": 4, "episode": 1, "fact": 2}
    assert gone.reworded == 0
    found = await memory.recall("Valkey Heliotrope", scope=scope, floor=0.0)
    assert found.hits == ()
    assert await memory.sessions.end(scope=scope.session("monday")) is None


async def test_a_fact_with_another_source_is_less_sure_and_stays(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope)
    told = EpisodeCreate(task_description="We use Valkey for the carts.", occurred_at=AT)
    episode = await here.episodic.record_episode(told)
    [fact] = await here.semantic.extract_facts_from_episode(episode)
    surer = await here.semantic.reinforce_fact(fact.id)

    gone = await memory.forget([episode.id], scope=scope)

    assert gone.counts == {"episode": 1}
    [left] = await here.semantic.search_facts("Valkey")
    assert (left.id, left.reinforcement_count) == (fact.id, surer.reinforcement_count - 1)
    assert left.confidence == pytest.approx(surer.confidence - 0.1)


async def test_a_fact_of_a_narrower_scope_goes_too_and_is_not_counted(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    told = EpisodeCreate(task_description="We use Heliotrope for the codes.", occurred_at=AT)
    episode = await memory.at(scope).episodic.record_episode(told)
    agent = memory.at(scope.project("p").agent("a"))
    assert len(await agent.semantic.extract_facts_from_episode(episode)) == 1

    gone = await memory.forget([episode.id], scope=scope)

    assert gone.counts == {"episode": 1}
    assert await _rows_with(seen, scope, SECRET) == []


async def test_a_fact_may_be_told_again_by_somebody_else(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope)
    told = EpisodeCreate(task_description="We use Valkey for the carts.", occurred_at=AT)
    episode = await here.episodic.record_episode(told)
    await here.semantic.extract_facts_from_episode(episode)

    await memory.forget([episode.id], scope=scope)
    again = await memory.store_fact(a_fact(object="Valkey"), scope=scope)

    assert again.created


async def test_a_repeated_call_has_the_same_answer(memory: MemoryManager, scope: Scope) -> None:
    turns, _ = await _ended(memory, scope)

    first = await memory.forget([turns[0].id], scope=scope, idempotency_key="k")
    again = await memory.forget([turns[0].id], scope=scope, idempotency_key="k")

    assert again == first
    assert first.reworded == 1


async def test_what_may_not_be_forgotten_changes_no_episode(
    memory: MemoryManager, scope: Scope
) -> None:
    turns, episode = await _ended(memory, scope)

    with pytest.raises(Forbidden):
        await memory.forget([turns[0].id], scope=scope.project("p"))
    with pytest.raises(NotFound):
        await memory.forget([turns[0].id, episode.session_id], scope=scope)

    [told] = await memory.at(scope).episodic.get_by_task_type("conversation")
    assert told == episode


async def test_many_forget_turns_of_one_session_at_once(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    talk = [f"We use tool{number}x for the carts." for number in range(6)]
    turns, _ = await _ended(memory, scope, talk)

    async def until_gone(turn: Receipt) -> None:
        while True:
            try:
                await memory.forget([turn.id], scope=scope)
            except Conflict:
                continue
            return

    await asyncio.gather(*(until_gone(turn) for turn in turns[:5]))

    [told] = await memory.at(scope).episodic.get_by_task_type("conversation")
    assert told.message_count == 1
    for number in range(5):
        assert await _rows_with(seen, scope, f"tool{number}x") == []


class _Interrupted(RulesThinker):
    """Lets something happen while it thinks, once."""

    meanwhile: Any = None

    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return await super().summarise(session)


async def test_a_turn_that_is_forgotten_while_the_episode_is_worded_is_not_in_it(
    settings: MemorySettings,
    embedder: Any,
    clock: TickingClock,
    scope: Scope,
    seen: asyncpg.Connection,
) -> None:
    thinker = _Interrupted()
    wiring = Wiring(settings, clock=clock, embedder=embedder, thinker=thinker)
    async with MemoryManager(wiring) as memory:
        turns, _ = await _ended(memory, scope)
        thinker.meanwhile = lambda: memory.forget([turns[1].id], scope=scope)

        gone = await memory.forget([turns[0].id], scope=scope)

    assert thinker.meanwhile is None
    assert (gone.counts, gone.reworded) == ({"turn": 1}, 1)
    assert await _rows_with(seen, scope, SECRET) == []


async def test_an_importance_that_is_set_meanwhile_is_kept(
    settings: MemorySettings, embedder: Any, clock: TickingClock, scope: Scope
) -> None:
    thinker = _Interrupted()
    wiring = Wiring(settings, clock=clock, embedder=embedder, thinker=thinker)
    async with MemoryManager(wiring) as memory:
        turns, episode = await _ended(memory, scope)
        here = memory.at(scope).episodic
        thinker.meanwhile = lambda: here.update_importance(episode.id, 0.25)

        await memory.forget([turns[0].id], scope=scope)

        [told] = await here.get_by_task_type("conversation")
    assert (told.importance_score, told.message_count) == (0.25, 3)


class _Away:
    """An embedder that is down when it is told to be."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.signature, self.is_away = inner, inner.signature, False

    async def embed(self, texts: list[str]) -> list[Vector]:
        if self.is_away:
            raise EmbedderUnavailable
        vectors: list[Vector] = await self.inner.embed(texts)
        return vectors

    async def close(self) -> None:
        """Its owner closes it."""


async def test_without_the_embedder_the_vector_follows(
    settings: MemorySettings,
    embedder: Any,
    clock: TickingClock,
    scope: Scope,
    seen: asyncpg.Connection,
) -> None:
    away = _Away(embedder)
    count = "SELECT count(*) FROM mnemic.episode_vectors WHERE memory_id = $1"
    async with MemoryManager(Wiring(settings, clock=clock, embedder=away)) as memory:
        turns, episode = await _ended(memory, scope)
        away.is_away = True

        await memory.forget([turns[0].id, turns[1].id], scope=scope)

        between = await seen.fetchval(count, episode.id)
        away.is_away = False
        await memory.maintenance.embed_missing()

    assert between == 0
    assert await seen.fetchval(count, episode.id) == 1


class _Spelled(RulesThinker):
    """States facts in a spelling of its own."""

    def extract_facts(
        self, text: str, *, actor: str, occurred_at: datetime
    ) -> Sequence[FactCreate]:
        found = super().extract_facts(text, actor=actor, occurred_at=occurred_at)
        return [replace(one, predicate=f" {one.predicate.title()}") for one in found]


async def test_a_statement_is_the_same_in_another_spelling_of_its_predicate(
    settings: MemorySettings, embedder: Any, clock: TickingClock, scope: Scope
) -> None:
    wiring = Wiring(settings, clock=clock, embedder=embedder, thinker=_Spelled())
    async with MemoryManager(wiring) as memory:
        turns, episode = await _ended(memory, scope)
        await memory.at(scope).semantic.extract_facts_from_episode(episode)

        await memory.forget([turns[0].id, turns[1].id], scope=scope)

        left = await memory.at(scope).semantic.search_facts("use", limit=50)
    assert [fact.object for fact in left] == ["Valkey"]


class _Silent(RulesThinker):
    """Finds nothing to tell in what is left, or fails."""

    fault: Exception | None = None

    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        if self.fault is not None:
            raise self.fault
        return await super().summarise(session)


@pytest.fixture
async def silent(
    settings: MemorySettings, embedder: Any, clock: TickingClock
) -> AsyncIterator[tuple[MemoryManager, _Silent]]:
    """A manager whose Thinker falls silent when it is told to."""
    thinker = _Silent()
    wiring = Wiring(settings, clock=clock, embedder=embedder, thinker=thinker)
    async with MemoryManager(wiring) as memory:
        yield memory, thinker


async def test_an_episode_of_which_nothing_is_left_to_tell_is_gone(
    silent: tuple[MemoryManager, _Silent], scope: Scope, seen: asyncpg.Connection
) -> None:
    memory, thinker = silent
    turns, _ = await _ended(memory, scope)
    thinker.fault = InvalidInput("holds nothing to tell", field="turns")

    gone = await memory.forget([turns[0].id, turns[1].id], scope=scope)

    assert (gone.counts, gone.reworded) == ({"turn": 2, "episode": 1}, 0)
    assert await _rows_with(seen, scope, SECRET) == []


async def test_nothing_is_forgotten_while_the_thinker_fails(
    silent: tuple[MemoryManager, _Silent], scope: Scope
) -> None:
    memory, thinker = silent
    turns, episode = await _ended(memory, scope)
    thinker.fault = RuntimeError("out of order")

    with pytest.raises(ThinkerUnavailable, match="RuntimeError"):
        await memory.forget([turns[0].id], scope=scope)

    [told] = await memory.at(scope).episodic.get_by_task_type("conversation")
    assert told == episode
