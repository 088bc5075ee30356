"""How often a tenant's memory was written to: what was answered at one count is so while it stands.

The count is part of each writing transaction, so it is seen exactly with its effects: whoever reads
the count before an answer, and the same count again later, knows that the answer holds. It is kept
in several rows of a tenant, so that its writers do not wait for each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["GenerationStore", "counting"]

SLOTS = 32

READ = Statement("""
    SELECT CAST(coalesce(sum(g.version), 0) AS bigint) AS generation
      FROM mnemic.tenant_generations g WHERE {tenant:g}
""")

# Sent with COMMIT, as one message; the row is held for no longer than that takes. A transaction
# that wrote nothing has no number.
_COUNT = """
    INSERT INTO mnemic.tenant_generations AS g (tenant_id, slot, version)
    SELECT '{tenant}', pg_backend_pid() % {slots}, 1
     WHERE pg_current_xact_id_if_assigned() IS NOT NULL
    ON CONFLICT (tenant_id, slot) DO UPDATE SET version = g.version + 1;
"""


def counting(tenant: UUID) -> str:
    """What counts the transaction of `tenant` that it stands in, before its end.

    The tenant is a UUID object, so its text cannot carry SQL.
    """
    return _COUNT.format(tenant=tenant, slots=SLOTS)


class GenerationStore:
    """Reads the count. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def read(self) -> int:
        """How often the unit's tenant was written to.

        One of the store methods without a scope: the count is the tenant's.
        """
        row = await self._unit.fetch_one(READ)
        return int(row["generation"]) if row is not None else 0
