"""What holds for every Embedder; shipped so that a host can ask it of its own.

```python
@pytest.mark.parametrize("check", EMBEDDER_CONTRACT, ids=lambda check: check.__name__)
async def test_the_contract_holds(check):
    await check(EmbedderSubject(MyEmbedder))
```

A check that fails raises `AssertionError`, or what the embedder raised.
"""

from __future__ import annotations

import asyncio
import math
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from mnemic.errors import ConfigurationError, EmbedderUnavailable
from mnemic.model.embedding import DIMENSIONS_MAX, Embedder, Vector, cosine
from mnemic.testing.claims import equal, no, yes

__all__ = ["EMBEDDER_CONTRACT", "EmbedderSubject"]

TEXTS = (
    "The staging cluster runs in Frankfurt.",
    "Deploys are frozen on Fridays.",
    "We chose PostgreSQL for the ledger because refunds need transactions.",
)
HARD_TEXTS = (
    *("", " ", "\n\t", ".", "\u200b", "\u3000", "\x01\x1b", "\x00", "lone \ud800 surrogate"),
    *("<|endoftext|> [CLS] [SEP] </s>", "\U0001f680" * 50, "\u5bc6\u94a5\u5728\u6cd5\u5170"),
    *("\u0645\u0631\u062d\u0628\u0627", "e\u0301\u0301\u0301", "a" * 20_000),
)
LONG_CHARS = 200_000
SAME = 0.999
UNIT_TOLERANCE = 1e-3
CALLS_AT_ONCE = 8
CANCELLATIONS = 10
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class EmbedderSubject:
    """What is asked: how to make the embedder, and one whose model is out of reach, if it can be.

    `open` is called for each check, in whichever loop runs it; what it gives is closed afterwards.
    """

    open: Callable[[], Embedder]
    open_away: Callable[[], Embedder] | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Embedder]:
        """An embedder that is closed at the end."""
        embedder = self.open()
        try:
            yield embedder
        finally:
            await embedder.close()


def _alike(one: Vector, other: Vector, what: str) -> None:
    found = cosine(one, other)
    if found < SAME:
        raise AssertionError(f"{what}: the cosine is {found:.4f}, at least {SAME} was expected")


async def each_text_has_its_vector_in_order(subject: EmbedderSubject) -> None:
    """What a text is embedded beside does not matter, nor where it stands."""
    async with subject.opened() as embedder:
        together = await embedder.embed(TEXTS)
        equal(len(together), len(TEXTS), "vectors")
        for text, vector in zip(TEXTS, together, strict=True):
            [alone] = await embedder.embed([text])
            _alike(alone, vector, text)


async def vectors_have_unit_length_and_the_size_of_the_signature(subject: EmbedderSubject) -> None:
    """They are arrays of float32."""
    async with subject.opened() as embedder:
        for vector in await embedder.embed(TEXTS):
            yes(isinstance(vector, array), "a vector is an array")
            equal(vector.typecode, "f", "type of its numbers")
            equal(len(vector), embedder.signature.dimensions, "numbers a vector")
            yes(abs(math.hypot(*vector) - 1.0) < UNIT_TOLERANCE, "its length is 1")


async def no_texts_have_no_vectors(subject: EmbedderSubject) -> None:
    """Asking for nothing is no fault."""
    async with subject.opened() as embedder:
        equal(list(await embedder.embed([])), [])


async def a_text_has_the_same_vector_each_time(subject: EmbedderSubject) -> None:
    """Also under another embedder of the same kind: vectors are kept for years."""
    async with subject.opened() as embedder, subject.opened() as other:
        [first] = await embedder.embed(TEXTS[:1])
        for one in (embedder, other):
            [again] = await one.embed(TEXTS[:1])
            _alike(first, again, "the same text")


async def a_text_given_twice_has_its_vector_twice(subject: EmbedderSubject) -> None:
    """No vector is left out, so that none stands for its neighbour."""
    async with subject.opened() as embedder:
        one, other, again = await embedder.embed([TEXTS[0], TEXTS[1], TEXTS[0]])
        _alike(one, again, "the same text")
        [alone] = await embedder.embed([TEXTS[1]])
        _alike(other, alone, "the text between")


async def texts_that_differ_have_vectors_that_differ(subject: EmbedderSubject) -> None:
    """Else nothing could be found by them."""
    async with subject.opened() as embedder:
        vectors = await embedder.embed(TEXTS)
        for place, one in enumerate(vectors):
            for other in vectors[place + 1 :]:
                yes(cosine(one, other) < SAME, "two texts have two vectors")


async def any_text_has_a_vector(subject: EmbedderSubject) -> None:
    """Blank, of any script, with a model's own marks in it or half a character: finite numbers."""
    async with subject.opened() as embedder:
        for text in HARD_TEXTS:
            hard, plain = await embedder.embed([text, TEXTS[0]])
            yes(all(map(math.isfinite, hard)), f"numbers of {text[:20]!r} are finite")
            [alone] = await embedder.embed([TEXTS[0]])
            _alike(plain, alone, f"the text beside {text[:20]!r}")


async def a_text_beyond_the_window_fails_no_neighbour(subject: EmbedderSubject) -> None:
    """It is embedded by its beginning."""
    async with subject.opened() as embedder:
        words = " ".join(TEXTS)
        long = (words * (LONG_CHARS // len(words) + 1))[:LONG_CHARS]
        _, plain = await embedder.embed([long, TEXTS[0]])
        [alone] = await embedder.embed([TEXTS[0]])
        _alike(plain, alone, "the text beside a long one")


async def calls_at_once_do_not_mix(subject: EmbedderSubject) -> None:
    """Each has the vectors of its own texts."""
    async with subject.opened() as embedder:
        texts = [[f"{text} {number}" for text in TEXTS] for number in range(CALLS_AT_ONCE)]
        answers = await asyncio.gather(*(embedder.embed(own) for own in texts))
        for own, answer in zip(texts, answers, strict=True):
            for text, vector in zip(own, answer, strict=True):
                [alone] = await embedder.embed([text])
                _alike(alone, vector, text)


async def a_call_that_is_cancelled_holds_up_no_other(subject: EmbedderSubject) -> None:
    """Wherever it was."""
    async with subject.opened() as embedder:
        for steps in range(CANCELLATIONS):
            call = asyncio.ensure_future(embedder.embed([f"{TEXTS[0]} {steps}"]))
            for _ in range(steps):
                await asyncio.sleep(0)
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
        async with asyncio.timeout(PATIENCE_SECONDS):
            equal(len(await embedder.embed(TEXTS)), len(TEXTS), "vectors after cancellations")


async def it_serves_one_loop_after_another(subject: EmbedderSubject) -> None:
    """A worker may run each task in a loop of its own."""
    embedder = subject.open()

    async def ask() -> int:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return len(await embedder.embed(TEXTS[:1]))

    for _ in range(2):
        equal(await asyncio.to_thread(lambda: asyncio.run(ask())), 1, "vectors in another loop")
    equal(await ask(), 1, "vectors in the first loop")
    await embedder.close()


async def the_signature_says_one_thing(subject: EmbedderSubject) -> None:
    """Name, revision and size, the same before and after: vectors of two are never compared."""
    async with subject.opened() as embedder, subject.opened() as other:
        before = embedder.signature
        await embedder.embed(TEXTS)
        equal(embedder.signature.key, before.key, "signature afterwards")
        equal(other.signature.key, before.key, "signature of another one")
        yes(bool(before.name.strip()) and bool(before.revision.strip()), "name and revision")
        yes(1 <= before.dimensions <= DIMENSIONS_MAX, f"1 to {DIMENSIONS_MAX} dimensions")


async def closing_twice_is_harmless(subject: EmbedderSubject) -> None:
    """Whether it was used or not."""
    for is_used in (False, True):
        embedder = subject.open()
        if is_used:
            await embedder.embed(TEXTS[:1])
        await embedder.close()
        await embedder.close()


async def a_model_that_is_away_is_said_to_be(subject: EmbedderSubject) -> None:
    """By `EmbedderUnavailable`, or `ConfigurationError` if it never will come; by nothing else.

    Without `open_away` there is nothing to ask.
    """
    if subject.open_away is None:
        return
    embedder = subject.open_away()
    try:
        answer: Sequence[Vector] | None = await embedder.embed(TEXTS)
    except (EmbedderUnavailable, ConfigurationError) as fault:
        answer = None
        no(str(fault).strip() == "", "the fault says nothing")
    finally:
        await embedder.close()
    equal(answer, None, "vectors of a model that is away")


EMBEDDER_CONTRACT: tuple[Callable[[EmbedderSubject], Awaitable[None]], ...] = (
    each_text_has_its_vector_in_order,
    vectors_have_unit_length_and_the_size_of_the_signature,
    no_texts_have_no_vectors,
    a_text_has_the_same_vector_each_time,
    a_text_given_twice_has_its_vector_twice,
    texts_that_differ_have_vectors_that_differ,
    any_text_has_a_vector,
    a_text_beyond_the_window_fails_no_neighbour,
    calls_at_once_do_not_mix,
    a_call_that_is_cancelled_holds_up_no_other,
    it_serves_one_loop_after_another,
    the_signature_says_one_thing,
    closing_twice_is_harmless,
    a_model_that_is_away_is_said_to_be,
)
