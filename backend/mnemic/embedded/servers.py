"""Starting the embedded servers, using them, leaving them.

Users of a data folder hold its `users.lock` shared for as long as they live, so that a killed
program is a user less without anybody noticing it. The first one starts the guard, which
starts the servers, and stops them when it can take that lock alone.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from mnemic.embedded.account import server_account
from mnemic.embedded.control import (
    POLL_SECONDS,
    USERS,
    guard_lives,
    is_unused,
    read_state,
    start_lock,
    stops_now,
)
from mnemic.embedded.failure import server_failed, tail, unusable
from mnemic.embedded.launch import launch
from mnemic.embedded.layout import home_of, open_folder, remove_home
from mnemic.embedded.locks import release, try_lock
from mnemic.embedded.plan import POSTGRES_SOCKET, VALKEY_SOCKET
from mnemic.embedded.probe import postgres_answers, valkey_answers
from mnemic.errors import ConfigurationError, ServerUnavailable
from mnemic.settings import EmbeddedSettings

_STOP_TIMEOUT_SECONDS = 60.0


class EmbeddedServers:
    """PostgreSQL and Valkey of one data folder, running until `close` or the end of the process.

    A forked child shares its parent's use: the servers run until both are gone or have closed.
    """

    def __init__(self, folder: Path, state: dict[str, Any], user: int) -> None:
        self._folder = folder
        self._durable = bool(state["durable"])
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
        """`unix:///…/valkey.sock`, as redis-py reads it."""
        return f"unix://{quote(self._sockets)}/{VALKEY_SOCKET}"

    @property
    def log_files(self) -> dict[str, Path]:
        """The logs of `postgres`, `valkey` and their `guard`."""
        return {name: self._folder / f"{name}.log" for name in ("postgres", "valkey", "guard")}

    @property
    def restarts(self) -> dict[str, int]:
        """How often `postgres` and `valkey` were started again after they had been killed."""
        return dict(read_state(self._folder).get("restarts", {}))

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
        os.close(user)  # no LOCK_UN: a parent or child may share this use
        deadline = time.monotonic() + _STOP_TIMEOUT_SECONDS
        while time.monotonic() < deadline and stops_now(self._folder):
            time.sleep(POLL_SECONDS)

    def discard(self) -> None:
        """Closed; when it was the last use, the data of this throwaway cluster are gone as well.

        The data folder stays, empty but for its logs and locks. Raises ConfigurationError for
        servers that were started with `durable=True`: whoever wants those gone removes them.
        """
        if self._durable:
            raise ConfigurationError(
                f"the servers of {self._folder} were started with durable=True; close them and "
                f"remove {home_of(self._folder)} by hand"
            )
        self.close()
        with start_lock(self._folder, time.monotonic() + _STOP_TIMEOUT_SECONDS):
            if is_unused(self._folder) and not guard_lives(self._folder):
                remove_home(self._folder)
                (self._folder / "state.json").unlink(missing_ok=True)


def start(settings: EmbeddedSettings, *, durable: bool = True) -> EmbeddedServers:
    """The servers of `settings.data_dir`, answering; started unless another program did.

    `durable=False` is for a throwaway cluster: nothing is flushed to the disk.
    Raises ConfigurationError or ServerUnavailable, with the remedy.
    """
    deadline = time.monotonic() + settings.start_timeout_seconds
    account = server_account(settings.run_as)
    folder = open_folder(settings.data_dir, account)
    while True:
        user = None
        try:
            with start_lock(folder, deadline):
                user = _join(folder)
                if not guard_lives(folder):
                    launch(folder, account, durable=durable, deadline=deadline)
                state = read_state(folder)
            _check_durable(folder, state, durable=durable)
            if _answered(folder, state["instance"], deadline):
                return EmbeddedServers(folder, state, user)
        except BaseException as error:
            if user is not None:
                release(user)
            if isinstance(error, OSError):
                raise unusable(folder, error) from error
            raise
        release(user)  # that guard has gone meanwhile; look again


def _join(folder: Path) -> int:
    user = try_lock(folder / USERS, shared=True)
    if user is None:  # taken alone only by those who hold the start lock, as we do
        raise ServerUnavailable(
            f"{folder / USERS} is locked by a program that is none of ours; end that program"
        )
    return user


def _check_durable(folder: Path, state: dict[str, Any], *, durable: bool) -> None:
    if durable and not state["durable"]:
        raise ConfigurationError(
            f"the servers of {folder} were started with durable=False by another program; close "
            "it, or name another folder in MEM_EMBEDDED__DATA_DIR"
        )


def _answered(folder: Path, instance: str, deadline: float) -> bool:
    """True once both servers answer; False when their guard is gone and another may come."""
    while True:
        lives = guard_lives(folder)  # asked first: what the state says after its end is final
        state = read_state(folder)
        if state.get("instance") != instance:
            return False
        if state["phase"] == "failed":
            failure = state["failure"]
            raise server_failed(folder, failure["server"], failure["text"], since=failure["since"])
        if state["phase"] == "running" and _answer(state["sockets"], Path(state["home"])):
            # What answered may be the server of a guard that was killed, about to follow it.
            return guard_lives(folder)
        if time.monotonic() > deadline:
            raise ServerUnavailable(
                f"the servers of {folder} do not answer in time; PostgreSQL's log ends:\n"
                f"{tail(folder, 'postgres')}\nValkey's log ends:\n{tail(folder, 'valkey')}\n"
                "raise MEM_EMBEDDED__START_TIMEOUT_SECONDS if they only need longer"
            )
        if not lives:
            return False
        time.sleep(POLL_SECONDS)


def _answer(sockets: str, home: Path) -> bool:
    pid_file = home / "postgres" / "postmaster.pid"
    return valkey_answers(f"{sockets}/{VALKEY_SOCKET}") and postgres_answers(
        f"{sockets}/{POSTGRES_SOCKET}", pid_file
    )
