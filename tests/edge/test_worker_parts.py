"""The parts of the worker: where messages go, what they are, and the bridge to async."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from types import FrameType
from typing import Any, NoReturn

import pytest
from celery import Celery
from celery.exceptions import SoftTimeLimitExceeded
from pydantic import SecretStr

from mnemic.edge.worker.app import JOBS, RETRIES_MAX, WAITING_MAX, BoundedScheduler, build_app
from mnemic.edge.worker.bridge import Bridge
from mnemic.edge.worker.broker import broker_url
from mnemic.embed import LocalEmbedder
from mnemic.embedded import EmbeddedServers
from mnemic.errors import ConfigurationError, EmbedderUnavailable
from mnemic.manager import MemoryManager
from mnemic.model.scope import Scope
from mnemic.settings import (
    DatabaseSettings,
    MaintenanceSettings,
    MemorySettings,
    WorkingSettings,
)
from mnemic.wiring import Wiring

UNREACHED = "unix:///nowhere/valkey.sock"
PATIENCE_SECONDS = 30.0


class EmbedderAway(LocalEmbedder):
    """The default model, out of reach; counts who asks for it."""

    def __init__(self, fault: Exception) -> None:
        super().__init__()
        self.fault = fault
        self.asked = 0

    async def embed(self, texts: Sequence[str]) -> NoReturn:
        del texts
        self.asked += 1
        raise self.fault


@pytest.fixture
def settings(database: Any, servers: EmbeddedServers) -> MemorySettings:
    return MemorySettings(
        database_url=SecretStr(database.app_url),
        redis_url=SecretStr(servers.redis_url),
        database=DatabaseSettings(require_durable=False),
        working=WorkingSettings(namespace=database.name),
    )


@pytest.fixture
def bridged() -> Iterator[Callable[..., Bridge]]:
    """Makes bridges; they are closed after the test."""
    made: list[Bridge] = []

    def make(settings: MemorySettings, **given: Any) -> Bridge:
        made.append(Bridge(lambda: MemoryManager(Wiring(settings, **given))))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("redis://h:6380/2", "redis://h:6380/2"),
        ("redis://u:p%40s@h/0", "redis://u:p%40s@h/0"),
        ("unix:///run/v.sock", "redis+socket:///run/v.sock"),
        ("unix:///run/v.sock?db=3", "redis+socket:///run/v.sock?virtual_host=3"),
        ("unix://u:p@/run/v.sock", "redis+socket://u:p@/run/v.sock"),
        ("rediss://h/0", "rediss://h/0?ssl_cert_reqs=required"),
        ("rediss://h/0?ssl_cert_reqs=none", "rediss://h/0?ssl_cert_reqs=none"),
    ],
)
def test_the_url_of_valkey_is_told_to_kombu_in_its_words(given: str, wanted: str) -> None:
    assert broker_url(given) == wanted


def test_certificates_are_checked_unless_the_url_says_otherwise() -> None:
    app = build_app(MemorySettings(), redis_url="rediss://host/0")

    with app.connection_for_write() as connection:
        assert connection.ssl == {"ssl_cert_reqs": 2}  # ssl.CERT_REQUIRED


def test_installations_on_one_valkey_are_kept_apart_by_their_namespace() -> None:
    def keys_of(namespace: str) -> str:
        settings = MemorySettings(working=WorkingSettings(namespace=namespace))
        app = build_app(settings, redis_url=UNREACHED)
        return str(app.conf.broker_transport_options["global_keyprefix"])

    assert keys_of("one") != keys_of("two")
    assert keys_of("one").startswith("one:")


def test_the_environment_of_another_celery_application_is_not_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL"):
        monkeypatch.setenv(name, "redis://stranger/0")
    monkeypatch.setenv("CELERY_RESULT_BACKEND", "redis://stranger/0")

    app = build_app(MemorySettings(), redis_url="redis://ours/0")

    with app.connection_for_read() as reading, app.connection_for_write() as writing:
        assert (reading.hostname, writing.hostname) == ("ours", "ours")
    assert type(app.backend).__name__ == "DisabledBackend"


def test_two_applications_in_one_process_keep_their_own_tasks() -> None:
    one, two = (build_app(MemorySettings(), redis_url=UNREACHED) for _ in range(2))

    assert one.tasks["mnemic.embed_missing"].app is one
    assert two.tasks["mnemic.embed_missing"].app is two


def test_messages_carry_nothing_and_expire_when_the_next_one_comes() -> None:
    maintenance = MaintenanceSettings(
        end_idle_every_seconds=7,
        embed_missing_every_seconds=11,
        expire_every_seconds=13,
        promote_every_seconds=17,
        task_time_limit_seconds=100,
    )
    app = build_app(MemorySettings(maintenance=maintenance), redis_url=UNREACHED)

    schedule = app.conf.beat_schedule
    assert {name: entry["schedule"] for name, entry in schedule.items()} == {
        "mnemic.end_idle_sessions": 7,
        "mnemic.embed_missing": 11,
        "mnemic.count_terms": 11,
        "mnemic.expire": 13,
        "mnemic.promote_vectors": 17,
    }
    for entry in schedule.values():
        assert entry["options"] == {"expires": entry["schedule"]}
        assert "args" not in entry
        assert "kwargs" not in entry
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_acks_late
    assert app.conf.task_reject_on_worker_lost
    assert app.conf.worker_prefetch_multiplier == 1
    assert str(app.conf.timezone) == "UTC"
    assert app.conf.task_soft_time_limit < app.conf.task_time_limit
    visible_again = app.conf.broker_transport_options["visibility_timeout"]
    assert visible_again > app.conf.task_time_limit > 100


async def test_beat_piles_nothing_up_while_no_worker_runs(
    settings: MemorySettings, servers: EmbeddedServers
) -> None:
    app = build_app(settings, redis_url=servers.redis_url)
    scheduler = BoundedScheduler(app)

    for _ in range(WAITING_MAX):
        for entry in scheduler.schedule.values():
            scheduler.apply_entry(entry, producer=scheduler.producer)

    channel: Any = scheduler.connection.default_channel
    waiting = channel.queue_declare("mnemic").message_count
    channel.queue_purge("mnemic")
    scheduler.close()
    assert waiting == WAITING_MAX


def test_one_loop_and_one_manager_serve_all_runs_of_a_process(
    settings: MemorySettings, bridged: Callable[..., Bridge]
) -> None:
    bridge = bridged(settings)

    async def whoami(memory: MemoryManager) -> tuple[int, int, str]:
        await memory.recall("x", scope=Scope.user("u"))
        return id(memory), id(asyncio.get_running_loop()), threading.current_thread().name

    answers: list[tuple[int, int, str]] = [bridge.run(whoami, seconds=30)]
    threads = [
        threading.Thread(target=lambda: answers.append(bridge.run(whoami, seconds=30)))
        for _ in range(4)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join(PATIENCE_SECONDS)

    assert len(answers) == 5
    assert len(set(answers)) == 1
    assert answers[0][2] == "mnemic-loop"


def test_a_soft_time_limit_cancels_the_coroutine_before_the_next_task_starts(
    settings: MemorySettings, bridged: Callable[..., Bridge]
) -> None:
    bridge = bridged(settings)
    started, cancelled = threading.Event(), threading.Event()

    async def never_ends(memory: MemoryManager) -> None:
        del memory
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    def limit(number: int, frame: FrameType | None) -> NoReturn:
        raise SoftTimeLimitExceeded

    before = signal.signal(signal.SIGUSR2, limit)
    main = threading.main_thread().ident
    assert main is not None

    def strike() -> None:
        started.wait(PATIENCE_SECONDS)
        signal.pthread_kill(main, signal.SIGUSR2)

    threading.Thread(target=strike).start()
    with pytest.raises(SoftTimeLimitExceeded):
        bridge.run(never_ends, seconds=60)
    signal.signal(signal.SIGUSR2, before)

    assert cancelled.is_set()


def test_a_run_that_takes_too_long_ends_in_pools_without_time_limits(
    settings: MemorySettings, bridged: Callable[..., Bridge]
) -> None:
    bridge = bridged(settings)
    cancelled = threading.Event()

    async def never_ends(memory: MemoryManager) -> None:
        del memory
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    bridge.run(lambda memory: memory.maintenance.count_terms(), seconds=30)
    with pytest.raises(TimeoutError):
        bridge.run(never_ends, seconds=0.05)

    assert cancelled.is_set()
    assert bridge.run(lambda memory: memory.maintenance.count_terms(), seconds=30).failed == 0


async def kept_without_vector(settings: MemorySettings, text: str) -> None:
    away = EmbedderAway(EmbedderUnavailable("away"))
    async with MemoryManager(Wiring(settings, embedder=away)) as memory:
        await memory.remember(text, scope=Scope.user("u"), memory_type="episodic")


async def counted(memory: MemoryManager) -> None:
    await memory.maintenance.count_terms()


def run_eagerly(app: Celery, name: str) -> Any:
    return app.tasks[name].apply()


@pytest.mark.parametrize(
    ("fault", "tries"),
    [
        (EmbedderUnavailable("away"), RETRIES_MAX + 1),
        (ConfigurationError("wrong model"), 1),
    ],
    ids=["retryable", "not retryable"],
)
async def test_only_what_is_retryable_is_tried_again_and_not_for_ever(
    settings: MemorySettings, bridged: Callable[..., Bridge], fault: Exception, tries: int
) -> None:
    await kept_without_vector(settings, "The gate squeaks")
    embedder = EmbedderAway(EmbedderUnavailable("away"))
    bridge = bridged(settings, embedder=embedder)
    await asyncio.to_thread(bridge.run, counted, seconds=30)
    app = build_app(settings, redis_url=UNREACHED, bridge=bridge)
    embedder.fault, embedder.asked = fault, 0

    result = await asyncio.to_thread(run_eagerly, app, "mnemic.embed_missing")

    assert embedder.asked == tries
    assert result.state == "FAILURE"
    assert type(result.result) is type(fault)


async def test_each_task_reports_what_it_did(
    settings: MemorySettings, bridged: Callable[..., Bridge]
) -> None:
    await kept_without_vector(settings, "The gate squeaks")
    app = build_app(settings, redis_url=UNREACHED, bridge=bridged(settings))

    done = {job.name: await asyncio.to_thread(run_eagerly, app, job.name) for job in JOBS}

    assert {name: result.result for name, result in done.items()} == {
        "mnemic.end_idle_sessions": {
            "job": "end_idle_sessions",
            "tenants": 0,
            "done": 0,
            "failed": 0,
        },
        "mnemic.embed_missing": {"job": "embed_missing", "tenants": 1, "done": 1, "failed": 0},
        "mnemic.count_terms": {"job": "count_terms", "tenants": 1, "done": 1, "failed": 0},
        "mnemic.expire": {"job": "expire", "tenants": 0, "done": 0, "failed": 0},
        # Without the owner's URL, as long as no tenant needs it.
        "mnemic.promote_vectors": {
            "job": "promote_vectors",
            "tenants": 0,
            "done": 0,
            "failed": 0,
        },
    }


FORKED = """
import asyncio, os, sys
from mnemic.edge.worker.bridge import Bridge
from mnemic.manager import MemoryManager
from mnemic.settings import MemorySettings

async def whoami(memory):
    await memory.maintenance.count_terms()
    return os.getpid(), id(asyncio.get_running_loop())

bridge = Bridge(lambda: MemoryManager.open(MemorySettings()))
before = bridge.run(whoami, seconds=30)
child = os.fork()
if child == 0:
    mine = bridge.run(whoami, seconds=30)
    bridge.close()
    os._exit(0 if mine[0] == os.getpid() != before[0] else 1)
_, status = os.waitpid(child, 0)
after = bridge.run(whoami, seconds=30)
bridge.close()
bridge.close()
assert before == after, (before, after)
assert os.waitstatus_to_exitcode(status) == 0, status
"""


async def test_a_forked_child_has_a_loop_and_connections_of_its_own(
    settings: MemorySettings,
) -> None:
    assert settings.database_url is not None
    assert settings.redis_url is not None
    environment = {
        **os.environ,
        "MEM_DATABASE_URL": settings.database_url.get_secret_value(),
        "MEM_REDIS_URL": settings.redis_url.get_secret_value(),
        "MEM_DATABASE__REQUIRE_DURABLE": "false",
    }

    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-W", "error", "-c", FORKED],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timedelta(minutes=2).total_seconds(),
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
