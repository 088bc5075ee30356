"""What may be held at all: each refusal names the field and the remedy, what is held comes back."""

from __future__ import annotations

import math
import random
from collections import OrderedDict
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from typing import Any

import pytest

from mnemic.errors import EmbedderUnavailable, InvalidInput, NaiveTimestamp
from mnemic.model.characters import is_blank, without_invisible
from mnemic.model.embedding import CosineScale, checked_vector, cosine
from mnemic.model.normalise import (
    checked_json,
    checked_time,
    checked_unit,
    clean_name,
    clean_text,
    comparison_key,
    digest,
    held_text,
    shown,
)
from mnemic.service.parsing import checked_limit

DEEPEST: Any = []
for _ in range(31):
    DEEPEST = [DEEPEST]


def told(call: Any) -> tuple[str | None, str]:
    """The field of a refusal, and what it says."""
    with pytest.raises(InvalidInput) as caught:
        call()
    return caught.value.field, str(caught.value)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (7, "must be text, not int"),
        ("a\x00b", "must not hold a NUL character; remove it"),
        ("ab\ud800c", "holds a lone surrogate at character 2; remove it"),
    ],
)
def test_a_text_that_no_database_holds_is_refused(value: Any, word: str) -> None:
    assert told(lambda: held_text(value, field="note")) == ("note", f"note: {word}")
    assert told(lambda: clean_text(value, field="note", chars_max=9)) == ("note", f"note: {word}")


class _Posing(str):
    """A text that is shown as another: what is kept by its `repr` would be confused by it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'red'"


class _Numbered(int):
    def __repr__(self) -> str:
        return "1"


def test_of_a_text_or_a_number_of_a_class_of_its_own_the_plain_one_is_kept() -> None:
    text, limit = _Posing("blue"), _Numbered(3)

    assert repr(held_text(text, field="note")) == "'blue'"
    assert repr(clean_text(text, field="note", chars_max=9)) == "'blue'"
    assert repr(checked_limit(limit, largest=9)) == "(3, False)"


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("", "must not be blank; give it visible text"),
        (" \u200b\u2800\n", "must not be blank; give it visible text"),
        ("abcdef", "is 6 characters long; the most is 5. Split it"),
    ],
)
def test_a_blank_or_long_text_is_refused(value: str, word: str) -> None:
    assert told(lambda: clean_text(value, field="note", chars_max=5)) == ("note", f"note: {word}")


@pytest.mark.parametrize("before", ["", "a"])
def test_a_text_holds_at_most_30_combining_marks_in_a_row(before: str) -> None:
    marked = before + "\u0301" * 30

    assert held_text(f"{marked}b{marked}", field="note") == f"{marked}b{marked}"
    place = f"at character {len(marked)}"
    assert told(lambda: held_text(f"{marked}\u0301", field="note")) == (
        "note",
        f"note: holds more than 30 combining marks in a row {place}; remove some",
    )


def test_a_text_is_kept_as_it_is_given() -> None:
    assert clean_text(" a\tb ", field="note", chars_max=5) == " a\tb "


def test_a_name_stands_on_one_line_and_has_at_most_500_characters() -> None:
    assert clean_name(" a \n\t b ", field="name") == "a b"
    assert clean_name("x" * 500, field="name") == "x" * 500
    assert told(lambda: clean_name("x" * 501, field="name")) == (
        "name",
        "name: is 501 characters long; the most is 500. Split it",
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("ＡＢＣ", "abc"),  # noqa: RUF001 - full-width letters are what is compared
        ("a\u200bb", "ab"),
        ("a \u00a0 b", "a b"),
        ("ﬁx", "fix"),
        ("\u0130", "i\u0307"),
    ],
)
def test_two_spellings_have_one_key(one: str, other: str) -> None:
    assert comparison_key(one) == comparison_key(other)


def test_a_key_has_at_most_512_bytes_and_long_ones_do_not_meet() -> None:
    just, longer, other = "x" * 512, "x" * 513, f"{'x' * 512}y"

    keys = [comparison_key(one) for one in (just, longer, other)]

    assert keys[0] == just
    assert len(set(keys)) == 3
    for key in keys[1:]:
        assert key[:473] == f"{'x' * 472}…"
        assert len(key) == 472 + 1 + 32


def test_a_long_key_is_cut_between_characters() -> None:
    assert comparison_key("é" * 300)[:237] == f"{'é' * 236}…"
    assert comparison_key(f"x{'é' * 300}")[:237] == f"x{'é' * 235}…"


def test_a_digest_is_of_the_parts_and_their_lengths() -> None:
    raw = b"\0" * 7 + b"\1a" + b"\0" * 7 + b"\2bc"

    assert digest("a", "bc") == sha256(raw).digest()
    assert digest("ab", "c") != digest("a", "bc")


@pytest.mark.parametrize("year", [2, 9_989])
def test_an_instant_is_kept_in_utc(year: int) -> None:
    there = datetime(year, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))

    assert checked_time(there, field="at") == there
    assert checked_time(there, field="at").tzinfo is UTC


def test_an_instant_that_cannot_be_kept_is_refused() -> None:
    for year in (1, 9_990):
        assert told(lambda y=year: checked_time(datetime(y, 5, 1, tzinfo=UTC), field="at")) == (
            "at",
            "at: the year must lie between 2 and 9989",
        )
    assert told(lambda: checked_time("2026", field="at")) == (
        "at",
        "at: must be a datetime with a zone, not str",
    )
    with pytest.raises(NaiveTimestamp) as caught:
        checked_time(datetime(2026, 5, 1), field="at")  # noqa: DTZ001 - that is what is refused
    assert caught.value.field == "at"


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, 0.5])
def test_a_share_lies_between_nothing_and_all(value: float) -> None:
    kept = checked_unit(value, field="share")

    assert (kept, type(kept)) == (value, float)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (-0.001, "must be a number from 0 to 1, not -0.001"),
        (1.001, "must be a number from 0 to 1, not 1.001"),
        (2, "must be a number from 0 to 1, not 2"),
        (math.nan, "must be a number from 0 to 1, not nan"),
        (2**200, "must be a number from 0 to 1, not an integer of 201 bits"),
        (True, "must be a number from 0 to 1, not bool"),
        ("1", "must be a number from 0 to 1, not str"),
    ],
)
def test_what_is_no_share_is_refused(value: Any, word: str) -> None:
    assert told(lambda: checked_unit(value, field="share")) == ("share", f"share: {word}")


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        2**63 - 1,
        -(2**63),
        1.5,
        "text",
        [],
        {},
        {"a": [1, {"b": None}], "": "empty key"},
        DEEPEST,
        {"a": DEEPEST},
    ],
)
def test_what_json_holds_comes_back_equal(value: Any) -> None:
    kept = checked_json(value, field="data")

    assert kept == value
    assert type(kept) is type(value)


def test_any_mapping_becomes_an_object() -> None:
    assert checked_json(OrderedDict(b=1, a=[OrderedDict()]), field="data") == {"b": 1, "a": [{}]}


@pytest.mark.parametrize(
    ("value", "field", "word"),
    [
        (2**63, "data", "the integer is beyond 64 bits; pass it as text"),
        (-(2**63) - 1, "data", "the integer is beyond 64 bits; pass it as text"),
        (math.nan, "data", "nan is not a JSON number; pass null or text"),
        ([math.inf], "data[0]", "inf is not a JSON number; pass null or text"),
        ({"a": [1, "\x00"]}, "data.a[1]", "must not hold a NUL character; remove it"),
        ({"a": {"b": "\udfff"}}, "data.a.b", "holds a lone surrogate at character 0; remove it"),
        ({1: 2}, "data", "the key 1 is not text; pass text keys"),
        ({"a\x00": 2}, "data.'a\\x00'", "must not hold a NUL character; remove it"),
        ((1,), "data", "tuple is not a JSON value and would not come back; pass a list"),
        ({"a": {1}}, "data.a", "set is not a JSON value and would not come back; pass a list"),
        (b"x", "data", "bytes is not a JSON value and would not come back; pass a list"),
        (
            object(),
            "data",
            "object is not a JSON value and would not come back; pass text or an object",
        ),
        (
            {"a": {"b": DEEPEST}},
            f"data.a.b{'[0]' * 31}",
            "is nested deeper than 32 levels; flatten it",
        ),
        ([[DEEPEST]], f"data{'[0]' * 33}", "is nested deeper than 32 levels; flatten it"),
    ],
)
def test_what_json_does_not_hold_is_refused_by_its_path(value: Any, field: str, word: str) -> None:
    assert told(lambda: checked_json(value, field="data")) == (field, f"{field}: {word}")


def test_a_list_that_holds_itself_over_and_over_is_refused_in_the_end() -> None:
    doubled: list[Any] = [1]
    for _ in range(20):
        doubled = [doubled, doubled]

    field, word = told(lambda: checked_json(doubled, field="data"))

    assert field is not None
    assert word == f"{field}: holds more than 1000000 values; split it"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("short\n", "'short\\n'"),
        ("x" * 60, repr("x" * 60)),
        ("x" * 61, repr("x" * 60 + "…")),
        (2**128 - 1, str(2**128 - 1)),
        (2**128, "an integer of 129 bits"),
        (None, "None"),
        (0.5, "0.5"),
        (True, "True"),
        ([1], "a list"),
    ],
)
def test_a_value_is_shown_short_and_on_one_line(value: Any, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("mean", "deviation", "field", "word"),
    [
        (math.nan, 0.1, "mean", "must be a finite number"),
        (math.inf, 0.1, "mean", "must be a finite number"),
        (0.1, 0.0, "deviation", "must be a finite number above 0"),
        (0.1, -1.0, "deviation", "must be a finite number above 0"),
        (0.1, math.inf, "deviation", "must be a finite number above 0"),
    ],
)
def test_a_scale_that_is_none_is_refused(
    mean: float, deviation: float, field: str, word: str
) -> None:
    assert told(lambda: CosineScale(mean, deviation)) == (field, f"{field}: {word}")


def test_a_scale_of_nothing_is_refused() -> None:
    word = "cosines: needs finite cosines of some random pairs"

    assert told(lambda: CosineScale.of([])) == ("cosines", word)


def test_a_scaled_cosine_stays_one() -> None:
    narrow = CosineScale(0.5, 0.01)

    assert (narrow.apply(1.0), narrow.apply(-1.0)) == (1.0, -1.0)
    assert CosineScale(0.094, 0.2).apply(0.294) == pytest.approx(0.094 + 0.112)


def test_vectors_that_cannot_be_compared_say_their_lengths() -> None:
    short, long = (checked_vector([1.0] * n, dimensions=n) for n in (2, 3))

    with pytest.raises(Exception, match="vectors of 2 and 3 numbers cannot be compared") as caught:
        cosine(short, long)

    assert caught.value.context == {"lengths": (2, 3)}  # type: ignore[attr-defined] - ours has it


@pytest.mark.parametrize(
    "mark", ["", " ", "\u3000", "\u2028", "\x01", "\u061c", "\u0600", "\u115f", "\u2800", "\ufe0f"]
)
def test_a_text_of_what_nobody_sees_is_blank(mark: str) -> None:
    assert is_blank(mark * 2)
    assert not is_blank(f"{mark}x{mark}")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("plain", "plain"),
        ("a\u200bb\u2066c", "abc"),
        ("\U0001f3f4\U000e0067\U000e0062\U000e007f!", "\U0001f3f4\U000e0067\U000e0062\U000e007f!"),
        ("x\U000e0067\U000e0062\U000e007f", "x"),
    ],
)
def test_what_nobody_sees_is_left_out_but_for_the_tags_of_a_flag(text: str, left: str) -> None:
    assert without_invisible(text) == left


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (
            [1.0],
            (
                "a vector of 1 numbers came where the model is set to 2; "
                "set embedding.dimensions to what the model gives"
            ),
        ),
        (["x", 1.0], "a vector holds something that is not a number"),
        ([math.nan, 1.0], "a vector holds NaN or a number that is not finite"),
        ([1.7e308, 1.7e308], "a vector holds NaN or a number that is not finite"),
        ([0.0, 0.0], "a vector is zero; it has no direction"),
    ],
)
def test_a_vector_that_is_none_says_why(values: list[Any], word: str) -> None:
    with pytest.raises(EmbedderUnavailable) as caught:
        checked_vector(values, dimensions=2)

    assert str(caught.value) == word


def test_a_vector_has_a_direction_from_a_millionth_on() -> None:
    assert list(checked_vector([1e-6, 0.0], dimensions=2)) == [1.0, 0.0]
    with pytest.raises(EmbedderUnavailable, match="a vector is zero") as caught:
        checked_vector([9e-7, 0.0], dimensions=2)
    assert caught.value.context == {"norm": 9e-7}


def test_a_vector_that_was_checked_is_the_same_bytes_again_and_its_owners_own() -> None:
    numbers = random.Random(11)
    for _ in range(200):
        once = checked_vector([numbers.gauss(0, 3) for _ in range(384)], dimensions=384)
        again = checked_vector(once, dimensions=384)

        assert again.tobytes() == once.tobytes()
        assert again is not once


def test_rounding_takes_no_cosine_beyond_its_bounds() -> None:
    for number in range(1, 100):
        one = checked_vector([float(number), 1.0, 3.0], dimensions=3)
        other = checked_vector([-float(number), -1.0, -3.0], dimensions=3)

        assert -1.0 <= cosine(one, other) < -0.999999
        assert 0.999999 < cosine(one, one) <= 1.0
