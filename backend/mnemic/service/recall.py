"""Find the memories that answer a question, and say why."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypeAlias
from uuid import UUID

from mnemic.errors import InvalidInput
from mnemic.model.embedding import CosineScale, Vector
from mnemic.model.normalise import checked_unit, shown
from mnemic.model.ranking import (
    about_other_actor,
    above_floor,
    confidence,
    low_confidence,
    match_stems,
    score,
)
from mnemic.model.ranking_values import Candidate, QueryWords, Scored
from mnemic.model.recall import KINDS_BY_TYPE, Hit, MemoryItem, Recall, RecallQuery, kinds_of
from mnemic.model.scope import Scope
from mnemic.service.parsing import checked_limit, checked_list, checked_query, checked_scope
from mnemic.service.tools import Tools
from mnemic.store.embedding_models import RegisteredModel
from mnemic.store.retrieval import CandidateQuery, Found
from mnemic.store.statistics import PENDING_MAX, ScopeStatistics
from mnemic.store.turns import actor_id
from mnemic.store.unit import Unit
from mnemic.store.wording import query_of, stems_of, tsquery_text

__all__ = ["arms_for", "arms_of", "parse_query", "ranked", "recall", "words_asked"]

NO_MODEL = -1
TYPES_MAX = 100

_Searched: TypeAlias = tuple[list[Found], list[Scored], list[Scored], dict[UUID, MemoryItem]]
"""What was found, all of it by its score, what is kept of that, and its rows."""


def parse_query(
    tools: Tools,
    text: str,
    *,
    limit: int | None,
    memory_types: Sequence[str] | None,
    floor: float | None,
) -> tuple[RecallQuery, tuple[str, ...]]:
    """The question, checked, with notes on what was capped. Raises `InvalidInput`."""
    settings = tools.settings.recall
    effective, capped = checked_limit(
        limit, default=settings.limit_default, largest=settings.limit_max
    )
    names = tuple(KINDS_BY_TYPE)
    if memory_types is not None:
        names = tuple(checked_list(memory_types, field="memory_types", items_max=TYPES_MAX))
    if unknown := [name for name in names if name not in tuple(KINDS_BY_TYPE)]:
        raise InvalidInput(
            f"must be among {', '.join(KINDS_BY_TYPE)}, not {shown(unknown[0])}",
            field="memory_types",
        )
    question = checked_query(text, tools.settings.limits)
    query = RecallQuery(
        text=question,
        limit=effective,
        kinds=kinds_of(names),
        floor=settings.score_floor if floor is None else checked_unit(floor, field="floor"),
    )
    return query, (f"limit cut to {effective}, the largest",) if capped else ()


async def recall(
    tools: Tools, query: RecallQuery, *, scope: Scope, notes: tuple[str, ...] = ()
) -> Recall:
    """The best memories visible from `scope`, best first, at most `query.limit`.

    Without the embedder it searches by words alone and says so in `degraded`. Nothing is written.
    """
    checked_scope(scope)
    started = time.perf_counter()
    words, statistics = await _read_question(tools, query, scope)
    arms, model = await arms_for(tools, words, statistics, scope)
    degraded = () if arms.vector is not None else ("vectors: the embedder is unavailable",)

    # The hits are read where they were found: a unit of their own is two round trips more.
    async def search(unit: Unit) -> _Searched:
        found: list[Found] = []
        if "turn" in query.kinds:
            found += await unit.retrieval.turns(scope, arms)
        others = tuple(kind for kind in query.kinds if kind != "turn")
        if others:
            found += await unit.retrieval.others(scope, arms, others)
        candidates = [one.candidate for one in found]
        scored = ranked(words, candidates, statistics, model, now=tools.now())
        kept = above_floor(scored, floor=query.floor)[: query.limit]
        return found, scored, kept, await _memories(unit, scope, kept)

    found, scored, kept, memories = await tools.transact(scope.tenant.id, search, read_only=True)
    places = {one.candidate.id: one for one in found}
    return Recall(
        hits=tuple(_hit(one, memories, places) for one in kept if one.candidate.id in memories),
        confidence=confidence(scored[0].score) if scored else 0.0,
        low_confidence=low_confidence(scored, below=tools.settings.recall.low_confidence_below),
        about_other_actor=about_other_actor(scored, words.named),
        searched=statistics.corpus.documents,
        limit=query.limit,
        took=timedelta(seconds=time.perf_counter() - started),
        degraded=degraded,
        notes=notes + _shortfall(query, scored, kept, statistics),
    )


async def arms_of(tools: Tools, query: RecallQuery, scope: Scope) -> CandidateQuery:
    """What a recall of the question asks the store for; for measuring that alone."""
    words, statistics = await _read_question(tools, query, scope)
    arms, _ = await arms_for(tools, words, statistics, scope)
    return arms


async def _read_question(
    tools: Tools, query: RecallQuery, scope: Scope
) -> tuple[QueryWords, ScopeStatistics]:
    """The question's words without the names of those who speak in the visible scopes."""
    terms = list(dict.fromkeys(stems_of(query.text)))
    statistics = await tools.transact(
        scope.tenant.id, lambda unit: unit.statistics.read(scope, terms), read_only=True
    )
    return words_asked(tools, query.text, statistics), statistics


def words_asked(tools: Tools, text: str, statistics: ScopeStatistics) -> QueryWords:
    """The words of a question without the names of those who speak."""
    terms_max = tools.settings.limits.query_terms_max
    return query_of(text, actors=statistics.actors, terms_max=terms_max)


async def arms_for(
    tools: Tools, words: QueryWords, statistics: ScopeStatistics, scope: Scope
) -> tuple[CandidateQuery, RegisteredModel | None]:
    """What the store is asked for, and the model of its vector; neither without the embedder."""
    vectors = await tools.vectors([words.embed_text])
    vector = vectors[0] if vectors else None
    model = await tools.live_model() if vector is not None else None
    return _arms(tools, words, statistics, vector, model, scope), model


def _arms(
    tools: Tools,
    words: QueryWords,
    statistics: ScopeStatistics,
    vector: Vector | None,
    model: RegisteredModel | None,
    scope: Scope,
) -> CandidateQuery:
    settings = tools.settings.recall
    rare = match_stems(
        words.stems,
        statistics.corpus.frequencies,
        documents_max=settings.lexical_candidates_max,
    )
    return CandidateQuery(
        vector=vector,
        model=model.id if model else NO_MODEL,
        match=tsquery_text(rare),
        rank=tsquery_text(words.stems),
        per_arm=settings.candidates_max,
        around=settings.neighbours,
        actor=actor_id(scope.tenant.id, words.named[0]) if words.named else None,
    )


def ranked(
    words: QueryWords,
    candidates: Sequence[Candidate],
    statistics: ScopeStatistics,
    model: RegisteredModel | None,
    *,
    now: datetime,
) -> list[Scored]:
    """The candidates by their scores, the best first."""
    known = frozenset(statistics.actors)
    told = _rescaled([_spoken_by(one, known) for one in candidates], model)
    return score(words, told, statistics.corpus, now=now)


def _spoken_by(candidate: Candidate, actors: frozenset[str]) -> Candidate:
    """A fact counts as said by its subject only if that is somebody who speaks here."""
    if candidate.kind == "fact" and candidate.actor not in actors:
        return candidate._replace(actor="")
    return candidate


def _rescaled(candidates: list[Candidate], model: RegisteredModel | None) -> list[Candidate]:
    """Cosines of another model than the default one, on the scale that the weights are set on."""
    if model is None or model.cosine_mean is None or model.cosine_deviation is None:
        return candidates
    scale = CosineScale(model.cosine_mean, model.cosine_deviation)
    return [
        one if one.cosine is None else one._replace(cosine=scale.apply(one.cosine))
        for one in candidates
    ]


async def _memories(unit: Unit, scope: Scope, kept: Sequence[Scored]) -> dict[UUID, MemoryItem]:
    """The rows of the hits, under row-level security; what was deleted meanwhile is missing."""
    wanted: dict[str, list[UUID]] = {}
    for one in kept:
        wanted.setdefault(one.candidate.kind, []).append(one.candidate.id)
    found: list[MemoryItem] = []
    if ids := wanted.get("turn"):
        found += await unit.turns.by_ids(scope, ids)
    if ids := wanted.get("episode"):
        found += await unit.episodes.by_ids(scope, ids)
    if ids := wanted.get("fact"):
        found += await unit.facts.by_ids(scope, ids)
    if ids := wanted.get("procedure"):
        found += await unit.procedures.by_ids(scope, ids)
    return {memory.id: memory for memory in found}


def _hit(one: Scored, memories: dict[UUID, MemoryItem], places: dict[UUID, Found]) -> Hit:
    place = places[one.candidate.id]
    return Hit(
        kind=one.candidate.kind,
        memory=memories[one.candidate.id],
        score=one.score,
        reasons=one.reasons,
        near_place=place.near_place,
        words_place=place.words_place,
    )


def _shortfall(
    query: RecallQuery,
    scored: Sequence[Scored],
    kept: Sequence[Scored],
    statistics: ScopeStatistics,
) -> tuple[str, ...]:
    notes = []
    if len(kept) < query.limit:
        below = len(scored) - len(kept)
        if not statistics.corpus.documents:
            notes.append("nothing is remembered in this scope yet")
        elif not kept:
            all_of = "1 candidate lies" if below == 1 else f"{below} candidates lie"
            notes.append(f"nothing relevant: {all_of} below {query.floor:.2f}")
        elif below:
            more = "1 further candidate lies" if below == 1 else f"{below} further candidates lie"
            notes.append(f"{more} below {query.floor:.2f}")
        else:
            notes.append("nothing else that is remembered here comes near")
    if statistics.pending >= PENDING_MAX:
        notes.append("word statistics are catching up")
    return tuple(notes)
