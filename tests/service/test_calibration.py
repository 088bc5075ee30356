"""What scores mean is known of each model by itself; where it is not, recall says so."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Any

import pytest
from pydantic import ValidationError

from mnemic import ConfidenceMap, CosineScale, MemoryManager, ModelSignature, Scope
from mnemic.embed.minilm import SIGNATURE
from mnemic.model.embedding import Embedder, Vector
from mnemic.model.ranking_values import Weights
from mnemic.settings import MemorySettings, RankingSettings
from mnemic.testing import TickingClock, a_conversation
from mnemic.wiring import Wiring

TALK = ["The ledger lives in PostgreSQL since March.", "Lunch is at noon."]
QUESTION = "where does the ledger live?"
STEEP = ConfidenceMap(30.0, 3.0)


class Known:
    """The offline model, with what is told of it."""

    def __init__(self, inner: Embedder, **told: Any) -> None:
        self._inner = inner
        plain = (SIGNATURE.name, SIGNATURE.revision, SIGNATURE.dimensions)
        self.signature = ModelSignature(*plain, **told)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await self._inner.embed(list(texts))

    async def close(self) -> None:
        """The session closes the model."""


@pytest.fixture
def opened(settings: MemorySettings, embedder: Embedder) -> Any:
    @asynccontextmanager
    async def opening(embedding: dict[str, float], **told: Any) -> AsyncIterator[MemoryManager]:
        changed = settings.embedding.model_copy(update=embedding)
        wiring = Wiring(
            settings.model_copy(update={"embedding": changed}),
            clock=TickingClock(),
            embedder=Known(embedder, **told),
        )
        async with MemoryManager(wiring) as memory:
            yield memory

    return opening


@pytest.fixture
async def session(memory: MemoryManager, scope: Scope) -> Scope:
    await memory.sessions.append(a_conversation(TALK), scope=scope.session("s"))
    return scope.session("s")


def mapless(notes: Sequence[str]) -> list[str]:
    return [one for one in notes if "has no confidence map" in one]


async def test_a_model_without_a_map_says_that_it_has_the_default_one(
    memory: MemoryManager, opened: Any, session: Scope
) -> None:
    plain = await memory.recall(QUESTION, scope=session)

    async with opened({}) as unknown:
        found = await unknown.recall(QUESTION, scope=session)
        again = await unknown.recall(QUESTION, scope=session)

    assert len(mapless(found.notes)) == len(mapless(again.notes)) == 1
    assert SIGNATURE.name in mapless(found.notes)[0]
    assert "embedding.confidence_slope" in mapless(found.notes)[0]
    assert found.confidence == plain.confidence
    assert mapless(plain.notes) == []


async def test_where_words_alone_were_searched_the_map_is_not_what_is_missing(
    wordless: MemoryManager, session: Scope
) -> None:
    found = await wordless.recall(QUESTION, scope=session)

    assert found.degraded
    assert mapless(found.notes) == []


async def test_a_model_brings_its_own_map(opened: Any, session: Scope) -> None:
    async with opened({}, confidence=STEEP) as known:
        found = await known.recall(QUESTION, scope=session)

    assert found.confidence == STEEP.of(found.hits[0].score)
    assert mapless(found.notes) == []


async def test_what_is_set_counts_more_than_what_the_model_brings(
    opened: Any, session: Scope
) -> None:
    flat = {"confidence_slope": 0.1, "confidence_offset": 4.0}

    async with opened(flat, confidence=STEEP) as known:
        found = await known.recall(QUESTION, scope=session)

    assert found.confidence == ConfidenceMap(0.1, 4.0).of(found.hits[0].score)
    assert found.low_confidence


@pytest.mark.parametrize(
    ("embedding", "told"),
    [
        ({"cosine_mean": 0.5, "cosine_deviation": 0.112}, {}),
        ({}, {"scale": CosineScale(0.5, 0.112)}),
    ],
    ids=["set", "brought"],
)
async def test_cosines_are_brought_to_the_scale_of_the_weights(
    memory: MemoryManager, opened: Any, session: Scope, embedding: dict[str, float], told: Any
) -> None:
    plain = await memory.recall(QUESTION, scope=session)

    async with opened(embedding, **told) as known:
        found = await known.recall(QUESTION, scope=session)

    best, before = found.hits[0].reasons.cosine, plain.hits[0].reasons.cosine
    assert best == pytest.approx(before - 0.5 + 0.094, abs=1e-6)


async def test_an_episode_is_shown_by_the_map_of_the_model(
    memory: MemoryManager, opened: Any, scope: Scope
) -> None:
    await memory.remember("Moved the ledger to PostgreSQL.", scope=scope, memory_type="episodic")
    never, always = ConfidenceMap(1.0, 50.0), ConfidenceMap(1.0, -50.0)

    shown = []
    for one in (never, always):
        async with opened({}, confidence=one) as known:
            built = await known.context("the ledger in PostgreSQL", scope=scope, budget="recall")
        shown.append([item.kind for item in built.items])

    assert "episode" not in shown[0]
    assert "episode" in shown[1]


async def test_a_weight_that_is_set_counts(
    memory: MemoryManager, settings: MemorySettings, embedder: Embedder, session: Scope
) -> None:
    plain = await memory.recall(QUESTION, scope=session)
    ranking = settings.ranking.model_copy(update={"cosine": 0.25, "session": 0.0})
    changed = settings.model_copy(update={"ranking": ranking})

    wiring = Wiring(changed, clock=TickingClock(), embedder=Known(embedder))
    async with MemoryManager(wiring) as other:
        found = await other.recall(QUESTION, scope=session, floor=0.0)

    best, before = found.hits[0].reasons, plain.hits[0].reasons
    assert best.base == pytest.approx(0.25 * best.cosine + 0.75 * best.lex)
    assert before.base == pytest.approx(0.5 * before.cosine + 0.5 * before.lex)
    assert (best.session, before.session > 0) == (0.0, True)


def test_the_weights_are_those_of_the_formula_unless_they_are_set() -> None:
    assert MemorySettings().ranking.weights() == Weights()
    assert set(RankingSettings.model_fields) == {one.name for one in fields(Weights)}
    for name in ("cosine", "actor", "k1", "long_mixed_length"):
        for refused in (-0.1, math.nan, math.inf):
            with pytest.raises(ValidationError):
                RankingSettings(**{name: refused})


@pytest.mark.parametrize(
    "embedding",
    [
        {"cosine_mean": 0.1},
        {"cosine_deviation": 0.1},
        {"confidence_slope": 9.0},
        {"confidence_offset": 9.0},
    ],
    ids=str,
)
def test_half_of_a_pair_is_refused(embedding: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="are set together, or neither"):
        MemorySettings(embedding=embedding)
