"""A wire that breaks at any message of any verb: the answer is true, and a retry ends well."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import asyncpg
import pytest
import structlog
from wire_lanes import Lane, Point, Tally, clean_runs, run_points
from wire_proxy import Fault
from wire_verbs import VERBS
from wire_working import WORKING_VERBS, WorkingLane

from mnemic import Scope
from mnemic.embedded import EmbeddedServers

POINTS = 60
POINTS_OF_CHAOS = 900
WORKING_POINTS = 30
LATE_MESSAGES = 7  # the commit, and what is read after it: half of the points are here
log = structlog.get_logger("wire")


@pytest.fixture
def random_of_run(request: pytest.FixtureRequest) -> random.Random:
    """Drawn from `--seed`."""
    return random.Random(request.config.getoption("--seed"))


@pytest.fixture
def points_max(request: pytest.FixtureRequest) -> tuple[int | None, int | None]:
    """How many points are taken, of PostgreSQL's and of Valkey's; nothing for all of them."""
    if request.config.getoption("--deep"):
        return None, None
    if request.config.getoption("--chaos"):
        return POINTS_OF_CHAOS, None
    return POINTS, WORKING_POINTS


def _told(tally: Tally, **facts: object) -> None:
    log.info("wire", points=tally.points, outcomes=dict(tally.outcomes), **facts)
    assert tally.wrong == []


async def test_a_write_over_a_broken_wire_says_what_became_of_it(
    lanes: list[Lane],
    servers: EmbeddedServers,
    wire_database: str,
    random_of_run: random.Random,
    points_max: tuple[int | None, int | None],
) -> None:
    cleans = await clean_runs(lanes, VERBS.values())
    points = {
        is_late: [
            Point(verb, fault, message)
            for name, verb in VERBS.items()
            for message in range(cleans[name].messages)
            for fault in Fault
            if (message >= cleans[name].messages - LATE_MESSAGES) is is_late
        ]
        for is_late in (True, False)
    }
    for some in points.values():
        random_of_run.shuffle(some)
    half = None if points_max[0] is None else points_max[0] // 2
    chosen = points[True][:half] + points[False][:half]

    tally = await run_points(lanes, chosen, cleans)

    _told(tally, of=sum(map(len, points.values())), missed=tally.missed.total())
    assert tally.points > 0.8 * len(chosen)
    assert tally.outcomes["OutcomeUnknown"] > 0
    assert await _open_transactions(servers, wire_database) == 0
    for lane in lanes:
        scope = Scope.user("after all")
        found = [lane.memory.recall("tea", scope=scope) for _ in range(20)]
        assert [one.hits for one in await asyncio.gather(*found)] == [()] * 20


async def test_working_memory_over_a_broken_wire_says_what_became_of_it(
    working_lanes: list[WorkingLane],
    random_of_run: random.Random,
    points_max: tuple[int | None, int | None],
) -> None:
    cleans = {name: await working_lanes[0].clean(act) for name, act in WORKING_VERBS.items()}
    points = [
        (name, fault, message)
        for name, (messages, _) in cleans.items()
        for message in range(messages)
        for fault in Fault
    ]
    random_of_run.shuffle(points)
    tally = Tally()
    chosen: Iterator[tuple[str, Fault, int]] = iter(points[: points_max[1]])

    async def serve(lane: WorkingLane) -> None:
        for name, fault, message in chosen:
            await lane.run(name, fault, message, cleans[name][1], tally)

    async with asyncio.TaskGroup() as tasks:
        for lane in working_lanes:
            tasks.create_task(serve(lane))

    _told(tally, of=len(points), missed=tally.missed.total())
    assert tally.points > 0.6 * len(points[: points_max[1]])


async def _open_transactions(servers: EmbeddedServers, name: str) -> int:
    """Of the role that serves, when nobody calls."""
    connection = await asyncpg.connect(servers.postgres_url("postgres", name))
    try:
        return await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND usename = 'mnemic_app' AND xact_start IS NOT NULL"
        )
    finally:
        await connection.close()
