from __future__ import annotations

import math
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any
from uuid import UUID

import pytest

from mnemic.model.cues import Cues, DateMention
from mnemic.model.ranking import (
    Candidate,
    Corpus,
    QueryWords,
    Reasons,
    Scored,
    Weights,
    about_other_actor,
    above_floor,
    inverse_frequencies,
    score,
    surest,
)
from mnemic.model.ranking_values import Alias

NOW = datetime(2024, 6, 1, tzinfo=UTC)
SESSION = UUID(int=1)
# idf(tea) = ln(1 + 49.5/1.5) = ln 34, idf(green) = ln(1 + 48.5/2.5) = ln 20.4
CORPUS = Corpus(
    documents=50,
    average_length=2.0,
    frequencies={"tea": 1, "green": 2},
    actor_shares={"Robin": 0.5, "Quinn": 0.5},
    role_shares={"user": 1.0},
)
TEA, GREEN = math.log(34.0), math.log(20.4)
BOTH = TEA + GREEN
A_HALF = 0.15 + 0.07 * math.log(2.0)  # .1985


def asked(*stems: str, named: tuple[str, ...] = (), **cues: Any) -> QueryWords:
    return QueryWords(text="?", embed_text="?", stems=stems, named=named, cues=Cues(**cues))


def a_turn(number: int, stems: str = "", **given: Any) -> Candidate:
    words = len(stems.split())
    given = {
        "session_id": SESSION,
        "seq": number,
        "actor": "Quinn",
        "role": "user",
        "occurred_at": NOW,
        "length": words,
        "word_count": words,
    } | given
    return Candidate(id=UUID(int=number), stems=stems, **given)


def a_fact(number: int, stems: str = "", **given: Any) -> Candidate:
    return a_turn(
        number, stems, **({"kind": "fact", "session_id": None, "seq": None, "role": ""} | given)
    )


def ranked(query: QueryWords, *candidates: Candidate, corpus: Corpus = CORPUS) -> list[Scored]:
    return score(query, candidates, corpus, now=NOW)


def by_number(scored: list[Scored]) -> dict[int, Scored]:
    return {hit.candidate.id.int: hit for hit in scored}


def test_a_turn_alone_scores_as_worked_by_hand() -> None:
    turn = a_turn(1, "green tea tea", cosine=0.6)

    (hit,) = ranked(asked("green", "tea"), turn)

    damping = 1.2 * (0.25 + 0.75 * 3 / 2)  # 1.65
    nb = (GREEN * 1 / (1 + damping) + TEA * 2 / (2 + damping)) / BOTH
    lex = 0.7 * nb + 0.3 * 1.0
    base = 0.5 * 0.6 + 0.5 * lex
    assert nb == pytest.approx(0.46931, abs=1e-5)
    assert base == pytest.approx(0.61426, abs=1e-5)
    assert hit.reasons == pytest.approx(
        Reasons(0.6, nb, 1.0, lex, base, 0.0, 0.4 * base, 0, 0, 0, 0, 0, 0)
    )
    assert hit.score == pytest.approx(1.4 * base)


def test_three_turns_of_a_session_score_as_worked_by_hand() -> None:
    first = a_turn(1, "green", cosine=0.2)
    second = a_turn(2, "tea", cosine=0.8)
    third = a_turn(3, "cup", cosine=-0.5)

    hits = by_number(ranked(asked("green", "tea"), first, second, third))

    damping = 1.2 * (0.25 + 0.75 * 1 / 2)  # .75
    one = 0.5 * 0.2 + 0.5 * (0.7 * (GREEN / 1.75) / BOTH + 0.3 * GREEN / BOTH)
    two = 0.5 * 0.8 + 0.5 * (0.7 * (TEA / (1 + damping)) / BOTH + 0.3)  # with "green" before it
    three = 0.5 * 0.0 + 0.5 * 0.3 * TEA / BOTH  # "tea" before it; a cosine below 0 counts 0
    assert hits[1].score == pytest.approx(one + 0.1 * two + 0.4 * two)
    assert hits[2].score == pytest.approx(two + 0.2 * one + 0.1 * three + 0.4 * two)
    assert hits[3].score == pytest.approx(three + 0.2 * two + 0.4 * two)
    assert hits[2].reasons.pair == 1.0


def test_every_signal_adds_what_it_says() -> None:
    query = asked(
        "tea",
        named=("Robin",),
        wants_name=True,
        wants_time=True,
        dates=(DateMention(2024, 6, 1),),
    )
    turn = a_turn(
        1,
        actor="robin",
        ends_with_question=True,
        has_name=True,
        has_time_expression=True,
    )

    (hit,) = ranked(query, turn)

    assert hit.reasons[5:] == pytest.approx((0, 0, A_HALF, -0.07, 0.08, 0.18 * 1.5, 0.09, 0))
    assert hit.score == pytest.approx(A_HALF - 0.07 + 0.08 + 0.27 + 0.09)
    assert pytest.approx(0.2, abs=0.002) == A_HALF


@pytest.mark.parametrize(
    ("cosine", "counted"), [(1.0, 1.0), (1.5, 1.0), (1e-9, 1e-9), (0.0, 0.0), (1, 1.0)]
)
def test_a_cosine_counts_up_to_one(cosine: float, counted: float) -> None:
    (hit,) = ranked(asked("tea"), a_turn(1, cosine=cosine))

    assert hit.reasons.cosine == counted


@pytest.mark.parametrize("length", [math.nan, math.inf, -1.0, 0.0, 0.5])
def test_an_average_length_that_tells_nothing_is_taken_as_one(length: float) -> None:
    turn = a_turn(1, "tea cup cup cup")

    (hit,) = ranked(asked("tea"), turn, corpus=replace(CORPUS, average_length=length))

    assert hit.reasons.nb == pytest.approx(1 / (1 + 1.2 * (0.25 + 0.75 * 4)))


@pytest.mark.parametrize("length", [0, -3])
def test_a_length_of_nothing_damps_least(length: int) -> None:
    (hit,) = ranked(asked("tea"), a_turn(1, "tea", length=length))

    assert hit.reasons.nb == pytest.approx(1 / (1 + 1.2 * 0.25))


def test_a_word_that_every_memory_has_counts_by_its_share_of_the_question() -> None:
    corpus = replace(CORPUS, frequencies={"tea": 50, "cup": 50})

    (hit,) = ranked(asked("tea", "cup"), a_turn(1, "tea"), corpus=corpus)

    assert hit.reasons.pair == pytest.approx(0.5)


def test_what_is_called_by_another_of_its_names_is_there_once() -> None:
    query = replace(
        asked("green", "tea"), aliases=(Alias(asked=("green", "tea"), others=(("sencha",),)),)
    )

    hits = by_number(ranked(query, a_fact(1, "sencha"), a_fact(2, "cup"), a_fact(3, "green")))

    assert hits[1].reasons.nb == pytest.approx(1 / 1.75)
    assert hits[1].reasons.pair == 1.0
    assert hits[2].reasons.nb == 0.0
    assert hits[3].reasons.nb == pytest.approx(GREEN / 1.75 / BOTH)


def test_turns_of_no_session_have_no_neighbours() -> None:
    alone = [a_turn(number, "tea", cosine=1.0, session_id=None) for number in (1, 2)]

    for hit in ranked(asked("tea"), *alone):
        assert hit.reasons.neighbour == 0.0
        assert hit.reasons.session == pytest.approx(0.4 * hit.reasons.base)


def test_a_question_of_somebody_who_speaks_of_themselves_costs_nothing() -> None:
    turn = a_turn(1, ends_with_question=True, first_person=True)

    (hit,) = ranked(asked("tea"), turn)

    assert hit.score == 0.0


@pytest.mark.parametrize(
    ("named", "about_both", "boosts"),
    [
        (("Robin",), False, {1: A_HALF, 2: 0.0}),
        (("Quinn",), False, {1: 0.0, 2: A_HALF}),
        (("Robin", "Quinn"), False, {1: A_HALF / 2, 2: 0.0}),
        (("Robin", "Quinn"), True, {1: 0.0, 2: 0.0}),
        (("Robin",), True, {1: A_HALF, 2: 0.0}),
        (("Robin", "Quinn", "Sam"), False, {1: 0.0, 2: 0.0}),
        ((), False, {1: 0.0, 2: 0.0}),
    ],
)
def test_the_actor_asked_about_is_boosted(
    named: tuple[str, ...], boosts: dict[int, float], *, about_both: bool
) -> None:
    query = asked("tea", named=named, about_both=about_both)

    hits = by_number(ranked(query, a_turn(1, actor="Robin"), a_turn(2, actor="Quinn")))

    assert {number: hit.reasons.actor for number, hit in hits.items()} == pytest.approx(boosts)


def test_the_boost_grows_with_the_size_of_the_crowd() -> None:
    corpus = replace(CORPUS, actor_shares={"Robin": 0.01, "Quinn": 0.99})

    hits = by_number(
        ranked(asked("tea", named=("Robin",)), a_turn(1, actor="Robin"), corpus=corpus)
    )

    assert hits[1].reasons.actor == pytest.approx(0.15 + 0.07 * math.log(100))


def test_a_memory_of_nobody_gets_what_chance_would_give() -> None:
    hits = by_number(ranked(asked("tea", named=("Robin",)), a_fact(1, actor="")))

    assert hits[1].reasons.actor == pytest.approx(A_HALF / 2)


def test_a_memory_without_a_role_is_of_its_actor_all_the_same() -> None:
    facts = a_fact(1, actor="Robin"), a_fact(2, actor="Quinn")

    hits = by_number(ranked(asked("tea", named=("Robin",)), *facts))

    assert hits[1].reasons.actor == pytest.approx(A_HALF)
    assert hits[2].reasons.actor == 0.0


def test_in_a_chat_where_no_user_spoke_a_memory_of_nobody_gets_nothing() -> None:
    chat = replace(CORPUS, role_shares={"assistant": 1.0})

    (hit,) = ranked(asked("tea"), a_fact(1, actor=""), corpus=chat)

    assert hit.reasons.actor == 0.0


def test_where_nobody_is_asked_about_nobody_is_boosted() -> None:
    hits = by_number(ranked(asked("tea"), a_turn(1, actor=""), a_turn(2)))

    assert hits[1].reasons.actor == hits[2].reasons.actor == 0.0


def test_in_an_assistant_chat_a_question_that_names_nobody_is_about_the_user() -> None:
    chat = replace(CORPUS, role_shares={"user": 0.5, "assistant": 0.5})
    user = a_turn(1, ends_with_question=True)
    assistant = a_turn(2, role="assistant", ends_with_question=True)

    hits = by_number(ranked(asked("tea"), user, assistant, corpus=chat))

    assert hits[1].reasons.actor == pytest.approx(A_HALF)
    assert hits[2].reasons.actor == 0.0
    assert hits[1].reasons.question == hits[2].reasons.question == 0.0


@pytest.mark.parametrize(("length", "weight"), [(30.0, 0.5), (31.0, 0.6)])
def test_meaning_weighs_more_where_memories_are_long_and_mixed(
    length: float, weight: float
) -> None:
    chat = replace(CORPUS, role_shares={"user": 0.5, "assistant": 0.5}, average_length=length)

    (hit,) = ranked(asked("tea"), a_turn(1, cosine=1.0), corpus=chat)

    assert hit.reasons.base == pytest.approx(weight)


@pytest.mark.parametrize("shares", [{}, {"user": 1.0}, {"user": 1.0, "assistant": 0.0}])
def test_meaning_weighs_no_more_where_no_assistant_speaks(shares: dict[str, float]) -> None:
    talk = replace(CORPUS, role_shares=shares, average_length=99.0)

    (hit,) = ranked(asked("tea"), a_turn(1, cosine=1.0), corpus=talk)

    assert hit.reasons.base == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("first", "second", "paired"),
    [
        ({}, {}, True),
        ({"word_count": 60}, {"word_count": 60}, True),
        ({"word_count": 61}, {}, False),
        ({}, {"word_count": 61}, False),
        ({"role": "assistant"}, {}, False),
        ({}, {"role": "assistant"}, False),
        ({"session_id": UUID(int=2)}, {}, False),
        ({"seq": 0}, {}, False),
    ],
)
def test_a_turn_is_read_with_the_short_one_before_it(
    first: dict[str, Any], second: dict[str, Any], *, paired: bool
) -> None:
    one, two = a_turn(1, "tea", **first), a_turn(2, "cup", **second)

    hits = by_number(ranked(asked("tea"), one, two))

    assert hits[2].reasons.pair == (1.0 if paired else 0.0)


def test_the_best_of_the_session_reaches_five_turns() -> None:
    turns = [a_turn(number) for number in range(1, 12)]
    turns[5] = turns[5]._replace(cosine=1.0)  # seq 6

    hits = by_number(ranked(asked("tea"), a_turn(0), *turns, a_turn(12)))

    reached = [number for number, hit in hits.items() if hit.reasons.session]
    assert sorted(reached) == list(range(1, 12))
    assert hits[7].reasons.neighbour == pytest.approx(0.2 * 0.5)
    assert hits[5].reasons.neighbour == pytest.approx(0.1 * 0.5)


def test_ties_go_to_the_newer_then_to_the_lower_id_in_every_order() -> None:
    tied = [
        a_fact(3),
        a_fact(1),
        a_fact(2, occurred_at=NOW + timedelta(microseconds=1)),
        a_fact(4, occurred_at=NOW - timedelta(days=9_999)),
    ]
    weights = Weights(recency=0.0)

    orders = {
        tuple(hit.candidate.id.int for hit in score(asked("tea"), order, CORPUS, weights, now=NOW))
        for order in permutations(tied)
    }

    assert orders == {(2, 1, 3, 4)}


def test_words_count_whole() -> None:
    (hit,) = ranked(asked("tea"), a_turn(1, "teapot steam tea"))
    (other,) = ranked(asked("tea"), a_turn(1, "teapot steam tealight"))

    assert hit.reasons.nb > 0.0
    assert other.reasons.nb == other.reasons.pair == 0.0


def test_without_words_meaning_alone_decides() -> None:
    hits = ranked(asked(), a_turn(1, "tea", cosine=0.2), a_turn(9, "cup", cosine=0.9))

    assert [hit.candidate.id.int for hit in hits] == [9, 1]


def test_nothing_to_rank_is_no_hits() -> None:
    assert ranked(asked("tea")) == []


def test_rare_words_weigh_more_and_every_weight_is_above_zero() -> None:
    corpus = Corpus(documents=100, frequencies={"a": 100, "b": 1, "bad": 999, "worse": -1})

    idf = inverse_frequencies(("a", "b", "none", "bad", "worse"), corpus)

    assert idf["none"] == idf["worse"] > idf["b"] > idf["a"] == idf["bad"] > 0.0
    assert idf["b"] == pytest.approx(math.log(1 + 99.5 / 1.5))


def test_who_speaks_rarely_makes_an_answer_no_surer() -> None:
    turn = a_turn(1, "green tea", cosine=0.6)
    shares = (0.5, 0.01, 0.0001)
    rows = [replace(CORPUS, actor_shares={"Quinn": share}) for share in shares]

    found = [ranked(asked("tea", named=("Quinn",)), turn, corpus=one) for one in rows]

    scores = [scored[0].score for scored in found]
    assert scores[0] < scores[1] < scores[2]
    assert [surest(scored) for scored in found] == [pytest.approx(scores[0])] * 3


def test_the_surest_need_not_be_the_first() -> None:
    rare = replace(CORPUS, actor_shares={"Quinn": 0.001, "Robin": 0.999})
    his = a_turn(1, cosine=0.3, session_id=UUID(int=8))
    other = a_turn(2, "tea", cosine=0.3, actor="Robin", session_id=UUID(int=9))

    scored = ranked(asked("tea", named=("Quinn",)), his, other, corpus=rare)

    [first, second] = scored
    assert (first.candidate.id.int, second.candidate.id.int) == (1, 2)
    assert surest(scored) == second.score > first.score - first.reasons.actor + A_HALF


@pytest.mark.parametrize(("day", "dated"), [(1, 0.0), (2, 0.18), (5, 0.18), (8, 0.18), (9, 0.0)])
def test_what_happened_from_the_first_to_before_the_last_of_a_range_is_dated(
    day: int, dated: float
) -> None:
    begins, ends = datetime(2023, 5, 2, tzinfo=UTC), datetime(2023, 5, 9, tzinfo=UTC)
    query = asked("tea", dates=(DateMention(2022),), ranges=((begins, ends),))

    (hit,) = ranked(query, a_turn(1, occurred_at=datetime(2023, 5, day, tzinfo=UTC)))

    assert hit.reasons.date == pytest.approx(dated)


@pytest.mark.parametrize(
    ("months", "moved"),
    [(-1, 0.005), (0, 0.005), (1, 0.0), (2, -0.0025), (3, -0.00375), (2_400, -0.005)],
)
def test_the_age_of_a_fact_moves_it_by_half_of_its_weight_at_most(
    months: int, moved: float
) -> None:
    fact = a_fact(1, occurred_at=NOW - months * timedelta(days=30))

    (hit,) = ranked(asked("tea"), fact)

    assert hit.reasons.bounded == pytest.approx(moved)


@pytest.mark.parametrize(
    ("importance", "confidence", "moved"),
    [
        (1.0, None, 0.005),
        (None, 1.0, 0.005),
        (0.0, 0.0, -0.01),
        (0.5, 0.75, 0.0025),
        (math.inf, None, 0.0),
        (math.nan, -math.inf, 0.0),
    ],
)
def test_importance_and_confidence_move_a_fact_by_half_of_their_weights_at_most(
    importance: float | None, confidence: float | None, moved: float
) -> None:
    fact = a_fact(
        1,
        importance=importance,
        confidence=confidence,
        occurred_at=NOW - timedelta(days=30),
    )

    (hit,) = ranked(asked("tea"), fact)

    assert hit.reasons.bounded == pytest.approx(moved)


def test_of_nothing_the_surest_is_none() -> None:
    assert surest([]) == 0.0


def test_hits_below_the_floor_are_dropped_in_order() -> None:
    scored = ranked(asked("tea"), a_fact(1, cosine=0.1), a_fact(2, cosine=1.0))

    assert [hit.candidate.id.int for hit in above_floor(scored)] == [2]
    assert above_floor(scored, floor=-1.0) == scored
    assert above_floor(scored, floor=scored[0].score) == scored[:1]


@pytest.mark.parametrize(
    ("own", "others", "named", "expected"),
    [
        (0.3, 0.5, ("robin",), True),
        (0.45, 0.5, ("Robin",), False),
        (0.9, 0.5, ("Robin",), False),
        (0.3, 0.5, (), False),
        (0.3, 0.5, ("Robin", "Quinn"), False),
    ],
)
def test_a_question_about_the_wrong_person_is_noticed(
    own: float, others: float, named: tuple[str, ...], *, expected: bool
) -> None:
    assert about_other_actor(scored_as(own, others), named) is expected


def test_another_person_is_meant_only_where_the_margin_is_passed() -> None:
    scored = scored_as(0.25, 0.5)

    assert not about_other_actor(scored, ("Robin",), margin=0.25)
    assert about_other_actor(scored, ("Robin",), margin=0.24)


def scored_as(own: float, others: float) -> list[Scored]:
    found = ranked(asked("tea"), a_turn(1, actor="Robin"), a_turn(9, actor="Quinn"))
    return [hit._replace(score=value) for hit, value in zip(found, (own, others), strict=True)]


def test_the_boost_of_the_actor_asked_about_does_not_hide_that_another_was_meant() -> None:
    query = asked("tea", named=("Robin",))
    own = a_turn(1, actor="Robin", cosine=0.5)
    other = a_turn(9, actor="Quinn", cosine=0.7)  # better by 1.4 times .1, without the boost

    scored = ranked(query, own, other)

    assert scored[0].candidate == own
    assert about_other_actor(scored, query.named)


def test_somebody_asked_about_who_never_spoke_is_noticed() -> None:
    scored = ranked(asked("tea"), a_turn(1, actor="Quinn", cosine=1.0), a_fact(2, actor=""))

    assert about_other_actor(scored, ("Robin",))
    assert not about_other_actor([], ("Robin",))


@pytest.mark.parametrize("documents", [0, 1, 5, 50])
def test_in_a_small_scope_a_word_counts_as_if_others_without_it_stood_by(documents: int) -> None:
    only = Corpus(documents=documents, average_length=2.0, frequencies={"tea": 1})

    found = inverse_frequencies(["tea", "cup"], only)

    assert found["tea"] == pytest.approx(math.log(34.0))
    assert found["cup"] == pytest.approx(math.log1p(50.5 / 0.5))


def test_without_any_cosine_words_alone_decide_on_their_whole_scale() -> None:
    (alone,) = ranked(asked("tea"), a_turn(1, "tea", cosine=None))
    (beside, _) = ranked(asked("tea"), a_turn(1, "tea", cosine=None), a_turn(9, cosine=0.0))

    assert alone.reasons.base == alone.reasons.lex
    assert beside.reasons.base == pytest.approx(alone.reasons.lex / 2)


@pytest.mark.parametrize("cosine", [0.0, 0.2, 1.0])
def test_a_model_that_cannot_read_a_question_only_adds(cosine: float) -> None:
    query = replace(asked("tea"), unread=True)

    (with_word,) = ranked(query, a_turn(1, "tea", cosine=cosine))
    (without,) = ranked(query, a_turn(1, "cup", cosine=cosine))

    assert with_word.reasons.base >= with_word.reasons.lex > 0
    assert without.reasons.base == pytest.approx(0.25 * cosine)


def test_a_word_that_a_text_repeats_takes_no_longer_to_weigh() -> None:
    """Whoever writes turns decides how often a word is in them."""

    def calls(repeats: int) -> int:
        found = [a_turn(number, "tea " * repeats + "green") for number in range(1, 9)]
        seen: list[str] = []
        sys.setprofile(lambda _frame, event, _given: seen.append(event))
        score(asked("tea", "green"), found, CORPUS, now=NOW)
        sys.setprofile(None)
        return len(seen)

    assert calls(2_000) <= calls(2)
