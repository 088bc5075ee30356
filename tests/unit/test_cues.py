from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.model.cues import (
    DATES_MAX,
    Cues,
    DateMention,
    cues_of,
    date_match,
    date_spans,
    dates_in,
    ends_with_question,
    first_person,
    has_name,
    has_time_expression,
    ranges_in,
)

aware = st.datetimes(timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("what happened on 5 March 2024?", DateMention(2024, 3, 5)),
        ("what happened on March 5th, 2024?", DateMention(2024, 3, 5)),
        ("on the 5th of march", DateMention(None, 3, 5)),
        ("in March 2024", DateMention(2024, 3)),
        ("in march", DateMention(None, 3)),
        ("during 2024", DateMention(2024)),
        ("the 2024-03-05 release", DateMention(2024, 3, 5)),
        ("the 2024-03 release", DateMention(2024, 3)),
        ("last May", DateMention(None, 5)),
        ("what did they say in Sept. 2023", DateMention(2023, 9)),
        ("on the 5TH OF MARCH", DateMention(None, 3, 5)),
        ("on 31 February 2024", DateMention(2024, 2)),
        ("on 29 February 2023", DateMention(2023, 2)),
        ("on 29 February", DateMention(None, 2, 29)),
        ("2024年3月5日我去了哪里", DateMention(2024, 3, 5)),
        ("2024年3月に", DateMention(2024, 3)),
        ("2024년 3월 5일에 뭐 했어?", DateMention(2024, 3, 5)),
    ],
)
def test_a_date_is_read_as_far_as_it_is_named(text: str, mention: DateMention) -> None:
    assert dates_in(text) == (mention,)


@pytest.mark.parametrize(
    "text",
    [
        "which service listens on port 9077?",
        "which service listens on port 2024?",
        "what happened 5000 years ago?",
        "what happened 2000 years ago?",
        "it cost $1999",
        "may I ask something?",
        "did they march to the station?",
        "room 2001",
        "version v2024",
        "call 555-2024",
        "year 0 and 0001-01-01",
        "2023.4 and 1999,5",
        "",
    ],
)
def test_a_number_or_an_everyday_word_is_no_date(text: str) -> None:
    assert dates_in(text) == ()


def test_several_dates_are_kept_in_order_each_once() -> None:
    found = dates_in("between May 2023 and June 2023, or May 2023")

    assert found == (DateMention(2023, 5), DateMention(2023, 6))


def test_a_question_full_of_dates_gives_a_bounded_list() -> None:
    found = dates_in(" ".join(f"in {year}" for year in range(1900, 2000)))

    assert len(found) == DATES_MAX


@pytest.mark.parametrize(
    ("mention", "at", "expected"),
    [
        (DateMention(2024, 3, 5), datetime(2024, 3, 5, tzinfo=UTC), 1.5),
        (DateMention(2024, 3, 5), datetime(2024, 3, 6, tzinfo=UTC), 1.0),
        (DateMention(2024, 3), datetime(2024, 4, 1, tzinfo=UTC), 0.5),
        (DateMention(2024, 3), datetime(2024, 5, 1, tzinfo=UTC), 0.0),
        (DateMention(None, 3), datetime(2024, 5, 1, tzinfo=UTC), 0.0),
        (DateMention(2024, 3), datetime(2024, 2, 1, tzinfo=UTC), 0.0),
        (DateMention(2024, 3), datetime(2023, 3, 1, tzinfo=UTC), 0.0),
        (DateMention(2023, 12), datetime(2024, 1, 1, tzinfo=UTC), 0.5),
        (DateMention(None, 12), datetime(2024, 1, 1, tzinfo=UTC), 0.5),
        (DateMention(None, 6), datetime(1987, 6, 1, tzinfo=UTC), 1.0),
        (DateMention(2024), datetime(2024, 12, 31, tzinfo=UTC), 1.0),
        (DateMention(2024), datetime(2025, 1, 1, tzinfo=UTC), 0.0),
        (DateMention(2024, 3), datetime(1, 1, 1, tzinfo=UTC), 0.0),
        (DateMention(2024, 12), datetime(9999, 12, 31, tzinfo=UTC), 0.0),
    ],
)
def test_a_time_fits_a_date_by_month_then_day(
    mention: DateMention, at: datetime, expected: float
) -> None:
    assert date_match((mention,), at) == expected


def test_the_best_of_several_dates_counts() -> None:
    mentions = (DateMention(2020), DateMention(2024, 3, 5))

    assert date_match(mentions, datetime(2024, 3, 5, tzinfo=UTC)) == 1.5
    assert date_match((), datetime(2024, 3, 5, tzinfo=UTC)) == 0.0


@given(
    st.integers(1900, 2099),
    st.none() | st.integers(1, 12),
    st.builds(
        datetime,
        st.integers(1899, 2101),
        st.integers(1, 12),
        st.integers(1, 28),
        tzinfo=st.just(UTC),
    ),
)
def test_the_span_of_a_date_is_where_it_fits(year: int, month: int | None, at: datetime) -> None:
    mention = DateMention(year, month)

    ((start, end),) = date_spans((mention,))

    assert (start <= at < end) == (date_match((mention,), at) > 0)


def test_a_question_has_dates_and_what_lies_between_them() -> None:
    cues = cues_of("When did they meet, between May and July 2023?")

    assert cues == Cues(
        wants_time=True,
        dates=(DateMention(None, 5), DateMention(2023, 7)),
        ranges=((datetime(2023, 5, 1, tzinfo=UTC), datetime(2023, 8, 1, tzinfo=UTC)),),
    )


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        ("between May and July 2023", (2023, 5, 1), (2023, 8, 1)),
        ("from 3 May to 9 June 2023", (2023, 5, 3), (2023, 6, 10)),
        ("from the 3rd of May 2022 until March 2023", (2022, 5, 3), (2023, 4, 1)),
        ("between 2021 and 2023", (2021, 1, 1), (2024, 1, 1)),
        ("from 2023-05-01 through 2023-12-31", (2023, 5, 1), (2024, 1, 1)),
        ("from 29 February to May 2023", (2023, 2, 1), (2023, 6, 1)),
        ("in 2020 or 2021, or from May to July 2023", (2023, 5, 1), (2023, 8, 1)),
    ],
)
def test_what_lies_between_two_dates_is_a_range(
    text: str, begins: tuple[int, int, int], ends: tuple[int, int, int]
) -> None:
    assert ranges_in(text) == ((datetime(*begins, tzinfo=UTC), datetime(*ends, tzinfo=UTC)),)


@pytest.mark.parametrize(
    "text",
    [
        "between May and July",
        "from July 2023 to May 2023",
        "in May 2023 and July 2023",
        "from May 2023, and then to July 2023",
        "the letter from Robin to May 2023",
    ],
)
def test_two_dates_are_no_range_without_year_order_and_words(text: str) -> None:
    assert ranges_in(text) == ()


def test_a_question_full_of_ranges_gives_a_bounded_list() -> None:
    assert len(ranges_in("from 2001 to 2002, " * 20)) == DATES_MAX


def test_the_span_of_a_day_comes_before_that_of_its_months() -> None:
    first, second = date_spans((DateMention(2024, 2, 29),))

    assert first == (datetime(2024, 2, 29, tzinfo=UTC), datetime(2024, 3, 1, tzinfo=UTC))
    assert second == (datetime(2024, 2, 1, tzinfo=UTC), datetime(2024, 4, 1, tzinfo=UTC))


def test_a_month_without_its_year_has_no_span() -> None:
    assert date_spans((DateMention(None, 3),)) == ()
    assert date_spans((DateMention(2023, 12),)) == (
        (datetime(2023, 12, 1, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC)),
    )


@pytest.mark.parametrize(
    ("text", "wants_time"),
    [
        ("When did they move?", True),
        ("when was it", True),
        ("How long did it take?", True),
        ("For how long have they had the cat?", True),
        ("In what year did they meet?", True),
        ("Which month was it?", True),
        ("What date is set?", True),
        ("What did they do when it rained?", False),
        ("What days off do they like?", True),
        ("How longing feels", False),
        ("Whenever it rains, what happens?", False),
    ],
)
def test_a_question_for_a_time_is_known_by_its_beginning(text: str, *, wants_time: bool) -> None:
    assert cues_of(text).wants_time is wants_time


@pytest.mark.parametrize(
    "text",
    ["我什么时候搬去杭州", "引っ越しはいつ", "언제 이사해?", "Когда переезд?", "متى أنتقل"],
)
def test_a_question_for_a_time_is_known_in_other_languages(text: str) -> None:
    assert cues_of(text).wants_time


@pytest.mark.parametrize(
    "text",
    ["昨天下雨了", "来週行きます", "다음 달에 가요", "прошлым летом", "ذهبت أمس", "15号搬家"],
)
def test_a_time_is_known_in_other_languages(text: str) -> None:
    assert has_time_expression(text)


@pytest.mark.parametrize(
    ("text", "wants_name"),
    [
        ("Who helped?", True),
        ("What is the name of the dog?", True),
        ("Which book did they read?", True),
        ("What classical music artists do they like?", True),
        ("Where did they go?", True),
        ("Why did they leave?", False),
        ("What did they eat?", False),
    ],
)
def test_a_question_for_a_name_is_known_by_its_words(text: str, *, wants_name: bool) -> None:
    assert cues_of(text).wants_name is wants_name


@pytest.mark.parametrize(
    ("text", "both"),
    [
        ("What do they both like?", True),
        ("What did they and they compare?", True),
        ("What do their and their dogs eat?", True),
        ("What do they have in common?", True),
        ("What did they give to they?", False),
    ],
)
def test_a_question_about_two_is_known(text: str, *, both: bool) -> None:
    assert cues_of(text).about_both is both


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("How are you?", True),
        ("Really?! ", True),
        ('He asked "why?"', True),
        ("What's up? 😊", True),
        ("你好吗？", True),  # noqa: RUF001 - the mark of a Chinese question
        ("كيف حالك؟", True),
        ("Is it? Yes.", False),
        ("Yes.", False),
        ("", False),
    ],
)
def test_a_question_is_known_by_its_end(text: str, *, question: bool) -> None:
    assert ends_with_question(text) is question


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("I like tea", True),
        ("that is my cup", True),
        ("we'll see", True),
        ("Мне нравится чай", True),
        ("我喜欢绿茶", True),
        ("You like tea", False),
        ("It is mining", False),
    ],
)
def test_who_speaks_of_themselves_is_known(text: str, *, said: bool) -> None:
    assert first_person(text) is said


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("we went to Lisbon", True),
        ('we read "the sea" together', True),
        ("«Война и мир» is long", True),
        ("Yesterday was fine. It rained.", False),
        ("so I stayed, and I slept", False),
        ("see you on Monday in March", False),
        ("nothing here", False),
        ('she said ""', False),
    ],
)
def test_a_name_is_a_capital_inside_a_sentence_or_a_title(text: str, *, named: bool) -> None:
    assert has_name(text) is named


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("we met yesterday", True),
        ("two weeks ago", True),
        ("last Friday was good", True),
        ("since 2016", True),
        ("it starts in May", True),
        ("on 3 May", True),
        ("three years", True),
        ("you may go", False),
        ("they march on", False),
        ("чай был вкусный", False),
        ("nothing here", False),
    ],
)
def test_a_time_told_is_known(text: str, *, told: bool) -> None:
    assert has_time_expression(text) is told


@given(st.text(max_size=400), aware)
def test_every_text_has_cues_and_every_time_fits_within_bounds(text: str, at: datetime) -> None:
    cues = cues_of(text)

    assert 0.0 <= date_match(cues.dates, at) <= 1.5
    assert all(start < end for start, end in date_spans(cues.dates))
    assert isinstance(has_name(text) or has_time_expression(text) or first_person(text), bool)


@pytest.mark.parametrize(
    ("text", "months"),
    [
        ("What was signed in June?", (6,)),
        ("What was signed on 3 June?", (6,)),
        ("In June, what was signed?", (6,)),
        ("Tell me about June.", ()),
        ("What was signed on May 3rd?", (5,)),
        ("What was July like?", (7,)),
        ("Who came last August, or the April before?", (8,)),
        ("What happened during april and june?", (4, 6)),
        ("What happened between May and July?", (5, 7)),
        ("What came of it in December, October, or May?", (5, 10, 12)),
        ("What did June do in July?", (7,)),
        ("What happened since the end of May?", (5,)),
        ("Where does June live?", ()),
        ("When is June's birthday?", ()),
        ("Who came to the birthday of June's mother?", ()),
        ("What do April and August like?", ()),
        ("Did May call Jan?", ()),
        ("What did June say in 2021?", ()),
        ("What was done in the month of May in 2021 and 2022?", ()),
        ("What was done in 2021, in May?", ()),
        ("What was signed in June 2023?", ()),
        ("What was done on 5 March 2024 and in June?", ()),
        ("What happened from May to July 2023?", ()),
        ("What was done in 2023?", ()),
        ("What was done?", ()),
    ],
)
def test_months_of_any_year_are_those_named_for_certain_where_no_year_is(
    text: str, months: tuple[int, ...]
) -> None:
    assert cues_of(text).any_year == months


def test_of_a_text_full_of_months_each_is_told_once() -> None:
    assert cues_of("in May and June " * 2_000).any_year == (5, 6)
