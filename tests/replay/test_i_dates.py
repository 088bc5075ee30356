"""I: dates that a question names, and numbers that are none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from mnemic import MemoryManager, Scope
from mnemic.testing import TickingClock, a_fact, a_turn
from oracles.answers import refused

NOT_APPLICABLE: dict[str, str] = {}

LONG_AGO = datetime(2023, 3, 12, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "number", ["port 9077", "port 2024", "room 1984", "error 2011", "2024 rows", "№ 20245"]
)
async def test_i05_a_number_that_is_no_year_asks_for_no_time(
    memory: MemoryManager, scope: Scope, number: str
) -> None:
    session = scope.session("s")
    said = [
        a_turn(f"The service listens, note {year}.", occurred_at=datetime(year, 6, 1, tzinfo=UTC))
        for year in (1984, 2011, 2024, 2025)
    ]
    await memory.sessions.append(said, scope=session)

    found = await memory.recall(f"Which service listens on {number}?", scope=session, floor=0.0)
    dated = await memory.recall("Which service listened in 2024?", scope=session, floor=0.0)

    assert found.returned == dated.returned == 4
    assert [(hit.time_place, hit.reasons.date) for hit in found.hits] == [(None, 0.0)] * 4
    assert dated.hits[0].text == "User: The service listens, note 2024."
    assert (dated.hits[0].time_place, dated.hits[0].reasons.date) == (1, 0.18)


@pytest.mark.parametrize(
    "words",
    [
        "5000 years ago",
        "in the year 0",
        "on 0001-01-01",
        "on 9999-12-31",
        "between 0000 and 9999",
        "from 1900 to 2099",
        "in December 2099",
        "on 31 December 2099",
        "99999999999999999999 days ago",
        "on 2024-13-45",
        "-1 years from now",
    ],
)
async def test_i06_no_time_that_is_asked_for_is_too_far_away(
    memory: MemoryManager, scope: Scope, words: str
) -> None:
    session = scope.session("s")
    await memory.sessions.append([a_turn("The lease is red.")], scope=session)

    found = await memory.recall(f"Was the lease red {words}?", scope=session, floor=0.0)
    section = await memory.context(f"Was the lease red {words}?", scope=session)

    assert [hit.text for hit in found.hits] == ["User: The lease is red."]
    assert section.degraded == ()


@pytest.mark.parametrize("hours", [-14, -12, 0, 12, 14])
async def test_i06_a_moment_at_the_end_of_the_calendar_is_refused_by_name(
    memory: MemoryManager, scope: Scope, hours: int
) -> None:
    zone = timezone(timedelta(hours=hours))
    session = scope.session("s")
    doors: list[tuple[str, Callable[[datetime], Any]]] = [
        ("occurred_at", lambda at: memory.remember("It was red.", scope=scope, occurred_at=at)),
        ("occurred_at", lambda at: memory.sessions.append([a_turn(occurred_at=at)], scope=session)),
        ("valid_to", lambda at: memory.store_fact(a_fact(valid_to=at), scope=scope)),
        ("as_of", lambda at: memory.recall("red", scope=scope, as_of=at)),
        ("filters", lambda at: memory.recall("x", scope=scope, filters={"recorded_at": at})),
        ("since", lambda at: memory.at(scope).episodic.get_recent(since=at)),
    ]

    for moment in (datetime(1, 1, 1, tzinfo=zone), datetime.max.replace(tzinfo=zone)):
        for field, door in doors:
            await refused(door(moment), field=field, control=door(LONG_AGO))


async def test_i07_a_whole_date_is_that_day_and_not_its_month(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    said = [
        # Long enough to have the vector of its own text: they are equally near.
        a_turn(
            f"The lease was signed{' and so on' * 7}.",
            occurred_at=datetime(2024, month, day, 12, tzinfo=UTC),
        )
        for month, day in ((3, 1), (3, 4), (3, 5), (3, 6), (3, 31), (4, 5), (5, 5))
    ]
    await memory.sessions.append(said, scope=session)

    for asked in ("on 5 March 2024", "on March 5th, 2024", "on 2024-03-05"):
        found = await memory.recall(f"What was signed {asked}?", scope=session, floor=0.0)
        first, *others = found.hits
        assert first.occurred_at == said[2].occurred_at
        assert first.time_place == 1
        assert first.reasons.date == pytest.approx(0.27)
        assert max(hit.reasons.date for hit in others) == pytest.approx(0.18)
        assert len(others) == 6


async def test_i08_a_month_without_a_year_is_that_of_any_year_and_the_reply_says_so(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    session, now = scope.session("s"), clock()
    june = datetime(now.year - 1, 6, 10, 12, tzinfo=UTC)
    said = [
        a_turn("The lease was signed.", occurred_at=june),
        a_turn("The lease was signed.", occurred_at=june - timedelta(days=90)),
    ]
    await memory.sessions.append(said, scope=session)

    asked = await memory.recall("What was signed in June?", scope=session, floor=0.0)
    of_year = await memory.recall(f"What was signed in June {june.year}?", scope=session, floor=0.0)

    assert [hit.occurred_at for hit in asked.hits] == [one.occurred_at for one in said]
    assert asked.hits[0].reasons.date == pytest.approx(0.18)
    assert [note for note in asked.notes if "June" in note] == [
        "no year is named with June: that of every year counts, and no other is left out"
    ]
    assert not any("June" in note for note in of_year.notes)
    assert [hit.id for hit in of_year.hits] == [hit.id for hit in asked.hits]

    for unclear in (
        "What was signed in the month of June in 2021 and 2022?",
        "Where does June live?",
        "When is June's birthday?",
    ):
        found = await memory.recall(unclear, scope=session, floor=0.0)
        assert not any("June" in note for note in found.notes)
