"""The composition root: the only module that knows every concrete class."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from pydantic import SecretStr

from mnemic import embedded
from mnemic.embed import open_embedder
from mnemic.errors import ConfigurationError
from mnemic.model.embedding import Embedder
from mnemic.model.identity import uuid7
from mnemic.model.normalise import held_text
from mnemic.model.reranker import Reranker
from mnemic.model.token_count import EstimatedTokens, TokenCounter
from mnemic.service.caches import Caches
from mnemic.service.tools import Tools
from mnemic.settings import EmbeddedSettings, MemorySettings
from mnemic.store.readiness import refuse_unfit
from mnemic.store.roles import APP_ROLE, OWNER_ROLE, init
from mnemic.store.unit import Database
from mnemic.store.working.opening import open_working
from mnemic.think import RulesThinker, Thinker

__all__ = ["Servers", "Wiring", "embedded_settings", "resolve_servers", "utc_now"]

EMBEDDED_DATABASE = "mnemic"


def embedded_settings(data_dir: Path | str) -> MemorySettings:
    """Settings under which every server is an embedded one of `data_dir`.

    Raises `InvalidInput` for what names no folder.
    """
    held_text(str(data_dir) if isinstance(data_dir, Path) else data_dir, field="data_dir")
    return MemorySettings(
        database_url=None,
        database_owner_url=None,
        redis_url=None,
        embedded=EmbeddedSettings(data_dir=Path(data_dir)),
    )


class Servers:
    """Where the servers are: as set, else the embedded ones, started and set up."""

    def __init__(
        self,
        *,
        database_url: str,
        owner_url: str | None,
        redis_url: str,
        started: embedded.EmbeddedServers | None = None,
        embeds_database: bool = False,
    ) -> None:
        self.database_url = database_url
        self.owner_url = owner_url
        self.redis_url = redis_url
        self.started = started
        self.embeds_database = embeds_database
        """Whether the database is one of `started`: it may be set, and Valkey alone embedded."""

    async def close(self) -> None:
        """Embedded servers stop when their last user closes; others are none of ours."""
        if self.started is not None:
            await asyncio.to_thread(self.started.close)


async def resolve_servers(settings: MemorySettings, *, migrate: bool = True) -> Servers:
    """The servers that `settings` names; embedded ones are started for each that it does not.

    The schema of the embedded server is brought to this release's, since nobody else would.
    Raises `ServerUnavailable` or `ConfigurationError` with the remedy.
    """
    database_url, owner_url, redis_url = (
        _text(settings.database_url),
        _text(settings.database_owner_url),
        _text(settings.redis_url),
    )
    embeds_database = not database_url
    if database_url and redis_url:
        return Servers(database_url=database_url, owner_url=owner_url, redis_url=redis_url)
    started = await asyncio.to_thread(embedded.start, settings.embedded)
    try:
        if not database_url:
            database_url = started.postgres_url(APP_ROLE, EMBEDDED_DATABASE)
            owner_url = started.postgres_url(OWNER_ROLE, EMBEDDED_DATABASE)
            if migrate:
                # Alembic takes longer to import than all the rest, and only this needs it.
                from mnemic.store.upgrade import upgrade  # noqa: PLC0415 - see above

                await init(started.postgres_url(), database=EMBEDDED_DATABASE)
                await asyncio.to_thread(upgrade, owner_url)
    except BaseException:
        await asyncio.to_thread(started.close)
        raise
    return Servers(
        database_url=database_url,
        owner_url=owner_url,
        redis_url=redis_url or started.redis_url,
        started=started,
        embeds_database=embeds_database,
    )


class Wiring:
    """Builds `Tools` from settings, and takes them apart again."""

    def __init__(
        self,
        settings: MemorySettings,
        *,
        clock: Callable[[], datetime] | None = None,
        new_id: Callable[[], UUID] | None = None,
        embedder: Embedder | None = None,
        thinker: Thinker | None = None,
        counter: TokenCounter | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self.settings = settings
        self._clock = clock or utc_now
        self._new_id = new_id or self._random_id
        self._embedder = embedder
        self._thinker = thinker
        self._counter = counter or EstimatedTokens()
        self._reranker = reranker
        self._open: AsyncExitStack | None = None
        self.servers: Servers | None = None

    def _random_id(self) -> UUID:
        return uuid7(self._clock(), secrets.randbits(74))

    async def open(self) -> Tools:
        """Servers reached, role and schema fit to serve, models at hand.

        Raises `ConfigurationError` with the remedy, or `Unavailable`.
        """
        if self._open is not None:
            raise ConfigurationError("The manager is open already; open it once a process.")
        stack = AsyncExitStack()
        try:
            servers = await resolve_servers(self.settings)
            stack.push_async_callback(servers.close)
            database = Database(servers.database_url, self.settings.database)
            stack.push_async_callback(database.close)
            await refuse_unfit(database, require_durable=self.settings.database.require_durable)
            working = await open_working(
                servers.redis_url,
                database,
                self.settings.working,
                clock=self._clock,
                new_id=self._new_id,
            )
            stack.push_async_callback(working.close)
            embedder = self._embedder or open_embedder(self.settings.embedding)
            stack.push_async_callback(embedder.close)
            tools = Tools(
                settings=self.settings,
                database=database,
                embedder=embedder,
                thinker=self._thinker or RulesThinker(),
                working=working,
                clock=self._clock,
                new_id=self._new_id,
                counter=self._counter,
                reranker=self._reranker,
                owner_url=servers.owner_url,
                caches=Caches(self.settings.cache),
            )
            await tools.live_model()
            # The model is loaded now rather than in the first recall.
            await tools.vectors(["warm"])
        except BaseException:
            await stack.aclose()
            raise
        self._open, self.servers = stack, servers
        return tools

    async def close(self) -> None:
        """What `open` opened is closed; calling it twice is harmless."""
        stack, self._open, self.servers = self._open, None, None
        if stack is not None:
            await stack.aclose()


def utc_now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def _text(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret is not None else None
