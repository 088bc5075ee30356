"""Starting the embedded servers, using them, leaving them.

Users of a data folder hold its `users.lock` shared for as long as they live, so that a killed
program is a user less without anybody noticing it. The first one starts the guard, which
starts the servers, and stops them when it can take that lock alone. `start.lock` orders those
who start and the guard that is about to stop.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from mnemic.embedded import guard
from mnemic.embedded.account import server_account
from mnemic.embedded.binaries import find_binaries, read_versions
from mnemic.embedded.layout import lay_out, open_folder
from mnemic.embedded.plan import POSTGRES_SOCKET, VALKEY_SOCKET, make_plan
from mnemic.embedded.probe import postgres_answers, valkey_answers
from mnemic.errors import ConfigurationError, ServerUnavailable
from mnemic.settings import EmbeddedSettings

_POLL_SECONDS = 0.01
_STOP_TIMEOUT_SECONDS = 60.0
_LOG_TAIL_LINES = 12


class EmbeddedServers:
    """PostgreSQL and Valkey of one data folder, running until `close` or the end of the process.

    A forked child shares its parent's use: the servers run until both are gone or have closed.
    """

    def __init__(self, folder: Path, state: dict[str, Any], user: int) -> None:
        self._folder = folder
        self._sockets = str(state["sockets"])
        self._user: int | None = user
        self._closing = threading.Lock()

    def __repr__(self) -> str:
        return f"EmbeddedServers({str(self._folder)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def data_dir(self) -> Path:
        """The data folder, absolute."""
        return self._folder

    @property
    def redis_url(self) -> str:
        """`unix:///…/valkey.sock`, as redis-py and Celery's client read it."""
        return f"unix://{quote(self._sockets)}/{VALKEY_SOCKET}"

    @property
    def log_files(self) -> dict[str, Path]:
        """The logs of `postgres`, `valkey` and their `guard`."""
        return {name: self._folder / f"{name}.log" for name in ("postgres", "valkey", "guard")}

    @property
    def restarts(self) -> dict[str, int]:
        """How often `postgres` and `valkey` were started again after they had been killed."""
        return dict(_read_state(self._folder).get("restarts", {}))

    def postgres_url(self, user: str = "postgres", database: str = "postgres") -> str:
        """`postgresql://user@/database?host=/socket/folder`; the socket asks for no password."""
        host = quote(self._sockets)
        return f"postgresql://{quote(user, safe='')}@/{quote(database, safe='')}?host={host}"

    def close(self) -> None:
        """This use has ended; when it was the last one, the servers have stopped cleanly."""
        with self._closing:
            user, self._user = self._user, None
        if user is None:
            return
        os.close(user)
        deadline = time.monotonic() + _STOP_TIMEOUT_SECONDS
        while time.monotonic() < deadline and _stops_now(self._folder):
            time.sleep(_POLL_SECONDS)


def start(settings: EmbeddedSettings, *, durable: bool = True) -> EmbeddedServers:
    """The servers of `settings.data_dir`, answering; started unless another program did.

    `durable=False` is for a throwaway cluster: nothing is flushed to the disk.
    Raises ConfigurationError or ServerUnavailable, with the remedy.
    """
    deadline = time.monotonic() + settings.start_timeout_seconds
    account = server_account(settings.run_as)
    folder = open_folder(settings.data_dir, account)
    while True:
        with _start_lock(folder, deadline):
            user = guard.try_lock(folder / "users.lock", shared=True)
            if user is None:  # only ever taken alone under the start lock
                raise ServerUnavailable(
                    f"users.lock of {folder} is held by a program that is none of ours; stop it"
                )
            try:
                if not _guard_lives(folder):
                    _start_guard(folder, settings, durable=durable, deadline=deadline)
                state = _read_state(folder)
                _check_durable(folder, state, durable=durable)
            except BaseException:
                os.close(user)
                raise
        try:
            if _answered(folder, state["instance"], deadline):
                return EmbeddedServers(folder, state, user)
        except BaseException:
            os.close(user)
            raise
        os.close(user)  # that guard is gone; look again


def _check_durable(folder: Path, state: dict[str, Any], *, durable: bool) -> None:
    if durable and not state["durable"]:
        raise ConfigurationError(
            f"the servers of {folder} were started with durable=False by another program; close "
            "it, or name another folder in MEM_EMBEDDED__DATA_DIR"
        )


@contextmanager
def _start_lock(folder: Path, deadline: float) -> Iterator[None]:
    while (lock := guard.try_lock(folder / "start.lock")) is None:
        if time.monotonic() > deadline:
            raise ServerUnavailable(
                f"another program has been starting or stopping the servers of {folder} for too "
                "long; look into guard.log there, or raise MEM_EMBEDDED__START_TIMEOUT_SECONDS"
            )
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        os.close(lock)


def _guard_lives(folder: Path) -> bool:
    lock = guard.try_lock(folder / "guard.lock")
    if lock is None:
        return True
    os.close(lock)
    return False


def _stops_now(folder: Path) -> bool:
    """True while a guard lives that nobody uses: it is about to stop, or stopping."""
    try:
        if not _guard_lives(folder):
            return False
        starting = guard.try_lock(folder / "start.lock")
        if starting is None:
            return True  # the guard is stopping, or somebody starts: soon we know
        users = guard.try_lock(folder / "users.lock")
        if users is not None:
            os.close(users)
        os.close(starting)
    except FileNotFoundError:
        return False
    return users is not None


def _read_state(folder: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return state


def _start_guard(
    folder: Path, settings: EmbeddedSettings, *, durable: bool, deadline: float
) -> None:
    account = server_account(settings.run_as)
    binaries = find_binaries()
    plan = make_plan(
        lay_out(folder, account),
        binaries=binaries,
        versions=read_versions(binaries, account),
        account=account,
        durable=durable,
        instance=secrets.token_hex(8),
        timeout_seconds=settings.start_timeout_seconds,
    )
    with (folder / "guard.log").open("ab") as log:
        subprocess.run(  # noqa: S603 - this interpreter, no shell
            [_python(), "-I", guard.__file__, str(folder)],
            input=json.dumps(plan).encode(),
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
            check=False,
        )
    while _read_state(folder).get("instance") != plan["state"]["instance"]:
        if time.monotonic() > deadline or not _guard_lives(folder):
            raise ServerUnavailable(
                f"the guard of {folder} does not start; its log ends:\n{_tail(folder, 'guard')}"
            )
        time.sleep(_POLL_SECONDS)


def _python() -> str:
    """The interpreter; where Python is embedded, sys.executable is another program."""
    if Path(sys.executable or "").name.startswith("python"):
        return sys.executable
    return shutil.which("python3", path=f"{sys.prefix}/bin") or "python3"


def _answered(folder: Path, instance: str, deadline: float) -> bool:
    """True once both servers answer; False when their guard is gone and another may come."""
    while True:
        state = _read_state(folder)
        if state.get("instance") != instance:
            return False
        if state["phase"] == "failed":
            raise _failed(folder, state["failure"])
        if state["phase"] == "running":
            sockets = state["sockets"]
            if postgres_answers(f"{sockets}/{POSTGRES_SOCKET}") and valkey_answers(
                f"{sockets}/{VALKEY_SOCKET}"
            ):
                return True
        if not _guard_lives(folder):
            return False
        if time.monotonic() > deadline:
            raise ServerUnavailable(
                f"the servers of {folder} do not answer in time; PostgreSQL's log ends:\n"
                f"{_tail(folder, 'postgres')}\nValkey's log ends:\n{_tail(folder, 'valkey')}\n"
                "raise MEM_EMBEDDED__START_TIMEOUT_SECONDS if they only need longer"
            )
        time.sleep(_POLL_SECONDS)


def _failed(folder: Path, failure: dict[str, str]) -> ServerUnavailable:
    name = failure["server"]
    return ServerUnavailable(
        f"the embedded {name} of {folder} failed: {failure['text']}; its log ends:\n"
        f"{_tail(folder, name)}"
    )


def _tail(folder: Path, name: str) -> str:
    try:
        text = (folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return "(nothing)"
    return "\n".join(text.splitlines()[-_LOG_TAIL_LINES:])
