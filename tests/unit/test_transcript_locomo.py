"""Conversations in the form of the LoCoMo data set."""

import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mnemic.model.transcript import BadLine, Entry, Format, SessionInfo, Utterance, read

FIRST = {"speaker": "User", "dia_id": "D1:1", "text": "Good morning"}
SECOND = {"speaker": "Reviewer", "dia_id": "D1:2", "text": "And to you"}


def a_conversation(**changes: object) -> dict[str, object]:
    return {
        "speaker_a": "User",
        "speaker_b": "Reviewer",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [FIRST, SECOND],
    } | changes


def entries(value: object, *, name: str | None = None) -> list[Entry]:
    text = value if isinstance(value, str) else json.dumps(value, indent=1)
    return list(read(io.BytesIO(text.encode()), name=name, format=Format.LOCOMO))


def bad(found: list[Entry]) -> list[BadLine]:
    return [entry for entry in found if isinstance(entry, BadLine)]


def said(found: list[Entry]) -> list[str]:
    return [entry.turn.text for entry in found if isinstance(entry, Utterance)]


def test_a_conversation_is_read_turn_by_turn() -> None:
    picture = {**SECOND, "blip_caption": "a photo of a plan", "img_url": ["x"], "query": "plan"}

    info, first, second = entries(a_conversation(session_1=[FIRST, picture]))

    assert info == SessionInfo(
        name="session_1", started_at=datetime(2023, 5, 8, 13, 56, tzinfo=UTC), line=5
    )
    assert isinstance(first, Utterance)
    assert (first.session, first.line) == ("session_1", 6)
    assert first.turn.occurred_at == datetime(2023, 5, 8, 13, 56, 0, tzinfo=UTC)
    assert (first.turn.actor, first.turn.role, first.turn.external_id) == ("User", "user", "D1:1")
    assert first.turn.caption is None
    assert isinstance(second, Utterance)
    assert second.turn.occurred_at == datetime(2023, 5, 8, 13, 56, 1, tzinfo=UTC)
    assert (second.turn.actor, second.turn.role) == ("Reviewer", "user")
    assert second.turn.caption == "a photo of a plan"


def test_sessions_come_in_the_order_of_their_numbers() -> None:
    value = {
        f"session_{number}{part}": content
        for number in (10, 2, 1, 9)
        for part, content in (
            ("", [{**FIRST, "text": f"number {number}", "dia_id": f"D{number}:1"}]),
            ("_date_time", "1:00 am on 1 May, 2023"),
        )
    }

    assert said(entries(value)) == ["number 1", "number 2", "number 9", "number 10"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("12:00 am on 1 January, 2023", datetime(2023, 1, 1, 0, 0, tzinfo=UTC)),
        ("12:30 pm on 29 February, 2024", datetime(2024, 2, 29, 12, 30, tzinfo=UTC)),
        ("11:59 PM on 31 December, 2022", datetime(2022, 12, 31, 23, 59, tzinfo=UTC)),
        ("1:05 am on 9 July, 2023", datetime(2023, 7, 9, 1, 5, tzinfo=UTC)),
    ],
)
def test_its_clock_is_read(written: str, meant: datetime) -> None:
    info, *_ = entries(a_conversation(session_1_date_time=written))

    assert isinstance(info, SessionInfo)
    assert info.started_at == meant


NO_CLOCK = "is not a time like 1:56 pm on 8 May, 2023; correct it"


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("13:00 pm on 1 May, 2023", NO_CLOCK),
        ("0:30 am on 1 May, 2023", NO_CLOCK),
        ("1:60 pm on 1 May, 2023", "is no time (…); correct it"),
        ("1:00 pm on 30 February, 2023", "is no time (…); correct it"),
        ("1:00 pm on 1 Mai, 2023", NO_CLOCK),
        ("1:00 pm on 1 May, 0000", "is no time (…); correct it"),
        ("1:00 pm on 1 May, 0001", "the year must lie between 2 and 9989"),
        ("2023-05-01T13:00:00Z", NO_CLOCK),
        ("", NO_CLOCK),
        (7, NO_CLOCK),
        (True, NO_CLOCK),
        (None, "is missing; give it as 1:56 pm on 8 May, 2023"),
    ],
)
def test_a_session_without_a_time_is_left_out_and_told(written: object, reason: str) -> None:
    later = {"session_2_date_time": "1:00 pm on 9 May, 2023", "session_2": [FIRST]}

    found = entries(a_conversation(session_1_date_time=written, **later))

    [line] = bad(found)
    assert line.number == 5
    # In brackets stand Python's own words, which are not the same in every release.
    assert re.sub(r" \(.*\)", " (…)", line.reason) == (
        f"session_1_date_time: {reason}. 2 turns are left out"
    )
    assert said(found) == ["Good morning"]


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        ("hello", "turn: must be an object with speaker and text"),
        (None, "turn: must be an object with speaker and text"),
        ({"speaker": "User"}, "text: is missing; give it"),
        ({"text": "x"}, "speaker: is missing; give it"),
        ({**SECOND, "text": " "}, "text: must not be blank; give it visible text"),
        ({**SECOND, "text": "a\x00"}, "text: must not hold a NUL character; remove it"),
        (
            {**SECOND, "text": "x" * 100_001},
            "text: is 100001 characters long; the most is 100000. Split it",
        ),
        ({**SECOND, "speaker": []}, "speaker: must be text, not list"),
        ({**SECOND, "dia_id": 3.5}, "dia_id: must be text, not float"),
        ({**SECOND, "dia_id": "D1:1"}, "dia_id: is that of another turn; make it unique"),
        ({**SECOND, "blip_caption": ""}, "blip_caption: must not be blank; give it visible text"),
    ],
)
def test_a_bad_turn_is_told_by_its_line_and_the_rest_is_kept(turn: object, reason: str) -> None:
    third = {**FIRST, "dia_id": "D1:3", "text": "Third"}
    turns = ",\n".join(json.dumps(item) for item in (FIRST, turn, third))
    text = f'{{"session_1_date_time": "1:56 pm on 8 May, 2023",\n"session_1": [\n{turns}]}}'

    found = entries(text)

    assert bad(found) == [BadLine(4, reason)]
    assert said(found) == ["Good morning", "Third"]
    last = found[-1]
    assert isinstance(last, Utterance)
    assert last.turn.occurred_at.second == 2  # the bad turn keeps its second


def test_what_is_passed_over_may_hold_what_no_memory_can() -> None:
    text = json.dumps(a_conversation(), indent=1).replace("Good morning", "Good\tmorning")
    numbers = text.replace("{", '\n{"qa": [' + "9" * 5_000 + ", NaN],", 1)

    assert said(entries(numbers)) == ["Good\tmorning", "And to you"]
    assert [entry.line for entry in entries(numbers)] == [6, 7, 12]


def test_a_key_given_twice_in_a_turn_is_refused() -> None:
    text = (
        '{"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": '
        '[{"speaker": "User", "text": "yes", "text": "no"}]}'
    )

    found = entries(text)

    assert bad(found) == [BadLine(1, "turn: holds a key twice; keep one")]
    assert said(found) == []


def test_a_document_that_breaks_off_is_kept_so_far() -> None:
    whole = json.dumps(a_conversation(), indent=1)
    broken = whole[: whole.index("And to you")]

    found = entries(broken)

    assert said(found) == ["Good morning"]
    assert [line.number for line in bad(found)] == [14]
    assert "is not JSON from here on" in bad(found)[0].reason


def test_a_list_of_samples_keeps_their_sessions_apart() -> None:
    samples = [
        {"qa": [{"question": "?"}], "conversation": a_conversation(), "sample_id": "conv-1"},
        {"conversation": a_conversation()},
    ]

    found = entries(samples, name="file")

    assert [entry.name for entry in found if isinstance(entry, SessionInfo)] == [
        "conv-1/session_1",
        "file-2/session_1",
    ]
    assert [entry.name for entry in entries(samples) if isinstance(entry, SessionInfo)] == [
        "conv-1/session_1",
        "conversation-2/session_1",
    ]
    assert len(said(found)) == 4


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (" ", "must not be blank; give it visible text"),
        ("x" * 501, "is 501 characters long; the most is 500. Split it"),
        (["a"], "must be text, not list"),
    ],
)
def test_a_bad_name_of_a_sample_is_told_and_that_of_the_file_serves(
    given: object, reason: str
) -> None:
    found = entries({"sample_id": given, **a_conversation()}, name="file")

    assert bad(found) == [BadLine(2, f"sample_id: {reason}")]
    assert isinstance(found[1], SessionInfo)
    assert found[1].name == "file/session_1"


def test_two_files_do_not_share_a_session(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(json.dumps(a_conversation()))

    names = {
        entry.session
        for name in ("one", "two")
        for entry in read(tmp_path / f"{name}.json")
        if isinstance(entry, Utterance)
    }

    assert names == {"one/session_1", "two/session_1"}


def test_a_turn_without_an_id_gets_the_same_one_each_time() -> None:
    bare = {"speaker": "User", "text": "Good morning"}
    value = a_conversation(session_1=[bare, bare])

    first, second = entries(value), entries(value)

    assert first == second
    found = [entry.turn.external_id for entry in first if isinstance(entry, Utterance)]
    assert len(set(found)) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "file: is not JSON from here on ({ was expected); correct it"),
        ('{"conversation":' * 5_000, "file: is nested too deeply; flatten it"),
        ('{"session_1": 5}', "session_1: must be one list of turns; correct it"),
        (
            '{"session_1": [], "session_1": []}',
            "session_1: must be one list of turns; correct it",
        ),
        ("[1]", "file: is not JSON from here on ({ was expected); correct it"),
        ('{"qa": [{}', "file: is not JSON from here on (a value was expected); correct it"),
        ('{"session_1": ', "file: is not JSON from here on (a value was expected); correct it"),
        (
            "{'session_1': []}",
            "file: is not JSON from here on (a key in quotes was expected); correct it",
        ),
        ('{"session_1" []}', "file: is not JSON from here on (: was expected); correct it"),
        ('{"session_1": []', "file: is not JSON from here on (, was expected); correct it"),
        (
            '{"session_1": []} trailing',
            "file: is not JSON from here on (the end was expected); correct it",
        ),
        ("", "file: is not JSON from here on ({ was expected); correct it"),
        ('{"sample_id": ""}', "sample_id: must not be blank; give it visible text"),
    ],
)
def test_no_document_raises(text: str, reason: str) -> None:
    found = entries(text)

    assert bad(found) == [BadLine(1, reason)]
    assert said(found) == []
