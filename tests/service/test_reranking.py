"""A host's own reranker: it may put the best hits in another order, and nothing else."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest

from mnemic import MemoryManager, RecallStage, Scope
from mnemic.model.embedding import Embedder
from mnemic.settings import MemorySettings
from mnemic.testing import TickingClock, a_conversation
from mnemic.wiring import Wiring

TALK = [
    "The ledger lives in PostgreSQL since March.",
    "The ledger was moved by Priya.",
    "Nobody reads the ledger on Sundays.",
    "The ledger of the canteen is a notebook.",
]
QUESTION = "what about the ledger?"


class Rule:
    """Gives the texts what it is told to, and keeps what it was asked."""

    def __init__(self, give: Callable[[Sequence[str]], Any]) -> None:
        self.give = give
        self.asked: list[tuple[str, Sequence[str]]] = []

    async def rerank(self, query: str, texts: Sequence[str]) -> Any:
        self.asked.append((query, texts))
        return self.give(texts)


def shortest(texts: Sequence[str]) -> list[float]:
    return [-float(len(one)) for one in texts]


@pytest.fixture
def opened(settings: MemorySettings, embedder: Embedder) -> Any:
    @asynccontextmanager
    async def opening(reranker: Any, **recall: Any) -> AsyncIterator[MemoryManager]:
        changed = settings.recall.model_copy(update=recall)
        wiring = Wiring(
            settings.model_copy(update={"recall": changed}),
            clock=TickingClock(),
            embedder=embedder,
            reranker=reranker,
        )
        async with MemoryManager(wiring) as memory:
            yield memory

    return opening


@pytest.fixture
async def session(memory: MemoryManager, scope: Scope) -> Scope:
    """Four turns about one thing; `memory` has no reranker."""
    await memory.sessions.append(a_conversation(TALK), scope=scope.session("s"))
    return scope.session("s")


async def test_the_best_hits_stand_as_the_reranker_has_them(
    memory: MemoryManager, opened: Any, session: Scope
) -> None:
    rule = Rule(shortest)
    plain = await memory.recall(QUESTION, scope=session, floor=0.0)

    async with opened(rule) as reranked:
        found = await reranked.recall(QUESTION, scope=session, floor=0.0)

    texts = [hit.text for hit in found.hits]
    assert texts == sorted((hit.text for hit in plain.hits), key=len)
    assert texts != [hit.text for hit in plain.hits]
    assert [hit.rerank for hit in found.hits] == shortest(texts)
    assert {hit.id: hit.score for hit in found.hits} == {hit.id: hit.score for hit in plain.hits}
    assert found.confidence == plain.confidence
    assert found.notes == plain.notes
    [(query, given)] = rule.asked
    assert query == QUESTION
    assert list(given) == [hit.text for hit in plain.hits]


async def test_a_hit_beyond_the_limit_can_come_forward(
    memory: MemoryManager, opened: Any, session: Scope
) -> None:
    plain = await memory.recall(QUESTION, scope=session, floor=0.0)
    last = plain.hits[-1]

    async with opened(Rule(lambda texts: [float(one == last.text) for one in texts])) as reranked:
        found = await reranked.recall(QUESTION, scope=session, floor=0.0, limit=1)
        why = await reranked.why_not(QUESTION, last.id, scope=session, floor=0.0, limit=1)
        out = await reranked.why_not(QUESTION, plain.hits[0].id, scope=session, floor=0.0, limit=1)

    assert [hit.id for hit in found.hits] == [last.id]
    assert (why.stage, why.place) == (RecallStage.RETURNED, 1)
    assert (out.stage, out.place) == (RecallStage.LIMIT, 2)


async def test_only_so_many_are_put_in_order_and_the_others_stay_behind(
    memory: MemoryManager, opened: Any, session: Scope
) -> None:
    plain = await memory.recall(QUESTION, scope=session, floor=0.0)
    rule = Rule(lambda texts: [float(at) for at in range(len(texts))])

    async with opened(rule, rerank_max=2) as reranked:
        found = await reranked.recall(QUESTION, scope=session, floor=0.0)

    ids = [hit.id for hit in plain.hits]
    assert [hit.id for hit in found.hits] == [ids[1], ids[0], *ids[2:]]
    assert [hit.rerank for hit in found.hits[2:]] == [None, None]
    assert len(rule.asked[0][1]) == 2


async def test_what_lies_below_the_floor_is_never_given_to_it(opened: Any, session: Scope) -> None:
    rule = Rule(shortest)

    async with opened(rule) as reranked:
        found = await reranked.recall("how do volcanoes erupt?", scope=session)

    assert found.hits == ()
    assert rule.asked == []


@pytest.mark.parametrize(
    "give",
    [
        lambda texts: array("f", range(len(texts))),
        lambda texts: tuple(range(len(texts))),
        lambda texts: [Fraction(at, 3) for at in range(len(texts))],
        lambda texts: pytest.importorskip("numpy").arange(len(texts), dtype="float32"),
    ],
    ids=["array", "integers", "fractions", "numpy"],
)
async def test_numbers_of_every_type_count(
    memory: MemoryManager, opened: Any, session: Scope, give: Callable[[Sequence[str]], Any]
) -> None:
    plain = await memory.recall(QUESTION, scope=session, floor=0.0)

    async with opened(Rule(give)) as reranked:
        found = await reranked.recall(QUESTION, scope=session, floor=0.0)

    assert [hit.id for hit in found.hits] == [hit.id for hit in reversed(plain.hits)]


def failing(_texts: Sequence[str]) -> Any:
    message = "the secret of the ledger"
    raise RuntimeError(message)


@pytest.mark.parametrize(
    ("give", "told"),
    [
        (failing, "RuntimeError"),
        (lambda _texts: None, "NoneType"),
        (lambda texts: [None] * len(texts), "NoneType"),
        (lambda texts: ["9"] * len(texts), "str"),
        (lambda texts: "x" * len(texts), "str"),
        (lambda texts: bytes(len(texts)), "bytes"),
        (lambda texts: dict.fromkeys(range(len(texts)), 1.0), "dict"),
        (lambda texts: set(range(len(texts))), "set"),
        (lambda texts: [True] * len(texts), "bool"),
        (lambda texts: [float("nan"), *range(len(texts) - 1)], "NaN"),
        (lambda texts: [float("inf"), *range(len(texts) - 1)], "not finite"),
        (lambda texts: [10**400] * len(texts), "OverflowError"),
        (lambda texts: [1.0] * (len(texts) - 1), "3 numbers for 4 texts"),
        (lambda texts: [1.0] * (len(texts) + 1), "5 numbers for 4 texts"),
        (lambda _texts: iter([1.0]), "iterator"),
        (lambda _texts: 4, "int"),
        (lambda _texts: range(10**12), "numbers for 4 texts"),
    ],
    ids=map(str, range(17)),
)
async def test_a_reranker_that_fails_leaves_the_order_and_is_told_of(
    memory: MemoryManager,
    opened: Any,
    session: Scope,
    give: Callable[[Sequence[str]], Any],
    told: str,
) -> None:
    plain = await memory.recall(QUESTION, scope=session, floor=0.0)

    async with opened(Rule(give)) as reranked:
        found = await reranked.recall(QUESTION, scope=session, floor=0.0)

    assert [hit.id for hit in found.hits] == [hit.id for hit in plain.hits]
    assert all(hit.rerank is None for hit in found.hits)
    [note] = [one for one in found.notes if one.startswith("not reranked: ")]
    assert told in note
    assert "secret" not in note
    assert found.degraded == ()


class Slow:
    """Waits for what never comes."""

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        await asyncio.Event().wait()
        return [float(len(query))] * len(texts)


class Cancelling:
    """Waits for a task that somebody has cancelled."""

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        task = asyncio.ensure_future(asyncio.sleep(3_600, [float(len(query))] * len(texts)))
        task.cancel()
        return await task


class Blunt:
    """No coroutine at all."""

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        return [float(len(query))] * len(texts)


@pytest.mark.parametrize(
    ("reranker", "told"),
    [(Slow(), "no answer within 20 ms"), (Cancelling(), "cancelled"), (Blunt(), "TypeError")],
    ids=["slow", "cancelled", "blunt"],
)
async def test_a_slow_or_cancelled_one_holds_nobody_up(
    memory: MemoryManager, opened: Any, session: Scope, reranker: Any, told: str
) -> None:
    plain = await memory.recall(QUESTION, scope=session, floor=0.0)

    async with opened(reranker, rerank_timeout_ms=20) as reranked:
        found = await reranked.recall(QUESTION, scope=session, floor=0.0)

    assert [hit.id for hit in found.hits] == [hit.id for hit in plain.hits]
    assert any(told in note for note in found.notes)


async def test_who_is_cancelled_while_it_works_is_cancelled(opened: Any, session: Scope) -> None:
    entered = asyncio.Event()

    class Waiting:
        async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
            entered.set()
            await asyncio.Event().wait()
            return [float(len(query))] * len(texts)

    async with opened(Waiting(), rerank_timeout_ms=60_000) as reranked:
        asking = asyncio.ensure_future(reranked.recall(QUESTION, scope=session, floor=0.0))
        await entered.wait()
        asking.cancel()

        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_an_answer_that_was_not_reranked_is_not_kept(opened: Any, session: Scope) -> None:
    rule = Rule(failing)

    async with opened(rule) as reranked:
        await reranked.recall(QUESTION, scope=session, floor=0.0)
        rule.give = shortest
        second = await reranked.recall(QUESTION, scope=session, floor=0.0)
        third = await reranked.recall(QUESTION, scope=session, floor=0.0)

    assert [hit.rerank for hit in second.hits] == shortest([hit.text for hit in second.hits])
    assert [(hit.id, hit.rerank) for hit in third.hits] == [
        (hit.id, hit.rerank) for hit in second.hits
    ]
    assert len(rule.asked) == 2


async def test_no_transaction_is_open_while_it_works(opened: Any, session: Scope) -> None:
    """It may ask the same memory, through a pool of one connection."""
    held: dict[str, MemoryManager] = {}

    class Asking:
        async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
            if memory := held.pop("memory", None):
                await memory.recall(f"{query} again", scope=session)
            return shortest(texts)

    async with opened(Asking(), rerank_timeout_ms=60_000) as reranked:
        held["memory"] = reranked
        found = await reranked.recall(QUESTION, scope=session, floor=0.0)

    assert [hit.rerank for hit in found.hits] == shortest([hit.text for hit in found.hits])
    assert found.took > timedelta(0)


async def test_a_prompt_section_follows_the_order(opened: Any, session: Scope) -> None:
    async with opened(Rule(lambda texts: [float("Priya" in one) for one in texts])) as reranked:
        built = await reranked.context("the ledger", scope=session, budget="recall")

    said = [item.text for item in built.items if item.kind == "turn"]
    assert "Priya" in said[0]
