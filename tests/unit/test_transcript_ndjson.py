"""Mnemic's own NDJSON: what is read, and each line that is refused, by number and reason."""

import io
import json
import re
from datetime import UTC, datetime

import pytest

from mnemic.model.episode import Outcome
from mnemic.model.fact import FactCreate
from mnemic.model.transcript import (
    BadLine,
    Bounds,
    Entry,
    Format,
    SessionInfo,
    StatedFact,
    Utterance,
    read,
)
from mnemic.model.trust import Trust

NINE = "2026-03-02T09:00:00Z"


def a_turn(**changes: object) -> dict[str, object]:
    return {
        "type": "turn",
        "session": "deploys",
        "actor": "User",
        "text": "Deploys are frozen on Fridays",
        "at": NINE,
    } | changes


def entries(*lines: object, bounds: Bounds | None = None) -> list[Entry]:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return list(read(io.BytesIO(text.encode()), format=Format.NDJSON, bounds=bounds))


def ids(found: list[Entry]) -> list[str | None]:
    return [entry.turn.external_id for entry in found if isinstance(entry, Utterance)]


def test_a_turn_keeps_each_of_its_parts() -> None:
    line = a_turn(
        id="t-1",
        role="tool",
        actor="psql",
        caption="a picture of a plan",
        tags=["deploys", "friday", "deploys"],
        metadata={"n": 1, "l": [1.5, None, True], "d": {}},
        project="checkout",
    )

    (read_back,) = entries(line)

    assert isinstance(read_back, Utterance)
    assert (read_back.session, read_back.project, read_back.line) == ("deploys", "checkout", 1)
    turn = read_back.turn
    assert turn.text == "Deploys are frozen on Fridays"
    assert turn.occurred_at == datetime(2026, 3, 2, 9, tzinfo=UTC)
    assert (turn.actor, turn.role, turn.external_id) == ("psql", "tool", "t-1")
    assert turn.caption == "a picture of a plan"
    assert turn.tags == ("deploys", "friday")
    assert turn.metadata == {"n": 1, "l": [1.5, None, True], "d": {}}
    assert turn.trust is Trust.EXTERNAL
    assert turn.source == "transcript"


@pytest.mark.parametrize(
    ("actor", "role", "trust"),
    [
        ("User", "user", Trust.USER),
        ("Reviewer", "user", Trust.USER),
        ("Assistant", "assistant", Trust.INFERRED),
        ("AI", "assistant", Trust.INFERRED),
        ("bot", "assistant", Trust.INFERRED),
        ("System", "system", Trust.USER),
        ("Tool", "tool", Trust.EXTERNAL),
    ],
)
def test_the_role_follows_from_the_actor(actor: str, role: str, trust: Trust) -> None:
    (utterance,) = entries(a_turn(actor=actor))

    assert isinstance(utterance, Utterance)
    assert (utterance.turn.role, utterance.turn.trust) == (role, trust)


def test_an_explicit_role_wins_over_the_actor() -> None:
    (utterance,) = entries(a_turn(actor="Assistant", role="user"))

    assert isinstance(utterance, Utterance)
    assert utterance.turn.role == "user"


def test_a_session_line_tells_of_the_session_and_lends_its_project() -> None:
    header = {
        "type": "session",
        "session": "deploys",
        "project": "checkout",
        "started_at": NINE,
        "ended_at": "2026-03-02T10:30:00+01:00",
        "outcome": "completed",
        "tools": ["psql"],
        "agents": ["coder"],
        "metadata": {"channel": "chat"},
    }

    info, first, other = entries(header, a_turn(), a_turn(session="another"))

    assert info == SessionInfo(
        name="deploys",
        started_at=datetime(2026, 3, 2, 9, tzinfo=UTC),
        ended_at=datetime(2026, 3, 2, 9, 30, tzinfo=UTC),
        outcome=Outcome.SUCCESS,
        tools=("psql",),
        agents=("coder",),
        metadata={"channel": "chat"},
        project="checkout",
        line=1,
    )
    assert isinstance(first, Utterance)
    assert first.project == "checkout"
    assert isinstance(other, Utterance)
    assert other.project is None


def test_a_fact_line_carries_a_fact() -> None:
    line = {
        "type": "fact",
        "subject": "deploys",
        "predicate": "frozen_on",
        "object": "Friday",
        "content": "Deploys are frozen on Fridays",
        "confidence": 0.9,
        "category": "constraint",
        "valid_from": NINE,
        "tags": ["deploys"],
    }

    (stated,) = entries(line)
    (again,) = entries(line)

    assert isinstance(stated, StatedFact)
    assert (stated.fact.subject, stated.fact.predicate, stated.fact.object) == (
        "deploys",
        "frozen_on",
        "Friday",
    )
    assert stated.fact.content == "Deploys are frozen on Fridays"
    assert (stated.fact.confidence, stated.fact.category) == (0.9, "constraint")
    assert stated.fact.valid_from == datetime(2026, 3, 2, 9, tzinfo=UTC)
    assert stated == again


def test_sessions_keep_their_boundaries_and_their_order() -> None:
    found = entries(
        a_turn(session="b", text="one"),
        a_turn(session="a", text="two"),
        a_turn(session="b", text="three"),
    )

    assert [(u.session, u.turn.text) for u in found if isinstance(u, Utterance)] == [
        ("b", "one"),
        ("a", "two"),
        ("b", "three"),
    ]


@pytest.mark.parametrize("joint", ["\n", "\r\n", "\n\n \t\n"])
@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_line_endings_and_byte_order_marks_change_nothing(joint: str, end: str, start: str) -> None:
    lines = [json.dumps(a_turn(text=text)) for text in ("one", "two")]
    stream = io.BytesIO((start + joint.join(lines) + end).encode())

    found = list(read(stream))

    assert [entry.turn.text for entry in found if isinstance(entry, Utterance)] == ["one", "two"]
    assert not [entry for entry in found if isinstance(entry, BadLine)]


BAD_LINES = [
    ('{"type": "turn"', "line: is not JSON (…); write one object on one line"),
    ("[1, 2]", "line: is a JSON list; write an object"),
    ("hello", "line: is not JSON (…); write one object on one line"),
    ("{}", "type: is missing; give it"),
    (a_turn(type="note"), "type: must be one of turn, session, fact"),
    (a_turn(type=["turn"]), "type: must be one of turn, session, fact"),
    (
        a_turn(title="x"),
        (
            "'title': is not a key of this type; use actor, at, caption, id, metadata, project, "
            "role, session, tags, text, type"
        ),
    ),
    (
        '{"type": "turn", "type": "turn", "session": "s", "text": "x"}',
        "'type': is given twice in one object; keep one",
    ),
    (
        json.dumps(a_turn(metadata={"x": float("nan")})),
        "line: NaN is not a JSON number; pass null or text",
    ),
    (
        json.dumps(a_turn(metadata={"x": float("inf")})),
        "line: Infinity is not a JSON number; pass null or text",
    ),
    (
        json.dumps(a_turn(metadata={"x": 0})).replace("0}", "1e400}"),
        "metadata.x: inf is not a JSON number; pass null or text",
    ),
    (
        json.dumps(a_turn(metadata={"x": 0})).replace("0}", "9" * 5_000 + "}"),
        "line: an integer is too long to read; pass it as text",
    ),
    (a_turn(metadata={"x": 2**70}), "metadata.x: the integer is beyond 64 bits; pass it as text"),
    (a_turn(metadata=[1]), "metadata: must be an object"),
    (
        a_turn(metadata={"x": "a" * 66_000}),
        "metadata: is 66008 bytes long; the most is 65536. Shorten it",
    ),
    ("[" * 100_000, "line: is nested too deeply; flatten it"),
    (
        a_turn(at="2026-03-02T09:00:00"),
        "at: '2026-03-02T09:00:00' has no zone; write 2026-03-02T09:00:00Z if it is UTC",
    ),
    (
        a_turn(at="2026-03-02T09:00"),
        "at: '2026-03-02T09:00' has no zone; write 2026-03-02T09:00:00Z if it is UTC",
    ),
    (a_turn(at="yesterday"), "at: 'yesterday' is not a time; write it as 2026-03-02T09:00:00Z"),
    (a_turn(at="2026-02-30T09:00:00Z"), "at: '2026-02-30T09:00:00Z' is no time (…); correct it"),
    (a_turn(at=1_772_442_000), "at: 1772442000 is not a time; write it as 2026-03-02T09:00:00Z"),
    (a_turn(at=None), "at: is missing; give it"),
    (a_turn(at="0001-01-01T00:00:00Z"), "at: the year must lie between 2 and 9989"),
    (a_turn(at="9999-12-31T23:59:59Z"), "at: the year must lie between 2 and 9989"),
    (a_turn(text=""), "text: must not be blank; give it visible text"),
    (a_turn(text="\u200b\u3000 \n"), "text: must not be blank; give it visible text"),
    (a_turn(text=42), "text: must be text, not int"),
    (a_turn(text="a\x00b"), "text: must not hold a NUL character; remove it"),
    (a_turn(text="a\ud800b"), "text: holds a lone surrogate at character 1; remove it"),
    (a_turn(text="x" * 100_001), "text: is 100001 characters long; the most is 100000. Split it"),
    (a_turn(caption=""), "caption: must not be blank; give it visible text"),
    (a_turn(actor=" "), "actor: must not be blank; give it visible text"),
    (a_turn(session=""), "session: must not be blank; give it visible text"),
    (a_turn(session=None), "session: is missing; give it"),
    (a_turn(session="s\x00"), "session: must not hold a NUL character; remove it"),
    (a_turn(project=""), "project: must not be blank; give it visible text"),
    (a_turn(id=""), "id: must not be blank; give it visible text"),
    (a_turn(id=7), "id: must be text, not int"),
    (a_turn(role="admin"), "role: 'admin' is none of user, assistant, system, tool"),
    (a_turn(role=["user"]), "role: ['user'] is none of user, assistant, system, tool"),
    (a_turn(tags="red"), "tags: must be a list of texts"),
    (a_turn(tags=[""]), "tags[0]: must not be blank; give it visible text"),
    (a_turn(tags=["x"] * 101), "tags: holds 101; the most is 100"),
    (a_turn(role="r" * 58), f"role: '{'r' * 58}' is none of user, assistant, system, tool"),
    (a_turn(role="r" * 59), f"role: '{'r' * 58}… is none of user, assistant, system, tool"),
    (a_turn(at=["x" * 99]), f"at: ['{'x' * 57}… is not a time; write it as {NINE}"),
    ({"type": "session"}, "session: is missing; give it"),
    ({"type": "session", "session": 5}, "session: must be text, not int"),
    ({"type": "session", "session": "s", "tools": "psql"}, "tools: must be a list of texts"),
    ({"type": "session", "session": "s", "agents": [1]}, "agents[0]: must be text, not int"),
    (
        {"type": "session", "session": "s", "started_at": "now"},
        f"started_at: 'now' is not a time; write it as {NINE}",
    ),
    (
        {"type": "session", "session": "s", "outcome": "great"},
        "outcome: 'great' is none of success, failure, partial, completed",
    ),
    (
        {"type": "session", "session": "s", "started_at": NINE, "ended_at": "2026-03-02T08:00Z"},
        "ended_at: lies before started_at; swap or correct them",
    ),
    ({"type": "fact", "subject": "a", "predicate": "b"}, "object: is missing; give it"),
    (
        {"type": "fact", "subject": "a", "predicate": "b", "object": "c", "confidence": 2},
        "confidence: must be a number from 0 to 1, not 2",
    ),
    (
        {"type": "fact", "subject": "a", "predicate": "b", "object": "c", "confidence": True},
        "confidence: must be a number from 0 to 1, not bool",
    ),
]


@pytest.mark.parametrize(("line", "reason"), BAD_LINES)
def test_a_bad_line_is_told_by_number_and_the_rest_is_kept(line: object, reason: str) -> None:
    before, bad, after = entries(a_turn(text="before"), line, a_turn(text="after"))

    assert isinstance(before, Utterance)
    assert before.turn.text == "before"
    assert isinstance(bad, BadLine)
    assert bad.number == 2
    # In brackets stand Python's own words, which are not the same in every release.
    assert re.sub(r" \(.*\)", " (…)", bad.reason) == reason
    assert isinstance(after, Utterance)
    assert (after.line, after.turn.text) == (3, "after")


def test_a_reason_stands_on_one_line_that_can_be_shown() -> None:
    deep: object = "\x00"
    for _ in range(6):
        deep = {"k" * 60: deep}

    found = entries({"type": "turn", "x\n\u202e" * 9: 1}, a_turn(metadata=deep))

    reasons = [entry.reason for entry in found if isinstance(entry, BadLine)]
    assert reasons[0].startswith(r"'x\n\u202ex\n\u202ex\n")
    assert reasons[1] == ("metadata" + 6 * ("." + "k" * 60))[:299] + "…"


@pytest.mark.parametrize(
    ("written", "micro"),
    [
        ("2026-03-02T09:00Z", 0),
        ("2026-03-02t09:00:00z", 0),
        ("2026-03-02 10:00:00+01:00", 0),
        ("2026-03-02T09:00:00.1234567Z", 123_456),
    ],
)
def test_a_time_is_read_in_each_of_its_forms(written: str, micro: int) -> None:
    (found,) = entries(a_turn(at=written))

    assert isinstance(found, Utterance)
    assert found.turn.occurred_at == datetime(2026, 3, 2, 9, 0, 0, micro, tzinfo=UTC)
    assert found.turn.occurred_at.tzinfo is UTC


def test_turns_are_named_by_session_wherever_they_stand_in_the_file() -> None:
    one, other = a_turn(session="a"), a_turn(session="b")

    first, second, third = ids(entries(one, other, one))

    assert [first, third] == ids(entries(one, one))
    assert [second] == ids(entries(other))


def test_a_session_may_be_over_as_it_begins() -> None:
    (info,) = entries({"type": "session", "session": "s", "started_at": NINE, "ended_at": NINE})

    assert isinstance(info, SessionInfo)
    assert info.started_at == info.ended_at == datetime(2026, 3, 2, 9, tzinfo=UTC)


def test_bytes_that_are_not_utf_8_spoil_their_own_line_only() -> None:
    good = json.dumps(a_turn()).encode()
    stream = io.BytesIO(good + b'\n{"type": "turn", "text": "caf\xe9"}\n' + good)

    first, bad, last = read(stream)

    assert isinstance(first, Utterance)
    assert bad == BadLine(2, "line: byte 30 is not UTF-8; save it as UTF-8")
    assert isinstance(last, Utterance)


def test_a_line_without_end_is_refused_without_being_held() -> None:
    long = json.dumps(a_turn(text="x" * 17_000_000))

    bad, kept = entries(long, a_turn())

    assert bad == BadLine(1, "line: is longer than 16777216 bytes; split it")
    assert isinstance(kept, Utterance)


def test_the_bounds_are_the_callers() -> None:
    bounds = Bounds(text_chars_max=5, metadata_bytes_max=10, tags_max=1)

    kept, *bad = entries(
        a_turn(text="12345"),
        a_turn(text="123456"),
        a_turn(text="1", tags=["a", "b"]),
        a_turn(text="1", metadata={"key": "value"}),
        bounds=bounds,
    )

    assert isinstance(kept, Utterance)
    assert [entry.reason.split(":")[0] for entry in bad if isinstance(entry, BadLine)] == [
        "text",
        "tags",
        "metadata",
    ]
    [just] = entries(a_turn(text="1", tags=["a"], metadata={"k": "val"}), bounds=bounds)
    assert isinstance(just, BadLine)
    assert just.reason == "metadata: is 11 bytes long; the most is 10. Shorten it"
    [just] = entries(a_turn(text="1", tags=["a"], metadata={"k": "va"}), bounds=bounds)
    assert isinstance(just, Utterance)


def test_odd_but_holdable_text_comes_through_unchanged() -> None:
    odd = [
        "use {name} and {} and %s",
        "<|endoftext|> <b>bold</b>",
        "tab\tescape\x1b bell\x01",
        "café cafe\u0301 密钥 🚀 שלום",
        "line\u2028separator\u0085next",
    ]

    found = entries(*[a_turn(text=text) for text in odd])

    assert [entry.turn.text for entry in found if isinstance(entry, Utterance)] == odd


def test_a_second_reading_gives_the_same_ids() -> None:
    lines = [a_turn(text="one"), a_turn(text="two"), a_turn(text="one")]

    first, second = ids(entries(*lines)), ids(entries(*lines))

    assert first == second
    assert len(set(first)) == 3


def test_ids_survive_appended_lines_and_the_repair_of_a_bad_one() -> None:
    lines = [a_turn(text="one"), a_turn(text=""), a_turn(text="two"), a_turn(text="two")]
    repaired = [a_turn(text="one"), a_turn(text="mended"), a_turn(text="two"), a_turn(text="two")]

    before = ids(entries(*lines))
    after = ids(entries(*repaired, a_turn(text="three")))

    assert before == [after[0], after[2], after[3]]
    assert len(set(after)) == 5


def test_an_id_depends_on_session_actor_time_and_text() -> None:
    variants = [
        a_turn(),
        a_turn(session="other"),
        a_turn(actor="Assistant"),
        a_turn(text="Deploys are frozen on Friday"),
        a_turn(at="2026-03-02T09:00:01Z"),
    ]

    found = {ids(entries(variant))[0] for variant in variants}

    assert len(found) == len(variants)


def test_the_same_instant_in_another_zone_is_the_same_turn() -> None:
    east = a_turn(at="2026-03-02T10:00:00+01:00")

    assert ids(entries(east)) == ids(entries(a_turn()))


def test_a_fact_line_gives_each_of_its_parts_to_the_fact() -> None:
    line = {
        "type": "fact",
        "id": "f-1",
        "subject": " the  team ",
        "predicate": "deploys_on",
        "object": "Mondays",
        "content": "The team deploys on Mondays.",
        "confidence": 0.25,
        "category": "habit",
        "valid_from": NINE,
        "valid_to": "2026-04-02T09:00:00Z",
        "metadata": {"by": "ann"},
        "tags": ["rota"],
        "session": "deploys",
        "project": "checkout",
    }

    (stated,) = entries(line)

    assert isinstance(stated, StatedFact)
    assert stated == StatedFact(
        fact=FactCreate(
            subject="the team",
            predicate="deploys_on",
            object="Mondays",
            content="The team deploys on Mondays.",
            confidence=0.25,
            category="habit",
            valid_from=datetime(2026, 3, 2, 9, tzinfo=UTC),
            valid_to=datetime(2026, 4, 2, 9, tzinfo=UTC),
            metadata={"by": "ann"},
            tags=("rota",),
            source="transcript",
        ),
        external_id="f-1",
        session="deploys",
        project="checkout",
        line=1,
    )


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("subject", " ", "subject: must not be blank; give it visible text"),
        ("subject", 7, "subject: must be text, not int"),
        ("predicate", " ", "predicate: must not be blank; give it visible text"),
        ("object", " ", "object: must not be blank; give it visible text"),
        ("content", " ", "content: must not be blank; give it visible text"),
        ("category", " ", "category: must not be blank; give it visible text"),
        ("session", " ", "session: must not be blank; give it visible text"),
        ("project", " ", "project: must not be blank; give it visible text"),
        ("confidence", 1.5, "confidence: must be a number from 0 to 1, not 1.5"),
    ],
)
def test_a_part_of_a_fact_that_cannot_be_held_is_named(key: str, value: object, word: str) -> None:
    line = {"type": "fact", "subject": "a", "predicate": "b", "object": "c", key: value}

    (bad,) = entries(line)

    assert isinstance(bad, BadLine)
    assert bad.reason == word


def test_a_fact_without_an_id_is_named_by_all_that_tells_it_from_others() -> None:
    base = {"type": "fact", "subject": "a", "predicate": "b", "object": "c"}
    changes: list[dict[str, object]] = [
        {},
        {"subject": "x"},
        {"predicate": "x"},
        {"object": "x"},
        {"valid_from": NINE},
        {"valid_to": NINE},
        {"confidence": 0.9, "category": "habit"},
    ]

    names = [one.external_id for one in entries(*(base | change for change in changes))]  # type: ignore[union-attr] - facts, all

    assert len(set(names)) == 6
    assert names[0] == names[-1]
