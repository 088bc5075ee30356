"""The cache in front of an embedder: what is asked for, by whom, and how often."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from array import array
from collections.abc import Sequence

import pytest

from mnemic.embed import CachedEmbedder
from mnemic.errors import EmbedderUnavailable
from mnemic.model.embedding import ModelSignature, Vector, checked_vector


class LengthEmbedder:
    """Makes a vector of a text's length and first letter, when the gate is open."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.faults: list[Exception] = []
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.closed = False

    @property
    def signature(self) -> ModelSignature:
        return ModelSignature("length", "1", 2)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.calls.append(list(texts))
        fault = self.faults.pop(0) if self.faults else None
        self.asked.set()
        await self.gate.wait()
        if fault is not None:
            raise fault
        return [vector_of(text) for text in texts]

    async def close(self) -> None:
        self.closed = True


def vector_of(text: str) -> Vector:
    return checked_vector([1 + len(text), ord(text[0])], dimensions=2)


async def test_a_text_is_asked_for_once_and_answered_in_order() -> None:
    inner = LengthEmbedder()
    cached = CachedEmbedder(inner, entries_max=10)

    vectors = await cached.embed(["tea", "coffee", "tea"])
    again = await cached.embed(["coffee", "water", "tea"])

    assert vectors == [vector_of("tea"), vector_of("coffee"), vector_of("tea")]
    assert again == [vector_of("coffee"), vector_of("water"), vector_of("tea")]
    assert inner.calls == [["tea", "coffee"], ["water"]]
    assert (cached.hits, cached.misses) == (3, 3)


async def test_the_longest_unused_text_is_forgotten_first() -> None:
    inner = LengthEmbedder()
    cached = CachedEmbedder(inner, entries_max=2)
    await cached.embed(["one", "two"])
    await cached.embed(["one"])

    await cached.embed(["three"])

    await cached.embed(["one"])
    await cached.embed(["two"])
    assert inner.calls == [["one", "two"], ["three"], ["two"]]


async def test_no_entries_means_that_nothing_is_kept() -> None:
    inner = LengthEmbedder()
    cached = CachedEmbedder(inner, entries_max=0)

    await cached.embed(["tea", "tea"])
    await cached.embed(["tea"])

    assert inner.calls == [["tea"], ["tea"]]
    assert (cached.hits, cached.misses) == (1, 2)


async def test_a_call_larger_than_the_cache_is_answered_whole() -> None:
    cached = CachedEmbedder(LengthEmbedder(), entries_max=1)
    texts = ["one", "two", "three", "one"]

    vectors = await cached.embed(texts)

    assert vectors == [vector_of(text) for text in texts]


async def test_a_vector_that_is_kept_is_known_without_asking() -> None:
    inner = LengthEmbedder()
    cached = CachedEmbedder(inner, entries_max=2)
    await cached.embed(["one", "two"])

    assert cached.known("three") is None
    assert cached.known("one") == vector_of("one")

    await cached.embed(["three"])
    assert cached.known("two") is None, "one was used since"
    assert cached.known("one") == vector_of("one")
    assert inner.calls == [["one", "two"], ["three"]]
    assert (cached.hits, cached.misses) == (2, 3)


async def test_a_misshapen_vector_is_not_kept() -> None:
    class Growing(LengthEmbedder):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            await super().embed(texts)
            return [array("f", [0.6, 0.8][: len(self.calls)]) for _ in texts]

    inner = Growing()
    cached = CachedEmbedder(inner, entries_max=10)

    with pytest.raises(EmbedderUnavailable, match="1 numbers"):
        await cached.embed(["tea"])

    assert cached.known("tea") is None
    assert await cached.embed(["tea"]) == [pytest.approx([0.6, 0.8])]


async def test_two_calls_at_once_share_one_question() -> None:
    inner = LengthEmbedder()
    inner.gate.clear()
    cached = CachedEmbedder(inner, entries_max=10)
    first = asyncio.create_task(cached.embed(["tea", "coffee"]))
    await inner.asked.wait()
    second = asyncio.create_task(cached.embed(["water", "tea"]))
    await asyncio.sleep(0)

    inner.gate.set()

    assert await first == [vector_of("tea"), vector_of("coffee")]
    assert await second == [vector_of("water"), vector_of("tea")]
    assert inner.calls == [["tea", "coffee"], ["water"]]
    assert (cached.hits, cached.misses) == (1, 3)


async def test_calls_that_wait_for_each_other_both_end() -> None:
    inner = LengthEmbedder()
    inner.gate.clear()
    cached = CachedEmbedder(inner, entries_max=10)
    first = asyncio.create_task(cached.embed(["a"]))
    await asyncio.sleep(0)
    second = asyncio.create_task(cached.embed(["b", "a"]))
    await asyncio.sleep(0)
    third = asyncio.create_task(cached.embed(["a", "b", "c"]))
    await asyncio.sleep(0)

    inner.gate.set()
    answers = await asyncio.wait_for(asyncio.gather(first, second, third), 10)

    a, b, c = map(vector_of, "abc")
    assert answers == [[a], [b, a], [a, b, c]]
    assert inner.calls == [["a"], ["b"], ["c"]]


async def test_cancelling_who_asked_does_not_fail_who_waits() -> None:
    inner = LengthEmbedder()
    inner.gate.clear()
    cached = CachedEmbedder(inner, entries_max=10)
    asking = asyncio.create_task(cached.embed(["tea"]))
    await inner.asked.wait()
    waiting = asyncio.create_task(cached.embed(["tea"]))
    await asyncio.sleep(0)

    asking.cancel()
    inner.gate.set()

    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await asyncio.wait_for(waiting, 10) == [vector_of("tea")]
    assert inner.calls == [["tea"], ["tea"]]


async def test_cancelling_who_waits_does_not_fail_the_others() -> None:
    inner = LengthEmbedder()
    inner.gate.clear()
    cached = CachedEmbedder(inner, entries_max=10)
    asking = asyncio.create_task(cached.embed(["tea"]))
    await inner.asked.wait()
    impatient = asyncio.create_task(cached.embed(["tea"]))
    patient = asyncio.create_task(cached.embed(["tea"]))
    await asyncio.sleep(0)

    impatient.cancel()
    await asyncio.wait([impatient])
    inner.gate.set()

    assert impatient.cancelled()
    assert await asyncio.wait_for(asking, 10) == [vector_of("tea")]
    assert await asyncio.wait_for(patient, 10) == [vector_of("tea")]
    assert inner.calls == [["tea"]]


async def test_a_failed_call_fails_nobody_else_and_is_not_remembered() -> None:
    inner = LengthEmbedder()
    inner.gate.clear()
    inner.faults = [EmbedderUnavailable("down")]
    cached = CachedEmbedder(inner, entries_max=10)
    asking = asyncio.create_task(cached.embed(["tea"]))
    await inner.asked.wait()
    waiting = asyncio.create_task(cached.embed(["tea"]))
    await asyncio.sleep(0)

    inner.gate.set()

    with pytest.raises(EmbedderUnavailable, match="down"):
        await asking
    assert await asyncio.wait_for(waiting, 10) == [vector_of("tea")]
    assert await cached.embed(["tea"]) == [vector_of("tea")]
    assert inner.calls == [["tea"], ["tea"]]


async def test_a_call_from_another_loop_shares_the_question_too() -> None:
    inner = LengthEmbedder()
    inner.gate.clear()
    cached = CachedEmbedder(inner, entries_max=10)
    asking = asyncio.create_task(cached.embed(["tea"]))
    await inner.asked.wait()
    answers: list[list[Vector]] = []
    claimed = threading.Event()

    async def ask_elsewhere() -> None:
        waiting = asyncio.create_task(cached.embed(["tea"]))
        await asyncio.sleep(0)
        claimed.set()
        answers.append(await waiting)

    elsewhere = threading.Thread(target=lambda: asyncio.run(ask_elsewhere()))
    elsewhere.start()
    await asyncio.to_thread(claimed.wait, 10)

    inner.gate.set()
    await asking
    await asyncio.to_thread(elsewhere.join, 10)

    assert answers == [[vector_of("tea")]]
    assert inner.calls == [["tea"]]


async def test_a_vector_too_few_is_an_error_for_the_call_and_nothing_is_kept() -> None:
    class Forgetful(LengthEmbedder):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            return (await super().embed(texts))[1:]

    inner = Forgetful()
    cached = CachedEmbedder(inner, entries_max=10)

    for _ in range(2):
        with pytest.raises(EmbedderUnavailable, match="1 vectors for 2 texts"):
            await cached.embed(["tea", "coffee"])

    assert inner.calls == [["tea", "coffee"]] * 2


async def test_closing_closes_the_embedder_within() -> None:
    inner = LengthEmbedder()
    cached = CachedEmbedder(inner, entries_max=10)

    await cached.close()

    assert inner.closed
    assert cached.signature == inner.signature


def test_a_forked_child_does_not_wait_for_its_parents_calls() -> None:
    program = """
        import asyncio, os, threading
        from mnemic.embed import CachedEmbedder
        from mnemic.model.embedding import ModelSignature, checked_vector

        asked = threading.Event()

        class Inner:
            signature = ModelSignature("one", "1", 2)
            answers = False

            async def embed(self, texts):
                asked.set()
                while not self.answers:
                    await asyncio.sleep(3600)
                return [checked_vector([1, 1], dimensions=2) for _ in texts]

        inner = Inner()
        cached = CachedEmbedder(inner, entries_max=10)
        asking = threading.Thread(target=lambda: asyncio.run(cached.embed(["tea"])), daemon=True)
        asking.start()
        asked.wait(10)
        cached._lock.acquire()  # as another thread of the parent may hold it
        child = os.fork()
        if child == 0:
            inner.answers = True
            asyncio.run(asyncio.wait_for(cached.embed(["tea"]), 10))
            os._exit(0)
        print(os.waitpid(child, 0)[1], flush=True)
        os._exit(0)
    """

    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.stdout.strip() == "0", ran.stderr
