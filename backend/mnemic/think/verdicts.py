"""How a session went, who and what took part, what was wanted, and how much it matters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mnemic.model.episode import Outcome
from mnemic.model.normalise import comparison_key, is_blank
from mnemic.think import cues
from mnemic.think.protocol import SessionRecord
from mnemic.think.said import Said
from mnemic.think.sentences import is_question

__all__ = [
    "agents_of",
    "importance_of",
    "intents_of",
    "lessons_of",
    "outcome_of",
    "tools_of",
]

CLOSING_TURNS = 6
INTENTS_MAX = 5
LESSONS_MAX = 5
NAMES_MAX = 50
LESSON_CHARS_MAX = 500
_STATUS = {
    Outcome.SUCCESS: ("done", "completed", "complete", "success", "succeeded", "finished"),
    Outcome.FAILURE: ("failed", "failure", "error", "aborted", "cancelled", "canceled"),
    Outcome.PARTIAL: ("partial", "blocked", "paused", "in_progress", "in progress", "waiting"),
}
_OUTCOME_OF_STATUS = {word: outcome for outcome, words in _STATUS.items() for word in words}
_TOOL_KEYS = ("tool", "tool_name", "tools", "tool_calls")
_AGENT_KEYS = ("agent", "agent_name", "agents")
_NAMELESS_TOOLS = frozenset({"tool", "tools", "function"})
_INTENTS = (
    (
        "fix problem",
        r"fix|debug|repair|broken|bugs?|crash(?:es|ed)?|errors?|fail(?:s|ed|ing)?",
    ),
    ("remember preference", r"remember|(?:i|we) prefer|don't forget|keep in mind"),
    ("choose option", r"choose|decide|decided|which|pick|compare|versus|vs|better"),
    ("implement feature", r"implement|add|build|create|develop|integrate|set up|setup"),
    ("change code", r"refactor|rename|migrat(?:e|ion)|replace|upgrade|rewrite|clean up"),
    ("release software", r"deploy(?:s|ed|ment)?|releas(?:e|es|ed)|ship|promote|roll(?:ed)? back"),
    ("review work", r"review|look over|go through|check|audit|write up"),
    ("plan work", r"plan|schedule|due|deadline|next on|roadmap|remind"),
    ("test work", r"tests?|rehearse|verify|benchmark"),
    ("write text", r"draft|document|summari[sz]e|translate|write"),
    ("understand something", r"explain|why|how does|what is|what are|what does|understand"),
)
_INTENT_PATTERNS = tuple(
    (intent, re.compile(rf"\b(?:{words})\b", re.IGNORECASE)) for intent, words in _INTENTS
)
_WEIGHT_BASE = 0.15
_WEIGHT_OUTCOME = 0.15
_WEIGHT_LENGTH = 0.15
_WEIGHT_VARIETY = 0.10
_WEIGHT_COST = 0.10
_WEIGHT_SIGNALS = 0.20
_WEIGHT_DECISIONS = 0.15
_OUTCOME_VALUE = {Outcome.FAILURE: 1.0, Outcome.PARTIAL: 0.7, Outcome.SUCCESS: 0.4}
_TURNS_FULL = 64
_TERMS_HALF = 60
_TOKENS_FULL = 100_000


def outcome_of(session: SessionRecord, said: Sequence[Said]) -> Outcome:
    """The caller's verdict; else the task's status; else what the last turns tell.

    Of the last six turns the latest user's sentence with a cue decides, else the latest of anybody:
    failure ("still broken", "rolled back"), partial ("for now", "not yet") or success ("thanks",
    "works now"). A sentence with cues of both kinds is partial. A session that ends without any
    cue was completed, and that is a success.
    """
    if session.outcome_hint is not None:
        return session.outcome_hint
    known = _OUTCOME_OF_STATUS.get((session.status or "").strip().casefold())
    if known is not None:
        return known
    start = max(0, len(session.turns) - CLOSING_TURNS)
    closing = [one for one in reversed(said) if one.place >= start]
    for speakers in (("user",), ("user", "assistant", "tool", "note")):
        for one in closing:
            if one.role in speakers and (told := _told(one)) is not None:
                return told
    return Outcome.SUCCESS


def _told(one: Said) -> Outcome | None:
    if is_question(one.text):
        return None
    failed, succeeded = cues.is_failure(one.plain), cues.is_success(one.plain)
    if (failed and succeeded) or cues.is_partial(one.plain):
        return Outcome.PARTIAL
    if failed:
        return Outcome.FAILURE
    return Outcome.SUCCESS if succeeded else None


def lessons_of(said: Iterable[Said]) -> tuple[str, ...]:
    """The sentences that draw a lesson, whole, each once, at most five."""
    found = dict[str, str]()
    for one in said:
        if len(found) == LESSONS_MAX:
            break
        if (
            one.role in {"user", "assistant", "note"}
            and len(one.text) <= LESSON_CHARS_MAX
            and not is_question(one.text)
            and cues.is_lesson(one.plain)
        ):
            found.setdefault(comparison_key(one.text), one.text)
    return tuple(found.values())


def intents_of(session: SessionRecord, said: Iterable[Said]) -> tuple[str, ...]:
    """What users wanted, in the order it came up, at most five; read from requests and questions.

    The intents are those of a fixed list, such as "fix problem" or "choose option".
    """
    found = dict[str, None]()
    for text in _wishes(session, said):
        for intent, pattern in _INTENT_PATTERNS:
            if pattern.search(text):
                found.setdefault(intent)
                break
        if len(found) == INTENTS_MAX:
            break
    return tuple(found)


def _wishes(session: SessionRecord, said: Iterable[Said]) -> Iterator[str]:
    if session.task:
        yield session.task
    for one in said:
        if one.role == "user" and (
            cues.is_request(one.plain) or cues.is_signal(one.plain) or is_question(one.text)
        ):
            yield one.plain


def tools_of(session: SessionRecord) -> tuple[str, ...]:
    """Names of the tools in the order of first use: of tool turns, of metadata, then known ones."""
    return _names(_tools(session))


def agents_of(session: SessionRecord) -> tuple[str, ...]:
    """Names of the agents in the order they appear: of metadata, then known ones."""
    named = (
        name
        for turn in session.turns
        for key in _AGENT_KEYS
        for name in _named(turn.metadata.get(key))
    )
    return _names([*named, *session.agents])


def _tools(session: SessionRecord) -> Iterator[str]:
    for turn in session.turns:
        given = [name for key in _TOOL_KEYS for name in _named(turn.metadata.get(key))]
        if turn.role == "tool" and not given:
            given = list(_named(turn.metadata.get("name")))
            if not given and turn.actor.casefold() not in _NAMELESS_TOOLS:
                given = [turn.actor]
        yield from given
    yield from session.tools


def _named(value: Any) -> Iterator[str]:
    """Names in the shapes hosts use: a text, a list, `{"name": …}`, `{"function": {"name": …}}`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Sequence):
        for item in value[:NAMES_MAX]:
            if not isinstance(item, list | tuple):
                yield from _named(item)
    elif isinstance(value, Mapping):
        function = value.get("function")
        inner = function.get("name") if isinstance(function, Mapping) else value.get("name")
        if isinstance(inner, str):
            yield inner


def _names(names: Iterable[str]) -> tuple[str, ...]:
    found = dict[str, str]()
    for name in names:
        if not is_blank(name) and len(found) < NAMES_MAX:
            found.setdefault(comparison_key(name), " ".join(name.split()))
    return tuple(found.values())


def importance_of(session: SessionRecord, said: Sequence[Said], outcome: Outcome) -> float:
    """How much the session matters, from 0.21 to 1, rounded to three digits.

    0.15 + 0.15·outcome + 0.15·length + 0.10·variety + 0.10·cost + 0.20·signals + 0.15·decisions,
    each part from 0 to 1: outcome 1 for failure, 0.7 partial, 0.4 success; length ln(1 + turns) /
    ln 65, at most 1; variety d / (d + 60) for d distinct terms; cost ln(1 + tokens) / ln 100,001,
    at most 1, a token being four characters when they were not counted; signals 1 - ½ⁿ for n
    user's sentences with "remember", "important", "always", "never" …; decisions 1 - ½ⁿ for n
    decisions and lessons.
    """
    tokens = session.tokens_used
    if tokens is None:
        tokens = sum(len(turn.text) for turn in session.turns) // 4
    distinct = len({term for one in said for term in one.terms})
    signals = sum(one.role in {"user", "note"} and cues.is_signal(one.plain) for one in said)
    decisions = sum(
        not is_question(one.text) and (cues.is_decision(one.plain) or cues.is_lesson(one.plain))
        for one in said
    )
    parts = (
        _WEIGHT_BASE,
        _WEIGHT_OUTCOME * _OUTCOME_VALUE[outcome],
        _WEIGHT_LENGTH * min(1.0, math.log1p(len(session.turns)) / math.log1p(_TURNS_FULL)),
        _WEIGHT_VARIETY * distinct / (distinct + _TERMS_HALF),
        _WEIGHT_COST * min(1.0, math.log1p(max(0, tokens)) / math.log1p(_TOKENS_FULL)),
        _WEIGHT_SIGNALS * (1 - 0.5**signals),
        _WEIGHT_DECISIONS * (1 - 0.5**decisions),
    )
    return round(min(1.0, math.fsum(parts)), 3)
