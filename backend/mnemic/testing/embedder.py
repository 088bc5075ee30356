"""An embedder that needs no model."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from mnemic.model.confidence import ConfidenceMap
from mnemic.model.embedding import CosineScale, ModelSignature, Vector, checked_vector, encodable
from mnemic.model.words import words_in

__all__ = ["HashingEmbedder"]


class HashingEmbedder:
    """Texts with common words are alike, and nothing else is; the same bytes on every machine.

    For tests that are not about meaning: it loads nothing and takes microseconds a text. Its
    cosines and scores count as if they were the default model's.
    """

    signature = ModelSignature(
        "hashed-words", "1", 32, scale=CosineScale(), confidence=ConfidenceMap()
    )

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One unit vector a text: signed counts of its words, each at a hashed place."""
        return [self._vector(encodable(text)) for text in texts]

    def _vector(self, text: str) -> Vector:
        # A text without words has a direction too.
        values = [1e-3] * self.signature.dimensions
        for word in words_in(text):
            mark = blake2b(word.encode(), digest_size=2).digest()
            values[mark[0] % len(values)] += 1.0 if mark[1] & 1 else -1.0
        return checked_vector(values, dimensions=len(values))

    async def close(self) -> None:
        """Nothing is open."""
