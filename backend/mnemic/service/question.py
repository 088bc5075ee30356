"""What a question asks the store for: its words, its vector, and how rare its words are here."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace

from mnemic.model.embedding import Vector
from mnemic.model.matching import match_stems
from mnemic.model.naming import names_in
from mnemic.model.ranking_values import QueryWords
from mnemic.model.recall import RecallQuery
from mnemic.model.scope import Scope
from mnemic.service.arms import doubtful_words, respelt, words_asked
from mnemic.service.tools import Tools
from mnemic.store.embedding_models import RegisteredModel
from mnemic.store.retrieval import CandidateQuery
from mnemic.store.statistics import ScopeStatistics
from mnemic.store.turns import actor_id
from mnemic.store.unit import Unit
from mnemic.store.wording import match_text, stems_of, tsquery_text

__all__ = [
    "arms_at_hand",
    "arms_but_vector",
    "arms_for",
    "arms_of",
    "read_question",
    "statistics_of",
    "understood",
]

NO_MODEL = -1


async def statistics_of(unit: Unit, query: RecallQuery, scope: Scope) -> ScopeStatistics:
    """What the visible scopes know of the question's words and names."""
    terms = list(dict.fromkeys(stems_of(query.text)))
    return await unit.statistics.read(scope, terms, names_in(query.text))


async def understood(
    tools: Tools, query: RecallQuery, scope: Scope, statistics: ScopeStatistics
) -> tuple[QueryWords, ScopeStatistics]:
    """The question's words without the names of those who speak in the visible scopes."""
    words = words_asked(tools, query.text, statistics)
    return await respelt(tools, scope, words, statistics)


async def read_question(
    tools: Tools, query: RecallQuery, scope: Scope
) -> tuple[QueryWords, ScopeStatistics]:
    """`understood`, by the statistics of now."""
    statistics = await tools.transact(
        scope.tenant.id,
        lambda unit: statistics_of(unit, query, scope),
        read_only=True,
        keep_plans=True,
    )
    return await understood(tools, query, scope, statistics)


async def arms_for(
    tools: Tools,
    words: QueryWords,
    statistics: ScopeStatistics,
    scope: Scope,
    *,
    limit: int = 0,
    making: Awaitable[list[Vector] | None] | None = None,
) -> tuple[CandidateQuery, RegisteredModel | None]:
    """What the store is asked for, and the model of its vector; neither without the embedder.

    An arm may be asked for as many as `limit`, if that is more than it gives as it comes. What is
    `making` the vector already is waited for instead.
    """
    vectors = None
    if words.text:
        vectors = await (making or tools.vectors([words.embed_text]))
    vector = vectors[0] if vectors else None
    model = await tools.live_model() if vector is not None else None
    return _arms(tools, words, statistics, vector, model, scope, limit), model


def arms_but_vector(
    tools: Tools,
    words: QueryWords,
    statistics: ScopeStatistics,
    scope: Scope,
    *,
    limit: int = 0,
) -> tuple[CandidateQuery, RegisteredModel] | None:
    """As `arms_for`, if neither the embedder nor the store has to be asked for the rest of it."""
    model = tools.known_model
    if model is None or not words.text or doubtful_words(tools, words, statistics):
        return None
    return _arms(tools, words, statistics, None, model, scope, limit), model


def arms_at_hand(
    tools: Tools, words: QueryWords, statistics: ScopeStatistics, scope: Scope
) -> tuple[CandidateQuery, RegisteredModel] | None:
    """As `arms_for`, if neither the embedder nor the store has to be asked for it."""
    if (vector := tools.known_vector(words.embed_text)) is None:
        return None
    if (known := arms_but_vector(tools, words, statistics, scope)) is None:
        return None
    arms, model = known
    return replace(arms, vector=vector), model


def _arms(
    tools: Tools,
    words: QueryWords,
    statistics: ScopeStatistics,
    vector: Vector | None,
    model: RegisteredModel | None,
    scope: Scope,
    limit: int,
) -> CandidateQuery:
    settings = tools.settings.recall
    rare = match_stems(
        words.stems,
        statistics.corpus.frequencies,
        documents=statistics.corpus.documents,
        turns=statistics.turns,
        documents_max=settings.lexical_candidates_max,
        wanted=max(settings.candidates_max, limit),
    )
    return CandidateQuery(
        vector=vector,
        model=model.id if model else NO_MODEL,
        match=match_text(rare),
        either=tsquery_text(rare.stems),
        rank=tsquery_text(words.stems),
        per_arm=settings.candidates_max,
        around=settings.neighbours,
        actor=actor_id(scope.tenant.id, words.named[0]) if words.named else None,
    )


async def arms_of(tools: Tools, query: RecallQuery, scope: Scope) -> CandidateQuery:
    """What a recall of the question asks the store for; for measuring that alone."""
    words, statistics = await read_question(tools, query, scope)
    arms, _ = await arms_for(tools, words, statistics, scope, limit=query.limit)
    return arms
