"""Who may write where: a scope in itself, and above itself where it was granted."""

from __future__ import annotations

from uuid import UUID

from mnemic.errors import Forbidden, InvalidInput
from mnemic.model.scope import Scope
from mnemic.service.parsing import checked_scope
from mnemic.service.tools import Tools
from mnemic.store.guards import AuditEntry
from mnemic.store.unit import Unit

__all__ = ["allow_writing", "require_write", "revoke_writing", "scope_in_chain"]


def scope_in_chain(scope: Scope, target: UUID) -> Scope:
    """The member of the chain with the id `target`. Raises `Forbidden` if there is none."""
    found = next((one for one in scope.chain if one.id == target), None)
    if found is None:
        raise Forbidden("That scope is not above this one.")
    return found


async def require_write(unit: Unit, scope: Scope, target: UUID) -> Scope:
    """The scope `target`, if `scope` may write there. Raises `Forbidden`."""
    place = scope_in_chain(scope, target)
    if place.id != scope.id and not await unit.grants.held(scope, target=target):
        raise Forbidden(
            f"It stands in the wider {place.level.value} scope; write from there, or have that "
            "scope grant the right."
        )
    return place


async def allow_writing(tools: Tools, *, scope: Scope, target: Scope) -> None:
    """Whoever works in `scope`, or below it, may write in `target`, which lies above it.

    Raises `InvalidInput` if it does not.
    """
    _checked(scope, target)
    now = tools.now()

    async def land(unit: Unit) -> None:
        await unit.scopes.ensure(scope)
        await unit.grants.allow(scope, target=target, identity=tools.new_id(), now=now)
        await unit.guards.audit(target, _entry(tools, "grant.allow", scope), now=now)

    await tools.transact(scope.tenant.id, land)


async def revoke_writing(tools: Tools, *, scope: Scope, target: Scope) -> bool:
    """That right is gone; false if there was none."""
    _checked(scope, target)
    now = tools.now()

    async def land(unit: Unit) -> bool:
        revoked = await unit.grants.revoke(scope, target=target, now=now)
        if revoked:
            await unit.guards.audit(target, _entry(tools, "grant.revoke", scope), now=now)
        return revoked

    return await tools.transact(scope.tenant.id, land)


def _checked(scope: Scope, target: Scope) -> None:
    checked_scope(target, field="to")
    if target not in checked_scope(scope).chain[1:]:
        raise InvalidInput("must be a scope above the one that gets the right", field="to")


def _entry(tools: Tools, action: str, scope: Scope) -> AuditEntry:
    return AuditEntry(id=tools.new_id(), action=action, subject_kind="scope", subject_id=scope.id)
