"""Real workers and a real beat, as processes, on real servers."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import asyncpg
import pytest
from pydantic import SecretStr
from redis.asyncio import Redis

from mnemic.edge.worker.app import JOBS, RETRIES_MAX, build_app
from mnemic.embed import LocalEmbedder
from mnemic.embedded import EmbeddedServers
from mnemic.embedded.control import guard_lives
from mnemic.errors import EmbedderUnavailable
from mnemic.manager import MemoryManager
from mnemic.model.scope import Scope
from mnemic.model.turn import TurnCreate
from mnemic.settings import (
    DatabaseSettings,
    MaintenanceSettings,
    MemorySettings,
    WorkingSettings,
)
from mnemic.wiring import Wiring

PATIENCE_SECONDS = 90.0
POLL_SECONDS = 0.05
COMMAND = [sys.executable, "-m", "mnemic.edge.main"]
AN_HOUR_AGO = datetime.now(UTC) - timedelta(hours=1)
IDLE_SECONDS = 600


class EmbedderAway(LocalEmbedder):
    """The default model, out of reach."""

    async def embed(self, texts: Sequence[str]) -> NoReturn:
        del texts
        raise EmbedderUnavailable("the model's server does not answer")


class Program:
    """A `mnemic` process, started in a folder of its own; its log is read from a file."""

    def __init__(self, folder: Path, environment: dict[str, str], *arguments: str) -> None:
        self.folder = folder
        self._log = Path(tempfile.mkstemp(suffix=".log")[1])
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*COMMAND, *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def events(self) -> list[dict[str, Any]]:
        """What was logged so far; a line that is being written is left out."""
        return [json.loads(line) for line in self.log.splitlines(keepends=True) if line[-1] == "\n"]

    def runs(self, job: str) -> list[dict[str, Any]]:
        """The reports of a job."""
        return [one for one in self.events if one["event"] == "maintenance" and one["job"] == job]

    def answered(self, job: str) -> int:
        """How many messages of a job are done with: reported, or given up after all retries."""
        given_up = [one for one in self.events if one.get("attempt") == RETRIES_MAX + 1]
        return len(self.runs(job) + [one for one in given_up if one["job"] == f"mnemic.{job}"])

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.log
        return any(event["event"].endswith(" ready.") for event in self.events)

    async def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return await asyncio.to_thread(self.process.wait, PATIENCE_SECONDS)

    def clean_up(self) -> None:
        """Ended; its log is told to whoever looks into a failed test."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        sys.stdout.write(self.log)
        self._log.unlink()


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may pass through, and that is gone after the test."""
    made = Path(tempfile.mkdtemp(prefix="mnemic-test-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def start(place: Path) -> Iterator[Callable[..., Program]]:
    """Starts programs in a folder of their own; they are gone after the test."""
    made: list[Program] = []
    (place / "empty").mkdir()

    def run(environment: dict[str, str], *arguments: str) -> Program:
        made.append(Program(place / "empty", environment, *arguments))
        return made[-1]

    yield run
    for one in made:
        one.clean_up()


@pytest.fixture
def settings(database: Any, servers: EmbeddedServers) -> MemorySettings:
    return MemorySettings(
        database_url=SecretStr(database.app_url),
        redis_url=SecretStr(servers.redis_url),
        database=DatabaseSettings(require_durable=False),
        working=WorkingSettings(namespace=database.name),
        maintenance=MaintenanceSettings(
            idle_after=timedelta(seconds=IDLE_SECONDS),
            end_idle_every_seconds=1,
            embed_missing_every_seconds=1,
        ),
    )


@pytest.fixture
def environment(settings: MemorySettings) -> Iterator[dict[str, str]]:
    """A folder of its own for temporary files, since a killed worker leaves some."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield {**environment_of(settings), "TMPDIR": folder}


def environment_of(settings: MemorySettings) -> dict[str, str]:
    """What makes a process have these settings."""
    maintenance = settings.maintenance
    told = {
        "MEM_MAINTENANCE__IDLE_AFTER": f"PT{maintenance.idle_after.seconds}S",
        "MEM_MAINTENANCE__END_IDLE_EVERY_SECONDS": str(maintenance.end_idle_every_seconds),
        "MEM_MAINTENANCE__EMBED_MISSING_EVERY_SECONDS": str(
            maintenance.embed_missing_every_seconds
        ),
        "MEM_WORKING__NAMESPACE": settings.working.namespace,
        "MEM_DATABASE__REQUIRE_DURABLE": str(settings.database.require_durable),
    }
    if settings.database_url is not None and settings.redis_url is not None:
        told["MEM_DATABASE_URL"] = settings.database_url.get_secret_value()
        told["MEM_REDIS_URL"] = settings.redis_url.get_secret_value()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEM_")}
    return {**kept, **told}


async def eventually(holds: Callable[[], Any]) -> None:
    """The condition, which may be a coroutine, holds now."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            held = holds()
            if await held if asyncio.iscoroutine(held) else held:
                return
            await asyncio.sleep(POLL_SECONDS)


async def told(settings: MemorySettings, *sessions: Scope) -> None:
    """Each session holds a conversation, told an hour ago; no turn has a vector."""
    wiring = Wiring(settings, embedder=EmbedderAway(), clock=lambda: AN_HOUR_AGO)
    async with MemoryManager(wiring) as memory:
        for scope in sessions:
            await memory.sessions.append(
                [
                    TurnCreate(text="The pump is broken.", occurred_at=AN_HOUR_AGO, actor="User"),
                    TurnCreate(
                        text="I have ordered a new one.",
                        occurred_at=AN_HOUR_AGO,
                        actor="Assistant",
                        role="assistant",
                    ),
                ],
                scope=scope,
            )


def send(settings: MemorySettings, task: str, times: int = 1) -> None:
    """The message for a task is sent so many times."""
    assert settings.redis_url is not None
    app = build_app(settings, redis_url=settings.redis_url.get_secret_value())
    with app.connection_for_write() as connection:
        for _ in range(times):
            app.send_task(task, connection=connection)
    app.close()


@asynccontextmanager
async def seen_by_superuser(database: Any) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database.admin_url)
    try:
        yield connection
    finally:
        await connection.close()


def told_levels(program: Program) -> set[str]:
    """How grave what it told was; that a busy machine keeps jobs waiting is no fault of it."""
    return {one["level"] for one in program.events if one["event"] != "maintenance_waits"}


async def episodes_by_session(admin: asyncpg.Connection) -> Counter[Any]:
    rows = await admin.fetch("SELECT session_id, count(*) AS n FROM mnemic.episodes GROUP BY 1")
    return Counter({row["session_id"]: row["n"] for row in rows})


async def connections(admin: asyncpg.Connection) -> int:
    number = await admin.fetchval(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    return int(number)


async def test_on_schedule_idle_sessions_become_episodes_and_all_get_vectors(
    settings: MemorySettings,
    environment: dict[str, str],
    database: Any,
    start: Callable[..., Program],
) -> None:
    idle = Scope.user("u").session("idle")
    await told(settings, idle)
    worker = start(environment, "worker")
    await eventually(worker.is_ready)
    beat = start(environment, "beat")

    async with seen_by_superuser(database) as admin:
        await eventually(lambda: len(worker.runs("end_idle_sessions")) >= 3)
        await eventually(lambda: any(one["done"] for one in worker.runs("embed_missing")))
        await eventually(lambda: any(one["done"] for one in worker.runs("count_terms")))
        episodes = await episodes_by_session(admin)
        codes = [await beat.end(signal.SIGINT), await worker.end(signal.SIGINT)]
        left = await connections(admin)

    assert episodes == {idle.id: 1}
    assert any(one["done"] for one in worker.runs("end_idle_sessions"))
    assert codes == [0, 0]
    assert left == 0
    assert list(worker.folder.iterdir()) == []
    async with MemoryManager.open(settings) as memory:
        found = await memory.recall("what is broken?", scope=idle)
    assert {hit.near_place is not None for hit in found.hits} == {True}
    for program in (worker, beat):
        assert told_levels(program) == {"info"}, program.log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_beat_ends_well_in_the_middle_of_an_exchange(
    settings: MemorySettings,
    environment: dict[str, str],
    start: Callable[..., Program],
    number: int,
) -> None:
    beat = start(environment, "beat")
    await eventually(lambda: beat.log.count("Sending due task") >= len(JOBS))
    assert settings.redis_url is not None
    valkey = Redis.from_url(settings.redis_url.get_secret_value())
    try:
        await valkey.execute_command("CLIENT", "PAUSE", int(PATIENCE_SECONDS * 1_000), "WRITE")
        await asyncio.sleep(2)  # it asks once a second, and now waits for an answer
        code = await beat.end(number)
    finally:
        await valkey.execute_command("CLIENT", "UNPAUSE")
        await valkey.aclose()

    assert code == 0
    assert told_levels(beat) == {"info"}, beat.log


async def test_doubled_messages_and_two_workers_change_nothing(
    settings: MemorySettings,
    environment: dict[str, str],
    database: Any,
    start: Callable[..., Program],
) -> None:
    idle = [Scope.user(f"u-{number % 2}").session(f"s-{number}") for number in range(6)]
    await told(settings, *idle)
    threads = start(environment, "worker", "--pool", "threads", "--concurrency", "4")
    solo = start(environment, "worker", "--pool", "solo")
    await eventually(lambda: threads.is_ready() and solo.is_ready())

    def answered(job: str) -> int:
        return threads.answered(job) + solo.answered(job)

    send(settings, "mnemic.end_idle_sessions", times=20)
    send(settings, "mnemic.embed_missing", times=5)
    await eventually(lambda: answered("end_idle_sessions") == 20)
    await eventually(lambda: answered("embed_missing") == 5)

    async with seen_by_superuser(database) as admin:
        assert await episodes_by_session(admin) == {scope.id: 1 for scope in idle}
    assert threads.runs("end_idle_sessions")
    assert solo.runs("end_idle_sessions")
    assert [await threads.end(), await solo.end(signal.SIGINT)] == [0, 0]


async def test_what_a_killed_worker_had_begun_another_one_finishes(
    settings: MemorySettings,
    environment: dict[str, str],
    database: Any,
    start: Callable[..., Program],
) -> None:
    idle = Scope.user("u").session("idle")
    await told(settings, idle)
    killed = start(environment, "worker")
    await eventually(killed.is_ready)

    async with seen_by_superuser(database) as admin:
        async with seen_by_superuser(database) as holding, holding.transaction():
            await holding.execute("SELECT 1 FROM mnemic.sessions FOR UPDATE")
            send(settings, "mnemic.end_idle_sessions")
            await eventually(
                lambda: admin.fetchval(
                    "SELECT count(*) > 0 FROM pg_stat_activity "
                    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
                )
            )
            killed.process.kill()
            killed.process.wait()
        other = start(environment, "worker")
        send(settings, "mnemic.end_idle_sessions")
        await eventually(lambda: other.runs("end_idle_sessions"))
        episodes = await episodes_by_session(admin)
        code = await other.end()
        await eventually(lambda: no_connections(admin))

    assert killed.runs("end_idle_sessions") == []
    assert episodes == {idle.id: 1}
    assert code == 0


async def no_connections(admin: asyncpg.Connection) -> bool:
    return await connections(admin) == 0


async def test_worker_and_beat_share_the_embedded_servers_and_stop_them_at_last(
    place: Path, start: Callable[..., Program]
) -> None:
    folder = place / "data"
    settings = MemorySettings(
        maintenance=MaintenanceSettings(end_idle_every_seconds=1, embed_missing_every_seconds=1)
    )
    environment = {**environment_of(settings), "MEM_EMBEDDED__DATA_DIR": str(folder)}

    beat = start(environment, "beat")
    worker = start(environment, "worker", "--concurrency", "1")
    await eventually(lambda: len(worker.runs("end_idle_sessions")) >= 2)
    first = await beat.end()
    served = guard_lives(folder)
    second = await worker.end()

    assert (first, second) == (0, 0)
    assert served
    assert not guard_lives(folder)
    assert {one["level"] for one in worker.events} == {"info"}, worker.log


async def test_a_worker_refuses_at_once_what_it_could_never_serve(
    database: Any, environment: dict[str, str], start: Callable[..., Program]
) -> None:
    worker = start({**environment, "MEM_DATABASE_URL": database.owner_url}, "worker")

    code = await asyncio.to_thread(worker.process.wait, PATIENCE_SECONDS)

    assert code == 4
    assert "mnemic_app" in worker.log
    assert "Traceback" not in worker.log
