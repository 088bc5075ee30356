"""`mnemic bench retrieval --ablate`: what is changed, and what counts as supported."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mnemic.edge.cli.bench_ablation import MEASURES, VARIANTS, Stage, document_of, staged, tried
from mnemic.edge.cli.bench_questions import Conversation, Question
from mnemic.edge.cli.bench_variants import ALONE, OFF, ON, VIEWS, Join, Lend, Variant
from mnemic.model.ranking_values import Weights
from mnemic.model.transcript import Utterance
from mnemic.testing import HashingEmbedder, a_turn

BASE = Variant(name="base")
_LENDING = tuple(one.lend for one in ON if one.lend is not Lend.NONE)
CELLO = (
    "My cello is from Cremona, and I play it every evening after dinner, all alone, until the "
    "neighbours below begin to knock at the ceiling."
)
TALK = (
    ("talk", "Mira", "Have you met Anna? She sails."),
    ("talk", "Tom", "Yes, she bought it last week."),
    ("talk", "Mira", CELLO),
    ("later", "Tom", "We moved to Tartu in May."),
    ("later", "Mira", "I keep bees on the roof."),
)
ASKED = (
    ("What does Mira keep on the roof?", 4, ("later", 1)),
    ("What did Anna buy?", 1, ("talk", 1)),
    ("What did nobody say?", 5, ("talk", 0)),
)


def a_conversation(name: str = "one") -> Conversation:
    said: list[Utterance] = []
    turns = {}
    seen: dict[str, int] = {}
    for number, (session, actor, text) in enumerate(TALK):
        turn = a_turn(
            text,
            actor=actor,
            external_id=str(number),
            occurred_at=datetime(2026, 3, 2, 9, number, tzinfo=UTC),
        )
        said.append(Utterance(session=session, turn=turn, line=number + 1))
        seen[session] = seen.get(session, -1) + 1
        turns[session, seen[session]] = said[-1]
    return Conversation(
        name=name,
        entries=tuple(said),
        turns=turns,
        questions=tuple(
            Question(text=text, category=category, evidence=frozenset({place}))
            for text, category, place in ASKED
        ),
        skipped=0,
    )


def a_stage() -> Stage:
    return Stage(HashingEmbedder(), a_conversation(), 64)


async def ranked(variant: Variant) -> list[float]:
    return [one["mrr"] for one in await a_stage().figures(variant)]


async def test_the_questions_that_have_an_answer_are_asked() -> None:
    stage = a_stage()

    figures = await stage.figures(BASE)

    assert stage.questions == len(figures) == 2
    assert set(figures[0]) == set(MEASURES)
    assert [one["r@10"] for one in figures] == [1.0, 1.0]
    assert figures[0]["mrr"] == 1.0


async def test_a_part_that_is_taken_away_counts_no_more() -> None:
    blind = Weights(
        cosine=0.0, nb=0.0, pair=0.0, actor=0.0, actor_rarity=0.0, question=0.0, name=0.0, when=0.0
    )

    first, _ = await ranked(BASE)
    without, _ = await ranked(Variant(name="blind", weights=blind))

    assert (first, without) == (1.0, 1.0), "of equals the newest comes first, which is the answer"
    _, second = await ranked(Variant(name="blind", weights=blind))
    assert second < 0.5


def test_names_are_lent_to_who_is_only_called_she() -> None:
    stage = a_stage()

    alone, lent, words = (
        [one.stems.split() for one in stage.candidates(lend)] for lend in (Lend.NONE, *_LENDING)
    )

    assert "anna" not in alone[1]
    assert "anna" in lent[1]
    assert "sail" not in lent[1], "no name"
    assert {"anna", "sail"} <= set(words[1])
    assert lent[2:] == alone[2:], "another session, or nobody is called she"
    assert "cello" not in words[3]


def test_views_stay_within_the_session() -> None:
    talk = [a_turn(text, actor=actor) for session, actor, text in TALK if session == "talk"]

    assert VIEWS[ALONE](talk, 1) == ("Tom: Yes, she bought it last week.",)
    assert VIEWS["with one before"](talk, 0) == VIEWS[ALONE](talk, 0)
    [window] = VIEWS["with two before"](talk, 2)
    assert window.split("\n") == [VIEWS[ALONE](talk, at)[0] for at in range(3)]
    assert VIEWS["short with two before"](talk, 2) == VIEWS[ALONE](talk, 2)
    assert VIEWS["short with two before"](talk, 1) == VIEWS["with one before"](talk, 1)
    assert VIEWS["short with two before"](talk, 0) == VIEWS[ALONE](talk, 0)
    assert VIEWS["with its question"](talk, 1) == VIEWS[ALONE](talk, 1)
    assert VIEWS["sentences"](talk, 0)[1:] == ("Mira: Have you met Anna?", "Mira: She sails.")
    assert VIEWS["told by name"](talk, 2)[0].startswith("Mira's cello is from Cremona, and Mira")


def test_an_answer_is_seen_with_its_question() -> None:
    talk = [a_turn("Where is it?", actor="Mira"), a_turn("In Graz.", actor="Tom")]

    assert VIEWS["with its question"](talk, 1) == ("Mira: Where is it?\nTom: In Graz.",)


@pytest.mark.parametrize("join", Join)
async def test_a_view_joined_with_itself_changes_nothing(join: Join) -> None:
    twice = {ALONE: 1.0, "copy": 1.0} if join is Join.MAX else {ALONE: 0.5, "copy": 0.5}
    VIEWS["copy"] = VIEWS[ALONE]

    try:
        plain = await a_stage().figures(BASE)
        joined = await a_stage().figures(Variant(name="twice", views=twice, join=join))
    finally:
        del VIEWS["copy"]

    assert joined == plain


async def test_supported_is_what_gains_on_each_half_and_loses_nowhere() -> None:
    halves = staged(
        [a_conversation(name) for name in ("c", "a", "b")], HashingEmbedder(), terms_max=64
    )
    base = dict.fromkeys(MEASURES, 0.5)
    better = {**base, "r@10": 0.51}
    figures = {
        "the score as it is": [base, base],
        "both": [better, {**better, "r@5": 0.498}],
        "one": [better, base],
        "dear": [better, {**better, "r@5": 0.49}],
    }

    document = document_of(halves, figures)

    assert [half["conversations"] for half in document["halves"]] == [["a", "b"], ["c"]]
    assert [half["questions"] for half in document["halves"]] == [4, 2]
    assert {name: one["supported"] for name, one in document["variants"].items()} == {
        "both": True,
        "one": False,
        "dear": False,
    }
    assert document["variants"]["dear"]["gains"][1]["r@5"] == -0.01


async def test_every_variant_can_be_tried() -> None:
    halves = staged([a_conversation()], HashingEmbedder(), terms_max=64)
    steps: list[int] = []

    figures = await tried(halves, VARIANTS, progress=steps.append)

    assert len(figures) == len(VARIANTS) == 1 + len(OFF) + len(ON), "two have one name"
    assert sum(steps) == len(VARIANTS)
    assert all(0.0 <= value <= 1.0 for [one] in figures.values() for value in one.values())


@pytest.mark.story
def test_the_ablation_is_told_as_one_document_and_as_a_table(bare: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("one", "two"):
        document: dict[str, Any] = {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": who, "dia_id": f"D1:{place}", "text": text}
                for place, (_, who, text) in enumerate(TALK, start=1)
            ],
            "qa": [{"question": ASKED[0][0], "category": 4, "evidence": ["D1:5"]}],
        }
        (folder / f"{name}.json").write_text(json.dumps(document))

    ended = bare("bench", "retrieval", "--data", str(folder), "--ablate", "--json")
    shown = bare("bench", "retrieval", "--data", str(folder / "one.json"), "--ablate")

    assert ended.code == 0, ended.err
    assert [half["mrr"] for half in ended.document["halves"]] == [1.0, 1.0]
    assert list(ended.document["variants"]) == [one.name for one in VARIANTS[1:]]
    assert (shown.code, shown.err) == (0, "")
    assert "Half A: 1 questions about one" in shown.out
    assert VARIANTS[-1].name in shown.out
    assert not (tmp_path / "data" / "postgres").exists()
