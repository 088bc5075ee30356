"""The summary of a session: two or three of its sentences, whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from mnemic.think import cues
from mnemic.think.protocol import SessionRecord
from mnemic.think.said import Said, Weights
from mnemic.think.titles import date_of

__all__ = ["opening_of", "summary_of"]

SENTENCE_CHARS_MAX = 400
OPENING_TURNS = 4
CLOSING_SHARE = 3
THREE_FROM_SENTENCES = 4
TERMS_MIN = 2
_REQUEST_BONUS = 0.6
_ENDING_BONUS = 0.4
_KNOWN_SHARE = 0.25
_LEANING_FACTOR = 0.5
# Such a sentence is understood only beside the one before it.
_LEANING = re.compile(
    r"(?:it|that|this|they|these|those|he|she|then|so|which|here|i will|i'll)\b", re.IGNORECASE
)
_ENDS = (".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f", '."', "!'", '!"', ".)")


def opening_of(said: Sequence[Said], weights: Weights) -> Said | None:
    """The sentence that tells what the session is about: an early one, a user's if possible.

    Among equals the first: a session says early what it is for.
    """
    early, turns = list[Said](), dict[int, None]()
    for one in said:
        if one.role != "user" or cues.is_greeting(one.plain):
            continue
        turns.setdefault(one.place)
        if len(turns) > OPENING_TURNS:
            break
        early.append(one)
    if not early:
        early = [one for one in said if not cues.is_greeting(one.plain)][:OPENING_TURNS]

    def aim(one: Said) -> float:
        return weights.mean(one) + (_REQUEST_BONUS if cues.is_request(one.plain) else 0)

    return max(early, key=aim, default=None)


def summary_of(session: SessionRecord, said: Sequence[Said], weights: Weights) -> str:
    """What it was about, what mattered most, and how it ended, in the order it was said.

    Sentences stay whole; those over 400 characters are passed over, and what is said already
    counts for less. A speaker is named where the speaker changes, if there are several. When there
    are too few sentences, one that counts the turns stands in their place.
    """
    tellable = [one for one in said if _tellable(one)]
    chosen = _chosen(tellable, weights)
    several = len({one.speaker for one in said}) > 1
    lines, speaker = list[str](), ""
    for one in sorted(chosen, key=lambda one: one.place):
        text = one.text if one.text.endswith(_ENDS) else f"{one.text}."
        lines.append(f"{one.speaker}: {text}" if several and one.speaker != speaker else text)
        speaker = one.speaker
    if not lines:
        lines.append("What was said is code, or too long to quote.")
    if len(lines) == 1:
        lines.append(_count(session))
    return " ".join(lines)


def _tellable(one: Said) -> bool:
    return len(one.text) <= SENTENCE_CHARS_MAX and not one.text.endswith((":", "\uff1a"))


def _chosen(tellable: Sequence[Said], weights: Weights) -> list[Said]:
    opening = opening_of(tellable, weights)
    if opening is None:
        return list(tellable[:1])
    chosen = [opening]
    said = [one for one in tellable if one is not opening and not cues.is_greeting(one.plain)]
    if core := _best(said, chosen, weights.salience):
        chosen.append(core)
    if len(tellable) >= THREE_FROM_SENTENCES:
        start = said[-1].place - said[-1].place // CLOSING_SHARE if said else 0
        late = (one for one in said if one.place >= start)

        def ending(one: Said) -> float:
            tells = cues.is_success(one.plain) or cues.is_failure(one.plain)
            return weights.salience(one) + (_ENDING_BONUS if tells else 0)

        if last := _best(late, chosen, ending):
            chosen.append(last)
    return chosen


def _best(
    said: Iterable[Said], chosen: Sequence[Said], value: Callable[[Said], float]
) -> Said | None:
    """The one of most value; what the chosen ones already say counts for less."""
    known = {term for one in chosen for term in one.terms}
    found, most = None, 0.0
    for one in said:
        if one in chosen or len(one.terms) < TERMS_MIN:
            continue
        new = sum(term not in known for term in one.terms) / len(one.terms)
        worth = value(one) * (_KNOWN_SHARE + (1 - _KNOWN_SHARE) * new)
        if _LEANING.match(one.text):
            worth *= _LEANING_FACTOR
        if worth > most:
            found, most = one, worth
    return found


def _count(session: SessionRecord) -> str:
    turns = len(session.turns)
    if not turns:
        return "Nothing was said in the session."
    return f"The session of {date_of(session)} has {turns} turn{'' if turns == 1 else 's'}."
