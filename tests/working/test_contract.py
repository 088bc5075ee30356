"""One behaviour, in each place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from mnemic.store.working.opening import WorkingPlaces
from mnemic.testing.clock import TickingClock
from mnemic.testing.working_contract import (
    WORKING_CONTRACT,
    WorkingSubject,
    contract_settings,
)

PLACES = {
    "valkey": ("valkey", None),
    "valkey without expiry of fields": ("valkey", False),
    "postgres": ("postgres", None),
    "local": ("local", None),
}


@pytest.fixture(params=PLACES, ids=list(PLACES))
async def any_place(
    request: pytest.FixtureRequest, opened: Callable[..., Any]
) -> AsyncIterator[WorkingPlaces]:
    place, fields_expire = PLACES[request.param]
    async with opened(contract_settings(place=place), fields_expire=fields_expire) as made:
        yield made


@pytest.mark.parametrize("check", WORKING_CONTRACT, ids=lambda check: check.__name__)
async def test_the_contract_holds(
    check: Callable[[WorkingSubject], Awaitable[None]],
    any_place: WorkingPlaces,
    clock: TickingClock,
) -> None:
    await check(WorkingSubject(any_place, clock))
