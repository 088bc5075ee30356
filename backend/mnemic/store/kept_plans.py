"""Plans that a session keeps: made once for all tenants, and anew when a table has doubled.

A plan that is kept sees neither the tenant nor how the tables have grown since. So the statements
that go by it look up by whole keys, and what else they may do depends little on how large a tenant
is. ANALYZE ends a kept plan, and so does a session that finds a table twice as large: what was as
cheap as anything else for ten rows would go through thousands.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["LOOK_SECONDS", "PARTITIONS_MAX", "SETTINGS", "KeptPlans"]

LOOK_SECONDS = 1.0
"""How long the tables are taken to be as large as they were."""

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

# In pages, as the planner takes them.
SIZES = Statement("""
    SELECT array_agg(pg_relation_size(c.oid) / CAST(current_setting('block_size') AS int)
                     ORDER BY c.relname) AS pages,
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


class KeptPlans:
    """Whether plans may be kept on this database, and which sessions have old ones."""

    def __init__(self) -> None:
        self.may_keep = False
        self._due = 0.0
        self._doublings: tuple[int, ...] = ()
        # By the server's process, for which sizes its plans were made.
        self._made_for: dict[int, tuple[int, ...]] = {}

    @property
    def is_due(self) -> bool:
        """Whether the tables are to be looked at again."""
        return time.monotonic() >= self._due

    def renewing(self, connection: Any) -> str:
        """What comes before `BEGIN` on this connection, whose plans are those of now then."""
        session = connection.get_server_pid()
        if self._made_for.get(session) == self._doublings:
            return ""
        if len(self._made_for) >= SESSIONS_MAX:
            self._made_for.clear()
        self._made_for[session] = self._doublings
        return DISCARD

    async def look(self, unit: Unit) -> None:
        """Looks how large the tables are, in a unit that began without keeping its plans."""
        row = await unit.fetch_one(SIZES, tables=_TABLES)
        self._due = time.monotonic() + LOOK_SECONDS
        if row is not None:
            self._doublings = tuple(pages.bit_length() for pages in row["pages"])
            self.may_keep = row["partitions"] <= 1 + PARTITIONS_MAX
