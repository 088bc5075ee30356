"""Find the memories that answer a question, and say why."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from mnemic.errors import InvalidInput
from mnemic.model.explanation import Explanation
from mnemic.model.filters import checked_filter
from mnemic.model.normalise import checked_unit, shown
from mnemic.model.ranking import above_floor
from mnemic.model.ranking_values import QueryWords
from mnemic.model.recall import KINDS_BY_TYPE, Recall, RecallQuery, kinds_of, text_of
from mnemic.model.route import Leg
from mnemic.model.scope import Scope
from mnemic.service.answer import Searched, answer_of
from mnemic.service.arms import Kinds, further, words_asked
from mnemic.service.calibration import scale_of
from mnemic.service.foresight import Foreseen, foreseen
from mnemic.service.parsing import checked_limit, checked_list, checked_query, checked_scope
from mnemic.service.question import (
    arms_but_vector,
    arms_for,
    statistics_of,
    understood,
)
from mnemic.service.rerank import asked
from mnemic.service.routing import may_keep_plans, routing_of
from mnemic.service.tools import Tools
from mnemic.service.weighing import Weighing
from mnemic.store.embedding_models import RegisteredModel
from mnemic.store.explaining import explained
from mnemic.store.filtered import parted
from mnemic.store.retrieval import CandidateQuery, Found
from mnemic.store.statistics import ScopeStatistics
from mnemic.store.unit import Unit

__all__ = [
    "Known",
    "Searched",
    "answer_of",
    "explained_of",
    "finished",
    "parse_query",
    "read_or_searched",
    "recall",
    "searched",
]

TYPES_MAX = 100


def parse_query(
    tools: Tools,
    text: str,
    *,
    limit: int | None,
    memory_types: Sequence[str] | None,
    floor: float | None,
    filters: object = None,
) -> tuple[RecallQuery, tuple[str, ...]]:
    """The question, checked, with notes on what was capped. Raises `InvalidInput`.

    With a filter the question may be empty: then all that pass are as good as each other.
    """
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
    narrowed = checked_filter(filters)
    unasked = narrowed is not None and text == ""
    least = 0.0 if unasked else settings.score_floor
    query = RecallQuery(
        text="" if unasked else checked_query(text, tools.settings.limits),
        limit=effective,
        kinds=kinds_of(names),
        floor=least if floor is None else checked_unit(floor, field="floor"),
        filters=narrowed,
    )
    return query, (f"limit cut to {effective}, the largest",) if capped else ()


async def recall(
    tools: Tools,
    query: RecallQuery,
    *,
    scope: Scope,
    notes: tuple[str, ...] = (),
    explain: bool = False,
) -> Recall:
    """The best memories visible from `scope`, best first, at most `query.limit`.

    Without the embedder it searches by words alone and says so in `degraded`. Nothing is written.
    """
    checked_scope(scope)
    started = time.perf_counter()
    done = await searched(tools, query, scope=scope)
    explanation = await explained_of(tools, query, done, scope=scope) if explain else None
    found = answer_of(tools, query, done, started=started)
    return replace(found, notes=(*notes, *found.notes), explanation=explanation)


async def searched(tools: Tools, query: RecallQuery, *, scope: Scope) -> Searched:
    """Everything that a question finds, scored, and what of it comes back."""
    async with foreseen(tools, query.text, scope) as ahead:
        read = await tools.transact(
            scope.tenant.id,
            lambda unit: read_or_searched(unit, tools, query, scope, ahead),
            read_only=True,
            keep_plans=True,
        )
        return await finished(tools, query, scope, read, ahead)


class Known(NamedTuple):
    """What the scopes know of a question that is to be searched for yet, and its best by words.

    Those are none if they were not looked for.
    """

    statistics: ScopeStatistics
    worded: Mapping[str, list[UUID]] = MappingProxyType({})


async def read_or_searched(
    unit: Unit, tools: Tools, query: RecallQuery, scope: Scope, ahead: Foreseen
) -> Searched | Known:
    """What the question finds, if its vector is there in a moment; else what is known for that.

    A round trip or two less than with a unit for each; but no unit waits for a network, and one
    that keeps its plans is for what has no filter and is small. The best by words are found while
    the model makes the vector, and the store would rest.
    """
    statistics = await statistics_of(unit, query, scope)
    words = words_asked(tools, query.text, statistics)
    tools.note_named(scope, named=bool(words.named))
    fits = query.filters is None and may_keep_plans(statistics, tools.settings.recall)
    vector, making = tools.known_vector(words.embed_text), ahead.making_of(words.embed_text)
    if (unit.keeps_plans and not fits) or (vector is None and making is None):
        return Known(statistics)
    known = arms_but_vector(tools, words, statistics, scope, limit=query.limit)
    if known is None:
        return Known(statistics)
    arms, model = _enough(query, known[0]), known[1]
    if vector is None and making is not None:
        since = time.monotonic()
        if not making.done() and arms.match is not None and (plain := _parted(query).plain):
            arms = replace(arms, worded=await unit.retrieval.by_words(scope, arms, plain))
        if (vector := await ahead.vector(words.embed_text, since=since)) is None:
            return Known(statistics, arms.worded)
    arms = replace(arms, vector=vector)
    return await _found(unit, tools, query, scope, words, statistics, arms, model)


def _enough(query: RecallQuery, arms: CandidateQuery) -> CandidateQuery:
    """What a filter lets pass is seldom near: each arm gives as many as are wanted, at once."""
    return arms if query.filters is None else arms.wider(query.limit)


async def finished(
    tools: Tools,
    query: RecallQuery,
    scope: Scope,
    read: Searched | Known,
    ahead: Foreseen,
) -> Searched:
    """What is missing behind `read_or_searched`: the search, and the host's own order."""
    if isinstance(read, Searched):
        return await _reranked(tools, query, read)
    words, statistics = await understood(tools, query, scope, read.statistics)
    making = ahead.making_of(words.embed_text)
    arms, model = await arms_for(tools, words, statistics, scope, limit=query.limit, making=making)
    arms = replace(_enough(query, arms), worded=read.worded)
    keep = query.filters is None and may_keep_plans(statistics, tools.settings.recall)
    done = await tools.transact(
        scope.tenant.id,
        lambda unit: _found(unit, tools, query, scope, words, statistics, arms, model),
        read_only=True,
        keep_plans=keep,
    )
    return await _reranked(tools, query, done)


async def _found(
    unit: Unit,
    tools: Tools,
    query: RecallQuery,
    scope: Scope,
    words: QueryWords,
    statistics: ScopeStatistics,
    arms: CandidateQuery,
    model: RegisteredModel | None,
) -> Searched:
    """The search. The hits are read where they were found: a unit of their own costs more."""
    weighing = Weighing(tools, words, statistics, scale_of(tools, model))
    ask = partial(_search, tools=tools, query=query, scope=scope, weighing=weighing)
    wanted = min(query.limit, statistics.corpus.documents)
    found, all_arms, legs = await ask(unit, arms)
    if len(found) < wanted and arms.per_arm < query.limit:  # more is there than the arms give
        found, all_arms, legs = await ask(unit, arms.wider(query.limit))
    by_id = {one.candidate.id: one for one in found}
    scored = weighing.all([one.candidate for one in found])
    if query.filters is not None:
        scored = [one for one in scored if by_id[one.candidate.id].passes]
    shown = above_floor(scored, floor=query.floor)[: _shown_max(tools, query)]
    return Searched(
        words=words,
        statistics=statistics,
        arms=all_arms,
        found=by_id,
        scored=scored,
        ordered=scored,
        kept=shown,
        memories=await unit.retrieval.hits.by_ids(
            scope, [(one.candidate.kind, one.candidate.id) for one in shown]
        ),
        route=legs,
    )


def _shown_max(tools: Tools, query: RecallQuery) -> int:
    """How many rows are read: those that come back, or those that a reranker chooses them from."""
    if tools.reranker is None or not query.text:
        return query.limit
    return max(query.limit, tools.settings.recall.rerank_max)


async def _reranked(tools: Tools, query: RecallQuery, done: Searched) -> Searched:
    """The best hits in the order of the host's reranker, if it has one; none is added or lost."""
    reranker, settings = tools.reranker, tools.settings.recall
    few = [one for one in done.kept if one.candidate.id in done.memories][: settings.rerank_max]
    if reranker is None or not query.text or not few:
        return replace(done, kept=done.kept[: query.limit])
    texts = [text_of(done.memories[one.candidate.id]) for one in few]
    ranks = await asked(reranker, query.text, texts, timeout_ms=settings.rerank_timeout_ms)
    best = [few[at] for at in ranks.order(len(few))]
    chosen = {one.candidate.id for one in best}
    return replace(
        done,
        ordered=[*best, *(one for one in done.scored if one.candidate.id not in chosen)],
        kept=[*best, *(one for one in done.kept if one.candidate.id not in chosen)][: query.limit],
        reranked={one.candidate.id: value for one, value in zip(few, ranks.values, strict=False)},
        rerank_fault=ranks.fault,
    )


async def explained_of(
    tools: Tools,
    query: RecallQuery,
    done: Searched,
    *,
    scope: Scope,
    only: tuple[str, UUID] | None = None,
) -> Explanation:
    """What each arm of the search found; with `only` (kind and id), where that memory stands."""
    plain = _parted(query).plain
    kinds, identity = (query.kinds, None) if only is None else ((only[0],), only[1])
    return await tools.transact(
        scope.tenant.id,
        lambda unit: explained(
            unit, scope, done.arms, query.filters, kinds, plain=plain, only=identity
        ),
        read_only=True,
    )


async def _search(
    unit: Unit,
    arms: CandidateQuery,
    *,
    tools: Tools,
    query: RecallQuery,
    scope: Scope,
    weighing: Weighing,
) -> tuple[list[Found], CandidateQuery, tuple[Leg, ...]]:
    """What the arms find, all that they were asked with, and which way each went.

    A filter acts before them, and a kind that cannot pass is not asked.
    """
    settings = tools.settings.recall
    parts = _parted(query)
    plain, narrowed = parts.plain, parts.narrowed
    words = weighing.words
    more = await further(unit, scope, words, arms, settings, parts)
    near = await unit.retrieval.approximate.nearest(
        scope, arms, routing_of(plain, words, weighing.statistics, settings)
    )
    arms = replace(arms, further=more, given=near.ids)
    found = await unit.retrieval.candidates(
        scope, arms, plain, ahead=lambda turns: weighing.ahead([one.candidate for one in turns])
    )
    if query.filters is not None and narrowed:
        found += await unit.filtered.search(scope, arms, query.filters, narrowed)
    return found, arms, near.legs


def _parted(query: RecallQuery) -> Kinds:
    """The kinds that are searched as if there were no filter, and those that are searched by it.

    Of a question that is empty the arms know nothing: what passes is all there is to go by.
    """
    if query.filters is None:
        return Kinds(query.kinds)
    plain, narrowed = parted(query.filters, query.kinds)
    if not query.text:
        plain, narrowed = (), plain + narrowed
    return Kinds(plain, narrowed, query.filters)
