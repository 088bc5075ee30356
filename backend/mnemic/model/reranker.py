"""What may put the best hits in another order: a cross-encoder, a model that is asked, any rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["Reranker"]


class Reranker(Protocol):
    """Says how well texts answer a question. It is called with no transaction open."""

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """One finite number a text, in the order of the texts; the higher, the better.

        The numbers are compared with each other alone. What is raised, comes too late
        (`recall.rerank_timeout_ms`) or is no such list leaves the hits as they stood, and the
        answer says so. It should yield to the loop: nobody can stop what never waits.
        """
        ...
