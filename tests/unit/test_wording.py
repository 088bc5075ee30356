from __future__ import annotations

import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.store import wording
from mnemic.store.wording import query_of, words_of

ACTORS = ("Robin", "Quinn Jones", "Sam O'Neil", "李明", "User")
WORDS, DISTINCT_WORDS = 100_000, 20_000
SECONDS_MAX = 60.0  # some 1 s on one core; a quadratic step would take hours


def asked(text: str, *, terms_max: int = 64) -> wording.QueryWords:
    return query_of(text, actors=ACTORS, terms_max=terms_max)


def test_content_words_are_stemmed_in_order_with_repeats() -> None:
    words = words_of("The runner was running, and the tea was TEA.")

    assert words.stems == ("runner", "run", "tea", "tea")
    assert words.text == "runner run tea tea"
    assert (words.length, words.word_count) == (4, 9)


def test_a_caption_is_searched_but_says_nothing_about_the_speaker() -> None:
    words = words_of("Look at this!", "my yellow kite over Lisbon in 2019?")

    assert words.stems == ("look", "yellow", "kite", "lisbon", "2019")
    assert words.word_count == 10
    assert not words.ends_with_question
    assert not words.first_person
    assert not words.has_name
    assert not words.has_time_expression


def test_the_flags_of_a_text_are_noted() -> None:
    words = words_of("Did I tell you that we went to Lisbon last week?")

    assert words.ends_with_question
    assert words.first_person
    assert words.has_name
    assert words.has_time_expression


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("café", "cafe\u0301"),
        ("café", "CAFE"),
        ("Ａｐｐｌｅ", "apple"),  # noqa: RUF001 - full-width letters are the case
        ("straße", "STRASSE"),
        ("ﬁnding", "find"),
        ("zero\u200bwidth", "zerowidth"),
        ("cafe\u200b\u0301", "café"),
        ("и\u200b\u0306", "й"),
        ("Robin's", "robin"),
        ("Robin\u2019s", "robin"),
        ("file_name", "file name"),
        ("l'amour", "l amour"),
        ("they're here's-it", "it"),
        ("ёлка", "елка"),
        ("й", "и\u0306"),
        ("한국어", unicodedata.normalize("NFD", "한국어")),
        ("हिन्दी", unicodedata.normalize("NFD", "हिन्दी")),
        ("المَدْرَسَةُ", "المدرسة"),
        ("مـدرسـة", "مدرسة"),
        ("أحمد", "احمد"),
        ("علىٰ", "على"),
        ("کتاب", "كتاب"),
        ("שָׁלוֹם", "שלום"),
        ("Ελλάδα", "ΕΛΛΑΔΑ"),
        ("ﾈｺ", "ネコ"),
        ("か\u3099ん", "がん"),
        ("١٢٣ ۱۲۳ १२३", "123 123 123"),
        ("ชา๑๒", "ชา 12"),
        ("㍿", "株式会社"),
    ],
)
def test_two_spellings_of_one_word_are_one(one: str, other: str) -> None:
    assert words_of(one).stems == words_of(other).stems
    assert asked(one).stems == asked(other).stems


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("Пользователи любили зелёные книги", ("пользовател", "люб", "зелен", "книг")),
        ("المستخدمون يحبون الكتب", ("مستخدم", "يحبون", "كتب")),
        ("हिन्दी किताब", ("हिन्दी", "किताब")),
        (
            "用户喜欢绿茶",
            ("用户", "户喜", "喜欢", "欢绿", "绿茶", "用", "户", "喜", "欢", "绿", "茶"),
        ),
        ("茶 tea茶", ("茶", "tea", "茶")),
        ("ありがとう", ("あり", "りが", "がと", "とう")),
        ("한국어", ("한국", "국어", "한", "국", "어")),
        ("ชาเขียว", ("ชา", "าเ", "เข", "ขี", "ีย", "ยว")),
        ("GRACE_v2 costs 100%", ("grace", "v2", "cost", "100")),
        ("don't won't isn't", ()),
        ("ещё всё", ()),
        ("?!… 😊", ()),
        ("", ()),
    ],
)
def test_words_of_every_script_are_found(text: str, stems: tuple[str, ...]) -> None:
    assert words_of(text).stems == stems


def test_a_russian_question_finds_what_was_written_in_another_form() -> None:
    question = asked("какие книги любит пользователь?")
    written = words_of("Пользователю нравятся книгами полные полки").stems

    assert set(question.stems) & set(written) == {"книг", "пользовател"}


def test_a_chinese_question_shares_pairs_with_the_memory() -> None:
    shared = set(asked("他喜欢什么茶").stems) & set(words_of("用户喜欢绿茶").stems)

    assert shared == {"喜欢", "喜", "欢", "茶"}


def test_characters_that_stand_in_pairs_are_found_alone_and_do_not_lengthen_a_text() -> None:
    words = words_of("用户喜欢绿茶")

    assert words.length == words.word_count == 5
    assert set(asked("茶").stems) <= set(words.stems)


@pytest.mark.parametrize(
    ("question", "stem"),
    [
        ("猫は", "猫"),
        ("你的猫呢", "猫"),
        ("집은 어디예요?", "집"),
        ("물이랑", "물"),
        ("차", "차"),
    ],
)
def test_a_word_of_one_character_is_asked_for_without_what_hangs_on_it(
    question: str, stem: str
) -> None:
    assert stem in asked(question).stems


def test_a_longer_korean_word_is_not_taken_apart() -> None:
    assert asked("한국어").stems == ("한국", "국어")


def test_known_names_leave_the_question_and_become_a_signal() -> None:
    question = asked("When did robin visit Quinn's sister?")

    assert question.embed_text == "When did they visit their sister?"
    assert question.stems == ("visit", "sister")
    assert question.named == ("Robin", "Quinn Jones")
    assert question.cues.wants_time


@pytest.mark.parametrize(
    ("text", "embedded", "named"),
    [
        ("ROBIN?", "they?", ("Robin",)),
        ("Did Quinn Jones call?", "Did they call?", ("Quinn Jones",)),
        ("Sam O'Neil\u2019s dog", "their dog", ("Sam O'Neil",)),
        ("Robins are flowers", "Robins are flowers", ()),
        ("what does the user like", "what does the they like", ("User",)),
        ("李明喜欢什么茶", "they喜欢什么茶", ("李明",)),
        ("李明和李明喜欢什么", "they和they喜欢什么", ("李明",)),
        ("李明李明", "theythey", ("李明",)),
        ("Robin and Robin", "they and they", ("Robin",)),
        ("nobody", "nobody", ()),
    ],
)
def test_a_name_is_found_as_whole_words(text: str, embedded: str, named: tuple[str, ...]) -> None:
    question = asked(text)

    assert (question.embed_text, question.named) == (embedded, named)


@pytest.mark.parametrize(
    ("text", "actor", "embedded"),
    [
        ("Where is James' car?", "James", "Where is their car?"),
        ("Where is James's car?", "James", "Where is their car?"),
        ("the Joneses' house", "Joneses", "the their house"),
        ("They said 'Robin' twice", "Robin", "They said 'they' twice"),
    ],
)
def test_the_apostrophe_after_an_s_is_that_of_an_owner(
    text: str, actor: str, embedded: str
) -> None:
    assert query_of(text, actors=(actor,), terms_max=9).embed_text == embedded


def test_of_two_names_at_one_place_the_longer_is_meant() -> None:
    question = query_of("李明华在哪", actors=("李明", "李明华"), terms_max=9)

    assert (question.embed_text, question.named) == ("they在哪", ("李明华",))


def test_the_words_between_names_stay() -> None:
    assert asked("Which tea did Robin give Quinn at lunch?").stems == ("tea", "give", "lunch")


def test_a_first_name_that_two_share_names_neither() -> None:
    question = query_of("What does Sam like?", actors=("Sam Lee", "Sam Roe"), terms_max=9)

    assert question.named == ()
    assert question.stems == ("sam", "like")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("When will the trip start?", ()),
        ("Will they come in may?", ()),
        ("What did Will say?", ("Will",)),
        ("what is will's plan?", ("Will",)),
        ("What did May say?", ("May",)),
        ("Did May call?", ("May",)),
        ("May they call?", ()),
    ],
)
def test_an_everyday_word_is_a_name_only_where_it_is_written_as_one(
    text: str, named: tuple[str, ...]
) -> None:
    question = query_of(text, actors=("Will", "May"), terms_max=9)

    assert question.named == named


def test_a_longer_name_may_begin_with_an_everyday_word() -> None:
    question = query_of("when will will smith call?", actors=("Will Smith",), terms_max=9)

    assert question.embed_text == "when will they call?"
    assert question.named == ("Will Smith",)


def test_a_name_that_is_a_month_gives_no_date() -> None:
    question = query_of("When did April go?", actors=("April",), terms_max=9)

    assert question.named == ("April",)
    assert question.cues.dates == ()


def test_titles_and_numbers_are_no_first_names() -> None:
    question = query_of("Which dr saw 42 users?", actors=("Dr Roe", "42"), terms_max=9)

    assert question.named == ()


def test_words_stay_when_only_a_name_is_asked() -> None:
    assert asked("Who is Robin?").stems == ("robin",)


def test_the_longest_words_are_kept_when_there_are_too_many() -> None:
    question = asked("red bicycle tea photograph", terms_max=2)

    assert question.stems == ("bicycl", "photograph")
    assert asked("red tea", terms_max=0).stems == ()


@pytest.mark.measured
def test_a_question_of_many_repeated_words_is_read_once_and_quickly() -> None:
    started = time.perf_counter()

    question = asked("green tea " * 29_000)

    assert question.stems == ("green", "tea")
    assert time.perf_counter() - started < SECONDS_MAX


@pytest.mark.measured
def test_a_text_of_very_many_words_takes_time_in_proportion() -> None:
    letters = str.maketrans("0123456789", "abcdefghij")
    words = (f"word{number % DISTINCT_WORDS}ing" for number in range(WORDS))
    text = " ".join(words).translate(letters)
    started = time.perf_counter()

    read = words_of(text)

    assert read.length == read.word_count == WORDS
    assert time.perf_counter() - started < SECONDS_MAX


@pytest.mark.parametrize("text", ["a" * 1_000_000, "'" * 1_000_000, "茶" * 100_000, " I" * 100_000])
def test_a_monotonous_text_takes_time_in_proportion(text: str) -> None:
    started = time.perf_counter()

    words_of(text)
    asked(text)

    assert time.perf_counter() - started < SECONDS_MAX


def test_one_endless_word_is_cut_alike_in_memory_and_question() -> None:
    endless = "x" * 100_000

    assert asked(endless).stems == words_of(endless).stems == ("x" * 128,)


def test_threads_stem_the_same_words_alike() -> None:
    words = [
        f"{root}{ending}" for root in ("walk", "talk", "plant") for ending in ("ed", "ing", "s")
    ]
    expected = [words_of(word).stems for word in words]
    wording._stem.cache_clear()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda at: words_of(words[at % len(words)]).stems, range(2_000)))

    assert all(stems == expected[at % len(words)] for at, stems in enumerate(found))


@given(st.text(max_size=300))
def test_a_text_is_read_alike_however_it_is_composed(text: str) -> None:
    forms = {words_of(unicodedata.normalize(form, text)).stems for form in ("NFC", "NFD")}

    assert forms == {words_of(text).stems}


@given(st.text(max_size=300))
def test_stems_survive_being_joined_and_split(text: str) -> None:
    words = words_of(text)

    assert tuple(words.text.split(" ")) == (words.stems or ("",))
    assert words.length == len(words.stems) <= words.word_count


@given(st.text(max_size=200))
def test_a_text_always_finds_itself(text: str) -> None:
    question = query_of(text, actors=(), terms_max=1_000)

    assert set(question.stems) == set(words_of(text).stems)
