"""`mnemic db promote`, `demote`, `isolate`: where the vectors of a tenant stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar
from uuid import UUID

import typer

from mnemic.edge.cli.db import owner_url
from mnemic.edge.cli.memory import waiting
from mnemic.edge.cli.options import JsonOption
from mnemic.edge.cli.writing import write_json, write_line
from mnemic.edge.scope_options import OrgOption, UserOption, scope_of
from mnemic.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from mnemic.model.scope import TenantId
    from mnemic.service.promote import Change
    from mnemic.settings import MemorySettings
    from mnemic.store.owning import Owner

__all__ = ["demote_tenant", "isolate_tenant", "promote_tenants"]

T = TypeVar("T")

TenantOption = Annotated[
    str | None, typer.Option("--tenant", help="The tenant's id, as `mnemic doctor` tells it.")
]


def promote_tenants(
    *,
    user: UserOption = None,
    org: OrgOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give tenants beyond `recall.exact_scan_rows_max` an index of their own; take it from others.

    All tenants, or one. What another promotion or move left unfinished is finished.
    """
    from mnemic.service.promote import promote, promote_due

    chosen = _tenant_of(user, org, tenant)
    if chosen is not None:
        changes = _as_owner(
            "Promoting",
            lambda owner, settings: promote(
                owner, chosen, rows_max=settings.recall.exact_scan_rows_max, at=_now()
            ),
        )
        _show(changes, as_json=as_json)
        return
    report = _with_url("Promoting", lambda url, settings: promote_due(url, settings, at=_now()))
    told = {"tenants": report.tenants, "done": report.done, "failed": report.failed}
    if as_json:
        write_json(told)
    else:
        write_line(
            f"{report.tenants} tenants looked at, {report.done} changes made, "
            f"{report.failed} tenants failed."
        )


def demote_tenant(
    *,
    user: UserOption = None,
    org: OrgOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a tenant's own indexes away; a worker builds them again while it is beyond the bound."""
    from mnemic.service.promote import demote

    chosen = _one(_tenant_of(user, org, tenant))
    _show(_as_owner("Demoting", lambda owner, _: demote(owner, chosen)), as_json=as_json)


def isolate_tenant(
    isolation: Annotated[
        str, typer.Argument(metavar="ISOLATION", help="dedicated (apart from others) or shared.")
    ],
    *,
    user: UserOption = None,
    org: OrgOption = None,
    lock_seconds: Annotated[
        float | None,
        typer.Option(
            "--lock-seconds",
            min=0.01,
            max=600,
            help="How long a table may be held. Default: maintenance.move_lock_seconds.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Move a tenant's vectors to tables of its own, or back, while it is served.

    Readers and writers wait while a table is held; a move that would take longer changes nothing.
    """
    from mnemic.service.isolate import checked_isolation, isolate

    checked_isolation(isolation)
    scope = scope_of(user=user, org=org)
    moved = _as_owner(
        "Moving",
        lambda owner, settings: isolate(
            owner,
            scope.tenant,
            isolation,
            lock_seconds=lock_seconds or settings.maintenance.move_lock_seconds,
        ),
    )
    if as_json:
        write_json({"tenant": str(scope.tenant.id), "isolation": isolation, "moved": moved})
    else:
        write_line(f"{moved} tables moved; the tenant's vectors are {isolation}.")


def _now() -> datetime:
    from mnemic.wiring import utc_now

    return utc_now()


def _tenant_of(user: str | None, org: str | None, tenant: str | None) -> TenantId | None:
    """The tenant that the options name; without any, none."""
    from mnemic.model.scope import TenantId

    if tenant is None:
        return None if user is None and org is None else scope_of(user=user, org=org).tenant.id
    if user is not None or org is not None:
        raise InvalidInput("give --tenant alone, or --user or --org", field="tenant")
    try:
        return TenantId(UUID(tenant))
    except ValueError:
        raise InvalidInput("must be an id, as `mnemic doctor` tells it", field="tenant") from None


def _one(tenant: TenantId | None) -> TenantId:
    if tenant is None:
        raise InvalidInput("name the tenant with --user, --org or --tenant", field="tenant")
    return tenant


def _with_url(words: str, work: Callable[[str, MemorySettings], Awaitable[T]]) -> T:
    """What the work gives, as the owner of the database that is set."""
    import asyncio

    from mnemic.settings_reading import read_settings

    async def run(url: str) -> T:
        return await work(url, read_settings(warns=False))

    with owner_url() as url, waiting(words):
        return asyncio.run(run(url))


def _as_owner(words: str, work: Callable[[Owner, MemorySettings], Awaitable[T]]) -> T:
    from mnemic.service.promote import owning

    async def run(url: str, settings: MemorySettings) -> T:
        async with owning(url, settings.maintenance) as owner:
            return await work(owner, settings)

    return _with_url(words, run)


def _show(changes: list[Change], *, as_json: bool) -> None:
    if as_json:
        write_json(
            {
                "changes": [
                    {"tenant": str(one.tenant), "kind": one.kind, "what": one.what}
                    for one in changes
                ]
            }
        )
        return
    for one in changes:
        write_line(f"{one.what}: the {one.kind} vectors of tenant {one.tenant}")
    if not changes:
        write_line("Nothing to do.")
