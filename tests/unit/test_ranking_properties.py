from __future__ import annotations

import math
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from statistics import median
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.model.cues import Cues, DateMention
from mnemic.model.ranking import (
    Candidate,
    Corpus,
    QueryWords,
    Reasons,
    Scored,
    Weights,
    in_order,
    inverse_frequencies,
    score,
    weighed,
)
from mnemic.model.ranking_values import TURN, Alias, Parts

NOW = datetime(2024, 6, 1, tzinfo=UTC)
CORPUS = Corpus(
    documents=100,
    average_length=8.0,
    frequencies={"tea": 5, "green": 20},
    actor_shares={"User": 0.5, "Guest": 0.5},
    role_shares={"user": 1.0},
)
QUERY = QueryWords(
    text="When did User find green tea in May 2024, and where?",
    embed_text="When did they find green tea in May 2024, and where?",
    stems=("green", "tea"),
    named=("User",),
    cues=Cues(
        wants_name=True,
        wants_time=True,
        dates=(DateMention(2024, 5),),
        ranges=((datetime(2022, 1, 1, tzinfo=UTC), datetime(2022, 3, 1, tzinfo=UTC)),),
    ),
    aliases=(Alias(asked=("green", "tea"), others=(("matcha",), ("sencha", "leaf"))),),
)
BOUNDED_MAX = 0.03  # from -.015 to +.015

# What lets a turn win over its twin, one arm or signal at a time.
ARMS: dict[str, dict[str, Any]] = {
    "meaning": {"cosine": 0.9},
    "words": {"stems": "green tea"},
    "actor": {"actor": "User"},
    "name": {"has_name": True},
    "date": {"occurred_at": datetime(2024, 5, 3, tzinfo=UTC)},
    "time": {"has_time_expression": True},
    "range": {"occurred_at": datetime(2022, 2, 3, tzinfo=UTC)},
    "alias": {"stems": "cup matcha"},
    "alias of two words": {"stems": "leaf cup sencha"},
}

any_float = st.none() | st.floats(allow_nan=True, allow_infinity=True)
any_time = st.datetimes(
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))])
) | st.sampled_from(
    [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), NOW + timedelta(days=30)]
)
few_stems = st.lists(st.sampled_from(["green", "tea", "cup", ""]), max_size=6).map(" ".join)


def a_turn(number: int, **given_values: Any) -> Candidate:
    values: dict[str, Any] = {
        "stems": "cup",
        "length": 4,
        "word_count": 8,
        "occurred_at": datetime(2020, 1, 1, tzinfo=UTC),
        "session_id": UUID(int=number),
        "seq": 0,
        "actor": "Guest",
        "role": "user",
        "cosine": 0.1,
    }
    return Candidate(id=UUID(int=number), **(values | given_values))


def a_fact(number: int, **given_values: Any) -> Candidate:
    return a_turn(number, **({"kind": "fact", "session_id": None, "seq": None} | given_values))


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    return [
        Candidate(
            id=UUID(int=number),
            stems=draw(few_stems),
            length=draw(st.integers(-5, 1_000)),
            word_count=draw(st.integers(-5, 1_000)),
            occurred_at=draw(any_time),
            kind=draw(st.sampled_from(["turn", "fact", "episode"])),
            cosine=draw(any_float),
            session_id=draw(st.sampled_from([None, UUID(int=1), UUID(int=2)])),
            seq=number if draw(st.booleans()) else None,
            actor=draw(st.sampled_from(["", "User", "Guest"])),
            role=draw(st.sampled_from(["", "user", "assistant"])),
            ends_with_question=draw(st.booleans()),
            has_name=draw(st.booleans()),
            importance=draw(any_float),
            confidence=draw(any_float),
        )
        for number in range(draw(st.integers(0, 8)))
    ]


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    shares = st.dictionaries(
        st.sampled_from(["User", "Guest", "user", "assistant"]), st.floats(), max_size=3
    )
    return Corpus(
        documents=draw(st.integers(-5, 10**12)),
        average_length=draw(st.floats()),
        frequencies=draw(
            st.dictionaries(st.sampled_from(["green", "tea"]), st.integers(-5, 10**13), max_size=2)
        ),
        actor_shares=draw(shares),
        role_shares=draw(shares),
    )


@pytest.mark.parametrize("arm", ARMS)
@given(cosine=st.floats(0.0, 0.5), length=st.integers(1, 30))
def test_each_arm_can_win_alone(arm: str, cosine: float, length: int) -> None:
    twins = [a_turn(number, cosine=cosine, length=length) for number in range(1, 20)]
    winner = a_turn(99, cosine=cosine, length=length)._replace(**ARMS[arm])

    hits = score(QUERY, [*twins, winner], CORPUS, now=NOW)

    assert hits[0].candidate == winner
    assert hits[0].score > hits[1].score


@pytest.mark.parametrize(
    ("place", "arm"), [(-1, "meaning"), (-1, "words"), (1, "meaning"), (5, "meaning")]
)
def test_what_was_said_around_it_can_win_alone(place: int, arm: str) -> None:
    alone, winner = a_turn(1), a_turn(2, seq=10)
    around = a_turn(3, session_id=winner.session_id, seq=10 + place)._replace(**ARMS[arm])

    hits = score(QUERY, [alone, winner, around], CORPUS, now=NOW)

    scores = {hit.candidate.id.int: hit.score for hit in hits}
    assert scores[2] > scores[1]


def test_a_question_without_an_answer_loses_to_its_twin() -> None:
    hits = score(QUERY, [a_turn(1, ends_with_question=True), a_turn(2)], CORPUS, now=NOW)

    assert hits[0].candidate.id.int == 2


@given(candidates(), corpora(), any_time)
def test_every_part_is_finite_and_bounded(
    given_candidates: list[Candidate], corpus: Corpus, now: datetime
) -> None:
    hits = score(QUERY, given_candidates, corpus, now=now)

    assert len(hits) == len(given_candidates)
    for hit in hits:
        assert all(map(math.isfinite, (hit.score, *hit.reasons)))
        assert all(0.0 <= part <= 1.0 for part in hit.reasons[:5])
        assert hit.score == pytest.approx(sum(hit.reasons[4:]))
        assert abs(hit.reasons.bounded) <= BOUNDED_MAX / 2


@given(candidates(), corpora(), any_time)
def test_turns_that_are_weighed_before_the_others_score_as_with_them(
    found: list[Candidate], corpus: Corpus, now: datetime
) -> None:
    """Of a session are turns alone."""
    turns = [one for one in found if one.kind == TURN]
    others = [one._replace(session_id=None, seq=None) for one in found if one.kind != TURN]
    meant = any(one.cosine is not None for one in found)

    apart = [
        hit
        for part in (turns, others)
        for hit in weighed(QUERY, part, corpus, now=now, meant=meant)
    ]

    together = score(QUERY, [*others, *turns], corpus, now=now)
    assert _told(in_order(apart)) == _told(together)


@given(candidates(), st.randoms())
def test_the_order_of_the_candidates_does_not_matter(
    given_candidates: list[Candidate], random: Random
) -> None:
    shuffled = random.sample(given_candidates, len(given_candidates))

    assert _told(score(QUERY, shuffled, CORPUS, now=NOW)) == _told(
        score(QUERY, given_candidates, CORPUS, now=NOW)
    )


def _told(scored: list[Scored]) -> list[tuple[Candidate, float, Reasons]]:
    return [(hit.candidate, hit.score, hit.reasons) for hit in scored]


@pytest.mark.parametrize("cosine", [None, math.nan, math.inf, -math.inf, -1.0, "0.3"])
def test_a_cosine_that_is_no_number_never_ranks_first(cosine: Any) -> None:
    hits = score(QUERY, [a_turn(1, cosine=cosine), a_turn(2, cosine=0.01)], CORPUS, now=NOW)

    if cosine == math.inf:
        assert hits[0].reasons.cosine == 1.0
    else:
        assert hits[0].candidate.id.int == 2
        assert hits[1].reasons.cosine == 0.0


@given(
    st.floats(0.0, 0.9),
    st.floats(0.045, 1.0),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
    any_time,
)
def test_importance_and_age_never_outvote_relevance(
    cosine: float, more: float, importance: float, trust: float, at: datetime
) -> None:
    # .045 of cosine is .0315 of score: just over what the bounded signals can move.
    relevant = a_fact(1, cosine=cosine + more, importance=0.0, confidence=0.0, occurred_at=at)
    favoured = a_fact(2, cosine=cosine, importance=importance, confidence=trust, occurred_at=NOW)
    query = replace(QUERY, cues=Cues())

    hits = score(query, [favoured, relevant], CORPUS, now=NOW)

    if cosine + more <= 1.0:
        assert hits[0].candidate == relevant


def test_an_exact_match_stays_first_however_old() -> None:
    old = a_fact(1, stems="green tea", occurred_at=NOW - timedelta(days=242))
    fresh = a_fact(2, stems="cup", occurred_at=NOW, importance=1.0, confidence=1.0)

    hits = score(replace(QUERY, cues=Cues()), [fresh, old], CORPUS, now=NOW)

    assert hits[0].candidate == old


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"importance": 0.9}, {"importance": 0.1}),
        ({"importance": 0.6}, {"importance": None}),
        ({"confidence": 0.9}, {"confidence": 0.2}),
        ({"occurred_at": NOW}, {"occurred_at": NOW - timedelta(days=60)}),
    ],
)
def test_among_equals_the_important_sure_and_recent_come_first(
    better: dict[str, Any], worse: dict[str, Any]
) -> None:
    hits = score(
        replace(QUERY, cues=Cues()), [a_fact(1, **worse), a_fact(2, **better)], CORPUS, now=NOW
    )

    assert [hit.candidate.id.int for hit in hits] == [2, 1]


def test_what_lies_in_the_future_is_as_recent_as_now() -> None:
    now, later = a_fact(1, occurred_at=NOW), a_fact(2, occurred_at=NOW + timedelta(days=10))

    hits = score(replace(QUERY, cues=Cues()), [now, later], CORPUS, now=NOW)

    assert hits[0].score == hits[1].score


def test_turns_are_not_moved_by_importance_or_age() -> None:
    turn = a_turn(1, importance=1.0, confidence=1.0, occurred_at=NOW)

    (hit,) = score(QUERY, [turn], CORPUS, now=NOW)

    assert hit.reasons.bounded == 0.0


def test_a_fact_and_a_lone_turn_of_equal_relevance_score_alike() -> None:
    weights = Weights(recency=0.0)

    hits = score(QUERY, [a_turn(1), a_fact(2)], CORPUS, weights, now=NOW)

    assert hits[0].score == pytest.approx(hits[1].score)


def test_a_full_set_of_candidates_is_scored_in_milliseconds() -> None:
    random = Random(7)
    stems = ["green", "tea", *(f"word{number}" for number in range(200))]
    turns = [
        a_turn(
            number,
            stems=" ".join(random.choices(stems, k=12)),
            session_id=UUID(int=number // 20),
            seq=number % 20,
            cosine=random.random(),
        )
        for number in range(206)
    ]
    took = []

    for _ in range(20):
        started = time.perf_counter()
        score(QUERY, turns, CORPUS, now=NOW)
        took.append(time.perf_counter() - started)

    assert median(took) < 0.02  # about 1 ms on one quiet core


@given(st.lists(st.lists(st.sampled_from(["tea", "teas", "a", "green"]), max_size=6), max_size=6))
def test_words_are_counted_in_the_text_that_holds_them(texts: list[list[str]]) -> None:
    """One at the end of a text and one at the beginning of the next are two texts' words."""
    found = [
        Candidate(UUID(int=number), " ".join(words), len(words), len(words), NOW)
        for number, words in enumerate(texts)
    ]
    query = replace(QUERY, stems=("tea", "a"), aliases=(), named=())
    idf = inverse_frequencies(query.stems, CORPUS)

    for hit in weighed(query, found, CORPUS, now=NOW):
        words = hit.candidate.stems.split(" ")
        damped = 1.2 * (0.25 + 0.75 * hit.candidate.length / CORPUS.average_length)
        counts = {stem: words.count(stem) for stem in query.stems}
        assert hit.reasons.nb == pytest.approx(
            sum(idf[stem] * many / (many + damped) for stem, many in counts.items() if many)
            / sum(idf.values())
        )
        assert hit.reasons.pair == pytest.approx(
            sum(idf[stem] for stem, many in counts.items() if many) / sum(idf.values())
        )


@given(
    st.lists(st.tuples(st.integers(1, 2), st.integers(0, 25)), max_size=12, unique=True),
    st.randoms(),
)
def test_what_stands_around_a_turn_counts_by_how_near_it_is(
    places: list[tuple[int, int]], random: Random
) -> None:
    """Turns of two sessions, with gaps, in any order."""
    cosines = {place: random.random() for place in places}
    found = [
        Candidate(UUID(int=number), "", 1, 1, NOW, cosine=cosines[place])._replace(
            session_id=UUID(int=place[0]), seq=place[1]
        )
        for number, place in enumerate(places)
    ]
    query = replace(QUERY, stems=(), aliases=(), named=(), cues=Cues())

    hits = weighed(query, found, CORPUS, now=NOW)

    for (session, seq), hit in zip(places, hits, strict=True):
        base = {at: 0.5 * cosines[session, at] for at in range(30) if (session, at) in cosines}
        assert hit.reasons.neighbour == pytest.approx(
            0.2 * base.get(seq - 1, 0.0) + 0.1 * base.get(seq + 1, 0.0)
        )
        assert hit.reasons.session == pytest.approx(
            0.4 * max(value for at, value in base.items() if abs(at - seq) <= 5)
        )


def test_what_is_told_of_many_is_told_of_one_by_the_same_names() -> None:
    assert Parts._fields == Reasons._fields
