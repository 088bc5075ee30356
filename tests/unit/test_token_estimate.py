"""The estimate of tokens, by the rule that its docstring states: pieces by script, times 1.3."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.model.token_count import EstimatedTokens


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", 0),
        ("a", 1),
        ("abcdefgh", 1),
        ("abcdefghi", 3),
        ("AbCdEfGhIjKlM", 4),
        ("x" * 64, 16),
        ("x" * 65, 44),
        ("one two", 2),
        ("one  two", 3),
        ("one\ntwo", 3),
        ("\t", 1),
        ("123", 1),
        ("1234", 2),
        ("1234567", 3),
        ("при", 1),
        ("привет!", 3),
        ("приветы", 3),
        ("\u0391\u0392\u0393\u0394", 2),
        ("a1ж", 3),
        ("مرحبا", 5),
        ("\u0e01\u0e02", 4),
        ("née", 3),
        ("東京都", 3),
        ("한국", 2),
        ("豈", 1),
        ("𠀀", 3),
        ("a, b.", 4),
        ("_", 1),
        ("»", 1),
        ("ÿ", 1),
        ("\u2013", 1),
        ("\u2203", 2),
        ("\u0e00", 2),
        ("\u1dff", 2),
        ("\u202f", 1),
        ("\u2030", 2),
        ("\u2e7f", 2),
        ("\u2e80", 1),
        ("\uffff", 1),
        ("🍕", 3),
        ("🍕🍕", 6),
        ("aGVsbG8gd29ybGQ", 5),
        ("aGVsbG8gd29ybGQh", 9),
        ("aaaaaaaaaaaaaaaaaa12", 6),
        ("Aaaaaaaaaaaaaaaaaa1x" * 2, 23),
    ],
)
def test_a_text_costs_its_pieces(text: str, pieces: int) -> None:
    assert EstimatedTokens().count(text) == math.ceil(pieces * 1.3)


@given(st.text(max_size=40), st.text(max_size=40))
def test_two_texts_cost_no_less_than_either(one: str, other: str) -> None:
    counter = EstimatedTokens()

    together = counter.count(f"{one}\n{other}")

    assert together >= max(counter.count(one), counter.count(other)) >= 0


def test_long_words_of_a_text_are_not_free() -> None:
    assert EstimatedTokens().count("x" * 6_000) == 5_200
    assert EstimatedTokens().count("文" * 1_000) == 1_300


@given(st.text("aA1 +\n\u0436\u6587", max_size=60), st.text("aA1 +\n\u0436\u6587", max_size=20))
def test_more_text_never_costs_less(text: str, more: str) -> None:
    assert EstimatedTokens().count(text + more) >= EstimatedTokens().count(text)
