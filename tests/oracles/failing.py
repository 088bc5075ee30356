"""A database that refuses one kind of write of one tenant, as when its disk is full."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import asyncpg

from mnemic.model.scope import Scope

__all__ = ["failing"]

_numbers = count(1)


@asynccontextmanager
async def failing(
    admin: asyncpg.Connection, scope: Scope, table: str, event: str
) -> AsyncIterator[None]:
    """`event` ("INSERT", "UPDATE" or "DELETE") on `table` fails for the tenant of `scope`."""
    name = f"mnemic.refusal_{next(_numbers)}"
    row = "OLD" if event == "DELETE" else "NEW"
    await admin.execute(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'no space left' USING ERRCODE = 'disk_full'; END $$"
    )
    await admin.execute(
        f"CREATE TRIGGER refusal BEFORE {event} ON mnemic.{table} FOR EACH ROW"
        f" WHEN ({row}.tenant_id = '{scope.tenant.id}') EXECUTE FUNCTION {name}()"
    )
    try:
        yield
    finally:
        await admin.execute(f"DROP FUNCTION {name} CASCADE")
