"""The offline model, as it is installed."""

from __future__ import annotations

from mnemic.embed import LocalEmbedder
from mnemic.model.embedding import cosine


async def test_a_paraphrase_is_nearer_than_something_else() -> None:
    embedder = LocalEmbedder()

    said, paraphrase, other = await embedder.embed(
        [
            "The user prefers green tea.",
            "She likes to drink sencha.",
            "Kubernetes pods crash at night",
        ]
    )

    assert cosine(said, paraphrase) > 0.3
    assert cosine(said, other) < 0.1
