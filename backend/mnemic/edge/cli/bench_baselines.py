"""What recall is measured beside: vectors alone, BM25 alone, and the two fused by their ranks.

Each ranks every turn of a conversation in memory, so that no index stands between it and its best.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from operator import mul
from typing import TYPE_CHECKING

from mnemic.edge.cli.bench_questions import Place
from mnemic.model.naming import without_names
from mnemic.model.turn_vector import turn_text
from mnemic.model.words import normal_form
from mnemic.store.wording import words_of

if TYPE_CHECKING:
    from mnemic.model.embedding import Embedder, Vector
    from mnemic.model.turn import TurnCreate

__all__ = ["Baselines"]

K1, B = 1.2, 0.75
RRF_K = 60
_BATCH = 64
_SAMPLED = 16


class Baselines:
    """The turns of one conversation, ready to be ranked."""

    def __init__(self, embedder: Embedder, turns: Mapping[Place, TurnCreate]) -> None:
        self._embedder = embedder
        self._places = list(turns)
        self._actors = tuple(dict.fromkeys(one.actor for one in turns.values()))
        self._texts = [turn_text(one.actor, one.text, one.caption) for one in turns.values()]
        self._vectors: list[Vector] = []
        self._bags = [Counter(words_of(text).stems) for text in self._texts]
        self._lengths = [bag.total() for bag in self._bags]
        self._frequencies = Counter(stem for bag in self._bags for stem in bag)

    async def prepare(self) -> None:
        """Every turn has its vector."""
        for first in range(0, len(self._texts), _BATCH):
            self._vectors += await self._embedder.embed(self._texts[first : first + _BATCH])

    async def vector(self, question: str) -> list[Place]:
        """By cosine to the question as it is asked."""
        [asked] = await self._embedder.embed([question])
        return self._ordered([sum(map(mul, asked, one)) for one in self._vectors])

    async def bm25(self, question: str) -> list[Place]:
        """By BM25 over stems (Robertson & Zaragoza, 2009; k1 1.2, b .75)."""
        stems = set(words_of(question).stems)
        count = len(self._bags)
        average = sum(self._lengths) / count
        weights = {
            stem: math.log1p((count - seen + 0.5) / (seen + 0.5))
            for stem in stems
            if (seen := self._frequencies[stem])
        }
        return self._ordered(
            [
                sum(
                    weight
                    * bag[stem]
                    * (K1 + 1)
                    / (bag[stem] + K1 * (1 - B + B * length / average))
                    for stem, weight in weights.items()
                )
                for bag, length in zip(self._bags, self._lengths, strict=True)
            ]
        )

    async def rrf(self, question: str) -> list[Place]:
        """Reciprocal rank fusion of both (Cormack et al., 2009; k 60)."""
        scores: defaultdict[Place, float] = defaultdict(float)
        for ranked in (await self.vector(question), await self.bm25(question)):
            for rank, place in enumerate(ranked, start=1):
                scores[place] += 1 / (RRF_K + rank)
        return self._ordered([scores[place] for place in self._places])

    async def cosines(self, question: str) -> list[float]:
        """To every `_SAMPLED`th turn, as if question and turn had been drawn at random.

        The question is embedded as recall does it, without the names of those who speak here.
        """
        unnamed = without_names(normal_form(question), self._actors).embed_text
        [asked] = await self._embedder.embed([unnamed])
        return [sum(map(mul, asked, one)) for one in self._vectors[::_SAMPLED]]

    def _ordered(self, scores: Sequence[float]) -> list[Place]:
        order = sorted(range(len(scores)), key=lambda at: -scores[at])
        return [self._places[at] for at in order]
