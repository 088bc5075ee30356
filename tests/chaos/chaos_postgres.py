"""A PostgreSQL of the test's own, as durable as in production, that is killed and started again."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import asyncpg

from mnemic.embedded import start
from mnemic.embedded.account import server_account
from mnemic.embedded.binaries import find_binaries
from mnemic.embedded.layout import home_of, remove_home
from mnemic.settings import EmbeddedSettings
from mnemic.store import roles
from mnemic.store.upgrade import upgrade

NAME = "chaos"
_START_SECONDS_MAX = 60.0
_END_SECONDS_MAX = 20.0
_POLL_SECONDS = 0.01


class Victim(StrEnum):
    """Who gets the SIGKILL."""

    ALL = "every process"
    POSTMASTER = "the postmaster"
    BACKEND = "a backend"
    WRITER = "the WAL writer"


class Cluster:
    """The server has a process group of its own, and no guard that would start it again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._sockets = folder / "sockets"
        self._process: subprocess.Popen[bytes] | None = None

    async def make(self) -> None:
        """A migrated database; nothing runs yet."""
        with start(EmbeddedSettings(data_dir=self._data)) as servers:
            await roles.init(servers.postgres_url(), database=NAME)
            await asyncio.to_thread(upgrade, servers.postgres_url(roles.OWNER_ROLE, NAME))
        account = server_account(None)
        self._sockets.mkdir(mode=0o700)
        shutil.chown(self._sockets, account.uid, account.gid)

    def url(self, role: str = roles.APP_ROLE) -> str:
        return f"postgresql://{role}@/{NAME}?host={self._sockets}"

    async def start(self, **options: str) -> None:
        """It serves, with what the last run has left repaired."""
        given = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._sockets),
            "dynamic_shared_memory_type": "mmap",
            "log_min_messages": "fatal",
            **options,
        }
        self._process = subprocess.Popen(  # noqa: ASYNC220 - returns at once
            [
                str(find_binaries().postgres_bin / "postgres"),
                *("-D", str(home_of(self._data) / "postgres")),
                *(part for name, value in given.items() for part in ("-c", f"{name}={value}")),
            ],
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env={},
            **server_account(None).popen_arguments(),
        )
        await self.answers()

    async def answers(self) -> None:
        """Returns when it does."""
        async with asyncio.timeout(_START_SECONDS_MAX):
            while True:
                with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    connection = await asyncpg.connect(self.url("postgres"), timeout=2)
                    await connection.close()
                    return
                await asyncio.sleep(_POLL_SECONDS)

    async def kill(self, victim: Victim, chance: random.Random) -> bool:
        """The victim is gone; whether the server must be started again."""
        process = self._process
        assert process is not None
        children = _children(process.pid)
        if victim in (Victim.BACKEND, Victim.WRITER):
            word = "mnemic_app" if victim is Victim.BACKEND else "walwriter"
            chosen = [pid for pid, told in children.items() if word in told]
            if chosen:
                _kill(chance.choice(sorted(chosen)))
                return False
        process.kill()
        if victim is not Victim.POSTMASTER:
            for pid in children:
                _kill(pid)
        process.wait()
        async with asyncio.timeout(_END_SECONDS_MAX):
            while any(map(_runs, children)):  # noqa: ASYNC110 - an end has no event to wait for
                await asyncio.sleep(_POLL_SECONDS)
        self._process = None
        return True

    async def remove(self) -> None:
        """Nothing runs, and nothing is left."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            await asyncio.to_thread(self._process.wait, _END_SECONDS_MAX)
        remove_home(self._data)
        shutil.rmtree(self._folder, ignore_errors=True)


def _children(parent: int) -> dict[int, str]:
    """Children of a process, with how each calls itself."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            after = status.read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
            if int(after.split()[1]) == parent:
                told = (status.parent / "cmdline").read_bytes().decode(errors="replace")
                found[int(status.parent.name)] = told
    return found


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _runs(pid: int) -> bool:
    """One that ended may wait to be reaped by whoever adopted it."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return told.rpartition(")")[2].split()[0] != "Z"
