"""Delete memories by their exact ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from mnemic.errors import Forbidden, InvalidInput, NotFound
from mnemic.model.scope import Scope
from mnemic.service.tools import Tools
from mnemic.store.guards import AuditEntry
from mnemic.store.unit import Unit

__all__ = ["Forgotten", "forget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """How many memories of each kind are gone, vectors and evidence with them."""

    counts: dict[str, int]

    @property
    def total(self) -> int:
        """All kinds together."""
        return sum(self.counts.values())


async def forget(
    tools: Tools, ids: Sequence[UUID], *, scope: Scope, reason: str | None = None
) -> Forgotten:
    """The memories of exactly these ids are gone: all of them, or none.

    What was forgotten is refused when it comes again (digests alone are kept for that), until a
    caller asks for it with `lift=True`.

    Raises `NotFound` if one is not visible from `scope`, `Forbidden` if one stands in a wider
    scope (forget it from there), `InvalidInput` for an empty or overlong list.
    """
    limit = tools.settings.limits.batch_max
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        raise InvalidInput("must name at least one memory", field="ids")
    if len(wanted) > limit:
        raise InvalidInput(f"names {len(wanted)} memories; the most is {limit}", field="ids")
    now = tools.now()

    async def land(unit: Unit) -> Forgotten:
        found = await unit.forgetting.locate(scope, wanted)
        if missing := [one for one in wanted if one not in found]:
            raise NotFound(f"No memory {missing[0]} in this scope.", id=missing[0])
        if above := [one for one in wanted if found[one][1] != scope.id]:
            raise Forbidden(
                f"{above[0]} stands in a wider scope; forget it from that scope.", id=above[0]
            )
        counts: dict[str, int] = {}
        for noun in dict.fromkeys(kind for kind, _ in found.values()):
            chosen = [one for one in wanted if found[one][0] == noun]
            marks = await unit.forgetting.marks(scope, noun, chosen)
            await unit.tombstones.add(scope, marks, kind=noun, reason=reason, now=now)
            counts[noun] = await unit.forgetting.delete(scope, noun, chosen)
        for one in wanted:
            entry = AuditEntry(
                id=tools.new_id(),
                action="memory.forget",
                subject_kind=found[one][0],
                subject_id=one,
                reason=reason,
            )
            await unit.guards.audit(scope, entry, now=now)
        return Forgotten(counts=counts)

    return await tools.transact(scope.tenant.id, land)
