"""How often recall finds what answers a question, beside vectors, BM25 and their fusion."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mnemic.edge.cli.bench_baselines import Baselines
from mnemic.edge.cli.bench_confidence import LIMIT, Judged, Whose, judged, renamed, show_curve
from mnemic.edge.cli.bench_questions import CATEGORIES, Conversation, Place, Question, speakers
from mnemic.edge.cli.writing import write_line
from mnemic.model.retrieval_measures import (
    hit_at,
    mean,
    ndcg_at,
    percentile,
    recall_at,
    reciprocal_rank,
)
from mnemic.model.route import Plan
from mnemic.model.scope import Scope
from mnemic.model.token_count import EstimatedTokens
from mnemic.model.turn import Turn

if TYPE_CHECKING:
    from uuid import UUID

    from mnemic.manager import MemoryManager
    from mnemic.model.embedding import Embedder
    from mnemic.model.recall import Hit

__all__ = [
    "BUDGETS",
    "RECIPES",
    "Asked",
    "ask",
    "ask_foreign",
    "document_of",
    "load",
    "memory_to_measure",
    "project_of",
]

RECIPES = ("vector", "bm25", "rrf", "mnemic")
BUDGETS = (512, 1_024, 2_048, 4_096)
HITS_MAX = 100
EXACT_ROWS_MAX = 10_000_000
_ADVERSARIAL = 5
_DIGITS = 4
_OWNER = Scope.user("bench")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with what each recipe ranked first, and how long it took.

    `above_floor` are the turns of `mnemic` that the default floor keeps; `within` is the share of
    the evidence in its hits that fit into each budget of tokens. `plan` is how the nearest turns
    were found, and `nearest`, if it was not by comparing all, the share of the true ones. `judged`
    is how sure a recall of all kinds was, `cosines` are the question's to turns at random.
    """

    question: Question
    ranked: dict[str, tuple[Place, ...]]
    seconds: dict[str, float]
    above_floor: tuple[Place, ...]
    within: dict[int, float]
    plan: Plan
    nearest: float | None
    judged: Judged
    cosines: list[float]


@asynccontextmanager
async def memory_to_measure() -> AsyncIterator[tuple[MemoryManager, MemoryManager, Embedder]]:
    """A manager on embedded servers of its own, gone afterwards, and its embedder without a cache.

    Between them stands a manager on the same servers that compares all vectors, however many. What
    the settings say of recall and embedding holds; servers that are set are left alone.
    """
    from mnemic.edge.cli.bench_ground import throwaway
    from mnemic.embed import open_embedder
    from mnemic.manager import MemoryManager
    from mnemic.settings_reading import read_settings
    from mnemic.wiring import embedded_settings

    given = read_settings()
    embedder = open_embedder(given.embedding.model_copy(update={"cache_entries_max": 0}))
    try:
        with throwaway() as folder:
            own = embedded_settings(folder).model_copy(
                update={name: getattr(given, name) for name in ("recall", "ranking", "embedding")}
            )
            bound = {"exact_scan_rows_max": EXACT_ROWS_MAX}
            all_compared = own.model_copy(update={"recall": given.recall.model_copy(update=bound)})
            async with MemoryManager.open(own) as memory, MemoryManager.open(all_compared) as exact:
                yield memory, exact, embedder
    finally:
        await embedder.close()


async def load(memory: MemoryManager, conversation: Conversation, scope: Scope) -> None:
    """The conversation stands in the project, its sessions have ended, words counted."""
    await memory.transcripts.ingest(conversation.entries, scope=scope)
    await memory.maintenance.count_terms()


async def ask(
    memory: MemoryManager,
    exact: MemoryManager,
    embedder: Embedder,
    conversation: Conversation,
    scope: Scope,
    *,
    progress: Callable[[int], None],
) -> list[Asked]:
    """Every question of a conversation that was loaded, asked of every recipe.

    The baselines embed by `embedder`, which must be that of `memory` without a cache.
    """
    turns = {place: entry.turn for place, entry in conversation.turns.items()}
    baselines = Baselines(embedder, turns)
    await baselines.prepare()
    asked = []
    for question in conversation.questions:
        one = await _ask(memory, baselines, conversation, question, scope)
        if one.plan is Plan.HNSW:
            one = replace(one, nearest=await _nearest_found(memory, exact, question, scope))
        asked.append(one)
        progress(1)
    return asked


async def _ask(
    memory: MemoryManager,
    baselines: Baselines,
    conversation: Conversation,
    question: Question,
    scope: Scope,
) -> Asked:
    ranked: dict[str, tuple[Place, ...]] = {}
    seconds: dict[str, float] = {}
    others: dict[str, Callable[[str], Awaitable[list[Place]]]] = {
        "vector": baselines.vector,
        "bm25": baselines.bm25,
        "rrf": baselines.rrf,
    }
    # The first to ask embeds the question; nobody finds it in a cache.
    started = time.perf_counter()
    await memory.recall(question.text, scope=scope, limit=LIMIT)
    seconds["mnemic"] = time.perf_counter() - started
    for name, rank in others.items():
        started = time.perf_counter()
        ranked[name] = tuple((await rank(question.text))[:HITS_MAX])
        seconds[name] = time.perf_counter() - started
    found = await memory.recall(
        question.text, scope=scope, limit=HITS_MAX, memory_types=("episodic",), floor=0.0
    )
    sessions: dict[UUID, str] = {scope.session(name).id: name for name, _ in conversation.turns}
    ranked["mnemic"] = _places(found.hits, sessions)
    floor = memory.settings.recall.score_floor
    whose = Whose.ADVERSARIAL if question.category == _ADVERSARIAL else Whose.OWN
    return Asked(
        question=question,
        ranked=ranked,
        seconds=seconds,
        above_floor=_places((hit for hit in found.hits if hit.score >= floor), sessions),
        within={
            budget: recall_at(
                HITS_MAX, _places(_fitting(found.hits, budget), sessions), question.evidence
            )
            for budget in BUDGETS
        },
        plan=found.route[0].plan,
        nearest=None,
        judged=await _judged(memory, question, scope, whose),
        cosines=await baselines.cosines(question.text),
    )


async def _judged(memory: MemoryManager, question: Question, scope: Scope, whose: Whose) -> Judged:
    found = await memory.recall(question.text, scope=scope, limit=LIMIT, floor=0.0)
    return judged(found, whose, floor=memory.settings.recall.score_floor)


async def ask_foreign(memory: MemoryManager, conversations: Sequence[Conversation]) -> list[Judged]:
    """Each conversation's questions, asked of the next one, which stands in a project of its own.

    As they are, and about its speakers. Nothing of one conversation alone, and none of the last
    category: nobody can answer those.
    """
    if len(conversations) < 2:  # noqa: PLR2004 - one has no other
        return []
    answers = []
    for one, other in zip(conversations, (*conversations[1:], conversations[0]), strict=True):
        here, theirs, ours = project_of(other, together=False), speakers(one), speakers(other)
        for question in one.questions:
            if question.category != _ADVERSARIAL:
                known = replace(question, text=renamed(question.text, theirs, ours))
                answers.append(await _judged(memory, question, here, Whose.FOREIGN))
                answers.append(await _judged(memory, known, here, Whose.RENAMED))
    return answers


async def _nearest_found(
    memory: MemoryManager, exact: MemoryManager, question: Question, scope: Scope
) -> float:
    """The share of the ten nearest turns, all compared, that are among the ten that were found."""
    near: list[set[UUID]] = []
    for one in (memory, exact):
        found = await one.recall(
            question.text, scope=scope, limit=HITS_MAX, memory_types=("episodic",), floor=0.0
        )
        near.append(
            {
                hit.id
                for hit in found.hits
                if hit.kind == "turn" and hit.near_place and hit.near_place <= LIMIT
            }
        )
    return len(near[0] & near[1]) / len(near[1]) if near[1] else 1.0


def project_of(conversation: Conversation, *, together: bool) -> Scope:
    """Where the conversation stands: in a project of its own, or in that of all."""
    return _OWNER.project("together" if together else conversation.name)


def _places(hits: Iterable[Hit], sessions: dict[UUID, str]) -> tuple[Place, ...]:
    """Where the turns among the hits stand; an episode is no evidence, and takes no place.

    A turn of another conversation, where they stand together, takes one that nothing else has.
    """
    return tuple(
        (sessions.get(hit.memory.session_id, str(hit.memory.session_id)), hit.memory.seq)
        for hit in hits
        if isinstance(hit.memory, Turn)
    )


def _fitting(hits: Sequence[Hit], budget: int) -> list[Hit]:
    """Whole turns as long as they fit; one that does not is skipped."""
    counter, kept, used = EstimatedTokens(), [], 0
    for hit in hits:
        cost = counter.count(hit.text)
        if isinstance(hit.memory, Turn) and used + cost <= budget:
            kept.append(hit)
            used += cost
    return kept


def document_of(
    asked: Sequence[Asked], *, skipped: int, conversations: int, curve: dict[str, Any]
) -> dict[str, Any]:
    """The figures, all shares from 0 to 1 but for the times; `curve` is that of `curve_of`."""
    plain = [one for one in asked if one.question.category != _ADVERSARIAL]
    trick = [one for one in asked if one.question.category == _ADVERSARIAL]
    return {
        "questions": len(plain),
        "skipped": skipped,
        "conversations": conversations,
        "recipes": {name: _recipe(name, plain) for name in RECIPES},
        "tokens": {
            str(size): _rounded(mean(one.within[size] for one in plain)) for size in BUDGETS
        },
        "default_floor": _floor(plain),
        "confidence": curve,
        "routes": _routes(asked),
        "adversarial": {
            "questions": len(trick),
            "recipes": {name: _ranking(name, trick) for name in RECIPES},
        },
    }


def _recipe(name: str, asked: Sequence[Asked]) -> dict[str, Any]:
    times = [one.seconds[name] * 1_000 for one in asked]
    return {
        **_ranking(name, asked),
        "session_r@5": _rounded(mean(_session_recall(5, name, one) for one in asked)),
        "session_r@10": _rounded(mean(_session_recall(10, name, one) for one in asked)),
        "p50_ms": _rounded(percentile(times, 0.5)) if times else 0.0,
        "p95_ms": _rounded(percentile(times, 0.95)) if times else 0.0,
        "categories": {
            CATEGORIES[number - 1]: {
                "questions": len(chosen),
                **_ranking(name, chosen),
            }
            for number in range(1, _ADVERSARIAL)
            if (chosen := [one for one in asked if one.question.category == number])
        },
    }


def _ranking(name: str, asked: Sequence[Asked]) -> dict[str, float]:
    pairs = [(one.ranked[name], one.question.evidence) for one in asked]
    figures = {f"r@{k}": mean(recall_at(k, *pair) for pair in pairs) for k in (5, 10, 20)}
    figures["hit@10"] = mean(hit_at(10, *pair) for pair in pairs)
    figures["ndcg@10"] = mean(ndcg_at(10, *pair) for pair in pairs)
    figures["mrr"] = mean(reciprocal_rank(*pair) for pair in pairs)
    return {key: _rounded(value) for key, value in figures.items()}


def _session_recall(k: int, name: str, one: Asked) -> float:
    """The share of the sessions with evidence among the first `k` sessions that turns come from."""
    sessions = list(dict.fromkeys(session for session, _ in one.ranked[name]))
    return recall_at(k, sessions, {session for session, _ in one.question.evidence})


def _floor(asked: Sequence[Asked]) -> dict[str, float]:
    pairs = [(one.above_floor, one.question.evidence) for one in asked]
    return {
        **{f"r@{k}": _rounded(mean(recall_at(k, *pair) for pair in pairs)) for k in (10, 20)},
        "costs_r@10": _rounded(
            mean(
                recall_at(10, one.ranked["mnemic"], one.question.evidence)
                - recall_at(10, one.above_floor, one.question.evidence)
                for one in asked
            )
        ),
        "returned": _rounded(mean(len(one.above_floor) for one in asked)),
    }


def _routes(asked: Sequence[Asked]) -> dict[str, Any]:
    """How many questions went which way, and how well those did that went by an index."""
    shares = [one.nearest for one in asked if one.nearest is not None]
    plans = {plan.value: sum(one.plan is plan for one in asked) for plan in Plan}
    return {**plans, "nearest_of_exact": _rounded(mean(shares)) if shares else None}


def _rounded(value: float) -> float:
    return round(value, _DIGITS)


def show(document: dict[str, Any]) -> None:
    """The figures as tables; shares are in percent."""
    measures = ("r@5", "r@10", "r@20", "hit@10", "ndcg@10", "mrr", "session_r@5", "session_r@10")
    write_line(
        f"{document['questions']} questions about {document['conversations']} conversations, "
        f"{document['skipped']} more without evidence"
    )
    write_line(f"{'':<13}{''.join(f'{name:>13}' for name in measures)}{'p50 ms':>9}{'p95 ms':>9}")
    for name, figures in document["recipes"].items():
        shares = "".join(f"{figures[one] * 100:>13.1f}" for one in measures)
        write_line(f"{name:<13}{shares}{figures['p50_ms']:>9.1f}{figures['p95_ms']:>9.1f}")
    write_line("")
    for kind, figures in document["recipes"]["mnemic"]["categories"].items():
        shares = "".join(f"{figures[one] * 100:>13.1f}" for one in measures[:6])
        write_line(f"{kind:<13}{shares}   {figures['questions']} questions")
    trick = document["adversarial"]
    shares = "".join(f"{trick['recipes']['mnemic'][one] * 100:>13.1f}" for one in measures[:6])
    write_line(f"{CATEGORIES[-1]:<13}{shares}   {trick['questions']} questions, apart")
    write_line("")
    within = ", ".join(f"{share * 100:.1f} in {size}" for size, share in document["tokens"].items())
    write_line(f"Evidence within a budget of tokens, in percent: {within}")
    floor = document["default_floor"]
    write_line(
        f"Above the default floor: r@10 {floor['r@10'] * 100:.1f}, r@20 {floor['r@20'] * 100:.1f}, "
        f"{floor['returned']:.1f} turns a question; it costs {floor['costs_r@10'] * 100:.1f} "
        "points of r@10"
    )
    show_curve(document["confidence"])
    routes = document["routes"]
    if routes[Plan.HNSW]:
        share = routes["nearest_of_exact"] * 100
        write_line(
            f"By the tenant's own index: {routes[Plan.HNSW]} questions, {routes[Plan.EXACT]} "
            f"exactly; the index gave {share:.1f} % of the ten true nearest turns"
        )
