"""How a unit begins: in one round trip, with its tenant and with how its plans are made."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from mnemic.settings import DatabaseSettings
from mnemic.store.kept_plans import DISCARD, SETTINGS, KeptPlans
from mnemic.store.session_setup import session_settings

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["Beginning", "beginning"]


def beginning(
    tenant: UUID, settings: DatabaseSettings, *, read_only: bool, keep_plans: bool = False
) -> str:
    """What begins a unit of `tenant`, in one round trip.

    Its plans are made anew for each call, or kept in the session: see `kept_plans`. The tenant is a
    UUID object, so its text cannot carry SQL.
    """
    mode = " READ ONLY" if read_only else ""
    told = SETTINGS if keep_plans else {}
    if settings.pgbouncer:
        told = session_settings(settings)
        del told["application_name"]  # the pooler's own, for each of its clients
    text = f"BEGIN{mode}; SELECT set_config('mnemic.tenant_id', '{tenant}', true)"
    return text + "".join(
        f", set_config('{name}', '{value}', true)" for name, value in told.items()
    )


class Beginning:
    """Begins the units of a database, and knows whether their plans may be kept."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._settings = settings
        self._plans = KeptPlans()

    async def of(self, unit: Unit, *, read_only: bool, keep_plans: bool) -> None:
        """The transaction has begun.

        Behind a pooler no statement is kept, and nor is a plan. A unit that looks at how large the
        tables and the tenant are makes its plans anew.
        """
        plans = self._plans
        keeps = keep_plans and not self._settings.pgbouncer
        look = keeps and plans.is_due(unit.tenant)
        unit.keeps_plans = keeps and not look and plans.may_keep(unit.tenant)
        renews = unit.keeps_plans and not plans.is_renewed(unit.connection)
        text = self.text(unit, read_only=read_only)
        with unit.deadline:
            await unit.connection.execute(DISCARD + text if renews else text)
        if renews:
            plans.renewed(unit.connection)
        if look:
            await plans.look(unit)

    def text(self, unit: Unit, *, read_only: bool) -> str:
        """What the unit begins with."""
        return beginning(
            unit.tenant, self._settings, read_only=read_only, keep_plans=unit.keeps_plans
        )
