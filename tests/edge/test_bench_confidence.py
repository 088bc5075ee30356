"""The confidence curve: what is counted where, and how own and foreign questions are weighed."""

from __future__ import annotations

import pytest

from mnemic import ConfidenceMap, CosineScale, ModelSignature
from mnemic.edge.cli.bench_confidence import Curve, Judged, Whose, curve_of, renamed, show_curve
from mnemic.settings import MemorySettings

KNOWN = ModelSignature("tea", "1", 8, scale=CosineScale(), confidence=ConfidenceMap())
UNKNOWN = ModelSignature("tea", "1", 8)
SETTINGS = MemorySettings()


def answers(whose: Whose, *confidences: float, other: bool = False) -> list[Judged]:
    return [
        Judged(
            whose=whose,
            confidence=one,
            low=one < 0.2,
            about_other=other,
            hits=round(10 * one),
        )
        for one in confidences
    ]


def test_each_kind_is_counted_by_itself() -> None:
    asked = [
        *answers(Whose.OWN, 0.9, 0.7, 0.0, 0.8),
        *answers(Whose.FOREIGN, 0.1, 0.0),
        *answers(Whose.ADVERSARIAL, 0.5, other=True),
    ]

    told = curve_of(Curve(judged=asked), SETTINGS, KNOWN)["asked"]

    assert told["own"] == {
        "questions": 4,
        "confidence": 0.6,
        "low_confidence": 0.25,
        "empty": 0.25,
        "hits": 6.0,
        "about_other_actor": 0.0,
    }
    assert told["foreign"]["low_confidence"] == 1.0
    assert told["foreign"]["empty"] == 0.5
    assert told["adversarial"]["about_other_actor"] == 1.0


def test_own_and_foreign_weigh_alike_in_a_bin() -> None:
    own = answers(Whose.OWN, *[0.95] * 3, *[0.65])
    foreign = answers(Whose.FOREIGN, *[0.65] * 10, *[0.05] * 30)

    curve = curve_of(Curve(judged=[*own, *foreign]), SETTINGS, KNOWN)

    against = curve["against"]["foreign"]
    bins = {one["from"]: one for one in against["bins"]}
    assert bins[0.6]["own"] == 1
    assert bins[0.6]["foreign"] == 10
    assert bins[0.6]["share_own"] == 0.5, "a quarter of each"
    assert (bins[0.9]["share_own"], bins[0.0]["share_own"]) == (1.0, 0.0)
    assert bins[0.3]["share_own"] is None
    # 3/8 and 3/8 of all are off by .05, a quarter by .15.
    assert list(curve["against"]) == ["foreign"]
    assert against["calibration_error"] == pytest.approx(0.75 * 0.05 + 0.25 * 0.15)


def test_a_confidence_of_one_is_in_the_last_bin() -> None:
    asked = [*answers(Whose.OWN, 1.0), *answers(Whose.RENAMED, 0.01)]

    against = curve_of(Curve(judged=asked), SETTINGS, KNOWN)["against"]

    bins = against["renamed"]["bins"]
    assert (bins[-1]["own"], bins[0]["foreign"]) == (1, 1)


def test_what_was_answered_with_nothing_at_all_is_no_score() -> None:
    nothing = Judged(whose=Whose.OWN, confidence=0.0, low=True, about_other=False, hits=0)

    curve = curve_of(Curve(judged=[nothing, *answers(Whose.FOREIGN, 0.1)]), SETTINGS, KNOWN)

    assert curve["asked"]["own"]["questions"] == 1
    assert curve["against"] == {}


def test_the_map_of_these_answers_is_told_beside_the_one_in_use() -> None:
    asked = [*answers(Whose.OWN, 0.6, 0.9, 0.2), *answers(Whose.FOREIGN, 0.1, 0.3, 0.5)]

    curve = curve_of(Curve(judged=asked, cosines=[0.0, 0.2]), SETTINGS, KNOWN)
    reversed_ = curve_of(
        Curve(judged=[*answers(Whose.OWN, 0.1), *answers(Whose.FOREIGN, 0.9)]), SETTINGS, KNOWN
    )

    score_of = ConfidenceMap().score_of
    fitted = ConfidenceMap.fitted(
        [score_of(one) for one in (0.6, 0.9, 0.2)], [score_of(one) for one in (0.1, 0.3, 0.5)]
    )
    assert fitted is not None
    assert curve["against"]["foreign"]["fitted"]["slope"] == pytest.approx(fitted.slope, abs=1e-4)
    assert curve["cosines"] == {"mean": 0.1, "deviation": 0.1}
    assert reversed_["against"]["foreign"]["fitted"] is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("When did Ann meet Annabel?", "When did Mira meet Tom?"),
        ("What is Ann's job?", "What is Mira's job?"),
        ("Is the annual fair on?", "Is the annual fair on?"),
        ("Did Mira see Ann?", "Did Mira see Mira?"),
        ("What did Cleo say?", "What did Cleo say?"),
    ],
)
def test_a_foreign_question_can_be_about_who_speaks_here(text: str, told: str) -> None:
    assert renamed(text, ("Ann", "Annabel", "Cleo"), ("Mira", "Tom")) == told


def test_nobody_is_renamed_where_nobody_speaks() -> None:
    assert renamed("Who is Ann?", (), ("Mira",)) == "Who is Ann?"


def test_a_model_without_a_map_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [*answers(Whose.OWN, 0.9), *answers(Whose.FOREIGN, 0.1)]
    own_map = {"confidence_slope": 3.0, "confidence_offset": 1.0}
    set_ = SETTINGS.model_copy(update={"embedding": SETTINGS.embedding.model_copy(update=own_map)})

    unknown = curve_of(Curve(judged=asked), SETTINGS, UNKNOWN)
    told = curve_of(Curve(judged=asked), set_, UNKNOWN)
    show_curve(unknown)

    assert unknown["map"] == {"slope": 10.9, "offset": 7.6, "known": False}
    assert told["map"] == {"slope": 3.0, "offset": 1.0, "known": True}
    assert "NO MAP OF ITS OWN" in capsys.readouterr().out
