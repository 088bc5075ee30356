"""`mnemic bench retrieval`: what it reads, and that its figures follow the answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mnemic.edge.cli.bench_questions import read_conversations
from mnemic.edge.cli.bench_retrieval import BUDGETS, RECIPES
from mnemic.errors import InvalidInput
from mnemic.model.transcript import Bounds

BOUNDS = Bounds(text_chars_max=10_000, metadata_bytes_max=1_000, tags_max=10)
TALK = (
    ("Mira", "I bought a second-hand cello last week."),
    ("Tom", "Great, my sister repairs violins in Graz."),
    ("Mira", "My first lesson is with Professor Adler."),
    ("Tom", "I planted six apple trees behind the barn."),
    ("Mira", "The weather has been dreadful all month."),
    ("Tom", "We still need somebody to feed the cat."),
)


def turns(session: int, talk: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    return [
        {"speaker": who, "dia_id": f"D{session}:{place}", "text": text}
        for place, (who, text) in enumerate(talk, start=1)
    ]


def a_conversation(**changed: Any) -> dict[str, Any]:
    return {
        "speaker_a": "Mira",
        "speaker_b": "Tom",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": turns(1, TALK[:3]),
        "session_2_date_time": "2:10 pm on 9 May, 2023",
        "session_2": turns(2, TALK[3:]),
        "qa": [
            {"question": "What did Mira buy?", "category": 4, "evidence": ["D1:1"]},
            {"question": "Who teaches Mira the cello?", "category": 1, "evidence": ["D1:1; D1:3"]},
            {"question": "What did Tom plant?", "category": 4, "evidence": ["D2:1", "D9:9"]},
            {"question": "What did Mira plant?", "category": 5, "evidence": ["D2:1"]},
            {"question": "Why?", "category": 3, "evidence": ["D", "D7:7"]},
        ],
        **changed,
    }


STRANGE = (
    ("Ines", "Our kiln cracked while firing the blue tiles."),
    ("Olaf", "The glaze came from a supplier in Porto."),
    ("Ines", "I ordered a new thermocouple yesterday."),
    ("Olaf", "My motorcycle needs another gearbox."),
)


def another_conversation() -> dict[str, Any]:
    return {
        "speaker_a": "Ines",
        "speaker_b": "Olaf",
        "session_1_date_time": "9:00 am on 3 March, 2023",
        "session_1": turns(1, STRANGE),
        "qa": [
            {"question": "What happened to the kiln?", "category": 4, "evidence": ["D1:1"]},
            {"question": "What does the motorcycle need?", "category": 4, "evidence": ["D1:4"]},
            {"question": "Where does the tortoise sleep?", "category": 5, "evidence": ["D1:2"]},
        ],
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    (made / "one.json").write_text(json.dumps(a_conversation()))
    return made


def test_evidence_is_read_where_it_exists(folder: Path) -> None:
    [one] = read_conversations(folder, bounds=BOUNDS)

    assert (one.name, len(one.turns), one.skipped) == ("one", 6, 1)
    assert [question.evidence for question in one.questions] == [
        {("one/session_1", 0)},
        {("one/session_1", 0), ("one/session_1", 2)},
        {("one/session_2", 0)},
        {("one/session_2", 0)},
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[1]", "holds no turn"),
        (json.dumps(a_conversation(qa={})), "a list `qa`"),
        (json.dumps(a_conversation(qa=[{"question": "Who?"}])), "question 1 must hold"),
        (
            json.dumps(
                a_conversation(qa=[{"question": "Who?", "category": 6, "evidence": ["D1:1"]}])
            ),
            "category",
        ),
    ],
)
def test_what_is_no_such_file_is_refused_by_its_name(folder: Path, text: str, told: str) -> None:
    (folder / "two.json").write_text(text)

    with pytest.raises(InvalidInput, match=told) as refused:
        list(read_conversations(folder, bounds=BOUNDS))

    assert str(folder / "two.json") in str(refused.value)
    assert refused.value.context["field"] == "--data"


def test_a_folder_without_files_is_refused(bare: Any, tmp_path: Path) -> None:
    empty = bare("bench", "retrieval", "--data", str(tmp_path), "--json")
    missing = bare("bench", "retrieval", "--data", str(tmp_path / "none"), "--json")

    assert (empty.code, missing.code) == (2, 2)
    assert "holds no .json file" in empty.document["error"]["message"]
    assert "cannot be read" in missing.document["error"]["message"]


@pytest.mark.story
def test_every_recipe_is_asked_and_its_answers_are_counted(bare: Any, folder: Path) -> None:
    ended = bare("bench", "retrieval", "--data", str(folder), "--json")
    (folder / "two.json").write_text(json.dumps(another_conversation()))
    both = bare("bench", "retrieval", "--data", str(folder))
    told = bare("bench", "retrieval", "--data", str(folder), "--json").document["confidence"]
    bare.environment |= {
        "MEM_RECALL__EXACT_SCAN_ROWS_MAX": "5",
        "MEM_RECALL__CANDIDATES_MAX": "5",
    }
    shown = bare("bench", "retrieval", "--data", str(folder / "one.json"), "--together")

    document = ended.document
    assert ended.code == 0, ended.err
    assert (document["questions"], document["skipped"]) == (3, 1)
    assert tuple(document["recipes"]) == RECIPES
    # Six turns in all: every one of them is among the first ten.
    assert {one["r@10"] for one in document["recipes"].values()} == {1.0}
    best = document["recipes"]["mnemic"]
    assert best["mrr"] == 1.0
    assert best["categories"]["multi-hop"]["questions"] == 1
    assert best["session_r@5"] == 1.0
    assert 0 < best["p50_ms"] <= best["p95_ms"]
    assert document["tokens"] == {str(size): 1.0 for size in BUDGETS}
    assert document["adversarial"]["questions"] == 1
    assert document["default_floor"]["r@10"] <= 1.0
    assert document["default_floor"]["costs_r@10"] == pytest.approx(
        best["r@10"] - document["default_floor"]["r@10"]
    )
    assert document["confidence"]["asked"]["foreign"]["questions"] == 0
    assert document["confidence"]["against"] == {}
    assert {name: one["questions"] for name, one in told["asked"].items()} == {
        "own": 5,
        "adversarial": 2,
        "foreign": 5,
        "renamed": 5,
    }
    assert told["map"] == {"slope": 10.9, "offset": 7.6, "known": True}
    assert told["asked"]["own"]["confidence"] > told["asked"]["foreign"]["confidence"] + 0.5
    assert told["asked"]["own"]["hits"] > told["asked"]["foreign"]["hits"]
    assert told["asked"]["foreign"]["empty"] == 1.0
    assert told["asked"]["own"]["empty"] < 0.5
    for against in told["against"].values():
        assert sum(one["own"] for one in against["bins"]) == 5
        assert sum(one["foreign"] for one in against["bins"]) == 5
    assert told["asked"]["renamed"]["confidence"] >= told["asked"]["foreign"]["confidence"]
    assert (both.code, both.err) == (0, "")
    assert "Confidence by all-MiniLM-L6-v2-int8, its own map" in both.out
    assert "No curve" not in both.out
    assert "No curve: it takes questions of two conversations" in shown.out
    assert (shown.code, shown.err) == (0, "")
    assert "3 questions about 1 conversations, 1 more without evidence" in shown.out
    assert document["routes"] == {"exact": 4, "hnsw": 0, "nearest_of_exact": None}
    assert "4 questions, 0 exactly; the index gave 100.0 % of the ten true nearest" in shown.out
