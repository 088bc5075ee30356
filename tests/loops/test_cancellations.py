"""A call that is cancelled anywhere leaves nothing open and nothing half done.

Each case is a new tenant, unless the call changes nothing: what the call needs is made, the call is
cancelled at an await or after some rounds of the loop, chosen by `--seed`, and made again. What
stands then is what one call makes.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import pytest
from cancelled_verbs import REPEATING, VERBS
from looping import a_manager
from stepping import Stepped, cancelled_after, cancelled_at

from mnemic import MemoryManager, Scope
from mnemic.embedded import EmbeddedServers
from mnemic.settings import MemorySettings
from mnemic.testing import TickingClock

sys.path.insert(0, str(Path(__file__).parents[1] / "isolation"))

from proof.verbs import public_verbs

CASES = 2_000
DEEP = 100
ROUNDS_MAX = 40
OPERATORS = 3  # cases of a verb that works for all tenants at once: they grow with every case
SETTLE_SECONDS_MAX = 5.0

STATE = """
SELECT concat_ws(' ',
  (SELECT count(*) FROM mnemic.scopes WHERE tenant_id = $1),
  'turns', (SELECT count(*) FROM mnemic.turns WHERE tenant_id = $1),
  'turn vectors', (SELECT count(*) FROM mnemic.turn_vectors WHERE tenant_id = $1),
  'facts', (SELECT string_agg(concat_ws('/', object, status, reinforcement_count, verification),
            ',' ORDER BY object, status) FROM mnemic.facts WHERE tenant_id = $1),
  'fact vectors', (SELECT count(*) FROM mnemic.fact_vectors WHERE tenant_id = $1),
  'evidence', (SELECT count(*) FROM mnemic.fact_evidence WHERE tenant_id = $1),
  'episodes', (SELECT string_agg(importance_score::text, ',' ORDER BY importance_score)
            FROM mnemic.episodes WHERE tenant_id = $1),
  'sessions', (SELECT string_agg(state, ',' ORDER BY state) FROM mnemic.sessions
            WHERE tenant_id = $1),
  'procedures', (SELECT string_agg(concat_ws('/', version, success_count), ',')
            FROM mnemic.procedures WHERE tenant_id = $1),
  'tombstones', (SELECT count(*) FROM mnemic.tombstones WHERE tenant_id = $1),
  'grants', (SELECT count(*) FROM mnemic.grants WHERE tenant_id = $1),
  'keys', (SELECT count(*) FROM mnemic.idempotency_keys WHERE tenant_id = $1),
  'audit', (SELECT count(*) FROM mnemic.audit_log WHERE tenant_id = $1))
"""
OPEN = """
SELECT count(*) FROM pg_stat_activity a
 WHERE a.datname = current_database() AND a.usename = 'mnemic_app'
   AND (a.xact_start IS NOT NULL OR a.state <> 'idle'
        OR EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid))
"""


@dataclass
class Bench:
    """A manager and what is seen from outside."""

    memory: MemoryManager
    outside: asyncpg.Connection
    seed: int
    made: dict[str, object] = field(default_factory=dict)
    stands: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    ended: Counter[str] = field(default_factory=Counter)

    async def state(self, scope: Scope) -> str:
        """All that the tenant has, but for ids and times."""
        rows = await self.outside.fetchval(STATE, scope.tenant.id)
        held = [await self.memory.at(one).working.record() for one in (scope, scope.session("s"))]
        kept = await self.memory.at(scope).working.checkpoints()
        return f"{rows} {held} {len(kept)}"

    async def measure(self, name: str) -> None:
        """What stands before the call, after it, and after a second; and how often it waits."""
        verb, scope = VERBS[name], Scope.user(f"whole {name}")
        self.made[name] = made = await verb.ready(self.memory, scope)
        before = await self.state(scope)
        stepped = Stepped(verb.call(self.memory, scope, made))
        await stepped
        once = await self.state(scope)
        await verb.call(self.memory, scope, made)
        self.stands[name] = (before, once, await self.state(scope))
        self.steps[name] = stepped.steps

    async def one(self, number: int, name: str, chosen: random.Random) -> None:
        """One case; raises `AssertionError` with the name, the number and what stands there."""
        verb, (before, once, twice) = VERBS[name], self.stands[name]
        changes = before != once
        scope = Scope.user(f"case {self.seed} {number}" if changes else f"whole {name}")
        made = await verb.ready(self.memory, scope) if changes else self.made[name]
        call = verb.call(self.memory, scope, made)
        if chosen.random() < 0.75:
            was = await cancelled_at(call, chosen.randint(1, self.steps[name] + 1))
        else:
            was = await cancelled_after(call, chosen.randint(1, ROUNDS_MAX))
        after = await self.state(scope)
        self.ended[self._word(was=was, changed=after != before)] += 1
        case = f"case {number}, {name}, cancelled: {was}"
        if verb.one_unit:
            assert after in (before, once), f"{case}: half done"
        if changes and name not in REPEATING:
            await verb.call(self.memory, scope, made)
            assert await self.state(scope) in (once, twice), f"{case}: not one effect"

    @staticmethod
    def _word(*, was: bool, changed: bool) -> str:
        if not was:
            return "ended first"
        return "cancelled and done" if changed else "cancelled and not done"

    async def clean(self) -> None:
        """Nothing is open, and every connection is free and knows no tenant."""
        async with asyncio.timeout(SETTLE_SECONDS_MAX):
            while await self.outside.fetchval(OPEN):  # the server offers no event for that
                await self.outside.fetchval("SELECT pg_sleep(0.01)")
        tools = self.memory._tools
        pool = await tools.database._pool()
        size = pool.get_max_size()
        taken = [await pool.acquire(timeout=SETTLE_SECONDS_MAX) for _ in range(size)]
        tenants = [
            await one.fetchval("SELECT current_setting('mnemic.tenant_id', true)") for one in taken
        ]
        for one in taken:
            await pool.release(one)
        assert [tenant for tenant in tenants if tenant] == []
        client = tools.working.place._reaching.valkey.client
        assert client._pool().free._value == tools.settings.working.connections_max


@pytest.fixture
async def bench(
    settings: MemorySettings,
    servers: EmbeddedServers,
    loops_database: str,
    pytestconfig: pytest.Config,
) -> AsyncIterator[Bench]:
    few = settings.model_copy(
        update={"database": settings.database.model_copy(update={"pool_max": 4})}
    )
    outside = await asyncpg.connect(servers.postgres_url(database=loops_database))
    async with a_manager(few, clock=TickingClock()) as memory:
        yield Bench(memory, outside, pytestconfig.getoption("--seed"))
    await outside.close()


def test_every_public_verb_is_cancelled() -> None:
    assert set(VERBS) == public_verbs()


async def test_cancelling_anywhere_leaves_nothing_open_and_nothing_half_done(
    bench: Bench, pytestconfig: pytest.Config
) -> None:
    chosen = random.Random(bench.seed)
    cases = CASES * (DEEP if pytestconfig.getoption("--deep") else 1)
    names = sorted(VERBS)
    operators = [name for name in names if name.startswith("maintenance.")] * OPERATORS
    others = [name for name in names if not name.startswith("maintenance.")]
    plan = [*operators, *(chosen.choice(others) for _ in range(cases - len(operators)))]
    for name in names:
        await bench.measure(name)
    running = asyncio.all_tasks()

    for number, name in enumerate(plan):
        await bench.one(number, name, chosen)
        if number % 200 == 0:
            await bench.clean()

    await bench.clean()
    assert asyncio.all_tasks() == running
    assert bench.ended.total() == cases
    assert bench.ended["cancelled and not done"] > cases // 4
    assert bench.ended["cancelled and done"] > 0  # which is what keys are for
