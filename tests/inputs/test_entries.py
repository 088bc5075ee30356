"""An entry of a transcript that cannot be held is a problem of the report; the others are kept."""

from __future__ import annotations

from typing import Any

import pytest
from hostile.values import HUGE

from mnemic import Scope
from mnemic.model.transcript import BadLine, SessionInfo, StatedFact, Utterance
from mnemic.testing import a_fact, a_turn
from oracles.stage import Stage


def said(**given: Any) -> Utterance:
    return Utterance(**{"session": "s", "turn": a_turn(external_id="e"), "line": 7, **given})


def stated(**given: Any) -> StatedFact:
    return StatedFact(**{"fact": a_fact(), "external_id": "f", "line": 7, **given})


def told(**given: Any) -> SessionInfo:
    return SessionInfo(**{"name": "s", "line": 7, **given})


NAMES = [None, 5, "", "\u200b", "a\x00", "\ud800", {}, ["a"], HUGE, "x" * 10_241]
CASES = [
    *((said(session=name), "session") for name in NAMES),
    *((said(project=name), "project") for name in NAMES[1:]),
    *((told(name=name), "session") for name in NAMES),
    *((told(project=name), "project") for name in NAMES[1:]),
    *((stated(session=name), "session") for name in NAMES[1:]),
    *((stated(external_id=name), "external_id") for name in NAMES),
    *((told(outcome=one), "outcome") for one in ("splendid", 5, HUGE, [])),
    *((said(turn=one), "turns") for one in (None, {}, "x", HUGE)),
    (said(turn=a_turn("a\x00b")), "text"),
    (said(turn=a_turn(metadata={"k": HUGE})), "metadata.k"),
    *((stated(fact=one), "fact") for one in (None, {}, "x")),
    (stated(fact=a_fact(object="\ud800")), "object"),
    (stated(fact=a_fact(confidence=HUGE)), "confidence"),
    (BadLine(7, "line: is not JSON; write one object on one line"), "line"),
    *((one, "entries") for one in (None, {}, "x", HUGE)),
]


@pytest.mark.parametrize("place", range(len(CASES)), ids=lambda place: f"{place}-{CASES[place][1]}")
async def test_one_bad_entry_is_named_and_costs_no_other(
    stage: Stage, scope: Scope, place: int
) -> None:
    bad, field = CASES[place]
    good = [said(session="good", turn=a_turn(f"Line {at}", external_id=str(at))) for at in (1, 2)]

    report = await stage.memory.transcripts.ingest([good[0], bad, good[1]], scope=scope)

    [problem] = report.problems
    assert problem.reason.startswith(f"{field}: ")
    assert problem.line in {7, None}
    assert [(one.name, one.turns_added) for one in report.sessions] == [("good", 2)]
    assert (report.facts_added, report.problem_count) == (0, 1)
