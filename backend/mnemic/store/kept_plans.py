"""Plans that a session keeps: for all small tenants, until a table has grown by much.

A plan that is kept sees neither the tenant nor how the tables have grown since. So the statements
that go by it look up by whole keys. What else they do may go through all that the tenant has, in
whichever scope: so the tenant is small. ANALYZE ends a kept plan, and so does a session that finds
a table at the next power of two of its rows: what was as cheap as anything else for ten rows
would go through thousands.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["DISCARD", "SETTINGS", "TENANT_MEMORIES_MAX", "KeptPlans"]

LOOK_SECONDS = 1.0
"""How long the tables are taken to be as large as they were."""

TENANT_SECONDS = 60.0
"""How long a tenant is taken to be as small as it was."""

TENANT_MEMORIES_MAX = 2_000
"""So many memories are gone through in less time than a plan takes to make."""

TENANTS_MAX = 10_000
PARTITIONS_MAX = 8
"""Tenants with partitions of their own: a kept plan locks those of all, at each call."""

SESSIONS_MAX = 1_000

# Reading a table whole, right for ten rows, must not be in a plan that outlives them; and a small
# tenant is not to start workers because the table is large.
SETTINGS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "max_parallel_workers_per_gather": "0",
}
DISCARD = "DISCARD PLANS; "

# In rows, as the server counts them: it counts pages too, but not of a table that somebody locks.
SIZES = Statement("""
    SELECT array_agg(pg_stat_get_live_tuples(c.oid) + pg_stat_get_dead_tuples(c.oid)
                     ORDER BY c.relname) AS held,
           (SELECT count(*) FROM pg_catalog.pg_inherits i
             WHERE i.inhparent = to_regclass('mnemic.turn_vectors')) AS partitions
      FROM pg_catalog.pg_class c
     WHERE c.relnamespace = to_regnamespace('mnemic')
       AND c.relname = ANY(CAST(:tables AS text[]))
""")
_NOUNS = ("turn", "episode", "fact", "procedure")
_TABLES = [
    *(table for noun in _NOUNS for table in (f"{noun}s", f"{noun}_vectors_default")),
    "term_stats",
    "entities",
]


_HELD = " + ".join(
    f"(SELECT count(*) FROM (SELECT FROM mnemic.{noun}s m WHERE {{tenant:m}} LIMIT :most) {noun})"
    for noun in _NOUNS
)
# Those that are archived or retired too, for they are gone through as well.
TENANT = Statement(f"SELECT {_HELD} AS held")


class KeptPlans:
    """Of which tenants plans may be kept on this database, and which sessions have old ones.

    One for all loops and threads of a process: at worst something is looked at twice.
    """

    def __init__(self) -> None:
        self._apart = True  # how tables and partitions stand is not known yet
        self._due = 0.0
        self._sizes: tuple[int, ...] = ()
        # By the server's process, for which sizes its plans were made.
        self._made_for: dict[int, tuple[int, ...]] = {}
        self._small: dict[UUID, tuple[bool, float]] = {}

    def is_due(self, tenant: UUID) -> bool:
        """Whether the tables, or how much the tenant has, are to be looked at again."""
        now = time.monotonic()
        return now >= self._due or now >= self._small.get(tenant, (False, 0.0))[1]

    def may_keep(self, tenant: UUID) -> bool:
        """Whether a plan may be kept that the tenant goes by."""
        return not self._apart and self._small.get(tenant, (False, 0.0))[0]

    def is_renewed(self, connection: Any) -> bool:
        """Whether the plans of this connection were made for tables as they are."""
        return self._made_for.get(connection.get_server_pid()) == self._sizes

    def renewed(self, connection: Any) -> None:
        """The connection has thrown away its plans just now (`DISCARD`)."""
        if len(self._made_for) >= SESSIONS_MAX:
            self._made_for.clear()
        self._made_for[connection.get_server_pid()] = self._sizes

    async def look(self, unit: Unit) -> None:
        """Looks at what is due, in a unit that began without keeping its plans."""
        now = time.monotonic()
        if now >= self._due:
            self._due = now + LOOK_SECONDS  # at once, so that one unit looks and not all
            row = await unit.fetch_one(SIZES, tables=_TABLES)
            if row is not None:
                self._sizes = tuple(held.bit_length() for held in row["held"])
                self._apart = row["partitions"] > 1 + PARTITIONS_MAX
        if now >= self._small.get(unit.tenant, (False, 0.0))[1]:
            row = await unit.fetch_one(TENANT, most=TENANT_MEMORIES_MAX + 1)
            if len(self._small) >= TENANTS_MAX:
                self._small.clear()
            small = row is not None and row["held"] <= TENANT_MEMORIES_MAX
            self._small[unit.tenant] = (small, now + TENANT_SECONDS)
