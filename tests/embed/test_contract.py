"""What a host may ask of its own embedder holds for ours, and fails for those that are broken."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any

import pytest

from mnemic.embed import CachedEmbedder, LocalEmbedder, OpenAIEmbedder
from mnemic.errors import EmbedderUnavailable
from mnemic.model.embedding import Embedder, ModelSignature, Vector
from mnemic.testing import HashingEmbedder
from mnemic.testing import embedder_contract as contract
from mnemic.testing.embedder_contract import EMBEDDER_CONTRACT, EmbedderSubject

Check = Callable[[EmbedderSubject], Awaitable[None]]
WHICH = ["local", "cached", "remote", "hashing"]


@pytest.fixture
def subject(request: pytest.FixtureRequest, endpoint: Any) -> EmbedderSubject:
    def remote(url: str) -> OpenAIEmbedder:
        return OpenAIEmbedder(
            model="toy", dimensions=8, base_url=url, timeout_seconds=30, retry_max=0
        )

    which: dict[str, EmbedderSubject] = {
        "local": EmbedderSubject(LocalEmbedder),
        "cached": EmbedderSubject(lambda: CachedEmbedder(LocalEmbedder(), entries_max=100)),
        "remote": EmbedderSubject(
            lambda: remote(endpoint.url), lambda: remote("http://127.0.0.1:9/v1")
        ),
        "hashing": EmbedderSubject(HashingEmbedder),
    }
    return which[request.param]


@pytest.mark.parametrize("subject", WHICH, indirect=True)
@pytest.mark.parametrize("check", EMBEDDER_CONTRACT, ids=lambda check: check.__name__)
async def test_the_contract_holds(check: Check, subject: EmbedderSubject) -> None:
    await check(subject)


class Reversed(HashingEmbedder):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return (await super().embed(texts))[::-1]


class Long(HashingEmbedder):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [array("f", [2 * value for value in one]) for one in await super().embed(texts)]


class Inventive(HashingEmbedder):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await super().embed(texts or ["nothing"])


class Forgetful(HashingEmbedder):
    numbers = count()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await super().embed([f"{next(self.numbers)} {next(self.numbers)}" for _ in texts])


class Thrifty(HashingEmbedder):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await super().embed(list(dict.fromkeys(texts)))


class Dull(HashingEmbedder):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await super().embed(["anything"] * len(texts))


class Particular(HashingEmbedder):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        for text in texts:
            text.encode()
        return await super().embed(texts)


class Narrow(HashingEmbedder):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if any(len(text) > 100_000 for text in texts):
            raise EmbedderUnavailable("a text is too long")
        return await super().embed(texts)


class Confused(HashingEmbedder):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.texts = texts
        await asyncio.sleep(0)
        return await super().embed(self.texts)


class Stuck(HashingEmbedder):
    def __init__(self) -> None:
        self.free = asyncio.Lock()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        await self.free.acquire()
        await asyncio.sleep(0)
        self.free.release()
        return await super().embed(texts)


class Settled(HashingEmbedder):
    def __init__(self) -> None:
        self.loop: Any = None

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.loop = self.loop or asyncio.get_running_loop()
        if asyncio.get_running_loop() is not self.loop:
            raise RuntimeError("another loop")
        return await super().embed(texts)


class Renamed(HashingEmbedder):
    def __init__(self) -> None:
        self.signature = ModelSignature("hashed", str(id(self)), 64)


class Fragile(HashingEmbedder):
    closed = False

    async def close(self) -> None:
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


BROKEN: dict[str, Callable[[], Embedder]] = {
    contract.each_text_has_its_vector_in_order.__name__: Reversed,
    contract.vectors_have_unit_length_and_the_size_of_the_signature.__name__: Long,
    contract.no_texts_have_no_vectors.__name__: Inventive,
    contract.a_text_has_the_same_vector_each_time.__name__: Forgetful,
    contract.a_text_given_twice_has_its_vector_twice.__name__: Thrifty,
    contract.texts_that_differ_have_vectors_that_differ.__name__: Dull,
    contract.any_text_has_a_vector.__name__: Particular,
    contract.a_text_beyond_the_window_fails_no_neighbour.__name__: Narrow,
    contract.calls_at_once_do_not_mix.__name__: Confused,
    contract.a_call_that_is_cancelled_holds_up_no_other.__name__: Stuck,
    contract.it_serves_one_loop_after_another.__name__: Settled,
    contract.the_signature_says_one_thing.__name__: Renamed,
    contract.closing_twice_is_harmless.__name__: Fragile,
    contract.a_model_that_is_away_is_said_to_be.__name__: HashingEmbedder,
}


@pytest.mark.parametrize("check", EMBEDDER_CONTRACT, ids=lambda check: check.__name__)
async def test_an_embedder_that_breaks_the_contract_is_found(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "PATIENCE_SECONDS", 0.2)
    broken = BROKEN[check.__name__]
    faults = (AssertionError, ValueError, RuntimeError, EmbedderUnavailable, TimeoutError)

    with pytest.raises(faults):
        await check(EmbedderSubject(broken, HashingEmbedder))
