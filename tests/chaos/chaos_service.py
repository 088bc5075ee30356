"""A service that writes and says what was acknowledged, until it is killed."""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "wire"))

from wire_embedder import FixedEmbedder

from mnemic import MemoryManager, Scope
from mnemic.settings import MemorySettings
from mnemic.wiring import Wiring


async def main(told: dict[str, str]) -> None:
    """Never ends by itself."""
    settings = MemorySettings(
        database_url=told["database_url"],
        redis_url=told["redis_url"],
        database={"require_durable": False},
    )
    scope = Scope.user(told["user"]).project("x")
    async with MemoryManager(Wiring(settings, embedder=FixedEmbedder())) as memory:
        working = memory.at(scope).working
        for number in count():
            text = f"Service {number} listens on port {4_000 + number}."
            receipt = await memory.remember(text, scope=scope, idempotency_key=f"key-{number}")
            await working.set(f"durable-{number}", number, durable=True)
            await working.set(f"plain-{number}", number)
            print(json.dumps([number, str(receipt.id)]), flush=True)  # noqa: T201 - to who kills


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
