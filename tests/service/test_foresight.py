"""A question is embedded while the store is read, by a model that runs in this process alone."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from mnemic import MemoryManager, Scope
from mnemic.errors import ConfigurationError, EmbedderUnavailable
from mnemic.model.embedding import Embedder, Vector
from mnemic.model.recall import Recall
from mnemic.service import foresight
from mnemic.service.question import arms_of
from mnemic.service.recall import parse_query, recall
from mnemic.service.tools import Tools
from mnemic.store.candidate_statements import (
    OTHERS,
    OTHERS_WORDED,
    TURNS,
    TURNS_WORDED,
    WORDS,
    words_statement,
)
from mnemic.store.kept_plans import KeptPlans
from mnemic.store.measuring.bare import Recorder
from mnemic.store.retrieval import Found, RetrievalStore
from mnemic.store.unit import Unit
from mnemic.testing import a_conversation, a_fact, a_scope
from mnemic.tier.tiers import Tiers
from mnemic.wiring import Wiring

TALK = ["The rota is weekly.", "Understood, the rota is weekly.", "Fridays are quiet."]
ASKED = "how often is the rota?"
WAITING = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'mnemic.procedures'::regclass"
FOUND_AHEAD = (WORDS.sql, words_statement(("fact", "procedure")).sql)
NAMING = "what did User say of the rota?"


class Ending(Recorder):
    """Says when the first transaction has ended."""

    ended: asyncio.Event | None = None

    async def transact(self, *given: Any, **named: Any) -> Any:
        answer = await super().transact(*given, **named)
        if self.ended is not None:
            self.ended.set()
        return answer


class Watched:
    """Says what it was asked for, and waits before it answers if it is told to."""

    def __init__(self, inner: Embedder, *, in_process: bool) -> None:
        self.inner = inner
        self.signature = inner.signature
        self.in_process = in_process
        self.asked: list[str] = []
        self.free = asyncio.Event()
        self.free.set()
        self.fault: Exception | None = None

    async def embed(self, texts: list[str]) -> list[Vector]:
        self.asked += texts
        await self.free.wait()
        if self.fault is not None:
            raise self.fault
        return await self.inner.embed(texts)

    async def close(self) -> None:
        """The model stays open for others."""


@pytest.fixture
async def asking(tools: Tools, scope: Scope) -> tuple[Tools, Ending]:
    """Tools whose transactions are noted, in a scope where somebody has spoken."""
    await tools.live_model()
    memory = MemoryManager(Wiring(tools.settings))
    memory._opened = tools
    await memory.sessions.append(a_conversation(TALK), scope=scope.session("s"))
    recorder = Ending(tools.database)
    return replace(tools, database=recorder), recorder


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes longer than a product waits."""
    monkeypatch.setattr(foresight, "WAIT_SECONDS", 30.0)


async def _asked(
    tools: Tools, text: str, scope: Scope, *, limit: int | None = None, filters: object = None
) -> Recall:
    query, _ = parse_query(tools, text, limit=limit, memory_types=None, floor=0.0, filters=filters)
    return await recall(tools, query, scope=scope.session("s"))


def _free_by_words(model: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model answers once words were found, and not before."""
    model.free.clear()
    by_words = RetrievalStore.by_words

    async def found_by_words(*given: Any) -> Any:
        found = await by_words(*given)
        model.free.set()
        return found

    monkeypatch.setattr(RetrievalStore, "by_words", found_by_words)


def _statements(recorder: Recorder) -> list[str]:
    """Of the one transaction: what is known, what is looked for, the rows of the hits."""
    [transaction] = recorder.transactions
    return [sql for sql, _ in transaction.statements]


async def test_a_question_that_names_nobody_takes_one_transaction(
    asking: tuple[Tools, Ending], scope: Scope
) -> None:
    tools, recorder = asking
    model = Watched(tools.embedder, in_process=True)

    found = await _asked(replace(tools, embedder=model), ASKED, scope)

    assert found.hits[0].memory.text == TALK[0]
    assert len(recorder.transactions) == 1
    assert model.asked == [ASKED]


async def test_words_are_looked_for_while_the_model_works(
    asking: tuple[Tools, Ending], scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools, recorder = asking
    model = Watched(tools.embedder, in_process=True)
    _free_by_words(model, monkeypatch)
    async with asyncio.timeout(20):
        found = await _asked(replace(tools, embedder=model), ASKED, scope)

    _, words, *rest, _ = _statements(recorder)
    assert words == WORDS.sql
    assert rest == [TURNS_WORDED.sql, OTHERS_WORDED.sql]
    assert found.hits[0].words_place in {1, 2}  # two hold the word as often


async def test_where_the_vector_is_at_hand_words_take_no_exchange_of_their_own(
    asking: tuple[Tools, Ending], scope: Scope
) -> None:
    tools, recorder = asking
    await _asked(tools, ASKED, scope)
    recorder.transactions.clear()

    await _asked(tools, ASKED, scope)

    _, *looked_for, _ = _statements(recorder)
    assert looked_for == [TURNS.sql, OTHERS["episode", "fact", "procedure"].sql]


async def test_that_there_are_no_turns_is_told_too(asking: tuple[Tools, Ending]) -> None:
    """What was weighed of those that a search before found would stay otherwise."""
    tools, _ = asking
    elsewhere = a_scope()
    await Tiers(tools, elsewhere).semantic.store_fact(a_fact(object="a weekly rota"))
    query, _ = parse_query(tools, ASKED, limit=None, memory_types=None, floor=0.0)
    arms = await arms_of(tools, query, elsewhere)
    told: list[list[Found]] = []

    async def look(unit: Unit) -> list[Found]:
        kinds = ("turn", "fact")
        return await unit.retrieval.candidates(elsewhere, arms, kinds, ahead=told.append)

    found = await tools.transact(elsewhere.tenant.id, look, read_only=True)

    assert [one.candidate.kind for one in found] == ["fact"]
    assert told == [[]]


async def test_who_is_named_is_not_embedded_and_next_time_nothing_is_made_for_nothing(
    asking: tuple[Tools, Ending], scope: Scope
) -> None:
    tools, recorder = asking
    model = Watched(tools.embedder, in_process=True)
    watched = replace(tools, embedder=model)

    for text in (NAMING, NAMING, ASKED, ASKED):
        await _asked(watched, text, scope)

    unnamed = "what did they say of the rota?"
    assert model.asked == [NAMING, unnamed, unnamed, ASKED, ASKED]
    assert len(recorder.transactions) == 2 + 2 + 2 + 1


async def test_of_many_at_once_only_some_are_made_ahead(
    asking: tuple[Tools, Ending], scope: Scope
) -> None:
    """Each of the others would wait for them, with a connection in hand."""
    tools, recorder = asking
    watched = replace(tools, embedder=Watched(tools.embedder, in_process=True))

    await asyncio.gather(*(_asked(watched, f"{ASKED} {number}", scope) for number in range(8)))

    assert len(recorder.transactions) == foresight.AHEAD_MAX + 2 * (8 - foresight.AHEAD_MAX)
    assert watched.ahead == 0


async def test_what_is_made_counts_no_longer_while_its_question_is_answered(
    asking: tuple[Tools, Ending], scope: Scope
) -> None:
    tools, _ = asking
    watched = replace(tools, embedder=Watched(tools.embedder, in_process=True))

    async with foresight.foreseen(watched, ASKED, scope) as ahead:
        before = watched.ahead
        made = await ahead.vector(ASKED, since=time.monotonic())
        after = watched.ahead

    assert (before, after, watched.ahead) == (1, 0, 0)
    assert made is not None


async def test_a_model_behind_a_network_is_asked_when_the_text_is_known(
    asking: tuple[Tools, Ending], scope: Scope
) -> None:
    tools, recorder = asking
    model = Watched(tools.embedder, in_process=False)

    await _asked(replace(tools, embedder=model), NAMING, scope)

    assert model.asked == ["what did they say of the rota?"]
    assert len(recorder.transactions) == 2


async def test_a_model_that_takes_long_is_waited_for_without_a_connection(
    asking: tuple[Tools, Ending], scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foresight, "WAIT_SECONDS", 0.0)
    tools, recorder = asking
    model = Watched(tools.embedder, in_process=True)
    model.free.clear()
    recorder.ended = model.free  # with the first transaction, while the model is still at work

    found = await _asked(replace(tools, embedder=model), ASKED, scope)

    assert found.hits[0].memory.text == TALK[0]
    first, second = ([sql for sql, _ in one.statements] for one in recorder.transactions)
    assert model.asked == [ASKED]  # once: what was begun ahead is waited for
    # And words are looked for once.
    assert first[-1] == WORDS.sql
    assert second[:2] == [TURNS_WORDED.sql, OTHERS_WORDED.sql]


@pytest.mark.parametrize("fault", [EmbedderUnavailable("away"), ConfigurationError("never")])
async def test_a_model_that_fails_ahead_fails_as_ever(
    asking: tuple[Tools, Ending], scope: Scope, fault: Exception
) -> None:
    tools, _ = asking
    model = Watched(tools.embedder, in_process=True)
    model.fault = fault
    asked = _asked(replace(tools, embedder=model), ASKED, scope)

    if isinstance(fault, ConfigurationError):
        with pytest.raises(ConfigurationError, match="never"):
            await asked
    else:
        found = await asked
        assert found.degraded
        assert found.hits[0].memory.text == TALK[0]
    assert model.asked == [ASKED]


async def test_a_call_that_is_cancelled_leaves_no_task_behind(
    asking: tuple[Tools, Ending], scope: Scope
) -> None:
    tools, _ = asking
    before = asyncio.all_tasks()
    for steps in range(40):
        model = Watched(tools.embedder, in_process=True)
        if steps % 2:
            model.free.clear()
        call = asyncio.create_task(_asked(replace(tools, embedder=model), ASKED, scope))
        for _ in range(steps):
            await asyncio.sleep(0)
        if call.cancel() or steps % 2:  # with a model that answers it may be done by then
            with pytest.raises(asyncio.CancelledError):
                await call

    left = asyncio.all_tasks() - before
    assert not [task for task in left if "vectors" in repr(task) or "others" in repr(task)]
    assert (await _asked(tools, ASKED, scope)).hits


async def test_a_call_that_is_cancelled_while_others_are_looked_for_ends_its_statement(
    asking: tuple[Tools, Ending], scope: Scope, seen: asyncpg.Connection
) -> None:
    tools, _ = asking
    await _asked(tools, ASKED, scope)
    before = asyncio.all_tasks()
    async with seen.transaction():
        await seen.execute("LOCK TABLE mnemic.procedures IN ACCESS EXCLUSIVE MODE")
        call = asyncio.create_task(_asked(tools, ASKED, scope))
        while not await seen.fetchval(WAITING):  # noqa: ASYNC110 - the server offers no event
            await asyncio.sleep(0.01)

        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        left = asyncio.all_tasks() - before

    assert not [task for task in left if "others" in repr(task)]
    assert (await _asked(tools, ASKED, scope)).hits


@pytest.mark.parametrize("filters", [None, {"kind": {"in": ["fact", "procedure"]}}])
@pytest.mark.parametrize("keeping", [True, False])
async def test_foresight_changes_no_answer(
    asking: tuple[Tools, Ending],
    scope: Scope,
    monkeypatch: pytest.MonkeyPatch,
    *,
    filters: dict[str, Any] | None,
    keeping: bool,
) -> None:
    """Nor any place in an arm: not where more is wanted than the arms give as they come, either."""
    tools, recorder = asking
    facts = Tiers(tools, scope).semantic
    for number in range(90):
        await facts.store_fact(a_fact(subject=f"Rota {number}", predicate="is", object="quiet"))
    if not keeping:
        monkeypatch.setattr(KeptPlans, "may_keep", lambda *_: False)
    now = tools.now()
    here, there = (
        replace(tools, embedder=Watched(tools.embedder, in_process=one), clock=lambda: now)
        for one in (True, False)
    )
    _free_by_words(here.embedder, monkeypatch)
    for text in (ASKED, "quiet Fridays", "rota rota", "Wer hat die Schicht?", "zzz", NAMING):
        for limit in (None, 80):
            # A unit that keeps its plans leaves a filter to the next one.
            worded = text in {ASKED, "quiet Fridays", "rota rota"} and not (filters and keeping)
            here.embedder.free.clear() if worded else here.embedder.free.set()
            recorder.transactions.clear()
            ahead = await _asked(here, text, scope, limit=limit, filters=filters)
            sent = {sql for one in recorder.transactions for sql, _ in one.statements}
            after = await _asked(there, text, scope, limit=limit, filters=filters)

            assert not worded or any(sql in sent for sql in FOUND_AHEAD)
            assert ahead.hits == after.hits
            assert limit is None or len(ahead.hits) == limit
