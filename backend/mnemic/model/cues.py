"""What the wording of a question or of a memory gives away: names, times, dates.

Pure rules over English wording (other scripts where a mark says it all). They feed signals that
add to a score and never filter, so a wrong guess moves a hit and loses none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise

__all__ = [
    "Cues",
    "DateMention",
    "cues_of",
    "date_match",
    "date_spans",
    "dates_in",
    "ends_with_question",
    "first_person",
    "has_name",
    "has_time_expression",
    "ranges_in",
]

CUE_CHARS_MAX = 20_000
DATES_MAX = 8
_MENTIONS_MAX = 64
_TAIL_CHARS = 40
_MONTHS = 12
_FULL, _PART = 1.0, 0.5

_MONTH_NUMBERS = {
    **dict.fromkeys(("january", "jan"), 1),
    **dict.fromkeys(("february", "feb"), 2),
    **dict.fromkeys(("march", "mar"), 3),
    **dict.fromkeys(("april", "apr"), 4),
    "may": 5,
    **dict.fromkeys(("june", "jun"), 6),
    **dict.fromkeys(("july", "jul"), 7),
    **dict.fromkeys(("august", "aug"), 8),
    **dict.fromkeys(("september", "sept", "sep"), 9),
    **dict.fromkeys(("october", "oct"), 10),
    **dict.fromkeys(("november", "nov"), 11),
    **dict.fromkeys(("december", "dec"), 12),
}
# Words of everyday English too: a month only beside a number or a word of time.
_DOUBTFUL = frozenset({"may", "march", "mar", "sep", "dec", "jan", "jun", "nov"})

# Names of people too: a month for certain only where nothing else makes sense.
_NAMES = frozenset(
    {"april", "may", "june", "august", "january", "march", "jan", "mar", "jun", "dec"}
)

_MONTH = "|".join(sorted(_MONTH_NUMBERS, key=len, reverse=True))
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)\d\d"
_DATES = re.compile(
    rf"""(?<![\w.-])(?:
      (?P<iso_year>{_YEAR})-(?P<iso_month>0[1-9]|1[0-2])(?:-(?P<iso_day>0[1-9]|[12]\d|3[01]))?
    | (?P<day>{_DAY})\s+(?:of\s+)?(?P<day_month>{_MONTH})\.?(?:,?\s+(?P<day_year>{_YEAR}))?
    | (?P<month>{_MONTH})\.?(?:\s+(?P<month_day>{_DAY}))?(?:,?\s+(?:of\s+)?(?P<month_year>{_YEAR}))?
    | (?P<year>{_YEAR})
    )(?![\w-])
    | (?P<east_year>{_YEAR})\s?[年년](?:\s?(?P<east_month>1[0-2]|0?[1-9])\s?[月월]
      (?:\s?(?P<east_day>3[01]|[12]\d|0?[1-9])\s?[日号號일])?)?""",
    re.IGNORECASE | re.VERBOSE,
)
# "from May to July 2023" and "between May and July 2023": what stands before, and what between.
_RANGE_STARTS = re.compile(r"\b(from|between)(?:\s+the)?\s+$", re.IGNORECASE)
_RANGE_JOINS = {
    "from": re.compile(
        r"\s*(?:to|until|till|through|[-\u2013\u2014])(?:\s+the)?\s*", re.IGNORECASE
    ),
    "between": re.compile(r"\s*(?:and|[-\u2013\u2014])(?:\s+the)?\s*", re.IGNORECASE),
}
# "port 2024" and "2000 years ago" are numbers, not years.
_NUMBER_BEFORE = re.compile(
    r"(?:[#$€£]|\b(?:ports?|rooms?|numbers?|no|ids?|issues?|tickets?|errors?|codes?|versions?"
    r"|lines?|pages?|about|approximately|over|under|than)\W{0,3})$",
    re.IGNORECASE,
)
_NUMBER_AFTER = re.compile(
    r"\s*(?:%|[.,]\d|(?:years?|months?|weeks?|days?|hours?|minutes?|seconds?|miles?|km|dollars?|euros?"
    r"|points?|people|times|steps?|calories|bytes|rows|[mk]?[gbl]s?)\b)",
    re.IGNORECASE,
)
_TIME_BEFORE = re.compile(
    r"\b(?:in|during|since|until|till|by|before|after|from|between|around|early|late|mid|last|next"
    r"|this|every|of|to|and|or)\W{1,3}$",
    re.IGNORECASE,
)
_MONTH_BEFORE = re.compile(
    r"\b(?:in|during|since|until|till|before|after|last|next|of|early|late|mid|this|every)\W{1,3}$",
    re.IGNORECASE,
)
_OWNER_AFTER = re.compile(r"['\u2019]s\b", re.IGNORECASE)
_MONTHS_JOIN = re.compile(
    r"\.?\s*(?:[,&/\u2013\u2014-]|,?\s(?:and|or|to|until|till|through))\s*", re.IGNORECASE
)

_STARTS_WITH_TIME = re.compile(
    r"\W*(?:(?:on|in|by|for|since|until|around)\s+)?"
    r"(?:when\b|how\s+long\b|(?:what|which)\s+(?:date|year|month|day)s?\b)",
    re.IGNORECASE,
)
_ASKS_TIME = re.compile(
    r"什么时候|什麼時候|何时|何時|哪[年天]|几[月号点]|いつ|何[年月日]|언제|몇\s?[월년]"
    r"|\bкогда\b|\bمتى\b",  # noqa: RUF001 - Cyrillic is meant
    re.IGNORECASE,
)
_WANTS_NAME = re.compile(
    r"\b(?:who|whom|whose|names?|named|called|titles?|titled|brands?)\b"
    r"|\b(?:what|which)\s+(?:\w+\s+){0,2}?(?:books?|movies?|films?|songs?|bands?|artists?|authors?"
    r"|musicians?|singers?|composers?|shows?|series|games?|cit(?:y|ies)|countr(?:y|ies)|states?"
    r"|places?|towns?|restaurants?|company|companies|schools?|universit(?:y|ies)|colleges?)\b"
    r"|^\W*where\b",
    re.IGNORECASE,
)
# Names are they/their by then, so "they and they" are two people asked about at once.
_BOTH = re.compile(
    r"\b(?:both|each\s+other|in\s+common|together)\b|\bthe(?:y|ir)\s+(?:and|or|&)\s+the(?:y|ir)\b",
    re.IGNORECASE,
)

_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_UNIT = (
    r"(?:second|minute|hour|day|night|week|weekend|month|year|decade|summer|winter|spring|fall"
    r"|autumn)s?"
)
_COUNT = (
    r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|few|couple(?:\s+of)?|several"
    r"|many|some)"
)
_TIME_EXPRESSION = re.compile(
    rf"\b(?:yesterday|today|tonight|tomorrow|nowadays|recently|lately|{_WEEKDAY}"
    rf"|(?:last|next|this|past|previous|coming|every|each)\s+(?:{_COUNT}\s+)?"
    rf"(?:{_UNIT}|morning|afternoon|evening|time)"
    rf"|{_COUNT}\s+{_UNIT}|{_UNIT}\s+ago|ago|since|in\s+{_YEAR}|the\s+other\s+day"
    r"|january|february|april|june|july|august|september|october|november|december"
    r"|(?:in|last|next|this|since|by|until|early|late|mid)\s+(?:may|march)"
    rf"|(?:may|march)\s+{_DAY}|{_DAY}\s+(?:of\s+)?(?:may|march)|{_YEAR}-\d\d|{_YEAR})\b",
    re.IGNORECASE,
)
_TIME_ELSEWHERE = re.compile(
    r"[昨今明前后後]天|[去今明]年|[上下]个?(?:周|星期|月)|\d\s?[年月日号]|[昨今明]日|[先来][週月]"
    r"|어제|오늘|내일|작년|내년|지난\s?[주달]|다음\s?[주달]|\d\s?[년월일]"
    r"|\b(?:вчера|сегодня|завтра|прошл\w+|следующ\w+|назад)\b"
    r"|\bأمس\b|\bاليوم\b|\bغدا|الماضي|القادم",  # noqa: RUF001 - Arabic is meant
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"\b(?:i|im|ive|me|my|mine|myself|we|us|our|ours|ourselves)\b"
    r"|\b(?:я|мне|меня|мной|мы|нас|нам|мой|моя|моё|мои|наш|наша|наши)\b|我|أنا",
    re.IGNORECASE,
)
_QUESTION_TAIL = re.compile(r"[?\uff1f\u061f][^\w]*\Z")
# A capitalised word after a word of the same sentence; "I" and its contractions are no names.
_MID_CAPITAL = re.compile(
    r"(?<=[\w,;:)'&\"\u201d-])\s+[\"\u201c'(]?(?!I\b|OK\b|"
    r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|(?:January|February|March|April|May|June|July"
    r"|August|September|October|November|December)\b)[A-Z]"
)
_QUOTED = re.compile(r"[\"\u201c«「『]\s*[^\W\d_][^\"”»」』]{1,80}[\"”»」』]")


@dataclass(frozen=True, slots=True)
class DateMention:
    """A date as it was named; what was not named is None."""

    year: int | None = None
    month: int | None = None
    day: int | None = None


@dataclass(frozen=True, slots=True)
class Cues:
    """What a question asks for; `any_year` are months, of one that names no year at all."""

    wants_name: bool = False
    wants_time: bool = False
    about_both: bool = False
    dates: tuple[DateMention, ...] = ()
    ranges: tuple[tuple[datetime, datetime], ...] = ()
    any_year: tuple[int, ...] = ()


def cues_of(text: str) -> Cues:
    """The cues of a question; only its first `CUE_CHARS_MAX` characters are read."""
    head = text[:CUE_CHARS_MAX]
    return Cues(
        wants_name=_WANTS_NAME.search(head) is not None,
        wants_time=bool(_STARTS_WITH_TIME.match(head) or _ASKS_TIME.search(head)),
        about_both=_BOTH.search(head) is not None,
        dates=dates_in(head),
        ranges=ranges_in(head),
        any_year=_any_year(head),
    )


def dates_in(text: str) -> tuple[DateMention, ...]:
    """The dates, months and years named, in order, each once, at most `DATES_MAX`.

    "port 9077" is no year, "may I" no month; a day that its month does not have is left out.
    """
    found: dict[DateMention, None] = {}
    for _, _, mention in _mentions(text):
        found[mention] = None
        if len(found) == DATES_MAX:
            break
    return tuple(found)


def ranges_in(text: str) -> tuple[tuple[datetime, datetime], ...]:
    """What lies between two dates of a text, "from … to …" or "between … and …", in UTC.

    From the beginning of the first to before the end of the second, which must name its year; the
    first has the same year if it names none. At most `DATES_MAX`.
    """
    found: list[tuple[datetime, datetime]] = []
    mentions = list(islice(_mentions(text), _MENTIONS_MAX))
    for (start, end, first), (following, _, second) in pairwise(mentions):
        word = _RANGE_STARTS.search(text[max(0, start - _TAIL_CHARS) : start])
        between = text[end:following]
        if word is None or _RANGE_JOINS[word[1].lower()].fullmatch(between) is None:
            continue
        year = second.year if first.year is None else first.year
        day = _day_of(year, first.month, first.day)
        begins, ends = _beginning(replace(first, year=year, day=day)), _ending(second)
        if begins is not None and ends is not None and begins < ends and len(found) < DATES_MAX:
            found.append((begins, ends))
    return tuple(found)


def _any_year(text: str) -> tuple[int, ...]:
    """The months named, each once, of a text that names no year; none that may be a person's name.

    "June" may be one, "in June" and "3 June" are not; of those that are joined, as in "in May and
    June", one that is not is enough.
    """
    mentions = list(islice(_mentions(text), _MENTIONS_MAX))
    if any(one.year is not None for _, _, one in mentions):
        return ()
    months: set[int] = set()
    joined: set[int] = set()
    certain, ended = False, 0
    for start, end, mention in mentions:
        if not joined or _MONTHS_JOIN.fullmatch(text[ended:start]) is None:
            joined, certain = set(), False
        joined.add(mention.month or 0)
        certain = certain or mention.day is not None or _is_month(text, start, end)
        months |= joined if certain else set()
        ended = end
    return tuple(sorted(months))


def _is_month(text: str, start: int, end: int) -> bool:
    """Whether the word of a month stands for the month, and not for a person of that name."""
    if text[start:end].lower().rstrip(".") not in _NAMES:
        return True
    behind = _MONTH_BEFORE.search(text[max(0, start - _TAIL_CHARS) : start])
    return behind is not None and _OWNER_AFTER.match(text, end) is None


def _mentions(text: str) -> Iterator[tuple[int, int, DateMention]]:
    """Each date named, with where it stands."""
    for hit in _DATES.finditer(text[:CUE_CHARS_MAX]):
        mention = _mention(hit, text)
        if mention is not None:
            yield (*hit.span(), mention)


def _beginning(mention: DateMention) -> datetime | None:
    if mention.year is None:
        return None
    return datetime(mention.year, mention.month or 1, mention.day or 1, tzinfo=UTC)


def _ending(mention: DateMention) -> datetime | None:
    """Where the day, month or year that was named is over."""
    if mention.year is None:
        return None
    if mention.month is None:
        return _first_of(mention.year, _MONTHS)
    if mention.day is None:
        return _first_of(mention.year, mention.month)
    return datetime(mention.year, mention.month, mention.day, tzinfo=UTC) + timedelta(days=1)


def _mention(hit: re.Match[str], text: str) -> DateMention | None:
    parts = hit.groupdict()
    month_word = parts["day_month"] or parts["month"]
    year = _number(
        parts["iso_year"]
        or parts["day_year"]
        or parts["month_year"]
        or parts["year"]
        or parts["east_year"]
    )
    day = _number(parts["iso_day"] or parts["day"] or parts["month_day"] or parts["east_day"])
    month = _number(parts["iso_month"] or parts["east_month"])
    if month_word:
        month = _MONTH_NUMBERS[month_word.lower()]
    before = text[max(0, hit.start() - _TAIL_CHARS) : hit.start()]
    if parts["year"] and (_NUMBER_BEFORE.search(before) or _NUMBER_AFTER.match(text, hit.end())):
        return None
    if (
        month_word
        and month_word.lower() in _DOUBTFUL
        and year is None
        and day is None
        and not _TIME_BEFORE.search(before)
    ):
        return None
    return DateMention(year, month, _day_of(year, month, day))


def _number(digits: str | None) -> int | None:
    return int(digits.rstrip("stndrhSTNDRH")) if digits else None


def _day_of(year: int | None, month: int | None, day: int | None) -> int | None:
    if month is None or day is None:
        return None
    try:
        date(year or 2000, month, day)  # 2000 is a leap year: 29 February without a year is a day
    except ValueError:
        return None
    return day


def date_match(mentions: Iterable[DateMention], occurred_at: datetime) -> float:
    """How well a memory's time fits the dates named, from 0 to 1.5.

    1 for the month or the year named, ½ for the month after it (things are told later), ½ more for
    the exact day. The best of several mentions counts.
    """
    return max((_one_match(mention, occurred_at) for mention in mentions), default=0.0)


def date_spans(mentions: Iterable[DateMention]) -> tuple[tuple[datetime, datetime], ...]:
    """For each mention with a year, where `date_match` is above 0: from, and before, in UTC.

    A month reaches to the end of the one after it; a day that is named comes before its month. For
    a search that looks for more candidates there, never for a filter.
    """
    spans = []
    for mention in mentions:
        if mention.year is not None:
            if mention.month is not None and mention.day is not None:
                day = datetime(mention.year, mention.month, mention.day, tzinfo=UTC)
                spans.append((day, day + timedelta(days=1)))
            first = (mention.month or 1) - 1
            last = first + (_MONTHS if mention.month is None else 2)
            spans.append((_first_of(mention.year, first), _first_of(mention.year, last)))
    return tuple(spans)


def _first_of(year: int, months: int) -> datetime:
    return datetime(year + months // _MONTHS, months % _MONTHS + 1, 1, tzinfo=UTC)


def _one_match(mention: DateMention, at: datetime) -> float:
    if mention.month is None:
        return _FULL if mention.year == at.year else 0.0
    if mention.month == at.month:
        if mention.year not in {None, at.year}:
            return 0.0
        return _FULL + (_PART if mention.day == at.day else 0.0)
    years = 0 if mention.year is None else at.year - mention.year
    months_later = years * _MONTHS + at.month - mention.month
    if mention.year is None:
        months_later %= _MONTHS
    return _PART if months_later == 1 else 0.0


def ends_with_question(text: str) -> bool:
    """Whether the last sentence is a question; quotes and signs after its mark do not count."""
    return _QUESTION_TAIL.search(text[-_TAIL_CHARS:]) is not None


def first_person(text: str) -> bool:
    """Whether somebody speaks of themselves."""
    return _FIRST_PERSON.search(text) is not None


def has_name(text: str) -> bool:
    """Whether a capitalised word stands inside a sentence, or something is quoted like a title."""
    return _MID_CAPITAL.search(text) is not None or _QUOTED.search(text) is not None


def has_time_expression(text: str) -> bool:
    """Whether a time is told: a weekday, month, year, a span, or a word like "yesterday"."""
    if _TIME_EXPRESSION.search(text) is not None:
        return True
    return not text.isascii() and _TIME_ELSEWHERE.search(text) is not None
