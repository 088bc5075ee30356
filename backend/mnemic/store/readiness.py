"""Whether a database is fit to serve: asked once, before the first memory."""

from __future__ import annotations

from mnemic.errors import ConfigurationError, SchemaMismatch
from mnemic.store.faults import BEHIND_A_POOLER
from mnemic.store.inspection import Shortcoming, role_facts, server_facts, shortcomings
from mnemic.store.revisions import revision_of
from mnemic.store.unit import Database

__all__ = ["refuse_unfit"]


async def refuse_unfit(database: Database, *, require_durable: bool = True) -> None:
    """The role is held by row-level security, the schema is this release's, and commits last.

    Raises `ConfigurationError` with the remedy if the role sees through policies, the server or an
    extension is too old, an unexpected pooler stands before it or, unless told otherwise, a commit
    may be lost; `SchemaMismatch` if the schema is older, newer or missing.
    """
    async with database.open_unit(None, read_only=True) as unit:
        with unit.deadline:
            server = await server_facts(unit.connection)
            role = await role_facts(unit.connection)
            revision = await revision_of(unit.connection)
    if server.is_pooled and not database.expects_pooler:
        raise ConfigurationError(BEHIND_A_POOLER)
    found = [
        one
        for one in shortcomings(server, role, revision)
        if require_durable or not _is_about_durability(one)
    ]
    if not found:
        return
    told = "; ".join(f"{one.what}: {one.remedy}" for one in found)
    if not revision.is_head:
        raise SchemaMismatch(told, current=revision.current, head=revision.head)
    raise ConfigurationError(told)


def _is_about_durability(one: Shortcoming) -> bool:
    return "may be lost" in one.what
