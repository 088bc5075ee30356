"""The day that a wording means, seen from the day it was said."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from mnemic.model.cues import DateMention, dates_in

__all__ = ["date_in"]

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_RELATIVE = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}
_NEAR = re.compile(
    rf"\b(?:(?P<word>{'|'.join(_RELATIVE)})|(?P<next>next )?(?P<weekday>{'|'.join(_WEEKDAYS)})"
    r"|in (?P<count>\d{1,3}|an?|one|two|three) (?P<unit>day|week)s?)\b",
    re.IGNORECASE,
)
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3}
_WEEK_DAYS = 7
_YEAR_MAX = 9_989


def date_in(text: str, said_at: datetime) -> date | None:
    """The first day named: "30 April", "tomorrow", "next Friday", "in two weeks".

    A day without a year is the next such day; "Friday" is the next one, "next Friday" the one
    after a week has begun anew. Nothing when no single day is named.
    """
    today = said_at.date()
    for mention in dates_in(text):
        if mention.month is not None and mention.day is not None:
            return _next(mention, mention.month, mention.day, today)
    found = _NEAR.search(text)
    return None if found is None else _near(found, today)


def _next(mention: DateMention, month: int, day: int, today: date) -> date | None:
    years = [mention.year] if mention.year else range(today.year, today.year + 9)
    for year in years:
        try:
            found = date(year, month, day)
        except ValueError:
            continue  # 29 February of a common year
        if mention.year or found >= today:
            return found
    return None


def _near(found: re.Match[str], today: date) -> date | None:
    if found["word"]:
        days = _RELATIVE[found["word"].lower()]
    elif found["weekday"]:
        ahead = (_WEEKDAYS.index(found["weekday"].lower()) - today.weekday()) % _WEEK_DAYS
        if found["next"]:
            days = _WEEK_DAYS - today.weekday() + _WEEKDAYS.index(found["weekday"].lower())
        else:
            days = ahead
    else:
        count = _COUNTS.get(found["count"].lower()) or int(found["count"])
        days = count * (_WEEK_DAYS if found["unit"].lower() == "week" else 1)
    return None if today.year > _YEAR_MAX else today + timedelta(days=days)
