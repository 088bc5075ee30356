"""What really lies in the database, seen by the administrator; and a replay without the others."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from proof.play import Leak, Play
from proof.world import TABLES, Answer, World

__all__ = ["no_foreign_rows", "no_strange_ids", "replayed"]


async def no_foreign_rows(world: World) -> int:
    """Every row stands in a scope of its own tenant; how many rows there are."""
    counted = 0
    for table in await world.admin.fetch(TABLES):
        if not table["has_scope"]:
            continue
        [row] = await world.admin.fetch(f"""
            SELECT count(*) AS rows,
                   count(*) FILTER (WHERE t.scope_id IS NOT NULL AND NOT EXISTS (
                     SELECT FROM mnemic.scopes s
                      WHERE s.tenant_id = t.tenant_id AND s.id = t.scope_id)) AS foreign
              FROM mnemic.{table["name"]} t
        """)
        if row["foreign"]:
            raise Leak(f"{row['foreign']} rows of {table['name']} stand in another tenant's scope")
        counted += row["rows"]
    return counted


async def no_strange_ids(play: Play) -> None:
    """No id that an answer held belongs to another tenant."""
    wanted = {identity for _, identity in play.strange_ids}
    owners: dict[UUID, set[UUID]] = {}
    for table in await play.world.admin.fetch(TABLES):
        if table["has_id"]:
            rows = await play.world.admin.fetch(
                f"SELECT id, tenant_id FROM mnemic.{table['name']} WHERE id = ANY($1)", wanted
            )
            for row in rows:
                owners.setdefault(row["id"], set()).add(row["tenant_id"])
    for answer, identity in play.strange_ids:
        scope = answer.call.scope
        if scope is not None and owners.get(identity, {scope.tenant.id}) != {scope.tenant.id}:
            raise Leak(f"the id {identity} of another tenant is shown: {answer}")


async def replayed(world: World, answers: Sequence[Answer], who: object) -> int:
    """The calls get the same bytes when nobody else makes any; how many were compared.

    The operator's calls are made as well, but their reports count every tenant's work.
    """
    compared = 0
    for before in answers:
        again = await world.run(before.call)
        if before.call.scope is None:
            continue
        if again.text != before.text:
            raise Leak(
                f"{who} is answered otherwise without the others: {before.call}\n"
                f"among them: {before.text}\nwithout: {again.text}"
            )
        compared += 1
    return compared
