"""Facts that a text states, by rule: which words made which fact can always be told.

Sentences are read one by one, without code, quoted lines and passages in quotation marks. What is
asked, supposed, denied, reported of others' words, or longer than 500 characters is no statement.
See `rulebook` for the rules and `docs/extraction.md` for an example of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from mnemic.model.fact import FactCreate
from mnemic.model.normalise import comparison_key
from mnemic.model.trust import Trust
from mnemic.think.dates import date_in
from mnemic.think.rulebook import RULES, Rule
from mnemic.think.sentences import is_question, sentences_of

__all__ = ["extract_facts"]

SENTENCE_CHARS_MAX = 500
OBJECT_CHARS_MAX = 300
SUBJECT_CHARS_MAX = 100
FACTS_MAX = 100
LEADS_MAX = 5
# A word that could as well belong to the statement ("no deploys …") needs a mark behind it.
_LEAD = re.compile(
    r"(?:(?:please )?(?:note|remember|keep in mind|don't forget|be aware|just so you know)"
    r"(?: that\b)?"
    r"|well|so|and|but|also|then|oh|fyi|btw|by the way|actually|in fact|of course|basically|today"
    r"|as (?:you know|i said)|for the record|these days|as of today)(?:[,:!.]+ *| +|$)"
    r"|(?:hi|hello|hey|ok|okay|yes|yeah|no|agreed|good|great|perfect|right|sure|thanks|thank you"
    r"|reminder|important(?:ly)?|one more thing)(?:[,:!.]+ *|$)",
    re.IGNORECASE,
)
_CLAUSES = re.compile(
    r"[;:] +|, (?:but|so) |, and (?=(?:i|we|my|our|the)\b)| and (?=(?:i|we|my)\b)"
    r"| [\u2013\u2014-] ",
    re.IGNORECASE,
)
_QUOTED = re.compile('"[^"]*"|\u201c[^\u201d]*\u201d|\u00ab[^\u00bb]*\u00bb')
_REPORTED = re.compile(
    r"\b(?:said|says|saying|told|tells|claim(?:s|ed)? that|wrote|asked|asks|according to"
    r"|apparently|reportedly|allegedly|supposedly)\b",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\b(?:if|unless|whether|would|could|might|maybe|perhaps|suppose|supposing|imagine|assume"
    r"|assuming|probably|possibly|hypothetically|pretend|in case|wish|not sure)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|never|no longer|neither|nor|cannot|hardly)\b|n't\b", re.IGNORECASE)
_REASON = re.compile(
    r",? (?:because(?: of)?|since|so that|given that|as (?=(?:it|we|they|i|there)\b)) ?"
    r"(?P<reason>.+)",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r",? (?:but|although|though|however|whereas|while|which|who|where|with which)\b.*"
    r"|, (?:and|so|with|not|or|as|when|too|please|by the way|it|this|he|she|they|we|i|you)\b.*"
    r"|;.*| and (?:is|are|was|were|will|then)\b.*",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"(?:,? (?:please|too|as well|anymore|now|these days|nowadays|by the way|thanks?|at the moment"
    r"|for now|again))+$",
    re.IGNORECASE,
)
_POINTER = re.compile(
    r"(?:it|that|this|them|these|those|you|your|how|what|when|him|her|us|me|one|so|there)\b"
    r"(?!-)",
    re.IGNORECASE,
)
_INSTEAD = re.compile(r"^(.+?) (?:over|rather than|instead of|in place of) (.+)$", re.IGNORECASE)
_PREFERRED_TO = re.compile(r"^(?!to )(.+?) to (?!be )(.+)$", re.IGNORECASE)
_PURPOSE = re.compile(r"^(.+?) (?:for|as|to) (.+)$", re.IGNORECASE)
_MARKS = " .,;:!\u2026\u3002"


def extract_facts(text: str, *, actor: str, occurred_at: datetime) -> list[FactCreate]:
    """What `actor` states in the text, each statement once, in order; at most 100.

    The first person is `actor`. A fact's `content` is the sentence as written, `valid_from` the
    time it was said, `metadata["rule"]` the rule; a reason, a purpose, what it is preferred to and
    the day of a deadline are beside it. Its trust is that of an inference.
    """
    found: dict[tuple[str, ...], FactCreate] = {}
    for sentence in sentences_of(text):
        for fact in _facts_of(sentence, actor, occurred_at):
            key = tuple(map(comparison_key, (fact.subject, fact.predicate, fact.object)))
            found.setdefault(key, fact)
        if len(found) >= FACTS_MAX:
            break
    return list(found.values())[:FACTS_MAX]


def _facts_of(sentence: str, actor: str, occurred_at: datetime) -> Iterator[FactCreate]:
    plain = sentence.replace("\u2019", "'").replace("'ve ", " have ")
    if len(plain) > SENTENCE_CHARS_MAX or is_question(plain) or _speaks_for_others(plain):
        return
    stated = _without_lead(plain)
    for rule in RULES:
        if rule.whole and (fact := _fact(rule, stated, sentence, actor, occurred_at)) is not None:
            yield fact
            break
    if _SUPPOSED.search(_REASON.sub("", plain)):
        return
    for clause in _CLAUSES.split(stated):
        for rule in RULES:
            if rule.whole:
                continue
            fact = _fact(rule, _without_lead(clause), sentence, actor, occurred_at)
            if fact is not None:
                yield fact
                break


def _speaks_for_others(sentence: str) -> bool:
    quotes = _QUOTED.findall(sentence)
    return any(" " in quote.strip() for quote in quotes) or _REPORTED.search(sentence) is not None


def _without_lead(clause: str) -> str:
    for _ in range(LEADS_MAX):
        found = _LEAD.match(clause)
        if found is None:
            break
        clause = clause[found.end() :]
    return clause.strip(_MARKS)


def _fact(
    rule: Rule, clause: str, sentence: str, actor: str, occurred_at: datetime
) -> FactCreate | None:
    for pattern in rule.patterns:
        if (match := pattern.fullmatch(clause)) is None:
            continue
        parts = match.groupdict()
        metadata: dict[str, Any] = {"rule": rule.name}
        stated = _object(rule, parts["object"], metadata)
        subject = _subject(parts.get("who"), actor)
        said = clause[: match.start("object")] + stated
        if (
            not stated
            or len(stated) > OBJECT_CHARS_MAX
            or len(subject) > SUBJECT_CHARS_MAX
            or (rule.positive and _DENIED.search(said))
        ):
            continue
        if rule.predicate == "deadline" and (day := date_in(stated, occurred_at)) is not None:
            metadata["date"] = day.isoformat()
        named = (rule.predicate, parts.get("attribute"), parts.get("how"))
        return FactCreate(
            subject=subject,
            predicate="_".join("_".join(filter(None, named)).lower().split()),
            object=stated,
            content=sentence,
            confidence=rule.confidence,
            category=rule.category,
            valid_from=occurred_at,
            metadata=metadata,
            trust=Trust.INFERRED,
            source="rules",
        )
    return None


def _subject(who: str | None, actor: str) -> str:
    if not who:
        return actor
    first, _, rest = who.partition(" ")
    if not rest or first.lower() not in {"the", "our", "my", "this"}:
        return who
    return f"{actor}'s {rest}" if first.lower() == "my" else rest


def _object(rule: Rule, text: str, metadata: dict[str, Any]) -> str:
    """The object without reasons, side clauses and courtesies, which go to the metadata or away."""
    if rule.whole:
        return text.strip(_MARKS)
    if reason := _REASON.search(text):
        metadata["reason"] = reason["reason"].strip(_MARKS)
        text = text[: reason.start()]
    text = _COURTESY.sub("", _TAIL.sub("", text).strip(_MARKS)).strip(_MARKS)
    if rule.name in {"preference", "use", "choice"} and (instead := _INSTEAD.match(text)):
        text, metadata["over"] = instead[1], instead[2]
    elif rule.name == "preference" and (less := _PREFERRED_TO.match(text)):
        text, metadata["over"] = less[1], less[2]
    if rule.name == "use":
        text = _used(text, metadata)
    elif rule.name == "employer":
        text = text.partition(" as ")[0]
    return "" if _POINTER.match(text) else text


def _used(text: str, metadata: dict[str, Any]) -> str:
    """The thing that is used; what for stands in the metadata. "Use to do" is no use."""
    over = metadata.get("over")
    if over is not None and (purpose := _PURPOSE.match(over)):
        metadata["over"], metadata["purpose"] = purpose[1], purpose[2]
    elif purpose := _PURPOSE.match(text):
        text, metadata["purpose"] = purpose[1], purpose[2]
    return "" if text.lower().startswith("to ") else text
