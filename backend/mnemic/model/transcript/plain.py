"""Reads a plain transcript: who said what, session by session.

    # Choosing the database [2026-03-02 09:00]
    User: Which database should the checkout service use?
    Assistant: PostgreSQL, for two reasons:
      transactions, and we know how to run it.
    [2026-03-02 09:05] User: Agreed.

    --- 2026-03-04T14:00:00Z ---
    User: Are deploys frozen today?

The grammar, line by line:

    file    = { blank | header | turn | more }
    header  = "# " name [ " [" time "]" ]  |  "--- " time " ---"
    turn    = [ "[" time "] " | time " " ] actor ":" [ " " text ]
    more    = any other line, and every line that starts with a space or a tab
    time    = YYYY-MM-DD ("T" | " ") HH:MM [ ":" SS ] [ "Z" | ±HH:MM ]

- A header stands at the top, after a blank line, or after a header, and opens a session. A `---`
  header right after a `#` header gives that session its time; alone, it is the session's name.
- Turns above any header belong to a session named after the file.
- An actor has at most 40 characters and four words, each of which starts with a capital, a digit
  or a letter of a script without capitals; `user`, `assistant`, `ai`, `bot`, `system` and `tool`
  may be in lower case.
- `more` continues the turn above it, with blank lines and white space as they are. What looks
  like a turn or a header but is not is protected by an indent, or by a ``` fence around it.
- A time without a zone is taken as UTC. A turn without a time is one second after the turn
  before it, the first at its header's time; where neither gives one, the turn is refused.
- A turn with a line that cannot be read is left out whole, for half of it may say the contrary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mnemic.errors import InvalidInput
from mnemic.model.normalise import clean_name
from mnemic.model.transcript.entry import (
    BadLine,
    Bounds,
    Entry,
    SessionInfo,
    Utterance,
    bad_line,
)
from mnemic.model.transcript.fields import role_of, text_of, time_of, trust_of
from mnemic.model.transcript.identity import TurnNames
from mnemic.model.transcript.lines import Source, numbered_lines
from mnemic.model.turn import TurnCreate

__all__ = ["is_plain_line", "read_plain"]

ACTOR_WORDS_MAX = 4
HEADER_CHARS_MAX = 600
_SECOND = timedelta(seconds=1)
_FENCE = "```"
_LOWER_CASE_ACTORS = frozenset({"user", "assistant", "ai", "bot", "system", "tool"})
_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?"
_TURN = re.compile(
    rf"(?:\[(?P<stamp>\d[\dTZapm:/+., -]{{3,39}})\] ?|(?P<bare>{_TIME}) )?"
    r"(?P<actor>[^\W_][\w .'\u2019-]{0,39})(?::[ \t]+|:\Z|\uff1a[ \t]*)(?P<text>.*)",
    re.DOTALL,
)
_NAMED = re.compile(r"# +(?P<name>\S.*?)(?: \[(?P<time>\d[^\]]{3,39})\])?\s*", re.DOTALL)
_TIMED = re.compile(r"--- +(?P<time>\d\S*(?: \S+)?) +---\s*")


@dataclass(slots=True)
class _Session:
    name: str
    line: int
    started_at: datetime | None
    told: bool = False
    anchor: datetime | None = None  # the last time that the file itself gives
    latest: datetime | None = None  # the time of the last turn
    names: TurnNames = field(init=False)

    def __post_init__(self) -> None:
        self.anchor = self.started_at
        self.names = TurnNames(self.name)


@dataclass(slots=True)
class _Draft:
    """A turn whose lines are still coming."""

    line: int
    actor: str
    stamp: str | None
    lines: list[str] = field(default_factory=list)
    chars: int = 0
    fenced: bool = False
    spoilt_by: int | None = None

    def add(self, text: str, *, chars_max: int) -> None:
        """One more line; past the bound only its length is kept."""
        self.chars += len(text) + 1
        if text.count(_FENCE) % 2:
            self.fenced = not self.fenced
        if self.chars - 1 <= chars_max or text.isspace() or not text:
            self.lines.append(text)


def is_plain_line(line: str) -> bool:
    """Whether the line is a header or the start of a turn."""
    return _header(line) is not None or _turn_start(line) is not None


def read_plain(source: Source, *, name: str | None, bounds: Bounds) -> Iterator[Entry]:
    """The entries in the order of the file; no more than one turn is held."""
    reader = _Reader(name, bounds)
    for line in numbered_lines(source):
        if isinstance(line, BadLine):
            yield reader.spoil(line)
        else:
            yield from reader.line(*line)
    yield from reader.finish()


class _Reader:
    def __init__(self, name: str | None, bounds: Bounds) -> None:
        self._bounds = bounds
        self._session = None if name is None else _Session(name, 1, None)
        self._homeless = "no header stands above; write # name [2026-03-02 09:00] there"
        self._draft: _Draft | None = None
        self._after_gap = True

    def spoil(self, line: BadLine) -> BadLine:
        if self._draft is not None:
            self._draft.spoilt_by = line.number
        self._after_gap = False
        return line

    def line(self, number: int, text: str) -> Iterator[Entry]:
        draft, after_gap = self._draft, self._after_gap
        self._after_gap = not text.strip()
        fenced = draft is not None and draft.fenced
        header = _header(text) if after_gap else None
        if header is not None and (header.re is _TIMED or not fenced):
            yield from self.finish()
            yield from self._open(number, header)
        elif not fenced and (start := _turn_start(text)) is not None:
            yield from self.finish()
            stamp = start["stamp"] or start["bare"]
            self._draft = _Draft(number, start["actor"].strip(), stamp)
            self._draft.add(start["text"], chars_max=self._bounds.text_chars_max)
        elif draft is not None:
            draft.add(text, chars_max=self._bounds.text_chars_max)
        elif text.strip():
            yield bad_line(number, "line: is neither header nor turn; write it as User: text")

    def finish(self) -> Iterator[Entry]:
        """Gives out the turn whose lines have all come."""
        draft, session, self._draft = self._draft, self._session, None
        if draft is None:
            return
        if session is None:
            yield bad_line(draft.line, f"session: {self._homeless}")
            return
        try:
            turn = self._turn(draft, session)
        except InvalidInput as refused:
            yield bad_line(draft.line, refused)
            return
        if not session.told:
            session.told = True
            yield SessionInfo(name=session.name, started_at=session.started_at, line=session.line)
        yield Utterance(session=session.name, turn=turn, line=draft.line)

    def _open(self, number: int, header: re.Match[str]) -> Iterator[Entry]:
        self._after_gap = True
        parts, above, self._session = header.groupdict(), self._session, None
        self._homeless = f"the header on line {number} cannot be read; correct it"
        try:
            started_at = _time(parts["time"])
            name = clean_name(parts.get("name") or parts["time"], field="session")
        except InvalidInput as refused:
            yield bad_line(number, refused)
            return
        if header.re is _TIMED and above is not None and above.line == number - 1:
            name, number = above.name, above.line
        self._session = _Session(name, number, started_at)

    def _turn(self, draft: _Draft, session: _Session) -> TurnCreate:
        stamped = _time(draft.stamp)
        instant = stamped or (
            session.started_at if session.latest is None else session.latest + _SECOND
        )
        if instant is None:
            raise InvalidInput(
                "neither the turn nor its header gives one; write [2026-03-02 09:00] before "
                "the actor",
                field="time",
            )
        session.latest = instant
        session.anchor = stamped or session.anchor or instant
        if draft.spoilt_by is not None:
            raise InvalidInput(
                f"is left out, for its line {draft.spoilt_by} cannot be read; repair that line",
                field="text",
            )
        actor = clean_name(draft.actor, field="actor")
        text = self._text(draft)
        role = role_of(None, actor=actor)
        return TurnCreate(
            text=text,
            occurred_at=instant,
            actor=actor,
            role=role,
            external_id=session.names.name(instant=session.anchor, actor=actor, text=text),
            trust=trust_of(role),
        )

    def _text(self, draft: _Draft) -> str:
        while draft.lines and not draft.lines[-1].strip():
            draft.chars -= len(draft.lines.pop()) + 1
        if draft.chars - 1 > self._bounds.text_chars_max:
            raise InvalidInput(
                f"is {draft.chars - 1} characters long; the most is "
                f"{self._bounds.text_chars_max}. Split it",
                field="text",
            )
        return text_of("\n".join(draft.lines).removeprefix("\n"), field="text", bounds=self._bounds)


def _header(line: str) -> re.Match[str] | None:
    if len(line) > HEADER_CHARS_MAX:
        return None
    return _TIMED.fullmatch(line) or _NAMED.fullmatch(line)


def _turn_start(line: str) -> re.Match[str] | None:
    match = _TURN.match(line)
    if match is None or match["stamp"] or match["bare"]:
        return match
    words = match["actor"].split()
    named = len(words) <= ACTOR_WORDS_MAX and not any(word[0].islower() for word in words)
    return match if named or match["actor"].strip() in _LOWER_CASE_ACTORS else None


def _time(stamp: str | None) -> datetime | None:
    return None if stamp is None else time_of(stamp, field="time", utc_if_naive=True)
