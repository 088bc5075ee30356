"""How each wall is switched off, and defects that a proof must notice; nothing of it is a setting.

Policies off: the service logs in as a role with BYPASSRLS, which only an administrator can make,
and the check that refuses such a role is skipped. Tenant predicate off: the one function that
writes it gives a predicate that holds for every row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from typing import Any
from uuid import uuid5

import pytest

from mnemic import wiring
from mnemic.model import scope as scopes
from mnemic.store import _scoping
from mnemic.store.roles import APP_ROLE
from mnemic.store.statement import every_statement

_DERIVED = (scopes._tenant_id, scopes._scope_id)

__all__ = ["BYPASSING_ROLE", "DROP_ROLE", "MAKE_ROLE", "Defect", "Walls", "standing"]

BYPASSING_ROLE = "mnemic_test_bypassing"
MAKE_ROLE = f"CREATE ROLE {BYPASSING_ROLE} LOGIN BYPASSRLS IN ROLE {APP_ROLE}"
DROP_ROLE = f"DROP ROLE {BYPASSING_ROLE}"


class Walls(Enum):
    """Which walls stand."""

    BOTH = "both walls"
    PREDICATE_ALONE = "policies off"
    POLICIES_ALONE = "tenant predicate off"
    NONE = "no wall"

    @property
    def role(self) -> str:
        """Who serves."""
        return APP_ROLE if self in (Walls.BOTH, Walls.POLICIES_ALONE) else BYPASSING_ROLE

    @property
    def has_predicate(self) -> bool:
        """Whether statements name the tenant."""
        return self in (Walls.BOTH, Walls.PREDICATE_ALONE)


class Defect(Enum):
    """Faults that somebody might make."""

    SCOPES_IGNORED = "every scope of the tenant is visible"
    KIND_IGNORED = "a person and an organisation with one id are one tenant"
    NAMES_UNPREFIXED = "two paths have one id, since names stand without their length"


@contextmanager
def standing(walls: Walls, defect: Defect | None = None) -> Iterator[None]:
    """Only these walls stand, with the defect; afterwards everything is as before."""
    with ExitStack() as stack:
        stack.callback(_render_anew)
        stack.callback(_forget_ids)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        if not walls.has_predicate:
            patch.setattr(_scoping, "tenant_predicate", _any_tenant)
        if walls.role is BYPASSING_ROLE:
            patch.setattr(wiring, "refuse_unfit", _accept)
        if defect is not None:
            _plant(defect, patch)
        _forget_ids()
        _render_anew()
        yield


def _render_anew() -> None:
    for statement in every_statement():
        statement.__dict__.pop("_rendered", None)


def _any_tenant(alias: str) -> str:
    del alias
    return "CAST(:tenant AS uuid) IS NOT NULL"


async def _accept(database: Any, **more: Any) -> None:
    del database, more


def _plant(defect: Defect, patch: pytest.MonkeyPatch) -> None:
    if defect is Defect.SCOPES_IGNORED:
        patch.setattr(
            _scoping,
            "scopes_predicate",
            lambda *_: "CAST(:scopes AS uuid[]) IS NOT NULL",
        )
    elif defect is Defect.KIND_IGNORED:
        patch.setattr(
            scopes, "_tenant_id", lambda one: uuid5(scopes.MNEMIC_NAMESPACE, one.external_id)
        )
    else:
        patch.setattr(
            scopes,
            "_scope_id",
            lambda one: uuid5(
                one.tenant.id, "".join(f"{level.value}:{name};" for level, name in one.path)
            ),
        )


def _forget_ids() -> None:
    for derived in _DERIVED:
        derived.cache_clear()
