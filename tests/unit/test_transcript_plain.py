"""Plain transcripts: the grammar of the module's docstring, rule by rule."""

import io
import re
from datetime import UTC, datetime

import pytest

from mnemic.model.transcript import BadLine, Bounds, Entry, Format, SessionInfo, Utterance, read
from mnemic.model.trust import Trust


def entries(
    text: str | bytes, *, name: str | None = None, bounds: Bounds | None = None
) -> list[Entry]:
    raw = text if isinstance(text, bytes) else text.encode()
    return list(read(io.BytesIO(raw), format=Format.PLAIN, name=name, bounds=bounds))


def told(found: list[Entry]) -> list[tuple[str, str]]:
    return [(e.turn.actor, e.turn.text) for e in found if isinstance(e, Utterance)]


def bad(found: list[Entry]) -> list[BadLine]:
    return [entry for entry in found if isinstance(entry, BadLine)]


def times(found: list[Entry]) -> list[datetime]:
    return [entry.turn.occurred_at for entry in found if isinstance(entry, Utterance)]


def at(hour: int, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2026, 3, 2, hour, minute, second, tzinfo=UTC)


def test_sessions_speakers_and_times_are_read() -> None:
    text = (
        "# Choosing the database [2026-03-02 09:00]\n"
        "User: Which database?\n"
        "Assistant: PostgreSQL, for two reasons:\n"
        "  transactions, and we know it.\n"
        "[2026-03-02 09:05] User: Agreed.\n"
        "\n"
        "--- 2026-03-02T14:00:00Z ---\n"
        "Tool: 42 rows\n"
    )

    found = entries(text)

    assert [e for e in found if isinstance(e, SessionInfo)] == [
        SessionInfo(name="Choosing the database", started_at=at(9), line=1),
        SessionInfo(name="2026-03-02T14:00:00Z", started_at=at(14), line=7),
    ]
    assert told(found) == [
        ("User", "Which database?"),
        ("Assistant", "PostgreSQL, for two reasons:\n  transactions, and we know it."),
        ("User", "Agreed."),
        ("Tool", "42 rows"),
    ]
    assert times(found) == [at(9), at(9, 0, 1), at(9, 5), at(14)]
    assert [e.turn.role for e in found if isinstance(e, Utterance)] == [
        "user",
        "assistant",
        "user",
        "tool",
    ]
    assert [e.turn.trust for e in found if isinstance(e, Utterance)] == [
        Trust.USER,
        Trust.INFERRED,
        Trust.USER,
        Trust.EXTERNAL,
    ]
    assert [e.line for e in found if isinstance(e, Utterance)] == [2, 3, 5, 8]
    assert not bad(found)


@pytest.mark.parametrize(
    ("stamp", "meant"),
    [
        ("[2026-03-02 09:00] ", at(9)),
        ("[2026-03-02 09:00:30] ", at(9, 0, 30)),
        ("[2026-03-02T09:00:30Z] ", at(9, 0, 30)),
        ("[2026-03-02T09:00+01:00] ", at(8)),
        ("2026-03-02T09:00:30Z ", at(9, 0, 30)),
        ("2026-03-02 09:00 ", at(9)),
    ],
)
def test_a_turn_may_carry_its_own_time(stamp: str, meant: datetime) -> None:
    found = entries(f"{stamp}User: hello", name="notes")

    assert times(found) == [meant]


def test_a_turn_without_a_time_follows_the_one_before_it() -> None:
    found = entries("# s [2026-03-02 09:00]\nUser: a\nUser: b\n[2026-03-02 10:00] User: c\nUser: d")

    assert times(found) == [at(9), at(9, 0, 1), at(10), at(10, 0, 1)]


def test_no_time_is_invented() -> None:
    found = entries("# s\nUser: a\n[2026-03-02 10:00] User: b")

    assert bad(found) == [
        BadLine(
            2,
            "time: neither the turn nor its header gives one; write [2026-03-02 09:00] before "
            "the actor",
        )
    ]
    assert told(found) == [("User", "b")]


def test_two_headers_in_a_row_make_one_session() -> None:
    found = entries("# Retrospective\n--- 2026-03-02 09:00 ---\nUser: a")

    assert found[0] == SessionInfo(name="Retrospective", started_at=at(9), line=1)
    assert times(found) == [at(9)]


def test_turns_above_any_header_belong_to_the_file() -> None:
    text = "[2026-03-02 09:00] User: a"

    named, nameless = entries(text, name="notes"), entries(text)

    assert [e.session for e in named if isinstance(e, Utterance)] == ["notes"]
    assert named[0] == SessionInfo(name="notes", line=1)
    assert bad(nameless) == [
        BadLine(1, "session: no header stands above; write # name [2026-03-02 09:00] there")
    ]


def test_what_a_turn_holds_is_kept_as_it_stands() -> None:
    body = (
        "Here:\n"
        "\n"
        "```\n"
        "# a comment\n"
        "\n"
        "# another\n"
        "Host: localhost\n"
        "```\n"
        "\n"
        "  User: indented, so quoted\n"
        "host: localhost\n"
        "https://example.org\n"
        "## a heading\n"
        "two reasons: a and b"
    )

    found = entries(f"# s [2026-03-02 09:00]\nAssistant: {body}\n\n\nUser: ok")

    assert told(found) == [("Assistant", body), ("User", "ok")]
    assert not bad(found)


def test_a_session_header_ends_an_open_fence() -> None:
    found = entries("# s [2026-03-02 09:00]\nUser: ```\n\n--- 2026-03-02 10:00 ---\nUser: b")

    assert told(found) == [("User", "```"), ("User", "b")]


def test_a_turn_may_begin_on_the_line_below_its_speaker() -> None:
    found = entries("# s [2026-03-02 09:00]\nUser:\nfirst line\nsecond line")

    assert told(found) == [("User", "first line\nsecond line")]


@pytest.mark.parametrize(
    ("line", "actor"),
    [
        ("user: x", "user"),
        ("Release Bot 2: x", "Release Bot 2"),
        ("Head Of Release Team: x", "Head Of Release Team"),
        ("用户： x", "用户"),  # noqa: RUF001 - the full-width colon is the point
        ("用户: x", "用户"),
        ("[2026-03-02 09:00] lower case name: x", "lower case name"),
    ],
)
def test_speakers_of_many_kinds_are_known(line: str, actor: str) -> None:
    assert told(entries(f"# s [2026-03-02 09:00]\n{line}")) == [(actor, "x")]


@pytest.mark.parametrize(
    "line", ["One Of The Two Reasons: x", "two reasons: x", "# a heading", "https://example.org"]
)
def test_a_line_that_names_no_speaker_belongs_to_the_turn_above(line: str) -> None:
    found = entries(f"# s [2026-03-02 09:00]\nUser: said\n{line}")

    assert told(found) == [("User", f"said\n{line}")]
    assert not bad(found)


def test_a_session_has_a_name_of_500_characters_in_a_header_of_600() -> None:
    time = " [2026-03-02 09:00]"
    padded = f"# {'x' * 500}{time}".ljust(600)

    info, _ = entries(f"{padded}\nUser: a")
    refused, homeless = entries(f"# s{time}\n\n# {'x' * 501}{time}\nUser: a")
    [no_header, *_] = entries(f"{padded} \nUser: a")

    assert info == SessionInfo(name="x" * 500, started_at=at(9), line=1)
    assert refused == BadLine(3, "session: is 501 characters long; the most is 500. Split it")
    assert homeless == BadLine(4, "session: the header on line 3 cannot be read; correct it")
    assert no_header == BadLine(1, "line: is neither header nor turn; write it as User: text")


BAD = [
    ("no speaker here", "line: is neither header nor turn; write it as User: text"),
    ("[09:00] User: x", "time: '09:00' is not a time; write it as 2026-03-02T09:00:00Z"),
    ("[2026-02-30 09:00] User: x", "time: '2026-02-30 09:00' is no time (…); correct it"),
    ("User:", "text: must not be blank; give it visible text"),
    ("User: \u200b", "text: must not be blank; give it visible text"),
    ("User: a\x00b", "text: must not hold a NUL character; remove it"),
    (
        "User: " + "x" * 100_001,
        "text: is 100001 characters long; the most is 100000. Split it",
    ),
    (
        "User: " + "\n".join(["x" * 999] * 101),
        "text: is 100999 characters long; the most is 100000. Split it",
    ),
]


@pytest.mark.parametrize(("line", "reason"), BAD)
def test_a_bad_line_is_told_by_number_and_the_rest_is_kept(line: str, reason: str) -> None:
    found = entries(f"# s [2026-03-02 09:00]\n{line}\nUser: after")

    assert [entry.number for entry in bad(found)] == [2]
    # In brackets stand Python's own words, which are not the same in every release.
    assert re.sub(r" \(.*\)", " (…)", bad(found)[0].reason) == reason
    assert told(found) == [("User", "after")]


def test_a_header_that_cannot_be_read_takes_its_turns_along() -> None:
    text = (
        "# one [2026-03-02 09:00]\nUser: a\n\n--- 2026-13-02 09:00 ---\nUser: b\n\n"
        "# three [2026-03-02 11:00]\nUser: c"
    )

    found = entries(text)

    assert told(found) == [("User", "a"), ("User", "c")]
    assert [line.number for line in bad(found)] == [4, 5]
    assert bad(found)[1].reason == "session: the header on line 4 cannot be read; correct it"


def test_a_turn_with_an_unreadable_line_is_left_out_whole() -> None:
    raw = b"# s [2026-03-02 09:00]\nUser: never\ncaf\xe9\ndeploy\nUser: after"

    found = entries(raw)

    assert [line.number for line in bad(found)] == [3, 2]
    assert bad(found)[1].reason == (
        "text: is left out, for its line 3 cannot be read; repair that line"
    )
    assert told(found) == [("User", "after")]


def test_below_an_unreadable_line_no_session_begins() -> None:
    found = entries(b"# s [2026-03-02 09:00]\nUser: never\n\xe9\n# a heading\nUser: after")

    assert [entry.session for entry in found if isinstance(entry, Utterance)] == ["s"]
    assert told(found) == [("User", "after")]


def test_a_text_is_as_long_as_the_bound_says_without_the_blank_lines_below_it() -> None:
    header, bounds = "# s [2026-03-02 09:00]", Bounds(text_chars_max=5)

    just = entries(f"{header}\nUser: ab\ncd\n\n  \n\nUser: ok", bounds=bounds)
    beyond = entries(f"{header}\nUser: ab\ncde\n\nUser: ok", bounds=bounds)

    assert told(just) == [("User", "ab\ncd"), ("User", "ok")]
    assert bad(beyond) == [BadLine(2, "text: is 6 characters long; the most is 5. Split it")]
    assert told(beyond) == [("User", "ok")]


def test_a_fence_that_ends_on_its_line_protects_nothing_below() -> None:
    found = entries("# s [2026-03-02 09:00]\nUser: run ```make``` now\nAssistant: done")

    assert told(found) == [("User", "run ```make``` now"), ("Assistant", "done")]


def test_windows_line_endings_and_a_byte_order_mark_change_nothing() -> None:
    text = "# s [2026-03-02 09:00]\nUser: a\n  more\n\n--- 2026-03-02 10:00 ---\nUser: b\n"

    assert entries("\ufeff" + text.replace("\n", "\r\n")) == entries(text)


def test_ids_survive_a_second_reading_an_appended_line_and_a_repair() -> None:
    text = "# s [2026-03-02 09:00]\nUser: yes\nUser:\nUser: yes\nAssistant: done"
    repaired = text.replace("User:\n", "User: mended\n") + "\nUser: thanks"

    first, second, after = (
        [e.turn.external_id for e in entries(each) if isinstance(e, Utterance)]
        for each in (text, text, repaired)
    )

    assert first == second
    assert len(set(after)) == 5
    assert first == [after[0], after[2], after[3]]


def test_an_id_is_of_what_was_said_after_the_last_time_that_the_file_gives() -> None:
    def named(text: str) -> dict[str, str | None]:
        return {
            entry.turn.text: entry.turn.external_id
            for entry in entries(text)
            if isinstance(entry, Utterance)
        }

    text = (
        "# s [2026-03-02 09:00]\nUser: one\nUser: two\n[2026-03-02 10:00] User: three\nUser: four"
    )
    ids = named(text)

    more = named(text.replace("User: two", "User: between\nUser: two"))
    assert {said: more[said] for said in ids} == ids
    moved = named(text.replace("09:00", "08:00"))
    assert {said for said in ids if moved[said] != ids[said]} == {"one", "two"}
