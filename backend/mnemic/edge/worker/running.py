"""From start to end of `mnemic worker` and `mnemic beat`."""

from __future__ import annotations

import asyncio
import logging
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from typing import Any, NoReturn

import structlog
from celery import platforms, signals
from celery.apps.beat import Beat
from celery.exceptions import SecurityWarning
from pydantic import SecretStr

from mnemic.edge.worker.app import BoundedScheduler, build_app
from mnemic.edge.worker.bridge import Bridge
from mnemic.errors import Unavailable
from mnemic.manager import MemoryManager
from mnemic.settings import MemorySettings
from mnemic.wiring import Servers, resolve_servers

__all__ = ["tick", "work"]

log = structlog.get_logger("mnemic")

# Celery's lines about each message that came and each task that ended well; our own say the same.
CHATTY = ("celery.worker.strategy", "celery.app.trace")


class _Beat(Beat):
    """Celery's, but that a signal never breaks an exchange with Valkey in two."""

    def install_sync_handler(self, service: Any) -> None:  # noqa: ARG002 - as in Celery
        """SIGTERM and SIGINT end it, and what it was doing is left before anything is closed.

        Celery's handler closes first: an answer that was being read then fails as any fault does.
        """

        def end(*_: Any) -> NoReturn:
            raise SystemExit

        platforms.signals.update(SIGTERM=end, SIGINT=end)


def work(settings: MemorySettings, *, concurrency: int, pool: str) -> int:
    """The worker has run until a signal; its exit code.

    Embedded servers are held as long as it runs. Raises `ConfigurationError` at once if the role
    or the schema is not fit to serve; a server that is away is waited for.
    """
    _keep_logging()
    # Celery warns root of pickled messages that run code; ours are JSON and carry nothing.
    warnings.filterwarnings("ignore", "You're running the worker", SecurityWarning)
    servers = asyncio.run(resolve_servers(settings))
    reached = _at(servers, settings)
    bridge = Bridge(lambda: MemoryManager.open(reached))
    with ExitStack() as held:
        held.callback(lambda: asyncio.run(servers.close()))
        held.callback(bridge.close)
        _refuse_unfit(reached)
        app = build_app(settings, redis_url=servers.redis_url, bridge=bridge)
        worker: Any = app.Worker(
            concurrency=concurrency,
            pool=pool,
            loglevel="INFO",
            quiet=True,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
        )
        log.info("worker_starts", pool=pool, concurrency=concurrency, keys=_prefix(app))
        stops: list[str] = []
        stopping = lambda sig, how, **_: stops.append(f"{sig} {how}")  # noqa: E731 - kept by name
        signals.worker_shutting_down.connect(stopping, weak=False)
        held.callback(signals.worker_shutting_down.disconnect, stopping)
        worker.start()
        # Ctrl-C ends it as SIGTERM does; Celery calls the one a failure, and the other not.
        return 0 if stops == ["SIGINT Warm"] else int(worker.exitcode or 0)


def tick(settings: MemorySettings) -> None:
    """Maintenance was asked for on schedule until a signal."""
    _keep_logging()
    servers = asyncio.run(_broker(settings))
    try:
        app = build_app(settings, redis_url=servers.redis_url)
        log.info("beat_starts", keys=_prefix(app))
        make_beat: Any = app.subclass_with_self(_Beat)
        make_beat(scheduler_cls=BoundedScheduler, loglevel="INFO", quiet=True).run()
    finally:
        asyncio.run(servers.close())


async def _broker(settings: MemorySettings) -> Servers:
    """Valkey as set, without a look at PostgreSQL, which beat does not need."""
    if settings.redis_url is None:
        return await resolve_servers(settings, migrate=False)
    return Servers(database_url="", owner_url=None, redis_url=settings.redis_url.get_secret_value())


def _at(servers: Servers, settings: MemorySettings) -> MemorySettings:
    """The settings with the servers that were found: children reach them, and hold none."""
    return settings.model_copy(
        update={
            "database_url": SecretStr(servers.database_url),
            "database_owner_url": SecretStr(servers.owner_url) if servers.owner_url else None,
            "redis_url": SecretStr(servers.redis_url),
        }
    )


def _refuse_unfit(settings: MemorySettings) -> None:
    """Memory could be opened, or a server is away for now.

    Tried in a child, so that this process, which forks the others, has no threads and no model.
    """
    with ProcessPoolExecutor(1, get_context("fork")) as child:
        child.submit(_try_opening, settings).result()


def _try_opening(settings: MemorySettings) -> None:
    async def opened() -> None:
        async with MemoryManager.open(settings):
            pass

    try:
        asyncio.run(opened())
    except Unavailable as fault:
        log.warning("worker_waits", code=fault.code, reason=str(fault))


def _keep_logging() -> None:
    """Celery leaves logging as it is, and says less."""
    signals.setup_logging.connect(_leave, weak=False)
    if not logging.getLogger().isEnabledFor(logging.DEBUG):
        for name in CHATTY:
            logging.getLogger(name).setLevel(logging.WARNING)


def _leave(**_: Any) -> None:
    return None


def _prefix(app: Any) -> str:
    return str(app.conf.broker_transport_options["global_keyprefix"])
