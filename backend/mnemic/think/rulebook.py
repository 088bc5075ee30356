"""The rules that read facts from clauses; `docs/extraction.md` shows each with an example.

A pattern is matched against a whole clause. Of its named groups `who` is the subject (whoever
speaks, where there is none), `object` the object, and `attribute` and `how` end the predicate:
"my favourite *editor* is Vim", "deploys are *frozen* *on* Fridays".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["RULES", "Rule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One way of saying something: what it makes of a clause, and how sure that is.

    With `positive` it is silent in a clause with "not" or "never". With `whole` it is matched
    against whole sentences, and its object keeps reasons and conditions.
    """

    name: str
    category: str
    predicate: str
    confidence: float
    patterns: tuple[re.Pattern[str], ...]
    positive: bool = True
    whole: bool = False


_ME = r"(?:I|we)"
_OFTEN = r"(?:also |always |now |currently |mostly |usually |generally |really |still |all |both )*"
_DETERMINER = r"(?:the |our |my |this |all |every )?"
_NO_PRONOUN = (
    r"(?!(?:no|none|few|I|we|you|he|she|it|they|this|that|these|those|there|here|what|who|which|one|someone"
    r"|anyone|nobody|nothing|everything|everyone|people|please|if|when|and|but|so|or|not)\b)"
)
_WORD = r"[^\s,;:!?\"]+"
_WHO = rf"(?P<who>{_DETERMINER}{_NO_PRONOUN}[^\W_]{_WORD}(?: {_WORD}){{0,5}}?)"
_NAME = rf"(?P<who>{_DETERMINER}{_NO_PRONOUN}[^\W\d_]{_WORD}(?: {_WORD}){{0,2}}?)"
_OBJECT = r"(?P<object>\S.*)"
_JOBS = (
    r"engineer|developer|designer|manager|analyst|scientist|teacher|nurse|doctor|student|writer"
    r"|founder|consultant|architect|administrator|researcher|lawyer|accountant|programmer|chef"
    r"|editor|journalist|photographer|musician|artist"
)
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_HAPPENS = r"(?:runs?|happens?|go(?:es)? out|starts?|takes? place)"
# After "always" and "never", what is no order to somebody.
_NO_ORDER = r"(?:mind|again|the|an?|saw|seen|full|\w+(?:ing|ed))\b"
# After "must", what is a guess and no rule.
_GUESSED = r"(?:have (?:been|\w+ed|gone|done|had)|be \w+ing|not only)\b"
_STATES = (
    r"frozen|forbidden|prohibited|not allowed|banned|blocked|closed|locked|mandatory|required"
    r"|limited|capped|restricted|reserved|scheduled|kept"
)


def _rule(
    name: str,
    category: str,
    predicate: str,
    confidence: float,
    *patterns: str,
    positive: bool = True,
    whole: bool = False,
) -> Rule:
    return Rule(
        name=name,
        category=category,
        predicate=predicate,
        confidence=confidence,
        patterns=tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns),
        positive=positive,
        whole=whole,
    )


def _says(first: str, third: str) -> tuple[str, str]:
    """The same said of oneself, and of somebody or something named."""
    return rf"{_ME} {_OFTEN}(?:{first}) {_OBJECT}", rf"{_NAME} {_OFTEN}(?:{third}) {_OBJECT}"


RULES = (
    _rule(
        "lesson",
        "lesson",
        "lesson",
        0.85,
        rf"(?:the |one |another )?lessons?(?: learn(?:ed|t))?(?: is| was| here is)?(?: that)?[:,]? "
        rf"{_OBJECT}",
        positive=False,
        whole=True,
    ),
    _rule(
        "next time",
        "lesson",
        "lesson",
        0.75,
        rf"next time,? (?:please )?{_OBJECT}",
        positive=False,
        whole=True,
    ),
    _rule(
        "turns out",
        "lesson",
        "lesson",
        0.7,
        rf"(?:it )?(?:turns|turned) out,? (?:that )?{_OBJECT}",
        positive=False,
        whole=True,
    ),
    _rule(
        "learned",
        "lesson",
        "lesson",
        0.75,
        rf"{_ME} (?:have |just )*(?:learn(?:ed|t)|reali[sz]ed|found out|discovered) that {_OBJECT}",
        positive=False,
        whole=True,
    ),
    _rule(
        "hindsight",
        "lesson",
        "lesson",
        0.7,
        rf"(?:in hindsight,? )?(?P<object>{_ME} should(?:n't| not)? have \S.*)",
        rf"in hindsight,? {_OBJECT}",
        positive=False,
        whole=True,
    ),
    _rule(
        "root cause",
        "lesson",
        "root_cause",
        0.75,
        rf"(?:the )?root cause (?:of {_WHO} )?(?:was|is) (?:that )?{_OBJECT}",
        positive=False,
    ),
    _rule(
        "failure",
        "lesson",
        "failed_because",
        0.75,
        rf"{_WHO} (?:went wrong|failed|broke|crashed|went down) because (?:of )?{_OBJECT}",
        positive=False,
    ),
    _rule(
        "decision against",
        "decision",
        "decided_against",
        0.9,
        rf"(?:{_ME}|{_NAME}) (?:have |has )?{_OFTEN}decided against {_OBJECT}",
    ),
    _rule(
        "decision",
        "decision",
        "decided",
        0.9,
        rf"(?:{_ME}|{_NAME}) (?:have |has )?{_OFTEN}decided (?:to |on |for |that )?{_OBJECT}",
        rf"it (?:was|is|has been) decided (?:to |that ){_OBJECT}",
        rf"(?:the |our |my )?(?:final )?decision (?:is|was) (?:to |that )?{_OBJECT}",
        positive=False,
    ),
    _rule(
        "decision noted",
        "decision",
        "decided",
        0.9,
        rf"(?:the |our |my )?(?:final )?decision: {_OBJECT}",
        positive=False,
        whole=True,
    ),
    _rule(
        "choice",
        "decision",
        "decided",
        0.85,
        rf"(?:{_ME}|{_NAME}) (?:have |has )?{_OFTEN}(?:chose|chosen|picked|selected|settled on"
        rf"|opted for|went with|agreed on|agreed to|agreed that) {_OBJECT}",
    ),
    _rule(
        "name",
        "identity",
        "name",
        0.95,
        rf"my (?:full |first |last )?name is {_OBJECT}",
        rf"(?:you can |you may )?call me {_OBJECT}",
        rf"{_ME}(?: am|'m) called {_OBJECT}",
    ),
    _rule(
        "home",
        "identity",
        "lives_in",
        0.9,
        *_says("live in|am based in|are based in", "lives in|is based in"),
        rf"{_ME}'(?:m|re) {_OFTEN}based in {_OBJECT}",
    ),
    _rule(
        "employer", "identity", "works_at", 0.9, *_says("work at|work for", "works at|works for")
    ),
    _rule(
        "occupation",
        "identity",
        "works_as",
        0.85,
        *_says("work as an?", "works as an?"),
        rf"{_ME}(?: am|'m) an? (?P<object>(?:{_WORD} ){{0,3}}(?:{_JOBS})\b.*)",
    ),
    _rule("language", "identity", "speaks", 0.8, *_says("speak", "speaks")),
    _rule("time zone", "identity", "time_zone", 0.9, rf"my time ?zone is {_OBJECT}"),
    _rule(
        "about me",
        "identity",
        "",
        0.85,
        r"my (?P<attribute>birthday|role|team|hometown|native language|mother tongue|pronouns"
        rf"|job title|employer) (?:is|are) {_OBJECT}",
    ),
    _rule(
        "favourite",
        "preference",
        "favourite",
        0.9,
        rf"my favou?rite (?P<attribute>\w[\w -]{{0,29}}?) (?:is|are) {_OBJECT}",
    ),
    _rule("preference", "preference", "prefers", 0.9, *_says("prefer", "prefers")),
    _rule(
        "liking",
        "preference",
        "likes",
        0.7,
        *_says("like|love|enjoy|adore", "likes|loves|enjoys|adores"),
    ),
    _rule(
        "dislike",
        "preference",
        "dislikes",
        0.75,
        *_says(
            "hate|dislike|detest|can't stand|cannot stand",
            "hates|dislikes|detests|can't stand|cannot stand",
        ),
        positive=False,
    ),
    _rule(
        "standing wish",
        "preference",
        "wants",
        0.8,
        rf"(?:please )?(?P<object>(?:always|never) (?!{_NO_ORDER})\w.*)",
        rf"from now on,? (?:please )?{_OBJECT}",
        positive=False,
    ),
    _rule(
        "use",
        "use",
        "uses",
        0.8,
        *_says(
            "use|rely on|am using|are using|(?:have )?switched to|(?:have )?migrated to",
            "uses|relies on|runs on|is using|(?:has )?switched to|(?:has )?migrated to",
        ),
        rf"{_ME}'(?:m|re) {_OFTEN}using {_OBJECT}",
    ),
    _rule(
        "deadline",
        "constraint",
        "deadline",
        0.85,
        rf"{_WHO} (?:is|are) due (?:on |by |at |in )?{_OBJECT}",
        rf"the deadline (?:for|of) {_WHO} is {_OBJECT}",
    ),
    _rule(
        "state",
        "constraint",
        "",
        0.85,
        rf"{_WHO} (?:is|are) (?:always |strictly )?(?P<attribute>{_STATES})"
        rf" (?P<how>on|in|during|after|before|for|to|at|until|by|from) {_OBJECT}",
        positive=False,
    ),
    _rule(
        "schedule",
        "constraint",
        "scheduled",
        0.75,
        rf"{_WHO} {_HAPPENS} (?P<how>every) {_OBJECT}",
        rf"{_WHO} {_HAPPENS} (?P<how>on) (?P<object>{_WEEKDAY}\b.*)",
    ),
    _rule(
        "prohibition",
        "constraint",
        "must_not",
        0.85,
        rf"(?:{_ME}|{_WHO}) must (?:not (?!only\b)|never ){_OBJECT}",
        positive=False,
    ),
    _rule(
        "obligation",
        "constraint",
        "must",
        0.85,
        rf"(?:{_ME}|{_WHO}) must (?!{_GUESSED})(?:always )?{_OBJECT}",
    ),
    _rule("requirement", "constraint", "requires", 0.8, rf"{_WHO} requires? {_OBJECT}"),
)
