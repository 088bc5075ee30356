"""A model that costs nothing, for tests that are about something else."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import blake2b

from mnemic.model.embedding import ModelSignature, Vector


class FixedEmbedder:
    """A vector of 16 numbers that follow from the text."""

    signature = ModelSignature("fixed", "1", 16)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [
            array("f", [1.0 + byte for byte in blake2b(text.encode(), digest_size=16).digest()])
            for text in texts
        ]

    async def close(self) -> None:
        """Nothing is open."""
