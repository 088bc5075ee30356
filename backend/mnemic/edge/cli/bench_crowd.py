"""Conversations with questions inside of one scope of a hundred thousand turns.

The others are made up of what the conversations themselves are made of: their words are drawn as
often as they occur, their vectors from a normal distribution with the same mean and covariance.
So they are no copies of an answer, and no strangers either. The last conversation comes later than
the others: until then its questions are foreign here.
"""

from __future__ import annotations

import random
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mnemic.edge.cli.bench_confidence import (
    LIMIT,
    Curve,
    Judged,
    Whose,
    curve_of,
    judged,
    renamed,
    show_curve,
)
from mnemic.edge.cli.bench_ground import SEED
from mnemic.edge.cli.bench_questions import CATEGORIES, Conversation, Question, speakers
from mnemic.edge.cli.bench_scale import candidates, promoted, routes_of
from mnemic.edge.cli.writing import write_line
from mnemic.model.embedding import Vector
from mnemic.model.retrieval_measures import mean, percentile, recall_at
from mnemic.model.scope import Scope
from mnemic.model.turn import Turn

if TYPE_CHECKING:
    from uuid import UUID

    from mnemic.edge.cli.bench_ground import Ground
    from mnemic.model.embedding import ModelSignature
    from mnemic.model.recall import Recall
    from mnemic.settings import MemorySettings
    from mnemic.store.unit import Unit

__all__ = ["SCOPE", "Crowd", "admit", "ask", "ask_foreign", "document_of", "fill", "show"]

SCOPE = Scope.user("bench").project("crowd")
ASIDE = Scope.user("bench").project("aside")
POOL = 1_024
PARTS = 24
LONGEST = 14
HITS = 20
_ADVERSARIAL = len(CATEGORIES)
_DIGITS = 4


@dataclass(slots=True)
class Crowd:
    """What came of it: recall by question, seconds of each part, and how sure each answer was.

    `floored` are the recalls of what the default floor keeps.
    """

    turns: int
    conversations: int
    recalls: dict[int, list[float]] = field(default_factory=dict)
    floored: dict[int, list[float]] = field(default_factory=dict)
    judged: list[Judged] = field(default_factory=list)
    times: dict[str, list[float]] = field(default_factory=dict)
    routes: set[str] = field(default_factory=set)

    def took(self, name: str, began: float) -> None:
        """The part has ended now."""
        self.times.setdefault(name, []).append(time.perf_counter() - began)


async def fill(made: Ground, conversations: Sequence[Conversation], rows: int) -> Crowd:
    """The scope holds the conversations, and so many more turns that `rows` come to be there.

    Of several the last stands aside until `admit`, but the others speak of the same as it does.
    """
    from mnemic.service.maintain import count_due_terms
    from mnemic.store.measuring.filling import settle
    from mnemic.store.measuring.scaling import Owner, Words, fill_turns, said_in
    from mnemic.tier.transcripts import Transcripts

    aside = _last(conversations)
    for one in conversations:
        scope = ASIDE if one is aside else SCOPE
        await Transcripts(made.tools).ingest(one.entries, scope=scope)
    await count_due_terms(made.tools)
    model = (await made.tools.live_model()).id
    said, vectors = await said_in(made.admin_url, SCOPE, model=model)
    if aside is not None:
        of_it = await said_in(made.admin_url, ASIDE, model=model)
        said, vectors = [*said, *of_it[0]], [*vectors, *of_it[1]]
    middle, pool = _alike(vectors)
    await fill_turns(
        made.admin_url,
        [Owner(scope=SCOPE, rows=max(0, rows - len(said)))],
        model=model,
        words=Words(vocabulary=" ".join(said).split(), longest=LONGEST),
        pool=pool,
        middle=middle,
    )
    await promoted(made)
    await settle(made.admin_url)
    return Crowd(turns=max(rows, len(said)), conversations=len(conversations))


def _last(conversations: Sequence[Conversation]) -> Conversation | None:
    """The one that comes later, if there are others."""
    return conversations[-1] if len(conversations) > 1 else None


async def ask_foreign(made: Ground, crowd: Crowd, conversations: Sequence[Conversation]) -> None:
    """The questions of the last conversation are asked before it is there, if there are others.

    As they are, and about the speakers of the first.
    """
    if (aside := _last(conversations)) is None:
        return
    theirs, ours = speakers(aside), speakers(conversations[0])
    for question in aside.questions:
        if question.category != _ADVERSARIAL:
            known = replace(question, text=renamed(question.text, theirs, ours))
            crowd.judged.append(await _judged(made, question, Whose.FOREIGN))
            crowd.judged.append(await _judged(made, known, Whose.RENAMED))


async def admit(made: Ground, conversations: Sequence[Conversation]) -> None:
    """The last conversation is in the scope too."""
    from mnemic.service.maintain import count_due_terms
    from mnemic.store.measuring.filling import settle
    from mnemic.tier.transcripts import Transcripts

    if (aside := _last(conversations)) is not None:
        await Transcripts(made.tools).ingest(aside.entries, scope=SCOPE)
        await count_due_terms(made.tools)
        await settle(made.admin_url)


async def _judged(made: Ground, question: Question, whose: Whose) -> Judged:
    from mnemic.service.recall import parse_query, recall

    query, _ = parse_query(made.tools, question.text, limit=LIMIT, memory_types=None, floor=0.0)
    found = await recall(made.tools, query, scope=SCOPE)
    return judged(found, whose, floor=made.tools.settings.recall.score_floor)


def _alike(vectors: Sequence[Sequence[float]]) -> tuple[Vector, list[Vector]]:
    """The mean, and halves of differences from it, with the covariance of the vectors.

    The mean and two halves make a vector like the given ones.
    """
    numbers = random.Random(SEED)  # noqa: S311 - made-up vectors, not a secret
    middle = [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]
    pool = []
    for _ in range(POOL):
        parts = [numbers.choice(vectors) for _ in range(PARTS)]
        weights = [numbers.gauss(0, 1) / (2 * PARTS) ** 0.5 for _ in parts]
        total = sum(weights)
        pool.append(
            array(
                "f",
                (
                    sum(weight * value for weight, value in zip(weights, column, strict=True))
                    - total * mid
                    for column, mid in zip(zip(*parts, strict=True), middle, strict=True)
                ),
            )
        )
    return array("f", middle), pool


async def ask(
    made: Ground,
    crowd: Crowd,
    conversations: Sequence[Conversation],
    *,
    progress: Callable[[int], None],
) -> None:
    """Every question is asked; of those that have an answer the parts of a recall are timed."""
    floor = made.tools.settings.recall.score_floor
    for conversation in conversations:
        sessions: dict[UUID, str] = {SCOPE.session(name).id: name for name, _ in conversation.turns}
        for question in conversation.questions:
            asked = question.category != _ADVERSARIAL
            if asked:
                await _parts(made, crowd, question)
                found = await _whole(made, crowd, question)
                for recalls, least in ((crowd.recalls, 0.0), (crowd.floored, floor)):
                    ranked = [
                        (sessions.get(hit.memory.session_id, ""), hit.memory.seq)
                        for hit in found.hits
                        if isinstance(hit.memory, Turn) and hit.score >= least
                    ]
                    for k in (10, HITS):
                        share = recall_at(k, ranked, question.evidence)
                        recalls.setdefault(k, []).append(share)
            whose = Whose.OWN if asked else Whose.ADVERSARIAL
            crowd.judged.append(await _judged(made, question, whose))
            progress(1)


async def _whole(made: Ground, crowd: Crowd, question: Question) -> Recall:
    from mnemic.service.recall import parse_query, recall

    query, _ = parse_query(
        made.tools, question.text, limit=2 * HITS, memory_types=("episodic",), floor=0.0
    )
    began = time.perf_counter()
    found = await recall(made.tools, query, scope=SCOPE)
    crowd.took("recall", began)
    crowd.routes.update(routes_of(found))
    return found


async def _parts(made: Ground, crowd: Crowd, question: Question) -> None:
    """The full-text legs and the candidate statement, each inside of a transaction that is open."""
    from mnemic.service.recall import parse_query
    from mnemic.store.measuring.scaling import LEXICAL, LEXICAL_ACTOR

    query, _ = parse_query(
        made.tools, question.text, limit=HITS, memory_types=("episodic",), floor=0.0
    )
    arms, turns = await candidates(made.tools, query, SCOPE)
    values = {
        "scopes": SCOPE.visible_ids,
        "match": arms.match,
        "either": arms.either,
        "rank": arms.rank,
        "words": arms.per_arm,
        "actor": arms.actor,
    }

    async def work(unit: Unit) -> None:
        if arms.match is not None:
            began = time.perf_counter()
            await unit.fetch(LEXICAL, **values)
            crowd.took("full text", began)
            if arms.actor is not None:
                began = time.perf_counter()
                await unit.fetch(LEXICAL_ACTOR, **values)
                crowd.took("full text of an actor", began)
        began = time.perf_counter()
        await turns(unit)
        crowd.took("candidates", began)

    await made.tools.transact(SCOPE.tenant.id, work, read_only=True)


def document_of(
    crowd: Crowd, settings: MemorySettings, signature: ModelSignature
) -> dict[str, Any]:
    """The figures: shares from 0 to 1, and milliseconds."""
    best, kept = mean(crowd.recalls.get(10, ())), mean(crowd.floored.get(10, ()))
    return {
        "turns": crowd.turns,
        "conversations": crowd.conversations,
        "questions": len(next(iter(crowd.recalls.values()), ())),
        "routes": sorted(crowd.routes) or ["exact"],
        **{f"r@{k}": round(mean(shares), _DIGITS) for k, shares in crowd.recalls.items()},
        "default_floor": {
            "r@10": round(kept, _DIGITS),
            "costs_r@10": round(best - kept, _DIGITS),
        },
        "confidence": curve_of(Curve(judged=crowd.judged), settings, signature),
        "times": {
            name: {
                "p50_ms": round(percentile(times, 0.5) * 1_000, _DIGITS),
                "p95_ms": round(percentile(times, 0.95) * 1_000, _DIGITS),
            }
            for name, times in crowd.times.items()
        },
    }


def show(document: dict[str, Any]) -> None:
    """The figures as a table."""
    shares = ", ".join(
        f"{name} {value * 100:.1f} %" for name, value in document.items() if name.startswith("r@")
    )
    write_line(
        f"{document['conversations']} conversations in a scope of {document['turns']:,} turns, "
        f"{document['questions']} questions: {shares}"
    )
    floor = document["default_floor"]
    write_line(
        f"Above the default floor: r@10 {floor['r@10'] * 100:.1f} %, which costs "
        f"{floor['costs_r@10'] * 100:.1f} points"
    )
    show_curve(document["confidence"])
    for name, one in document["times"].items():
        write_line(f"  {name:<24}p50 {one['p50_ms']:>8.2f} ms   p95 {one['p95_ms']:>8.2f} ms")
    write_line(f"  route: {', '.join(document['routes'])}")
