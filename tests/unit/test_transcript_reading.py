"""Telling formats apart, whatever the bytes; and reading in bounded memory and linear work."""

import io
import json
import sys
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import UnknownFormat
from mnemic.model.transcript import (
    BadLine,
    Bounds,
    Format,
    SessionInfo,
    StatedFact,
    Utterance,
    detect,
    read,
)
from mnemic.model.transcript.entry import bad_line
from mnemic.model.transcript.lines import Source, whole_text

EXAMPLES = Path(__file__).parents[2] / "examples"
TURN = '{"type": "turn", "session": "s", "actor": "User", "text": "x", "at": "2026-03-02T09:00Z"}'


@pytest.mark.parametrize(
    ("head", "format_"),
    [
        (TURN, Format.NDJSON),
        ('{"session": "s", "type": "session"}', Format.NDJSON),
        ("\ufeff\n " + TURN, Format.NDJSON),
        ('{"text": "the key \\"session_1\\": is quoted", "type": "turn"}', Format.NDJSON),
        ('{"type": "turn", "session_1": []}', Format.NDJSON),
        ("{broken", Format.NDJSON),
        ('{"speaker_a": "User"', Format.LOCOMO),
        ('{"observation": {}, "session_12": [', Format.LOCOMO),
        ('[\n {"qa": [', Format.LOCOMO),
        ("[]", Format.LOCOMO),
        ("User: hello", Format.PLAIN),
        ("\n\n# A session\nUser: hello", Format.PLAIN),
        ("--- 2026-03-02 09:00 ---\r\n", Format.PLAIN),
        ("User:\r\nhello\r\n", Format.PLAIN),
        ("[2026-03-02 09:00] User: hello", Format.PLAIN),
    ],
)
def test_a_format_is_told_by_its_first_bytes(head: str, format_: Format) -> None:
    assert detect(head.encode()) is format_


NO_FORM = (
    "is none of the forms that can be read: ndjson, locomo, plain; in plain text a turn is "
    "`Name: text`, the name with a capital"
)


@pytest.mark.parametrize(
    ("head", "remedy"),
    [
        (b"", "holds nothing to read"),
        (b" \n\t", "holds nothing to read"),
        (b"\x1f\x8b\x08\x00", "is compressed with gzip; unpack it first"),
        (b"PK\x03\x04", "is a zip archive; unpack it first"),
        ("User: x".encode("utf-16"), "is UTF-16; save it as UTF-8"),
        (b"a,b,c\n1,2,3\n", NO_FORM),
        (bytes(range(256)), NO_FORM),
    ],
)
def test_what_cannot_be_read_says_what_to_do(head: bytes, remedy: str) -> None:
    with pytest.raises(UnknownFormat) as refused:
        detect(head)

    assert str(refused.value) == f"file: {remedy}"
    assert list(read(io.BytesIO(head))) == [BadLine(1, f"file: {remedy}")]


def test_paths_binary_streams_and_text_streams_read_alike() -> None:
    path = EXAMPLES / "conversation.ndjson"

    from_path = list(read(path))
    from_bytes = list(read(io.BytesIO(path.read_bytes())))
    from_text = list(read(io.StringIO(path.read_text(encoding="utf-8"))))

    assert from_path == from_bytes == from_text


def test_a_path_is_read_in_the_format_and_within_the_bounds_that_are_given(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(TURN)

    assert list(read(path, format=Format.PLAIN)) == [
        BadLine(1, "line: is neither header nor turn; write it as User: text")
    ]
    path.write_text(TURN.replace('"x"', '"xyz"'))
    assert list(read(path, bounds=Bounds(text_chars_max=2))) == [
        BadLine(1, "text: is 3 characters long; the most is 2. Split it")
    ]


def test_a_file_without_an_entry_is_told_once() -> None:
    assert list(read(io.BytesIO(b"\n\n"), format=Format.NDJSON)) == [
        BadLine(1, "the file holds no turn and no fact; is it the right one?")
    ]


def test_a_path_is_told_by_its_content_and_not_by_its_name() -> None:
    found = [detect(EXAMPLES / name) for name in ("conversation.ndjson", "transcript.txt")]

    assert found == [Format.NDJSON, Format.PLAIN]


def test_a_document_beyond_the_bound_is_not_held() -> None:
    found = whole_text(Source(io.BytesIO(b"x" * 11)), bytes_max=10)

    assert found == BadLine(1, "file: is longer than 10 bytes; split it")


def test_a_key_longer_than_the_head_leaves_the_format_to_the_lines() -> None:
    head = '{"' + "k" * 100_000

    found = list(read(io.StringIO(head)))

    assert detect(head.encode()) is Format.NDJSON
    assert [type(entry) for entry in found] == [BadLine]


def test_a_file_that_is_not_there_is_the_callers_fault(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        next(read(tmp_path / "missing.ndjson"))


def test_the_example_conversation_is_whole() -> None:
    found = list(read(EXAMPLES / "conversation.ndjson"))
    questions = json.loads((EXAMPLES / "questions.json").read_text(encoding="utf-8"))

    turns = [entry for entry in found if isinstance(entry, Utterance)]
    named = {(turn.session, turn.turn.external_id) for turn in turns}
    assert not [entry for entry in found if isinstance(entry, BadLine)]
    assert len([entry for entry in found if isinstance(entry, SessionInfo)]) == 6
    assert len(turns) == len(named) == 85
    assert {turn.turn.actor for turn in turns} == {"User", "Assistant"}
    assert all(
        before.turn.occurred_at < after.turn.occurred_at for before, after in pairwise(turns)
    )
    assert len(questions) == 10
    assert {(q["session"], q["turn"]) for q in questions} <= named


def test_the_plain_example_is_the_start_of_the_conversation() -> None:
    ours, plain = (
        [
            (entry.session, entry.turn.actor, entry.turn.text, entry.turn.occurred_at)
            for entry in read(EXAMPLES / name)
            if isinstance(entry, Utterance)
        ]
        for name in ("conversation.ndjson", "transcript.txt")
    )

    assert len(plain) == 29
    assert plain == ours[:29]


PIECES = st.sampled_from(
    [
        *("{", "}", "[", "]", ":", ",", '"', "\\", "\n", "\r\n", "\x00", "\ufeff", "\ud800", " "),
        *("# s\n", "--- 2026-03-02 09:00 ---\n", "User: ", "[2026-03-02 09:00] ", "```"),
        *('"type":"turn"', '"session_1"', '"session_1_date_time"', '"conversation":', TURN),
        *("1:56 pm on 8 May, 2023", "NaN", "1e999", "密", "\u2028", "null", "\\ud800"),
    ]
)
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=30).map("".join)


@given(TEXTS, st.sampled_from([None, *Format]))
def test_no_text_raises_and_each_entry_has_its_line(text: str, format_: Format | None) -> None:
    lines = text.count("\n") + 1

    found = list(read(io.StringIO(text, newline=""), format=format_, name="file"))

    for entry in found:
        number = entry.number if isinstance(entry, BadLine) else entry.line
        assert 1 <= number <= lines
        if isinstance(entry, BadLine):
            assert entry.reason.isprintable()
        if isinstance(entry, Utterance):
            entry.turn.text.encode()
            assert entry.turn.occurred_at.utcoffset() is not None
            assert entry.turn.external_id
    assert found == list(read(io.StringIO(text, newline=""), format=format_, name="file"))


@given(st.binary(max_size=200), st.sampled_from([None, *Format]))
def test_no_bytes_raise(raw: bytes, format_: Format | None) -> None:
    found = list(read(io.BytesIO(raw), format=format_))

    assert all(isinstance(entry, BadLine | SessionInfo | Utterance | StatedFact) for entry in found)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*json.loads(TURN), "id", "role"]), JSON_VALUES))
def test_a_turn_of_any_values_is_kept_or_refused_with_a_reason(values: dict[str, object]) -> None:
    line = json.dumps(json.loads(TURN) | values | {"type": "turn"})

    (entry,) = read(io.StringIO(line), format=Format.NDJSON)

    assert isinstance(entry, Utterance) or (isinstance(entry, BadLine) and ": " in entry.reason)


def ndjson_of(turns: int) -> bytes:
    lines = (
        {
            "type": "turn",
            "session": "s",
            "actor": "User",
            "text": f"turn {number}",
            "at": f"2026-03-02T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z",
        }
        for number in range(turns)
    )
    return "\n".join(map(json.dumps, lines)).encode()


def plain_of(turns: int) -> bytes:
    lines = (f"User: turn {number}\n  more: of it\n" for number in range(turns))
    return ("# s [2026-03-02 09:00]\n" + "".join(lines)).encode()


def locomo_of(turns: int) -> bytes:
    said = [{"speaker": "User", "text": f"turn {n}", "dia_id": f"D1:{n}"} for n in range(turns)]
    value = {"session_1": said, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    return json.dumps(value, indent=1).encode()


def calls_of(work: Callable[[], object]) -> int:
    count = 0

    def counting(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.measured
@pytest.mark.parametrize("of", [ndjson_of, plain_of, locomo_of])
def test_twice_the_turns_are_twice_the_work(of: Callable[[int], bytes]) -> None:
    small, large = (io.BytesIO(of(turns)) for turns in (500, 1_000))

    first, second = calls_of(lambda: list(read(small))), calls_of(lambda: list(read(large)))

    assert 1.8 < second / first < 2.2


def peak_of(raw: bytes) -> int:
    stream = io.BytesIO(raw)
    tracemalloc.start()
    try:
        for entry in read(stream):
            assert isinstance(entry, SessionInfo | Utterance)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.measured
def test_memory_does_not_grow_with_the_turns_of_a_file() -> None:
    small, large = (peak_of(ndjson_of(turns)) for turns in (2_000, 4_000))

    assert large < small + 20_000


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", ""),
        (b"\xef\xbb\xbfone\ntwo\r\n", "one\ntwo\r\n"),
        (b"x" * 99, "x" * 99),
        (b"x" * 100, "x" * 100),
        (b"x" * 101, BadLine(1, "file: is longer than 100 bytes; split it")),
        (b"a\nb\n\xffc\nd", BadLine(3, "file: is not UTF-8 on this line; save it as UTF-8")),
        (b"\n\xffc", BadLine(2, "file: is not UTF-8 on this line; save it as UTF-8")),
        (b"\xff", BadLine(1, "file: is not UTF-8 on this line; save it as UTF-8")),
    ],
)
def test_a_file_is_held_as_a_whole_or_it_is_told_why_not(raw: bytes, told: str | BadLine) -> None:
    assert whole_text(Source(io.BytesIO(raw)), bytes_max=100) == told


def test_the_bound_of_a_whole_file_is_for_all_of_its_chunks() -> None:
    raw = b"x" * 200_000

    assert whole_text(Source(io.BytesIO(raw)), bytes_max=200_000) == raw.decode()
    assert whole_text(Source(io.BytesIO(raw)), bytes_max=199_999) == BadLine(
        1, "file: is longer than 199999 bytes; split it"
    )


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("two\n words  apart", "two words apart"),
        ("a \x07bell", "a \\u0007bell"),
        ("x" * 300, "x" * 300),
        ("x" * 301, "x" * 299 + "\u2026"),
    ],
)
def test_a_reason_is_one_printable_line(reason: str, told: str) -> None:
    assert bad_line(7, reason) == BadLine(7, told)
