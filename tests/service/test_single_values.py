"""Which value of a single-valued predicate is live, in whichever order the values are told."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import asyncpg
import pytest

from mnemic import MemoryManager, Scope
from mnemic.testing import a_conversation, a_fact, a_scope

BACK = (("Oslo", 2020), ("Bergen", 2022), ("Oslo", 2024))
AWAY = (("Oslo", 2020), ("Bergen", 2021), ("Oslo", 2022), ("Lima", 2023))
ROWS = """
    SELECT object, status, coalesce(valid_from, first_learned) AS since, valid_to
      FROM mnemic.facts WHERE tenant_id = $1
"""


def _start(year: int) -> datetime:
    return datetime(year, 1, 1, tzinfo=UTC)


async def _tell(memory: MemoryManager, scope: Scope, told: Any, moment: str = "valid_from") -> None:
    name, year = told
    if moment == "valid_from":
        fact = a_fact(predicate="lives_in", object=name, valid_from=_start(year))
        await memory.store_fact(fact, scope=scope)
    else:
        fact = a_fact(predicate="lives_in", object=name)
        await memory.store_fact(fact, scope=scope, occurred_at=_start(year))


@pytest.mark.parametrize("moment", ["valid_from", "first_learned"])
@pytest.mark.parametrize(("told", "ends"), [(BACK, 2024), (AWAY, 2022)], ids=["back", "away"])
async def test_the_value_told_to_be_true_last_is_live_in_every_order(
    memory: MemoryManager, seen: asyncpg.Connection, told: Any, ends: int, moment: str
) -> None:
    found = {}

    for order in permutations(told):
        scope = a_scope()
        for one in order:
            await _tell(memory, scope, one, moment)
        rows = await seen.fetch(ROWS, scope.tenant.id)
        live = [row["object"] for row in rows if row["status"] == "live"]
        between = [(row["since"], row["valid_to"]) for row in rows if row["object"] == "Bergen"]
        found[order] = (live, between)

    [bergen] = [_start(year) for name, year in told if name == "Bergen"]
    assert found == dict.fromkeys(permutations(told), ([told[-1][0]], [(bergen, _start(ends))]))


async def test_a_value_told_again_in_a_session_is_live_above_an_older_one(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    await _tell(memory, scope, ("Bergen", 2022))
    await _tell(memory, session, ("Oslo", 2020))
    await _tell(memory, session, ("Oslo", 2024))
    await memory.sessions.append(a_conversation(["Noted."]), scope=session)

    await memory.sessions.end(scope=session)

    known = await memory.at(scope).semantic.get_by_entity("User")
    assert [(fact.object, fact.valid_from) for fact in known] == [("Oslo", _start(2020))]


async def test_a_value_of_the_past_told_again_of_a_later_moment_keeps_its_row(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    for one in (("Oslo", 2020), ("Oslo", 2022), ("Lima", 2023)):
        await _tell(memory, scope, one)

    await _tell(memory, scope, ("Oslo", 2022))

    rows = await seen.fetch(ROWS, scope.tenant.id)
    assert sorted((row["object"], row["since"].year) for row in rows) == [
        ("Lima", 2023),
        ("Oslo", 2020),
    ]
