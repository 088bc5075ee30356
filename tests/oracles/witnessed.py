"""*Every change is witnessed*: what a call changes has its line in the log, or does not stand.

*Trust never rises by machine*: what is made of memories is believed no more than any of them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import asyncpg

from mnemic.errors import Unavailable
from mnemic.model.scope import Scope
from mnemic.model.trust import Trust
from oracles.degraded import answer_or_fault
from oracles.failing import failing
from oracles.stored import difference, rows_of

__all__ = ["assert_no_rise", "assert_witnessed", "trusts_of"]

LOG = "audit_log"
Trusts = Mapping[tuple[str, str], int]


async def assert_witnessed(
    seen: asyncpg.Connection, scope: Scope, call: Callable[[], Awaitable[Any]]
) -> Any:
    """What the call gives: it changes rows and adds to the log, or does neither."""
    before = await rows_of(seen, scope)
    async with failing(seen, scope, LOG, "INSERT"):
        fault = await answer_or_fault(call())
    unwitnessed = difference(before, await rows_of(seen, scope))
    assert unwitnessed == {}, f"changed without a witness: {sorted(unwitnessed)}"
    assert isinstance(fault, Unavailable), f"answered without a witness: {fault!r}"

    answer = await call()

    after = await rows_of(seen, scope)
    assert difference(before, after), "nothing was changed"
    assert len(after.get(LOG, ())) > len(before.get(LOG, ())), "no witness"
    assert set(before.get(LOG, ())) <= set(after[LOG]), "a witness was changed"
    return answer


async def trusts_of(seen: asyncpg.Connection, scope: Scope) -> Trusts:
    """How far each memory of the tenant may be believed, by table and id."""
    rows = await rows_of(seen, scope)
    held = [(table, json.loads(row)) for table, texts in rows.items() for row in texts]
    return {(table, row["id"]): row["trust"] for table, row in held if "trust" in row}


def assert_no_rise(before: Trusts, after: Trusts, *, worst: Trust) -> None:
    """No memory is believed more than before, and no new one more than `worst`."""
    risen = {
        one: (before[one], trust) for one, trust in after.items() if trust < before.get(one, 0)
    }
    assert risen == {}, f"believed more than before: {risen}"
    new = {one: trust for one, trust in after.items() if one not in before and trust < worst}
    assert new == {}, f"believed more than {worst!r}, of which they were made: {new}"
