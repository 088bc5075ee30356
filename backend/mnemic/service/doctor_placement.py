"""What the doctor says of tenants that have indexes or partitions of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from mnemic.store.placement import Placement
from mnemic.store.promoting import TABLES

__all__ = ["partitions_told", "promoted_told", "unused_told"]

NAMED_MAX = 3
MEBIBYTE = 1_048_576
FINISH = (
    "run `mnemic db promote` with MEM_DATABASE_OWNER_URL set, or give it to `mnemic worker`: "
    "either finishes it"
)

Told = tuple[str, str | None]
"""What was found, and a remedy unless all is well."""


def promoted_told(found: Placement) -> Told:
    """The indexes of tenants, and those that a build has left unfinished."""
    broken = [one for one in found.indexes if not one.is_valid]
    valid = [one for one in found.indexes if one.is_valid]
    size = sum(one.bytes for one in valid) / MEBIBYTE
    tenants = len({one.tenant for one in valid})
    told = f"{len(valid)} of {tenants} tenants, {size:.0f} MiB" if valid else "none are promoted"
    if broken and found.is_changing:
        return f"{told}; {len(broken)} being built or dropped", None
    if broken:
        names = _named(one.tenant for one in broken)
        return f"{told}; unfinished, so that they slow down writes alone: {names}", FINISH
    return told, None


def unused_told(found: Placement) -> Told:
    """The indexes that nobody has asked since the server began to count."""
    unused = [one.tenant for one in found.indexes if one.is_valid and not one.scans]
    if not unused:
        return "every index of a tenant's own is asked", None
    remedy = f"unless they are new, run `mnemic db demote --tenant {unused[0]}`, and so on"
    return f"never asked yet: {_named(unused)}", remedy


def partitions_told(found: Placement) -> Told:
    """The tenants that are kept apart, and moves that broke off."""
    attached = Counter(one.tenant for one in found.partitions if one.is_attached)
    whole = [tenant for tenant, tables in attached.items() if tables == len(TABLES)]
    halfway = {one.tenant for one in found.partitions} - set(whole)
    halfway |= {one.tenant for one in found.partitions if not one.is_attached}
    told = f"{len(whole)} tenants are kept apart" if whole else "all tenants share theirs"
    if halfway and found.is_changing:
        return f"{told}; {len(halfway)} being moved", None
    if halfway:
        return f"{told}; a move broke off: {_named(halfway)}", FINISH
    return told, None


def _named(tenants: Iterable[UUID]) -> str:
    names = sorted({f"tenant {one}" for one in tenants})
    rest = len(names) - NAMED_MAX
    return "; ".join(names[:NAMED_MAX]) + (f"; and {rest} more" if rest > 0 else "")
