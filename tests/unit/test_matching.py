"""Which words of a question full text is asked for."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from mnemic.model.matching import Matching, match_stems
from mnemic.store.wording import match_text

FREQUENCIES = {"rare": 3, "some": 40, "common": 90_000, "usual": 80_000}
matched = partial(match_stems, frequencies=FREQUENCIES, documents=100_000, turns=100_000, wanted=30)


def test_the_rarest_words_are_matched_within_the_budget() -> None:
    asked = ("common", "some", "rare", "absent", "rare")

    assert matched(asked, documents_max=50) == Matching(("absent", "rare", "some"))
    assert matched(("rare", "some"), documents_max=43) == Matching(("rare", "some"))
    assert matched(("rare", "some"), documents_max=42) == Matching(("rare",))
    assert matched((), documents_max=10) == Matching(())


def test_of_common_words_the_rarest_is_matched_with_any_of_the_others() -> None:
    asked = ("common", "usual", "absent")

    assert matched(asked, documents_max=700) == Matching(("absent", "usual"), ("common",))
    assert matched(("usual",), documents_max=700) == Matching(("usual",))
    assert matched(("usual", "common"), documents_max=80_000) == Matching(("usual",))


def test_the_others_are_not_asked_for_where_too_few_would_have_both() -> None:
    few = partial(matched, ("rare", "some"), documents_max=2)

    assert few() == Matching(("rare",))
    assert few(documents=120, turns=120, wanted=1) == Matching(("rare",), ("some",))
    assert few(documents=121, turns=121, wanted=1) == Matching(("rare",))
    assert few(documents=120, turns=119, wanted=1) == Matching(("rare",))
    assert few(documents=0, turns=0, wanted=1) == Matching(("rare",))


def test_no_more_than_all_are_expected_to_have_another_word() -> None:
    everywhere = partial(
        match_stems,
        ("a", "b", "c"),
        dict.fromkeys("abc", 10),
        documents=10,
        turns=10,
        documents_max=5,
    )

    assert everywhere(wanted=10) == Matching(("a",), ("b", "c"))
    assert everywhere(wanted=11) == Matching(("a",))


@given(
    st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.integers(-2, 2_000)),
    st.integers(0, 3_000),
    st.integers(10, 1_000),
)
def test_what_is_matched_stays_within_the_budget_or_is_the_rarest(
    frequencies: dict[str, int], documents: int, documents_max: int
) -> None:
    found = match_stems(
        tuple(frequencies),
        frequencies,
        documents=documents,
        turns=documents,
        documents_max=documents_max,
        wanted=30,
    )

    occurring = [stem for stem in found.stems if frequencies[stem] > 0]
    total = sum(frequencies[stem] for stem in occurring)
    assert total <= documents_max or len(occurring) == 1
    assert bool(occurring) == any(df > 0 for df in frequencies.values())
    assert not set(found.stems) & set(found.beside)
    assert total > documents_max or not found.beside


def test_both_groups_are_asked_for_in_one_query() -> None:
    assert match_text(Matching(("jon", "x"), ("dance", "make"))) == (
        "('jon' | 'x') & ('dance' | 'make')"
    )
    assert match_text(Matching(("jon",))) == "'jon'"
    assert match_text(Matching(())) is None
    assert match_text(Matching(("jon",), ("\x00",))) == "'jon'"
