"""The Celery application: what is due is a query, and a message is only a hint to ask it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import structlog
from celery import Celery, Task, signals
from celery.beat import Scheduler

from mnemic.edge.worker.bridge import Bridge
from mnemic.edge.worker.broker import broker_url, key_prefix
from mnemic.errors import MnemicError, Unavailable
from mnemic.manager import MemoryManager
from mnemic.settings import MaintenanceSettings, MemorySettings

if TYPE_CHECKING:
    from celery.beat import ScheduleEntry

__all__ = ["JOBS", "QUEUE", "BoundedScheduler", "Job", "build_app"]

log = structlog.get_logger("mnemic")

QUEUE = "mnemic"
RETRIES_MAX = 5
RETRY_SECONDS_MAX = 60
LOST_RETRY_SECONDS = 5
# Beyond the limit that the coroutine itself keeps: for one that blocks its loop, then for a
# process that hears nothing any more.
SOFT_GRACE_SECONDS = 5
HARD_GRACE_SECONDS = 20
WAITING_MAX = 10
SOCKET_TIMEOUT_SECONDS = 30
CONNECT_TIMEOUT_SECONDS = 5
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Job:
    """A kind of maintenance: the name of its task, how it is done, and how often."""

    name: str
    run: Callable[[MemoryManager], Awaitable[Any]]
    every_seconds: Callable[[MaintenanceSettings], float]


JOBS = (
    Job(
        "mnemic.end_idle_sessions",
        lambda memory: memory.maintenance.end_idle_sessions(),
        lambda settings: settings.end_idle_every_seconds,
    ),
    Job(
        "mnemic.embed_missing",
        lambda memory: memory.maintenance.embed_missing(),
        lambda settings: settings.embed_missing_every_seconds,
    ),
    Job(
        "mnemic.count_terms",
        lambda memory: memory.maintenance.count_terms(),
        lambda settings: settings.embed_missing_every_seconds,
    ),
    Job(
        "mnemic.expire",
        lambda memory: memory.maintenance.expire(),
        lambda settings: settings.expire_every_seconds,
    ),
    Job(
        "mnemic.promote_vectors",
        lambda memory: memory.maintenance.promote_vectors(),
        lambda settings: settings.promote_every_seconds,
    ),
)


class _App(Celery):
    """Celery with the broker of our settings alone.

    Celery prefers CELERY_BROKER_URL and CELERY_RESULT_BACKEND of the environment, which may be
    another application's.
    """

    backend_cls = "disabled://"

    def __init__(self, url: str) -> None:
        self.own_url = url
        super().__init__("mnemic", set_as_current=False, fixups=[])

    def connection_for_read(self, url: str | None = None, **given: Any) -> Any:
        return super().connection_for_read(url or self.own_url, **given)

    def connection_for_write(self, url: str | None = None, **given: Any) -> Any:
        return super().connection_for_write(url or self.own_url, **given)


class BoundedScheduler(Scheduler):
    """Keeps its schedule in memory, asks for everything at start, and piles nothing up."""

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """The job is asked for, unless `WAITING_MAX` messages wait for a worker already."""
        try:
            channel: Any = self.connection.default_channel
            waiting = channel.queue_declare(QUEUE).message_count
        except self.connection.connection_errors:
            waiting = 0  # sending will say so, and tries again
        if waiting >= WAITING_MAX:
            log.warning("maintenance_waits", waiting=waiting, remedy="start `mnemic worker`")
            return
        super().apply_entry(entry, producer=producer)


def build_app(settings: MemorySettings, *, redis_url: str, bridge: Bridge | None = None) -> Celery:
    """The application on the Valkey of `redis_url`; without a `bridge` it can only send."""
    app = _App(broker_url(redis_url))
    app.conf.update(_configuration(settings))
    for job in JOBS:
        _add_task(app, job, settings.maintenance, bridge)
    if bridge is not None:
        signals.worker_process_shutdown.connect(lambda **_: bridge.close(), weak=False)
    return app


def _configuration(settings: MemorySettings) -> dict[str, Any]:
    limit = settings.maintenance.task_time_limit_seconds
    return {
        "accept_content": ["json"],
        "task_serializer": "json",
        "result_serializer": "json",
        "task_ignore_result": True,
        "timezone": "UTC",
        "enable_utc": True,
        "task_default_queue": QUEUE,
        "task_acks_late": True,
        # A message whose process was lost is sent again at most RETRIES_MAX times; if that cannot
        # be sent, it goes back.
        "task_retry_on_worker_lost": True,
        "task_reject_on_worker_lost": True,
        "task_soft_time_limit": limit + SOFT_GRACE_SECONDS,
        "task_time_limit": limit + HARD_GRACE_SECONDS,
        "task_send_sent_event": False,
        "worker_send_task_events": False,
        "worker_enable_remote_control": False,
        "worker_prefetch_multiplier": 1,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_transport_options": {
            "global_keyprefix": key_prefix(settings),
            # A message is given to another worker only when no task can be at it any more.
            "visibility_timeout": limit + HARD_GRACE_SECONDS + RETRY_SECONDS_MAX,
            "socket_timeout": SOCKET_TIMEOUT_SECONDS,
            "socket_connect_timeout": CONNECT_TIMEOUT_SECONDS,
        },
        "beat_schedule": {job.name: _entry(job, settings.maintenance) for job in JOBS},
    }


def _entry(job: Job, settings: MaintenanceSettings) -> dict[str, Any]:
    every = job.every_seconds(settings)
    return {
        "task": job.name,
        "schedule": every,
        "last_run_at": LONG_AGO,
        "options": {"expires": every},
    }


def _add_task(app: Celery, job: Job, settings: MaintenanceSettings, bridge: Bridge | None) -> None:
    @app.task(
        name=job.name,
        bind=True,
        shared=False,
        autoretry_for=(Unavailable,),
        max_retries=RETRIES_MAX,
        retry_backoff=True,
        retry_backoff_max=RETRY_SECONDS_MAX,
        default_retry_delay=LOST_RETRY_SECONDS,
        throws=(MnemicError, TimeoutError),
    )
    def run(self: Task[Any, Any]) -> dict[str, Any]:
        if bridge is None:
            raise AssertionError(job.name)
        try:
            report = bridge.run(job.run, seconds=settings.task_time_limit_seconds)
        except (MnemicError, TimeoutError) as fault:
            code = fault.code if isinstance(fault, MnemicError) else "timed_out"
            attempt = int(self.request.retries or 0) + 1
            log.warning(
                "maintenance_failed", job=job.name, code=code, reason=str(fault), attempt=attempt
            )
            raise
        return asdict(report)
