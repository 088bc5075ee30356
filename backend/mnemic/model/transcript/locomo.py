"""Reads conversations in the form of the LoCoMo data set.

The file is one conversation (`session_1_date_time`, `session_1`, … at the top), one sample
(`sample_id`, `conversation`), or a list of samples. Of a turn `speaker`, `dia_id`, `text` and
`blip_caption` are read; questions, summaries and other keys are passed over.

- A session is named `session_3`, after its sample or else the file: `conv-1/session_3`.
- Its time reads like "1:56 pm on 8 May, 2023". No zone is given, so it is taken as UTC; turn k
  (from 0) is k seconds later, so that the order is kept.
- Both speakers are people: a turn's role is user, its actor the speaker, its id the `dia_id`.
- Sessions come in the order of their numbers (10 after 9), sample by sample.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from mnemic.errors import InvalidInput
from mnemic.model.normalise import checked_time, clean_name, clean_text
from mnemic.model.transcript.document import Document, Twice
from mnemic.model.transcript.entry import (
    BadLine,
    Bounds,
    Entry,
    SessionInfo,
    Utterance,
    bad_line,
)
from mnemic.model.transcript.fields import required, text_of
from mnemic.model.transcript.identity import TurnNames
from mnemic.model.transcript.lines import Source, whole_text
from mnemic.model.turn import TurnCreate

__all__ = ["is_locomo_key", "read_locomo"]

FILE_BYTES_MAX = 256 * 1_048_576
ID_CHARS_MAX = 500
_MARKS = frozenset({"conversation", "qa", "sample_id", "speaker_a", "speaker_b"})
_SESSION = re.compile(r"session_([1-9]\d{0,5})(_date_time)?", re.ASCII)
_CLOCK = re.compile(
    r"(\d{1,2}):(\d{2}) ?([ap])m on (\d{1,2}) ([a-z]+),? (\d{4})", re.ASCII | re.IGNORECASE
)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NOON = 12


def is_locomo_key(key: str) -> bool:
    """Whether an object with this key at its top is read as LoCoMo."""
    return key in _MARKS or _SESSION.fullmatch(key) is not None


@dataclass(slots=True)
class _Sample:
    """What one conversation holds, before its sessions are put in order."""

    name: str | None
    times: dict[int, Any] = field(default_factory=dict)
    turns: dict[int, list[tuple[int, Any]]] = field(default_factory=dict)
    lines: dict[int, int] = field(default_factory=dict)
    faults: list[BadLine] = field(default_factory=list)


def read_locomo(source: Source, *, name: str | None, bounds: Bounds) -> Iterator[Entry]:
    """The entries, session by session; the whole file is held, at most 256 MiB."""
    text = whole_text(source, bytes_max=FILE_BYTES_MAX)
    if isinstance(text, BadLine):
        yield text
        return
    document, samples, broken = Document(text), list[_Sample](), None
    try:
        _collect(document, samples, name)
    except InvalidInput as fault:
        broken = bad_line(document.line, fault)
    seen = set[tuple[str, str]]()
    for sample in samples:
        yield from sample.faults
        for number in sorted(sample.turns):
            yield from _session(sample, number, seen, bounds)
    if broken is not None:
        yield broken


def _collect(document: Document, samples: list[_Sample], name: str | None) -> None:
    if document.peek() == "[":
        for place, _ in enumerate(document.elements(), start=1):
            samples.append(_Sample(f"{name or 'conversation'}-{place}"))
            _walk(document, samples[-1])
    else:
        samples.append(_Sample(name))
        _walk(document, samples[-1])
    document.finish()


def _walk(document: Document, sample: _Sample, *, inner: bool = False) -> None:
    for key in document.members():
        session = _SESSION.fullmatch(key)
        document.peek()
        line = document.line
        if key == "conversation" and not inner:
            _walk(document, sample, inner=True)
        elif key == "sample_id":
            _name(sample, document.value(), line)
        elif session is None:
            document.value()
        elif session[2]:
            sample.times.setdefault(int(session[1]), document.value())
        elif document.peek() == "[" and int(session[1]) not in sample.turns:
            number = int(session[1])
            sample.lines[number], turns = line, sample.turns.setdefault(number, [])
            for at in document.elements():
                turns.append((at, document.value()))
        else:
            document.value()
            sample.faults.append(bad_line(line, f"{key}: must be one list of turns; correct it"))


def _name(sample: _Sample, value: object, line: int) -> None:
    try:
        sample.name = clean_name(value, field="sample_id")
    except InvalidInput as refused:
        sample.faults.append(bad_line(line, refused))


def _session(
    sample: _Sample, number: int, seen: set[tuple[str, str]], bounds: Bounds
) -> Iterator[Entry]:
    session, turns = f"session_{number}", sample.turns[number]
    if not turns:
        return
    try:
        started_at = _clock(sample.times.get(number), field=f"{session}_date_time")
    except InvalidInput as refused:
        yield bad_line(sample.lines[number], f"{refused}. {len(turns)} turns are left out")
        return
    name = f"{sample.name}/{session}" if sample.name else session
    names = TurnNames(name)
    yield SessionInfo(name=name, started_at=started_at, line=sample.lines[number])
    for place, (line, value) in enumerate(turns):
        try:
            turn = _turn(value, started_at, place, names, bounds)
        except InvalidInput as refused:
            yield bad_line(line, refused)
            continue
        if (key := (name, str(turn.external_id))) in seen:
            yield bad_line(line, "dia_id: is that of another turn; make it unique")
            continue
        seen.add(key)
        yield Utterance(session=name, turn=turn, line=line)


def _turn(
    value: object, started_at: datetime, place: int, names: TurnNames, bounds: Bounds
) -> TurnCreate:
    if not isinstance(value, dict):
        raise InvalidInput("must be an object with speaker and text", field="turn")
    if isinstance(value, Twice):
        raise InvalidInput("holds a key twice; keep one", field="turn")
    actor = clean_name(required(value, "speaker"), field="speaker")
    text = text_of(required(value, "text"), field="text", bounds=bounds)
    caption, given = value.get("blip_caption"), value.get("dia_id")
    return TurnCreate(
        text=text,
        occurred_at=started_at + timedelta(seconds=place),
        actor=actor,
        caption=None if caption is None else text_of(caption, field="blip_caption", bounds=bounds),
        external_id=names.name(instant=started_at, actor=actor, text=text)
        if given is None
        else clean_text(given, field="dia_id", chars_max=ID_CHARS_MAX),
    )


def _clock(value: object, *, field: str) -> datetime:
    if value is None:
        raise InvalidInput("is missing; give it as 1:56 pm on 8 May, 2023", field=field)
    match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[5].lower() not in _MONTHS or not 1 <= int(match[1]) <= _NOON:
        raise InvalidInput("is not a time like 1:56 pm on 8 May, 2023; correct it", field=field)
    hour = int(match[1]) % _NOON + (_NOON if match[3].lower() == "p" else 0)
    month = _MONTHS.index(match[5].lower()) + 1
    try:
        instant = datetime(int(match[6]), month, int(match[4]), hour, int(match[2]), tzinfo=UTC)
    except ValueError as fault:
        raise InvalidInput(f"is no time ({fault}); correct it", field=field) from None
    return checked_time(instant, field=field)
