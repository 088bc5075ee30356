"""Rules (in progress)."""
from typing import Any
async def violations(connection: Any) -> list[str]:
    return []
