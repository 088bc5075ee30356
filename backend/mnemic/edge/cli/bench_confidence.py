"""How sure recall is of questions that a memory answers, and of those about somebody else's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

from mnemic.edge.cli.writing import write_line
from mnemic.model.confidence import ConfidenceMap
from mnemic.model.retrieval_measures import mean
from mnemic.service.calibration import calibration_of

if TYPE_CHECKING:
    from mnemic.model.embedding import ModelSignature
    from mnemic.model.recall import Recall
    from mnemic.settings import MemorySettings

__all__ = ["LIMIT", "Curve", "Judged", "Whose", "curve_of", "judged", "renamed", "show_curve"]

LIMIT = 10
BINS = 10
_DIGITS = 4


class Whose(StrEnum):
    """Where a question comes from."""

    OWN = "own"
    """It is about the memory that is asked, which answers it."""
    ADVERSARIAL = "adversarial"
    """It is about that memory too, but about what was never said, or asks the wrong person."""
    FOREIGN = "foreign"
    """It is about another memory, and names whom nobody knows here."""
    RENAMED = "renamed"
    """The same, but of those who speak here: in place of each speaker it names one of these."""


STRANGERS = (Whose.FOREIGN, Whose.RENAMED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What an answer says of itself; `hits` is how many of it reach the floor."""

    whose: Whose
    confidence: float
    low: bool
    about_other: bool
    hits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Answers to questions of all kinds, and cosines of questions and memories at random."""

    judged: Sequence[Judged]
    cosines: Sequence[float] = ()


def renamed(text: str, theirs: Sequence[str], ours: Sequence[str]) -> str:
    """The question with our speakers in place of theirs, each as a whole word, in their order."""
    names = dict(zip(theirs, ours, strict=False))
    if not names:
        return text
    longest = sorted(names, key=len, reverse=True)
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, longest))})\b")
    return pattern.sub(lambda found: names[found[0]], text)


def judged(found: Recall, whose: Whose, *, floor: float) -> Judged:
    """A recall of at most `LIMIT` hits with floor 0, looked at as if the floor had been there."""
    scores = [hit.score for hit in found.hits]
    return Judged(
        whose=whose,
        confidence=found.confidence,
        low=found.low_confidence,
        about_other=found.about_other_actor,
        hits=sum(score >= floor for score in scores),
    )


def curve_of(curve: Curve, settings: MemorySettings, signature: ModelSignature) -> dict[str, Any]:
    """The figures; shares from 0 to 1. Own answers and those of another kind weigh alike."""
    by_kind = {
        whose: [one for one in curve.judged if one.whose is whose and one.confidence > 0.0]
        for whose in Whose
    }
    known = calibration_of(settings.embedding, signature)
    return {
        "model": signature.name,
        "map": {**_map(known.confidence), "known": not known.notes},
        "asked": {
            whose.value: _asked([one for one in curve.judged if one.whose is whose])
            for whose in Whose
        },
        "against": {
            other.value: _against(known.confidence, by_kind[Whose.OWN], by_kind[other])
            for other in STRANGERS
            if by_kind[Whose.OWN] and by_kind[other]
        },
        "cosines": (
            {"mean": _rounded(fmean(curve.cosines)), "deviation": _rounded(pstdev(curve.cosines))}
            if curve.cosines
            else None
        ),
    }


def _asked(answers: Sequence[Judged]) -> dict[str, Any]:
    return {
        "questions": len(answers),
        "confidence": _rounded(mean(one.confidence for one in answers)),
        "low_confidence": _rounded(mean(one.low for one in answers)),
        "empty": _rounded(mean(one.hits == 0 for one in answers)),
        "hits": _rounded(mean(one.hits for one in answers)),
        "about_other_actor": _rounded(mean(one.about_other for one in answers)),
    }


def _against(
    used: ConfidenceMap, own: Sequence[Judged], foreign: Sequence[Judged]
) -> dict[str, Any]:
    """Whether a confidence is the share of own ones among answers that are as sure."""
    bins = _bins(own, foreign)
    fitted = ConfidenceMap.fitted(
        [used.score_of(one.confidence) for one in own],
        [used.score_of(one.confidence) for one in foreign],
    )
    return {
        "bins": bins,
        "calibration_error": _error(bins, len(own), len(foreign)),
        "fitted": _map(fitted) if fitted is not None else None,
    }


def _bins(own: Sequence[Judged], foreign: Sequence[Judged]) -> list[dict[str, Any]]:
    """Answers by their confidence, in tenths, and the share of own ones among them."""
    bins = []
    for place in range(BINS):
        inside = [
            [one for one in answers if min(int(one.confidence * BINS), BINS - 1) == place]
            for answers in (own, foreign)
        ]
        shares = [
            len(found) / len(of_all) if of_all else 0.0
            for found, of_all in zip(inside, (own, foreign), strict=True)
        ]
        together = [one.confidence for answers in inside for one in answers]
        bins.append(
            {
                "from": place / BINS,
                "to": (place + 1) / BINS,
                "own": len(inside[0]),
                "foreign": len(inside[1]),
                "confidence": _rounded(mean(together)) if together else None,
                "share_own": _rounded(shares[0] / sum(shares)) if sum(shares) else None,
            }
        )
    return bins


def _error(bins: Sequence[dict[str, Any]], own: int, foreign: int) -> float:
    """Expected calibration error (Naeini et al., 2015), own and foreign weighed alike."""
    return _rounded(
        sum(
            (one["own"] / own + one["foreign"] / foreign)
            / 2
            * abs(one["share_own"] - one["confidence"])
            for one in bins
            if one["share_own"] is not None
        )
    )


def _map(known: ConfidenceMap) -> dict[str, float]:
    return {"slope": _rounded(known.slope), "offset": _rounded(known.offset)}


def _rounded(value: float) -> float:
    return round(value, _DIGITS)


def show_curve(curve: dict[str, Any]) -> None:
    """The figures as tables; shares are in percent."""
    used = curve["map"]
    whose = "its own map" if used["known"] else "NO MAP OF ITS OWN, that of the default model"
    write_line(
        f"Confidence by {curve['model']}, {whose}: "
        f"sigmoid({used['slope']:g} * best score - {used['offset']:g})"
    )
    columns = ("questions", "low", "empty", "hits", "other actor", "confidence")
    write_line(f"{'':<13}{''.join(f'{name:>13}' for name in columns)}")
    for name, one in curve["asked"].items():
        if one["questions"]:
            write_line(
                f"{name:<13}{one['questions']:>13}{one['low_confidence'] * 100:>13.1f}"
                f"{one['empty'] * 100:>13.1f}{one['hits']:>13.1f}"
                f"{one['about_other_actor'] * 100:>13.1f}{one['confidence'] * 100:>13.1f}"
            )
    if not curve["against"]:
        write_line("No curve: it takes questions of two conversations, asked of each other.")
    for name, one in curve["against"].items():
        _show_against(name, one)
    if curve["cosines"] is not None:
        write_line(
            f"Cosines of questions and turns at random: mean {curve['cosines']['mean']:g}, "
            f"deviation {curve['cosines']['deviation']:g}."
        )


def _show_against(name: str, against: dict[str, Any]) -> None:
    write_line(f"{'confidence':<13}{'own':>13}{name:>13}{'share of own':>16}")
    for one in against["bins"]:
        share = "" if one["share_own"] is None else f"{one['share_own'] * 100:.1f}"
        span = f"{one['from']:.1f} to {one['to']:.1f}"
        write_line(f"{span:<13}{one['own']:>13}{one['foreign']:>13}{share:>16}")
    fitted = against["fitted"]
    told = f"slope {fitted['slope']:g}, offset {fitted['offset']:g}" if fitted else "no map"
    off = against["calibration_error"] * 100
    write_line(f"Off by {off:.1f} points on the whole; these answers would give {told}.")
