"""Reads Mnemic's own NDJSON: one JSON object on one line, told apart by `type`.

    {"type": "session", "session": "deploys", "started_at": "2026-03-02T09:00:00Z"}
    {"type": "turn", "session": "deploys", "actor": "User", "text": "…", "at": "2026-03-02T09:00Z"}
    {"type": "fact", "subject": "deploys", "predicate": "frozen_on", "object": "Friday"}

| type | must have | may have |
| --- | --- | --- |
| turn | session, actor, text, at | id, role, caption, tags, metadata, project |
| session | session | started_at, ended_at, outcome, tools, agents, metadata, project |
| fact | subject, predicate, object | id, content, confidence, category, valid_from, valid_to, |
|      |                            | tags, metadata, session, project |

Times carry a zone. A project on a session line holds for the session's turns that follow and
name none. Without `id` an entry is named by its content. `null` is the same as left out. Blank
lines are skipped; unknown keys, keys given twice, NaN, and what no memory can hold are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from mnemic.errors import InvalidInput
from mnemic.model.fact import FactCreate
from mnemic.model.normalise import checked_unit, clean_name, clean_text
from mnemic.model.transcript.entry import (
    BadLine,
    Bounds,
    Entry,
    SessionInfo,
    StatedFact,
    Utterance,
    bad_line,
)
from mnemic.model.transcript.fields import (
    json_object,
    metadata_of,
    names_of,
    only_known,
    outcome_of,
    required,
    role_of,
    tags_of,
    text_of,
    time_of,
    trust_of,
)
from mnemic.model.transcript.identity import TurnNames, content_name
from mnemic.model.transcript.lines import Source, numbered_lines
from mnemic.model.turn import TurnCreate

__all__ = ["read_ndjson"]

CONFIDENCE_DEFAULT = 0.5
ID_CHARS_MAX = 500
_SHARED = {"type", "session", "project", "metadata"}
_KEYS = {
    "turn": _SHARED | {"actor", "role", "text", "at", "id", "caption", "tags"},
    "session": _SHARED | {"started_at", "ended_at", "outcome", "tools", "agents"},
    "fact": _SHARED
    | {"subject", "predicate", "object", "content", "confidence", "category"}
    | {"valid_from", "valid_to", "id", "tags"},
}


def read_ndjson(source: Source, *, bounds: Bounds) -> Iterator[Entry]:
    """The entries in the order of the file; memory grows with the number of sessions."""
    reader = _Reader(bounds)
    for line in numbered_lines(source):
        if isinstance(line, BadLine):
            yield line
        elif line[1].strip():
            yield reader.entry(*line)


class _Reader:
    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._projects: dict[str, str] = {}
        self._names: dict[str, TurnNames] = {}

    def entry(self, number: int, line: str) -> Entry:
        try:
            fields = json_object(line)
            kind = _kind(fields)
            if kind == "turn":
                return self._utterance(fields, number)
            if kind == "session":
                return self._session(fields, number)
            return self._fact(fields, number)
        except InvalidInput as refused:
            return bad_line(number, refused)

    def _utterance(self, fields: dict[str, Any], number: int) -> Utterance:
        session = clean_name(required(fields, "session"), field="session")
        actor = clean_name(required(fields, "actor"), field="actor")
        text = text_of(required(fields, "text"), field="text", bounds=self._bounds)
        instant = time_of(required(fields, "at"), field="at")
        role = role_of(fields.get("role"), actor=actor)
        turn = TurnCreate(
            text=text,
            occurred_at=instant,
            actor=actor,
            role=role,
            caption=self._text(fields, "caption"),
            external_id=_given_id(fields),
            metadata=metadata_of(fields.get("metadata"), bounds=self._bounds),
            tags=tags_of(fields.get("tags"), bounds=self._bounds),
            trust=trust_of(role),
        )
        if turn.external_id is None:
            names = self._names.setdefault(session, TurnNames(session))
            named = names.name(instant=instant, actor=actor, text=text)
            turn = replace(turn, external_id=named)
        project = _label(fields, "project") or self._projects.get(session)
        return Utterance(session=session, turn=turn, project=project, line=number)

    def _session(self, fields: dict[str, Any], number: int) -> SessionInfo:
        started_at, ended_at = _span(fields, "started_at", "ended_at")
        info = SessionInfo(
            name=clean_name(required(fields, "session"), field="session"),
            started_at=started_at,
            ended_at=ended_at,
            outcome=outcome_of(fields.get("outcome")),
            tools=names_of(fields.get("tools"), field="tools"),
            agents=names_of(fields.get("agents"), field="agents"),
            metadata=metadata_of(fields.get("metadata"), bounds=self._bounds),
            project=_label(fields, "project"),
            line=number,
        )
        if info.project is not None:
            self._projects[info.name] = info.project
        return info

    def _fact(self, fields: dict[str, Any], number: int) -> StatedFact:
        subject = clean_name(required(fields, "subject"), field="subject")
        predicate = clean_name(required(fields, "predicate"), field="predicate")
        stated = text_of(required(fields, "object"), field="object", bounds=self._bounds)
        valid_from, valid_to = _span(fields, "valid_from", "valid_to")
        confidence = fields.get("confidence")
        fact = FactCreate(
            subject=subject,
            predicate=predicate,
            object=stated,
            content=self._text(fields, "content"),
            confidence=CONFIDENCE_DEFAULT
            if confidence is None
            else checked_unit(confidence, field="confidence"),
            category=_label(fields, "category"),
            valid_from=valid_from,
            valid_to=valid_to,
            metadata=metadata_of(fields.get("metadata"), bounds=self._bounds),
            tags=tags_of(fields.get("tags"), bounds=self._bounds),
            source="transcript",
        )
        return StatedFact(
            fact=fact,
            external_id=_given_id(fields)
            or content_name(subject, predicate, stated, str(valid_from), str(valid_to)),
            session=_label(fields, "session"),
            project=_label(fields, "project"),
            line=number,
        )

    def _text(self, fields: dict[str, Any], key: str) -> str | None:
        value = fields.get(key)
        return None if value is None else text_of(value, field=key, bounds=self._bounds)


def _kind(fields: dict[str, Any]) -> str:
    """The type of the entry, none of whose keys is unknown to that type."""
    kind = required(fields, "type")
    if not isinstance(kind, str) or kind not in _KEYS:
        raise InvalidInput(f"must be one of {', '.join(_KEYS)}", field="type")
    only_known(fields, _KEYS[kind])
    return kind


def _label(fields: dict[str, Any], key: str) -> str | None:
    value = fields.get(key)
    return None if value is None else clean_name(value, field=key)


def _given_id(fields: dict[str, Any]) -> str | None:
    given = fields.get("id")
    return None if given is None else clean_text(given, field="id", chars_max=ID_CHARS_MAX)


def _span(fields: dict[str, Any], first: str, last: str) -> tuple[datetime | None, datetime | None]:
    """Both ends of a span, either of which may be left open; it does not end before it starts."""
    start, end = (
        None if fields.get(key) is None else time_of(fields[key], field=key)
        for key in (first, last)
    )
    if start is not None and end is not None and end < start:
        raise InvalidInput(f"lies before {first}; swap or correct them", field=last)
    return start, end
