"""F: scores are finite numbers on one scale, and no age and no engine bends their order."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from mnemic import EpisodeCreate, MemoryManager, Scope, VectorState
from mnemic.model.confidence import ConfidenceMap
from mnemic.model.embedding import Vector
from mnemic.model.ranking import (
    Candidate,
    Corpus,
    QueryWords,
    Scored,
    Weights,
    above_floor,
    score,
)
from mnemic.testing import TickingClock, a_fact, a_turn
from oracles.ranked import SCORE_MAX, SCORE_MIN, assert_ranked
from oracles.stage import HashingEmbedder, Stage

NOT_APPLICABLE: dict[str, str] = {}

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
CORPUS = Corpus(documents=100, average_length=4.0, frequencies={"leas": 5, "red": 20})
QUERY = QueryWords(text="red lease", embed_text="red lease", stems=("red", "leas"))
NONSENSE: list[Any] = [None, "0.3", math.nan, math.inf, -math.inf, 7.0, -3.0, "", [0.3], 10**400]


def _one(number: int = 1, **given: Any) -> Candidate:
    values = {"stems": "red leas", "length": 2, "word_count": 2, "occurred_at": NOW, **given}
    return Candidate(UUID(int=number), kind="fact", **values)


def _scores(*candidates: Candidate, **given: Any) -> dict[UUID, Scored]:
    """What each scores, checked as every score is."""
    scored = score(QUERY, candidates, given.pop("corpus", CORPUS), now=NOW, **given)
    assert len(scored) == len(candidates)
    for one in scored:
        assert all(type(part) is float and math.isfinite(part) for part in one.reasons)
        assert SCORE_MIN <= one.score <= SCORE_MAX
    return {one.candidate.id: one for one in scored}


@pytest.mark.parametrize("number", NONSENSE)
def test_f02_a_number_of_an_engine_that_is_none_is_a_finite_score(number: Any) -> None:
    strange = _one(1, cosine=number, importance=number, confidence=number)
    near, far = _one(2, cosine=0.9), _one(3, cosine=0.1)

    found = _scores(strange, near, far)

    assert found[strange.id].reasons.lex == found[near.id].reasons.lex > 0
    assert 0.0 <= found[strange.id].reasons.cosine <= 1.0
    assert found[near.id].score > found[far.id].score


class Pointless(HashingEmbedder):
    """An engine that has no direction for some texts."""

    def __init__(self, value: float) -> None:
        self._value = value

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        made = await super().embed(texts)
        return [
            array("f", [self._value] * len(vector)) if "lease" in text else vector
            for text, vector in zip(texts, made, strict=True)
        ]


@pytest.mark.parametrize("value", [0.0, 1e-30, math.nan, math.inf])
async def test_f03_a_vector_without_direction_is_not_kept_and_ranks_nowhere(
    stage: Stage, memory: MemoryManager, scope: Scope, value: float
) -> None:
    good = await memory.remember("The vault is green.", scope=scope)

    async with stage.another(embedder=Pointless(value)) as other:
        kept = await other.remember("The lease is red.", scope=scope)
        asked = await other.recall("the lease", scope=scope, floor=0.0)
    found = await memory.recall("the vault", scope=scope, floor=0.0)

    assert (good.vector, kept.vector) == (VectorState.READY, VectorState.PENDING)
    assert_ranked(asked)
    assert [hit.id for hit in asked.hits] == [kept.id]
    assert asked.degraded
    assert_ranked(found)
    assert found.hits[0].id == good.id
    assert all(hit.near_place is None for hit in found.hits if hit.id == kept.id)


async def _episode(memory: MemoryManager, scope: Scope, text: str, at: datetime) -> UUID:
    told = EpisodeCreate(task_description=text, occurred_at=at, importance_score=0.5)
    return (await memory.at(scope).episodic.record_episode(told)).id


@pytest.mark.parametrize("days", [10, 30, 60, 36_500])
async def test_f05_what_lies_ahead_is_as_new_as_what_is_now(
    memory: MemoryManager, scope: Scope, clock: TickingClock, days: int
) -> None:
    ahead = clock() + timedelta(days=days)
    later = await _episode(memory, scope, "The lease is red", ahead)
    now = await _episode(memory, scope, "The lease is red", clock())
    before = await _episode(memory, scope, "The lease is red", clock() - timedelta(days=60))

    found = await memory.recall("the lease", scope=scope, floor=0.0)

    assert_ranked(found)
    bounded = {hit.id: hit.reasons.bounded for hit in found.hits}
    assert bounded[later] == pytest.approx(bounded[now], abs=1e-6)
    assert bounded[before] < bounded[now] - 0.005


@pytest.mark.parametrize(
    "half_life", [timedelta(days=7), timedelta(microseconds=1), timedelta(days=10**8)]
)
def test_f06_no_age_overflows_whatever_the_half_life(half_life: timedelta) -> None:
    times = [datetime.max, datetime(9_999, 1, 1), NOW, datetime(1, 1, 1), datetime.min]  # noqa: DTZ001, DTZ901 - the zone is given below
    candidates = [
        _one(number, occurred_at=at.replace(tzinfo=UTC)) for number, at in enumerate(times, 1)
    ]

    found = _scores(*candidates, weights=Weights(recency_half_life=half_life))

    bounded = [found[one.id].reasons.bounded for one in candidates]
    assert bounded == sorted(bounded, reverse=True)
    assert bounded[0] == bounded[1] == bounded[2] == pytest.approx(0.005)
    assert bounded[-1] == pytest.approx(-0.005 if half_life.days < 10**6 else 0.005, abs=1e-3)


@pytest.mark.parametrize("year", [1970, 1000, 2, 9_989])
async def test_f07_a_date_of_any_year_that_can_be_kept_is_recalled(
    memory: MemoryManager, scope: Scope, clock: TickingClock, year: int
) -> None:
    far = await _episode(memory, scope, "The lease is red", datetime(year, 1, 2, tzinfo=UTC))
    fact = await memory.remember(
        "The lease is green.", scope=scope, occurred_at=datetime(year, 1, 2, tzinfo=UTC)
    )
    await memory.sessions.append(
        [a_turn("The lease was blue.", occurred_at=datetime(year, 1, 2, tzinfo=UTC))],
        scope=scope.session("s"),
    )
    now = await _episode(memory, scope, "The lease is red", clock())

    found = await memory.recall("the lease", scope=scope.session("s"), floor=0.0)
    section = await memory.context("the lease", scope=scope.session("s"))

    assert_ranked(found)
    bounded = {hit.id: hit.reasons.bounded for hit in found.hits}
    assert len(bounded) == 4
    assert bounded[far] == pytest.approx(bounded[now] - (0.01 if year < 2_000 else 0), abs=1e-6)
    assert fact.id in {item.id for item in section.items}


@pytest.mark.parametrize("days", [242, 3_650])
async def test_f08_an_exact_match_is_first_however_old_it_is(
    memory: MemoryManager, scope: Scope, clock: TickingClock, days: int
) -> None:
    exact = await memory.remember("The lease of the red vault ends in May.", scope=scope)
    before = await memory.recall("the lease of the red vault", scope=scope)
    clock.advance(timedelta(days=days))
    for number in range(20):
        await memory.remember(
            f"The deploy of release {number} was red.", scope=scope, importance=1.0
        )
    near = await memory.remember("The lease of the bicycle is cheap.", scope=scope)

    found = await memory.recall("the lease of the red vault", scope=scope)

    assert_ranked(found)
    assert found.hits[0].id == before.hits[0].id == exact.id
    [second] = [hit for hit in found.hits if hit.id == near.id] or [None]
    assert second is None or found.hits[0].score > second.score + 0.03


def test_f09_many_words_count_for_no_more_than_all_of_them() -> None:
    heavy = _one(1, stems=" ".join(["red", "leas"] * 500), length=1_000, word_count=1_000)
    meant = _one(2, stems="tenanc crimson", cosine=0.9)
    both = _one(3, cosine=0.9)
    none = _one(4, stems="cat sofa", cosine=0.0)

    found = _scores(heavy, meant, both, none)

    for one in found.values():
        assert all(0.0 <= part <= 1.0 for part in one.reasons[:5])
    assert found[both.id].score > max(found[heavy.id].score, found[meant.id].score)
    assert min(found[heavy.id].score, found[meant.id].score) > found[none.id].score
    assert found[heavy.id].reasons.base <= 0.5


async def test_f11_what_is_confirmed_a_thousand_times_stays_within_its_bounds(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    sure = await memory.store_fact(a_fact(confidence=0.9), scope=scope)
    once = await memory.store_fact(a_fact(object="Valkey", confidence=1.0), scope=scope)
    await stage.seen.execute(
        "UPDATE mnemic.facts SET reinforcement_count = 999 WHERE id = $1", sure.id
    )

    for number in range(5):
        fact = await memory.at(scope).semantic.reinforce_fact(sure.id, idempotency_key=f"n{number}")

    found = await memory.recall("User uses", scope=scope, floor=0.0)
    assert fact.reinforcement_count == 1_004
    assert 0.9 <= fact.confidence <= 1.0
    assert_ranked(found)
    assert {hit.id for hit in found.hits} == {sure.id, once.id}
    assert all(-0.015 <= hit.reasons.bounded <= 0.015 for hit in found.hits)
    again = await memory.recall("User uses Valkey", scope=scope, floor=0.0)
    assert again.hits[0].id == once.id


async def test_f12_the_floor_is_held_against_the_score_and_never_against_a_place(
    memory: MemoryManager, scope: Scope
) -> None:
    for text in ("The lease of the vault is red.", "My cat sleeps on the sofa."):
        await memory.remember(text, scope=scope)

    every = await memory.recall("the lease of the vault", scope=scope, floor=0.0)
    first, second = every.hits
    between = (first.score + second.score) / 2
    above = await memory.recall("the lease of the vault", scope=scope, floor=between)
    usual = await memory.recall("the lease of the vault", scope=scope)
    loosely = await memory.recall("the lease of a tower or a bridge", scope=scope, floor=0.0)
    best = loosely.hits[0].score
    beyond = await memory.recall(
        "the lease of a tower or a bridge", scope=scope, floor=best + 0.001
    )

    assert first.score - second.score > 0.3
    assert [hit.id for hit in above.hits] == [hit.id for hit in usual.hits] == [first.id]
    assert best < 0.9
    assert beyond.hits == ()


class Longer(HashingEmbedder):
    """The same directions, at lengths of their own."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        made = await super().embed(texts)
        return [
            array("f", [value * (len(text) + 3) for value in vector])
            for text, vector in zip(texts, made, strict=True)
        ]


async def test_f13_the_length_of_a_vector_says_nothing(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    texts = ["The lease is red.", "The lease of the vault, which nobody has seen, is green.", "Cat"]
    other = scope.project("p")
    for text in texts:
        await memory.remember(text, scope=scope)
    async with stage.another(embedder=Longer()) as longer:
        for text in texts:
            await longer.remember(text, scope=other)
        scaled = await longer.recall("is the lease red?", scope=other, floor=0.0, limit=6)
    plain = await memory.recall("is the lease red?", scope=other, floor=0.0, limit=6)

    assert_ranked(scaled)
    assert [hit.id for hit in scaled.hits] == [hit.id for hit in plain.hits]
    assert len(scaled.hits) == 6
    cosines: dict[str, set[float]] = {}
    for hit in scaled.hits:
        cosines.setdefault(hit.text, set()).add(round(hit.reasons.cosine, 3))
    assert all(len(several) == 1 for several in cosines.values())
    rows = await stage.seen.fetch(
        "SELECT embedding::vector <-> '[0" + ",0" * 31 + "]'::vector AS norm "
        "FROM mnemic.fact_vectors WHERE tenant_id = $1",
        scope.tenant.id,
    )
    assert [row["norm"] for row in rows] == [pytest.approx(1.0, abs=1e-2)] * 6


@pytest.mark.parametrize("given", [7.0, 1.0, 0.4, 0.0, -7.0])
def test_f14_one_result_alone_scores_what_it_scores_among_others(given: float) -> None:
    one = _one(1, cosine=given)
    others = [_one(number, cosine=number / 10) for number in range(2, 9)]

    alone = _scores(one)[one.id]
    among = _scores(one, *others)[one.id]

    assert (alone.score, alone.reasons) == (among.score, among.reasons)
    assert alone.reasons.cosine == min(max(given, 0.0), 1.0)
    assert 0.0 < ConfidenceMap().of(alone.score) < 1.0
    assert ConfidenceMap().of(alone.score) < ConfidenceMap().of(alone.score + 0.1)


async def test_f15_a_question_of_a_time_is_answered_with_real_scores(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    day = datetime(2023, 5, 8, 9, tzinfo=UTC)
    said = [
        a_turn(f"Note number {number}.", occurred_at=day + timedelta(days=number * 40))
        for number in range(5)
    ]
    await memory.sessions.append(said, scope=session)

    found = await memory.recall("what was noted on 8 May 2023?", scope=session, floor=0.0)

    assert_ranked(found)
    assert found.returned == 5
    first = found.hits[0]
    assert first.text == "User: Note number 0."
    assert first.time_place is not None
    assert first.reasons.date == pytest.approx(0.18 * 1.5)
    assert len({hit.score for hit in found.hits}) > 1
    assert all(hit.score > 0 for hit in found.hits)


def test_f18_what_is_no_number_passes_no_threshold_and_drops_nobody() -> None:
    missing, strange = _one(1, cosine=None), _one(2, cosine=math.nan)
    far = _one(3, stems="cat", cosine=math.nan)
    near = _one(4, cosine=0.9)
    shares = {"User": math.nan}
    corpus = replace(CORPUS, average_length=math.nan, actor_shares=shares, role_shares=shares)

    found = _scores(missing, strange, far, near, corpus=corpus)
    kept = above_floor(sorted(found.values(), key=lambda one: -one.score), floor=0.43)

    assert found[missing.id].score == found[strange.id].score > 0
    assert far.id not in {one.candidate.id for one in kept}
    assert kept[0].candidate.id == near.id
    unranked = found[near.id]._replace(score=math.nan)
    assert above_floor([unranked], floor=0.0) == []
    assert ConfidenceMap().of(math.nan) == 0.0


async def test_f18_a_memory_without_a_vector_has_its_place_and_its_time(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    async with stage.another(embedder=Pointless(0.0)) as other:
        kept = await other.remember("The lease of the vault is red.", scope=scope)
    await memory.remember("The cat is on the sofa.", scope=scope)

    found = await memory.recall("the lease of the vault", scope=scope, floor=0.0)

    assert_ranked(found)
    assert found.returned == 2
    assert found.hits[0].id == kept.id
    assert (found.hits[0].near_place, found.hits[0].words_place) == (None, 1)
    assert found.hits[0].reasons.cosine == 0.0
