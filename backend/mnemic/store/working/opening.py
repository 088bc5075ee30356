"""Working memory as it is set: its place, opened, and the clock that it is read by."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from mnemic.errors import ConfigurationError
from mnemic.model.scope import Scope, TenantId
from mnemic.settings import WorkingSettings
from mnemic.store.unit import Database, Unit
from mnemic.store.working import rows
from mnemic.store.working.client import ValkeyClient
from mnemic.store.working.durable import ValkeyPlace
from mnemic.store.working.local import LocalPlace
from mnemic.store.working.place import Place
from mnemic.store.working.postgres import PostgresPlace
from mnemic.store.working.reaching import Reaching
from mnemic.store.working.restoring import Restoring
from mnemic.store.working.stamps import Moment, Stamps
from mnemic.store.working.valkey import Valkey

__all__ = ["WorkingPlaces", "open_working", "purge_expired"]


class WorkingPlaces:
    """The place of working memory of one process; safe to use from any loop, thread and fork."""

    def __init__(
        self,
        place: Place,
        settings: WorkingSettings,
        clock: Callable[[], datetime],
        stamps: Stamps,
        postgres: PostgresPlace | None,
    ) -> None:
        self.place = place
        self.settings = settings
        self._clock = clock
        self._stamps = stamps
        self._postgres = postgres

    def now(self) -> Moment:
        """The moment of a call."""
        return self._stamps.tick(int(self._clock().timestamp() * 1_000))

    async def drop_rows(self, unit: Unit, scope: Scope) -> None:
        """What PostgreSQL holds of the scope goes with the unit; `drop_rest` is called after it."""
        if self._postgres is not None:
            await self._postgres.drop_in(unit, scope)

    async def drop_rest(self, scope: Scope) -> None:
        """What Valkey or this process holds of the scope is gone.

        Raises `Unavailable` when Valkey is away: what it has expires by itself.
        """
        if isinstance(self.place, ValkeyPlace):
            await self.place.drop_here(scope, self.now())
        elif isinstance(self.place, LocalPlace):
            await self.place.drop(scope, self.now())

    async def close(self) -> None:
        """What was held while Valkey was away is merged or, failing that, lost and logged."""
        await self.place.close()


async def open_working(
    redis_url: str | None,
    database: Database | None,
    settings: WorkingSettings,
    *,
    clock: Callable[[], datetime],
    new_id: Callable[[], UUID],
    fields_expire: bool | None = None,
) -> WorkingPlaces:
    """The place that `settings` names, fit to serve.

    Raises `ConfigurationError` when Valkey would drop what it holds, is too old or is not named;
    `StoreUnavailable` when it is away and `working.on_outage` is "refuse". With
    `fields_expire=False` the expiry of fields is done without where the server has it.
    """
    stamps = Stamps()
    if settings.place == "local":
        local = LocalPlace(settings, new_id=new_id)
        return WorkingPlaces(local, settings, clock, stamps, None)
    if database is None:
        raise ConfigurationError("Working memory needs PostgreSQL; set MEM_DATABASE_URL.")
    postgres = PostgresPlace(database, settings, new_id=new_id)
    if settings.place == "postgres":
        return WorkingPlaces(postgres, settings, clock, stamps, postgres)
    if redis_url is None:
        raise ConfigurationError(
            "Working memory needs Valkey; set MEM_REDIS_URL, or MEM_WORKING__PLACE=postgres."
        )
    valkey = Valkey(
        ValkeyClient(redis_url, settings, fields_expire=fields_expire), settings, stamps
    )

    def now() -> Moment:
        return stamps.tick(int(clock().timestamp() * 1_000))

    reaching = Reaching(valkey, settings, now)
    restoring = Restoring(reaching, postgres, settings, stamps, now)
    place = ValkeyPlace(reaching, postgres, restoring, settings)
    try:
        await reaching.open()
    except BaseException:
        await place.close()
        raise
    return WorkingPlaces(place, settings, clock, stamps, postgres)


async def purge_expired(
    database: Database, tenant: TenantId, settings: WorkingSettings, *, now: datetime, limit: int
) -> int:
    """How many rows of the tenant went that had expired; see `rows.purge` for the `limit`.

    A row is kept for its version as long as an outage can still be merged.
    """

    async def work(unit: Unit) -> int:
        return await rows.purge(unit, before=now - settings.tombstone_ttl, limit=limit)

    return await database.transact(tenant, work)
