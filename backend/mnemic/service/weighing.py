"""Weigh what was found: turns first, while the store looks for the other kinds."""

from __future__ import annotations

from collections.abc import Sequence

from mnemic.model.embedding import CosineScale
from mnemic.model.ranking import has_cosine, in_order, weighed
from mnemic.model.ranking_values import TURN, Candidate, QueryWords, Scored, candidate_of
from mnemic.service.arms import told_apart
from mnemic.service.tools import Tools
from mnemic.store.statistics import ScopeStatistics

__all__ = ["Weighing"]

_ACTOR = Candidate._fields.index("actor")
_COSINE = Candidate._fields.index("cosine")


class Weighing:
    """Scores of what a question found; the cosines are those of a model with the given scale."""

    def __init__(
        self,
        tools: Tools,
        words: QueryWords,
        statistics: ScopeStatistics,
        scale: CosineScale | None,
    ) -> None:
        self.words = words
        self.statistics = statistics
        self._weights = tools.settings.ranking.weights()
        self._now = tools.now()
        self._scale = scale
        self._actors = frozenset(statistics.actors)
        self._turns: list[Scored] | None = None

    def ahead(self, turns: Sequence[Candidate]) -> None:
        """All turns are weighed already, if nothing that comes can change how.

        No other kind is a neighbour. But whether meaning counts at all is known only where a turn
        has a cosine; and in letters that the model cannot read all cosines are seen together.
        """
        self._turns = None
        if has_cosine(turns) and not self.words.unread:
            self._turns = self._weighed(turns, meant=True)

    def all(self, candidates: Sequence[Candidate]) -> list[Scored]:
        """All by their scores, the best first; the turns among them as they were given `ahead`."""
        if self._turns is None:
            return in_order(self._weighed(candidates))
        others = [one for one in candidates if one.kind != TURN]
        return in_order([*self._turns, *self._weighed(others, meant=True)])

    def _weighed(
        self, candidates: Sequence[Candidate], *, meant: bool | None = None
    ) -> list[Scored]:
        told = _rescaled(_as_spoken(candidates, self._actors), self._scale)
        if self.words.unread:
            told = told_apart(told)
        corpus = self.statistics.corpus
        return weighed(self.words, told, corpus, self._weights, now=self._now, meant=meant)


def _as_spoken(candidates: Sequence[Candidate], actors: frozenset[str]) -> list[Candidate]:
    """A fact counts as said by its subject only if that is somebody who speaks here."""
    return [
        one
        if one.kind != "fact" or one.actor in actors
        else candidate_of((*one[:_ACTOR], "", *one[_ACTOR + 1 :]))
        for one in candidates
    ]


def _rescaled(candidates: list[Candidate], scale: CosineScale | None) -> list[Candidate]:
    """Cosines of another model than the default one, on the scale that the weights are set on."""
    if scale is None or scale == CosineScale():
        return candidates
    return [
        one
        if one.cosine is None
        else candidate_of((*one[:_COSINE], scale.apply(one.cosine), *one[_COSINE + 1 :]))
        for one in candidates
    ]
