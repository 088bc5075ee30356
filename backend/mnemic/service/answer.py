"""What a search found, told as an answer: hits with their reasons, and how sure it is."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from mnemic.model.ranking import about_other_actor, surest
from mnemic.model.ranking_values import QueryWords, Scored
from mnemic.model.recall import Hit, MemoryItem, Recall, RecallQuery
from mnemic.model.route import Leg
from mnemic.service.arms import notes_on, places_of, shortfall
from mnemic.service.calibration import calibration_of
from mnemic.service.tools import Tools
from mnemic.store.retrieval import CandidateQuery, Found
from mnemic.store.statistics import ScopeStatistics

__all__ = ["Searched", "answer_of"]

NO_VECTORS = "vectors: the embedder is unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What a question found, the best first, and what it was asked with.

    `scored` are all that pass the filter by their scores, `ordered` the same as the host's own
    reranker has them, `kept` those that come back, `memories` their rows.
    """

    words: QueryWords
    statistics: ScopeStatistics
    arms: CandidateQuery
    found: dict[UUID, Found]
    scored: list[Scored]
    ordered: list[Scored]
    kept: list[Scored]
    memories: dict[UUID, MemoryItem]
    route: tuple[Leg, ...]
    reranked: dict[UUID, float] = field(default_factory=dict)
    rerank_fault: str | None = None


def answer_of(tools: Tools, query: RecallQuery, done: Searched, *, started: float) -> Recall:
    """What was found, as it is told; `started` is when it was asked, by `time.perf_counter`."""
    known = calibration_of(tools.settings.embedding, tools.embedder.signature)
    best = surest(done.scored, tools.settings.ranking.weights())
    sure = known.confidence.of(best) if done.scored else 0.0
    asked = bool(query.text)
    return Recall(
        hits=tuple(
            _hit(one, done.memories[one.candidate.id], done)
            for one in done.kept
            if one.candidate.id in done.memories
        ),
        confidence=sure,
        low_confidence=not done.scored or sure < tools.settings.recall.low_confidence_below,
        about_other_actor=about_other_actor(done.scored, done.words.named),
        searched=done.statistics.corpus.documents,
        limit=query.limit,
        took=timedelta(seconds=time.perf_counter() - started),
        degraded=(NO_VECTORS,) if asked and done.arms.vector is None else (),
        notes=(
            *notes_on(tools, done.words, done.arms),
            *shortfall(query, done.scored, done.kept, done.statistics),
            *(known.notes if done.arms.vector is not None else ()),
            *((f"not reranked: {done.rerank_fault}",) if done.rerank_fault else ()),
        ),
        route=done.route,
        # A word that a memory holds is not kept, and who failed once is asked again.
        lasts=not done.words.respelt and done.rerank_fault is None,
    )


def _hit(one: Scored, memory: MemoryItem, done: Searched) -> Hit:
    return Hit(
        kind=one.candidate.kind,
        memory=memory,
        score=one.score,
        reasons=one.reasons,
        rerank=done.reranked.get(one.candidate.id),
        **places_of(done.found[one.candidate.id], done.arms, done.words),
    )
