"""Delete memories by their exact ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from mnemic.errors import InvalidInput, NotFound
from mnemic.model.normalise import clean_text
from mnemic.model.scope import Scope
from mnemic.service.parsing import checked_key
from mnemic.service.rights import require_write
from mnemic.service.tools import Tools
from mnemic.service.witness import Write, answered, claimed, request_digest
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
    tools: Tools,
    ids: Sequence[UUID],
    *,
    scope: Scope,
    reason: str | None = None,
    key: str | None = None,
) -> Forgotten:
    """The memories of exactly these ids are gone: all of them, or none.

    What was forgotten is refused when it comes again (digests alone are kept for that), until a
    caller asks for it with `lift=True`.

    The same idempotency key with the same ids gives the first answer again. Raises `NotFound` if
    one is not visible from `scope`, `Forbidden` if one stands in a wider scope without a grant,
    `InvalidInput` for an empty or overlong list.
    """
    limit = tools.settings.limits.batch_max
    wanted = list(dict.fromkeys(_identified(one) for one in _listed(ids)))
    if not wanted:
        raise InvalidInput("must name at least one memory", field="ids")
    if len(wanted) > limit:
        raise InvalidInput(f"names {len(wanted)} memories; the most is {limit}", field="ids")
    why = None if reason is None else clean_text(reason, field="reason", chars_max=1_000)
    now = tools.now()
    write = Write(
        operation="memory.forget",
        request=request_digest("forget", sorted(str(one) for one in wanted)),
        key=checked_key(key),
    )

    async def land(unit: Unit) -> Forgotten:
        await unit.scopes.ensure(scope)
        if (answer := await claimed(unit, scope, write, now=now)) is not None:
            return Forgotten(counts=answer)
        found = await unit.forgetting.locate(scope, wanted)
        if missing := [one for one in wanted if one not in found]:
            raise NotFound(f"No memory {missing[0]} in this scope.", id=missing[0])
        counts: dict[str, int] = {}
        for (noun, place_id), chosen in _grouped(wanted, found).items():
            place = await require_write(unit, scope, place_id)
            marks = await unit.forgetting.marks(place, noun, chosen)
            await unit.tombstones.add(place, marks, kind=noun, reason=why, now=now)
            landed = await unit.forgetting.delete(place, noun, chosen)
            counts[noun] = counts.get(noun, 0) + landed
        entries = [
            AuditEntry(
                id=tools.new_id(),
                action=write.operation,
                subject_kind=found[one][0],
                subject_id=one,
                reason=why,
            )
            for one in wanted
        ]
        await unit.guards.audit(scope, *entries, now=now)
        await answered(unit, scope, write, counts)
        return Forgotten(counts=counts)

    return await tools.transact(scope.tenant.id, land)


def _listed(ids: object) -> Sequence[object]:
    if isinstance(ids, str | bytes | UUID) or not isinstance(ids, Sequence):
        raise InvalidInput("must be a list of ids", field="ids")
    return ids


def _identified(given: object) -> UUID:
    """The id, also as the text that it becomes in JSON."""
    if isinstance(given, UUID):
        return given
    try:
        return UUID(str(given))
    except ValueError:
        raise InvalidInput(f"holds {str(given)[:60]!r}, which is no id", field="ids") from None


def _grouped(
    wanted: Sequence[UUID], found: dict[UUID, tuple[str, UUID]]
) -> dict[tuple[str, UUID], list[UUID]]:
    """The ids by kind and scope, in one order for every caller, so that two never deadlock."""
    groups: dict[tuple[str, UUID], list[UUID]] = {}
    for one in sorted(wanted):
        groups.setdefault(found[one], []).append(one)
    return dict(sorted(groups.items()))
