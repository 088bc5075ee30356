"""Conversations with questions inside of one scope of a hundred thousand turns.

The others are made up of what the conversations themselves are made of: their words are drawn as
often as they occur, their vectors from a normal distribution with the same mean and covariance.
So they are no copies of an answer, and no strangers either.
"""

from __future__ import annotations

import random
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mnemic.edge.cli.bench_ground import SEED
from mnemic.edge.cli.bench_questions import CATEGORIES, Conversation, Question
from mnemic.edge.cli.bench_scale import candidates, promoted, routes_of
from mnemic.edge.cli.writing import write_line
from mnemic.model.embedding import Vector
from mnemic.model.retrieval_measures import mean, percentile, recall_at
from mnemic.model.scope import Scope
from mnemic.model.turn import Turn

if TYPE_CHECKING:
    from uuid import UUID

    from mnemic.edge.cli.bench_ground import Ground
    from mnemic.model.recall import Recall
    from mnemic.store.unit import Unit

__all__ = ["SCOPE", "Crowd", "ask", "document_of", "fill", "show"]

SCOPE = Scope.user("bench").project("crowd")
POOL = 1_024
PARTS = 24
LONGEST = 14
LIMIT = 20
_ADVERSARIAL = len(CATEGORIES)
_DIGITS = 4


@dataclass(slots=True)
class Crowd:
    """What came of it: recall by question, and seconds of each part."""

    turns: int
    conversations: int
    recalls: dict[int, list[float]] = field(default_factory=dict)
    times: dict[str, list[float]] = field(default_factory=dict)
    routes: set[str] = field(default_factory=set)

    def took(self, name: str, began: float) -> None:
        """The part has ended now."""
        self.times.setdefault(name, []).append(time.perf_counter() - began)


async def fill(made: Ground, conversations: Sequence[Conversation], rows: int) -> Crowd:
    """The scope holds the conversations, ingested, and so many more turns that `rows` are there."""
    from mnemic.service.maintain import count_due_terms
    from mnemic.store.measuring.filling import settle
    from mnemic.store.measuring.scaling import Owner, Words, fill_turns, said_in
    from mnemic.tier.transcripts import Transcripts

    for one in conversations:
        await Transcripts(made.tools).ingest(one.entries, scope=SCOPE)
    await count_due_terms(made.tools)
    model = (await made.tools.live_model()).id
    said, vectors = await said_in(made.admin_url, SCOPE, model=model)
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
    """Every question that has an answer is asked; the parts of a recall are timed one by one."""
    for conversation in conversations:
        sessions: dict[UUID, str] = {SCOPE.session(name).id: name for name, _ in conversation.turns}
        for question in conversation.questions:
            if question.category != _ADVERSARIAL:
                await _parts(made, crowd, question)
                found = await _whole(made, crowd, question)
                ranked = [
                    (sessions.get(hit.memory.session_id, ""), hit.memory.seq)
                    for hit in found.hits
                    if isinstance(hit.memory, Turn)
                ]
                for k in (10, LIMIT):
                    share = recall_at(k, ranked, question.evidence)
                    crowd.recalls.setdefault(k, []).append(share)
            progress(1)


async def _whole(made: Ground, crowd: Crowd, question: Question) -> Recall:
    from mnemic.service.recall import parse_query, recall

    query, _ = parse_query(
        made.tools, question.text, limit=2 * LIMIT, memory_types=("episodic",), floor=0.0
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
        made.tools, question.text, limit=LIMIT, memory_types=("episodic",), floor=0.0
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


def document_of(crowd: Crowd) -> dict[str, Any]:
    """The figures: shares from 0 to 1, and milliseconds."""
    return {
        "turns": crowd.turns,
        "conversations": crowd.conversations,
        "questions": len(next(iter(crowd.recalls.values()), ())),
        "routes": sorted(crowd.routes) or ["exact"],
        **{f"r@{k}": round(mean(shares), _DIGITS) for k, shares in crowd.recalls.items()},
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
    for name, one in document["times"].items():
        write_line(f"  {name:<24}p50 {one['p50_ms']:>8.2f} ms   p95 {one['p95_ms']:>8.2f} ms")
    write_line(f"  route: {', '.join(document['routes'])}")
