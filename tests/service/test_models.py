from __future__ import annotations

from array import array

import asyncpg
import pytest

from mnemic import EmbeddingMismatch, MemoryManager, ModelSignature, Scope
from mnemic.model.embedding import Vector
from mnemic.settings import MemorySettings
from mnemic.store.vectors_codec import encode_halfvec
from mnemic.wiring import Wiring


async def test_a_vector_of_another_model_is_not_ranked(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    question = "Which port does the proxy listen on?"
    other = await memory.remember("Lunch is at noon.", scope=scope)
    [like_it] = await memory._tools.embed([question])
    model = await seen.fetchval(
        "INSERT INTO mnemic.embedding_models (signature, name, dimensions, state)"
        " VALUES ('another@1/384', 'another', 384, 'retired') RETURNING id"
    )
    await seen.set_type_codec(
        "halfvec", schema="public", encoder=encode_halfvec, decoder=bytes, format="binary"
    )
    # Its own would stand beside the other one, and of two cosines either may be looked at.
    await seen.execute("DELETE FROM mnemic.fact_vectors WHERE memory_id = $1", other.id)
    await seen.execute(
        "INSERT INTO mnemic.fact_vectors (tenant_id, model_id, scope_id, memory_id, embedding)"
        " VALUES ($1, $2, $3, $4, $5)",
        *(scope.tenant.id, model, scope.id, other.id, like_it),
    )

    found = await memory.recall(question, scope=scope)

    await seen.execute("DELETE FROM mnemic.fact_vectors WHERE model_id = $1", model)
    await seen.execute("DELETE FROM mnemic.embedding_models WHERE id = $1", model)
    assert found.hits == ()


class _Another:
    """A model that is not the one that made what is stored."""

    signature = ModelSignature("another", "1", 384)

    async def embed(self, texts: list[str]) -> list[Vector]:
        return [array("f", [1.0] * 384) for _ in texts]

    async def close(self) -> None:
        """Nothing is open."""


async def test_another_model_than_the_one_that_is_stored_is_refused(
    memory: MemoryManager, settings: MemorySettings
) -> None:
    with pytest.raises(EmbeddingMismatch, match="MEM_EMBEDDING__MODEL"):
        await Wiring(settings, embedder=_Another()).open()
