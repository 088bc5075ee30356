from __future__ import annotations

import pytest

from mnemic.embed.minilm import SIGNATURE
from mnemic.model.embedding import ModelSignature
from mnemic.model.scripts import is_mostly, scripts_in


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Where is the cafe?", ("Latin",)),
        ("Where is the café?", ("Latin",)),
        ("我用Python写代码", ("Latin", "Han")),
        ("猫が好きです", ("Kana", "Han")),
        ("고양이", ("Hangul",)),
        ("Где машина?", ("Cyrillic",)),
        ("أين المدرسة؟", ("Arabic",)),
        ("ฉันชอบ", ("Thai",)),
        ("123 ?!", ()),
        ("§ 5 — „…“", ()),
        ("", ()),
    ],
)
def test_the_scripts_of_a_text_are_named(text: str, names: tuple[str, ...]) -> None:
    assert scripts_in(text) == names


def test_the_scripts_of_a_model_are_no_part_of_its_signature() -> None:
    plain = ModelSignature(SIGNATURE.name, SIGNATURE.revision, SIGNATURE.dimensions)

    assert plain == SIGNATURE
    assert plain.key == SIGNATURE.key
    assert SIGNATURE.scripts == {"Latin"}


@pytest.mark.parametrize(
    ("text", "mostly"),
    [
        ("tea", True),
        ("123", True),
        ("§ 5", True),
        ("чай", False),
        ("чай tea", True),
        ("чай te", False),
        ("我用Py写代码", False),
    ],
)
def test_half_of_the_letters_decide_which_script_it_mostly_is(text: str, *, mostly: bool) -> None:
    assert is_mostly(text, {"Latin"}) is mostly


def test_of_several_scripts_each_letter_may_be_of_any() -> None:
    assert is_mostly("чай tea 茶茶茶茶茶茶", {"Latin", "Cyrillic"})
    assert not is_mostly("чай tea 茶茶茶茶茶茶", {"Latin"})
    assert not is_mostly("tea", {"Cyrillic"})
