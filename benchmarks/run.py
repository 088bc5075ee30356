"""Times the main verbs on real servers, beside their own statements sent with the bare driver.

    python benchmarks/run.py [--turns 5000] [--rounds 200]

What `mnemic bench latency` does not show: a tenant that was filled a moment ago, before PostgreSQL
has looked at its tables. A throwaway cluster without flushing to the disk, one process, one call
at a time. Vectors come from a digest of the text: embedding is left out, since it is the same with
and without us. “Bare” means: the statements that one recall sent, with the same values, in one
transaction of one connection.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import structlog

from mnemic import MemoryManager, MemorySettings, Scope, TurnCreate
from mnemic.edge.cli.bench_ground import DigestEmbedder
from mnemic.embedded import EmbeddedServers, start
from mnemic.settings import CacheSettings, DatabaseSettings, EmbeddedSettings
from mnemic.store.roles import APP_ROLE, OWNER_ROLE, init
from mnemic.store.session_setup import prepare_connection, session_settings
from mnemic.store.unit import Unit
from mnemic.store.upgrade import upgrade
from mnemic.wiring import Wiring

DATABASE = "benchmark"
SEED = 20_260_302
TURNS_A_SESSION = 50
VOCABULARY = 4_000
QUESTIONS = (
    "When did word7 meet word90?",
    "What is known of word300?",
    "Who said word12 or word1500?",
)


async def filled(memory: MemoryManager, scope: Scope, turns: int) -> None:
    """Sessions of made-up talk stand in `scope`, ended, their words counted."""
    numbers = random.Random(SEED)
    words = [f"word{rank}" for rank in range(VOCABULARY)]
    shares = [1 / (rank + 10) for rank in range(VOCABULARY)]  # as words are spread in talk
    at = datetime(2026, 3, 2, 9, tzinfo=UTC)
    for first in range(0, turns, TURNS_A_SESSION):
        session = scope.session(f"s{first}")
        said = [
            TurnCreate(
                actor="User" if number % 2 else "Assistant",
                text=" ".join(numbers.choices(words, shares, k=14)),
                occurred_at=at + timedelta(minutes=number),
                external_id=str(number),
            )
            for number in range(first, min(first + TURNS_A_SESSION, turns))
        ]
        await memory.sessions.append(said, scope=session)
        await memory.sessions.end(scope=session)
    await memory.maintenance.count_terms()


async def recorded(memory: MemoryManager, scope: Scope, question: str) -> list[tuple[str, Any]]:
    """The statements, with their values, that one recall sends."""
    sent: list[tuple[str, Any]] = []
    fetch = Unit.fetch

    async def noting(unit: Unit, statement: Any, **values: object) -> Any:
        bound = statement.arguments({**values, "tenant": unit.tenant})
        sent.append((statement.sql, bound))
        return await fetch(unit, statement, **values)

    Unit.fetch = noting  # type: ignore[method-assign]
    try:
        await memory.recall(question, scope=scope)
    finally:
        Unit.fetch = fetch  # type: ignore[method-assign]
    return sent


async def timed(rounds: int, call: Callable[[int], Awaitable[object]]) -> list[float]:
    """Milliseconds of each round, after a tenth as many that are not counted."""
    took = []
    for number in range(-max(1, rounds // 10), rounds):
        began = time.perf_counter()
        await call(number)
        if number >= 0:
            took.append((time.perf_counter() - began) * 1_000)
    return took


def tell(name: str, took: list[float]) -> float:
    """Prints the percentiles; gives the median."""
    cuts = statistics.quantiles(took, n=20)
    middle = statistics.median(took)
    print(f"{name:<52} p50 {middle:7.2f} ms   p95 {cuts[18]:7.2f} ms")
    return middle


async def bare(pool: asyncpg.Pool, sent: list[tuple[str, Any]], tenant: Any) -> None:
    """The same statements in one transaction of that tenant."""
    async with pool.acquire() as connection, connection.transaction(readonly=True):
        await connection.execute(
            "SELECT set_config('mnemic.tenant_id', $1, true)", str(tenant), timeout=10
        )
        for sql, values in sent:
            await connection.fetch(sql, *values)


async def analyse(servers: EmbeddedServers) -> None:
    """What autovacuum does within minutes is done."""
    connection = await asyncpg.connect(servers.postgres_url(database=DATABASE))
    await connection.execute("VACUUM ANALYZE")
    await connection.close()


async def compare(memory: MemoryManager, url: str, scope: Scope, rounds: int) -> None:
    """Prints what a recall takes, and what its statements take alone."""
    sent = [await recorded(memory, scope, question) for question in QUESTIONS]
    mine = await timed(rounds, lambda n: memory.recall(QUESTIONS[n % 3], scope=scope))
    ours = tell("  recall", mine)
    options = session_settings(DatabaseSettings())
    async with asyncpg.create_pool(url, server_settings=options, init=prepare_connection) as pool:
        alone = await timed(rounds, lambda n: bare(pool, sent[n % 3], scope.tenant.id))
    theirs = tell(f"  its {len(sent[0])} statements with the bare driver", alone)
    print(f"  ratio {ours / theirs:.2f} (at most 1.5 is wanted)")


async def measure(servers: EmbeddedServers, turns: int, rounds: int) -> None:
    """Fills a database and prints what the verbs take in it."""
    await init(servers.postgres_url(), database=DATABASE)
    await asyncio.to_thread(upgrade, servers.postgres_url(OWNER_ROLE, DATABASE))
    url = servers.postgres_url(APP_ROLE, DATABASE)
    settings = MemorySettings(
        database_url=url,
        redis_url=servers.redis_url,
        database=DatabaseSettings(require_durable=False),
        cache=CacheSettings(recalls_max=0, facts_max=0),
    )
    scope = Scope.user("benchmark").project("ledger")
    async with MemoryManager(Wiring(settings, embedder=DigestEmbedder())) as memory:
        began = time.perf_counter()
        await filled(memory, scope, turns)
        took = time.perf_counter() - began
        sessions = -(-turns // TURNS_A_SESSION)
        print(f"{turns} turns in {sessions} sessions: {turns / took:,.0f} a second")

        print("just filled, before PostgreSQL has looked at the tables:")
        await compare(memory, url, scope, rounds)
        await analyse(servers)
        print("afterwards:")
        await compare(memory, url, scope, rounds)
        sections = await timed(rounds, lambda n: memory.context(QUESTIONS[n % 3], scope=scope))
        tell("  context", sections)
        kept = await timed(rounds, lambda n: memory.remember(f"Statement {n}", scope=scope))
        tell("  remember one statement", kept)


def main() -> None:
    """Servers are started, used and thrown away."""
    reader = argparse.ArgumentParser(description="Times the main verbs beside the bare driver.")
    reader.add_argument("--turns", type=int, default=5_000)
    reader.add_argument("--rounds", type=int, default=200)
    given = reader.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory(prefix="mnemic-bench-") as folder:
        Path(folder).chmod(0o755)  # root's servers run as another user
        servers = start(EmbeddedSettings(data_dir=Path(folder) / "data"), durable=False)
        try:
            asyncio.run(measure(servers, given.turns, given.rounds))
        finally:
            servers.discard()


if __name__ == "__main__":
    main()
