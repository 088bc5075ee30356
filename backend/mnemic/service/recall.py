"""Find the memories that answer a question, and say why."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from mnemic.errors import InvalidInput
from mnemic.model.embedding import CosineScale
from mnemic.model.explanation import Explanation
from mnemic.model.filters import checked_filter
from mnemic.model.normalise import checked_unit, shown
from mnemic.model.ranking import above_floor, score
from mnemic.model.ranking_values import Candidate, QueryWords, Scored
from mnemic.model.recall import KINDS_BY_TYPE, MemoryItem, Recall, RecallQuery, kinds_of, text_of
from mnemic.model.route import Leg
from mnemic.model.scope import Scope
from mnemic.service.answer import Searched, answer_of
from mnemic.service.arms import Kinds, further, told_apart
from mnemic.service.calibration import scale_of
from mnemic.service.parsing import checked_limit, checked_list, checked_query, checked_scope
from mnemic.service.question import arms_for, read_question
from mnemic.service.rerank import asked
from mnemic.service.routing import may_keep_plans, routing_of
from mnemic.service.tools import Tools
from mnemic.store.explaining import explained
from mnemic.store.filtered import parted
from mnemic.store.retrieval import CandidateQuery, Found
from mnemic.store.statistics import ScopeStatistics
from mnemic.store.unit import Unit

__all__ = [
    "Searched",
    "answer_of",
    "explained_of",
    "memories_of",
    "parse_query",
    "ranked",
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


async def searched(
    tools: Tools,
    query: RecallQuery,
    *,
    scope: Scope,
    question: tuple[QueryWords, ScopeStatistics] | None = None,
) -> Searched:
    """Everything that a question finds, scored, and what of it comes back.

    The `question` is read, if it was not read before.
    """
    words, statistics = question or await read_question(tools, query, scope)
    arms, model = await arms_for(tools, words, statistics, scope, limit=query.limit)
    if query.filters is not None:
        arms = replace(arms, per_arm=max(arms.per_arm, query.limit))

    ask = partial(_search, tools=tools, query=query, scope=scope, words=words, known=statistics)
    wanted = min(query.limit, statistics.corpus.documents)

    # The hits are read where they were found: a unit of their own is two round trips more.
    async def search(unit: Unit) -> Searched:
        found, all_arms, legs = await ask(unit, arms)
        if len(found) < wanted and arms.per_arm < query.limit:  # more is there than the arms give
            found, all_arms, legs = await ask(unit, replace(arms, per_arm=query.limit))
        by_id = {one.candidate.id: one for one in found}
        candidates = [one.candidate for one in found]
        scale = scale_of(tools, model)
        scored = ranked(tools, words, candidates, statistics, scale)
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
            memories=await memories_of(
                unit, scope, [(one.candidate.kind, one.candidate.id) for one in shown]
            ),
            route=legs,
        )

    keep = query.filters is None and may_keep_plans(statistics, tools.settings.recall)
    done = await tools.transact(scope.tenant.id, search, read_only=True, keep_plans=keep)
    return await _reranked(tools, query, done)


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
    words: QueryWords,
    known: ScopeStatistics,
) -> tuple[list[Found], CandidateQuery, tuple[Leg, ...]]:
    """What the arms find, all that they were asked with, and which way each went.

    A filter acts before them, and a kind that cannot pass is not asked.
    """
    settings = tools.settings.recall
    asked = _parted(query)
    plain, narrowed = asked.plain, asked.narrowed
    more = await further(unit, scope, words, arms, settings, asked)
    near = await unit.retrieval.approximate.nearest(
        scope, arms, routing_of(plain, words, known, settings)
    )
    arms = replace(arms, further=more, given=near.ids)
    found: list[Found] = []
    if "turn" in plain:
        found += await unit.retrieval.turns(scope, arms)
    others = tuple(kind for kind in plain if kind != "turn")
    if others:
        found += await unit.retrieval.others(scope, arms, others)
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


def ranked(
    tools: Tools,
    words: QueryWords,
    candidates: Sequence[Candidate],
    statistics: ScopeStatistics,
    scale: CosineScale | None,
) -> list[Scored]:
    """The candidates by their scores, the best first."""
    known = frozenset(statistics.actors)
    told = [_spoken_by(one, known) if one.kind == "fact" else one for one in candidates]
    told = _rescaled(told, scale)
    if words.unread:
        told = told_apart(told)
    weights = tools.settings.ranking.weights()
    return score(words, told, statistics.corpus, weights, now=tools.now())


def _spoken_by(candidate: Candidate, actors: frozenset[str]) -> Candidate:
    """A fact counts as said by its subject only if that is somebody who speaks here."""
    return candidate if candidate.actor in actors else candidate._replace(actor="")


def _rescaled(candidates: list[Candidate], scale: CosineScale | None) -> list[Candidate]:
    """Cosines of another model than the default one, on the scale that the weights are set on."""
    if scale is None or scale == CosineScale():
        return candidates
    return [
        one if one.cosine is None else one._replace(cosine=scale.apply(one.cosine))
        for one in candidates
    ]


async def memories_of(
    unit: Unit, scope: Scope, hits: Sequence[tuple[str, UUID]]
) -> dict[UUID, MemoryItem]:
    """The rows of the hits, under row-level security; what was deleted meanwhile is missing."""
    wanted: dict[str, list[UUID]] = {}
    for kind, identity in hits:
        wanted.setdefault(kind, []).append(identity)
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
