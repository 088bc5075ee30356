"""A process of the model: runs what it reads from standard input, a JSON object a line."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import structlog

from mnemic.errors import MnemicError
from mnemic.model.scope import Scope
from mnemic.settings import MemorySettings, WorkingSettings
from mnemic.store.unit import Database
from mnemic.store.working.opening import open_working
from mnemic.tier.working import WorkingMemory


async def answered(memory: WorkingMemory, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What the method gives, or the name of the error; and the status after it."""
    try:
        answer: dict[str, Any] = {"value": await getattr(memory, method)(**arguments)}
    except MnemicError as fault:
        answer = {"error": type(fault).__name__, "text": str(fault)}
    status = await memory.status()
    answer["degraded"], answer["pending"] = status.degraded, status.pending
    answer["conflicts"] = [
        [one.key, one.kept, one.found_at.isoformat()] for one in status.recent_conflicts
    ]
    return answer


async def main(told: dict[str, Any]) -> None:
    """Serves until standard input ends."""
    database = Database(told["database_url"], MemorySettings().database)
    behind = timedelta(milliseconds=told["clock_behind_ms"])
    places = await open_working(
        told["redis_url"],
        database,
        WorkingSettings(**told["settings"]),
        clock=lambda: datetime.now(UTC) - behind,
        new_id=uuid4,
    )
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        asked = json.loads(line)
        memory = WorkingMemory(places, Scope.user(asked["tenant"]).session(asked["session"]))
        answer = await answered(memory, asked["method"], asked["arguments"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    await places.close()
    await database.close()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(main(json.loads(sys.argv[1])))
