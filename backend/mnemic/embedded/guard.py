"""The parent of the embedded servers of one data folder.

`mnemic.embedded.start` runs this module detached, with a plan (JSON) on standard input. It and
what it imports use the standard library only: it is small, starts in some 50 ms, and has one
thread, so that code between fork and exec is safe and PDEATHSIG means this process.

While it lives it holds `guard.lock`. Each server inherits one descriptor that holds its own
life lock, `postgres.lock` or `valkey.lock`: the lock is free exactly when the last process of
that server is gone, whoever killed what, and /proc tells who holds it. No process is ever
found by its name or command line.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mnemic.embedded.locks import (
    LEFTOVER_STEPS,
    ORPHAN_STEPS,
    Refused,
    holders,
    take_life_lock,
    try_lock,
    write_atomically,
)

TICK_SECONDS = 0.2
CRASHES_MAX = 6
CRASH_WINDOW_SECONDS = 60.0
REFUSAL_SECONDS = 10.0  # a server that ends with an error this soon will do so again
BACKOFF_SECONDS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0)
LOG_BYTES_MAX = 8 * 1024 * 1024
LOG_CHECK_SECONDS = 30.0
PR_SET_PDEATHSIG = 1
HANDLED = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
SERVER_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass
class Server:
    """One server: how to run it, and how it has fared."""

    name: str
    argv: list[str]
    cwd: str
    lock: str
    log: str
    pid_file: str | None
    stale: list[str]
    death_signal: int
    stop: list[tuple[int, float]]
    process: subprocess.Popen[bytes] | None = None
    log_since: int = 0
    restarts: int = 0
    crashes: list[float] = field(default_factory=list)
    begun_at: float = 0.0
    due_at: float = 0.0


class Guard:
    """Starts the servers of a plan, and again when killed; stops them after the last user."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan
        self._folder = Path(plan["folder"])
        self._servers = [Server(**server) for server in plan["servers"]]
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._pid = os.getpid()
        self._kept: list[int] = []  # locks that are held until this process is gone
        self._logs_checked_at = -LOG_CHECK_SECONDS
        self._identity = self._identify()

    def run(self) -> None:
        """Serve until the last user, the data folder or the hope to restart is gone."""
        try:
            self._write_state("starting")
            self._make_cluster()
            for server in self._servers:
                self._spawn(server)
            self._write_state("running")
            self._supervise()
        except Refused as refusal:
            self._fail(str(refusal), refusal.name)
        except OSError as error:
            self._fail(str(error), "guard")
        else:
            self._stop_all()
            self._write_state("stopped")

    def _fail(self, text: str, name: str) -> None:
        print(f"{time.strftime('%FT%TZ', time.gmtime())} failed: {text}", flush=True)  # noqa: T201 - this process's log
        since = next((s.log_since for s in self._servers if s.name == name), 0)
        self._stop_all()
        self._write_state("failed", failure={"text": text, "server": name, "since": since})

    def _supervise(self) -> None:
        while not self._is_over():
            received = signal.sigtimedwait(HANDLED, TICK_SECONDS)
            if received is not None and received.si_signo != signal.SIGCHLD:
                return
            for server in self._servers:
                self._look_after(server)
            self._bound_logs()

    def _is_over(self) -> bool:
        if self._identify() != self._identity or not Path(self._plan["home"]).is_dir():
            return True  # the folder was removed or replaced: nobody can use these servers
        starting = try_lock(self._folder / "start.lock")
        if starting is None:
            return False
        users = try_lock(self._folder / "users.lock")
        if users is None:
            os.close(starting)
            return False
        self._kept += [starting, users]  # a new user waits until everything has stopped
        return True

    def _identify(self) -> tuple[int, int] | None:
        try:
            status = (self._folder / "users.lock").stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def _look_after(self, server: Server) -> None:
        now = time.monotonic()
        if server.process is not None:
            code = server.process.poll()
            if code is None:
                return
            server.process = None
            if code > 0 and server.restarts == 0 and now - server.begun_at < REFUSAL_SECONDS:
                raise Refused(f"it ended with exit status {code}", server.name)
            server.restarts += 1
            server.crashes = [at for at in server.crashes if now - at < CRASH_WINDOW_SECONDS]
            server.crashes.append(now)
            if len(server.crashes) > CRASHES_MAX:
                raise Refused(
                    f"it ended {len(server.crashes)} times within {CRASH_WINDOW_SECONDS:.0f} s, "
                    f"last with exit status {code}",
                    server.name,
                )
            server.due_at = now + BACKOFF_SECONDS[len(server.crashes) - 1]
        if now >= server.due_at:
            self._spawn(server)
            self._write_state("running")

    def _take_life_lock(self, server: Server) -> int:
        earlier = self._plan["earlier_pids"].pop(server.name, None)
        leaves_by_itself = earlier is not None and earlier in holders(server.lock)
        return take_life_lock(server.lock, LEFTOVER_STEPS if leaves_by_itself else ORPHAN_STEPS)

    def _spawn(self, server: Server) -> None:
        lock = self._take_life_lock(server)
        try:
            self._clear_stale(server)
            server.process = self._popen(server.argv, server, lock)
            server.begun_at = time.monotonic()
        finally:
            os.close(lock)

    def _popen(self, argv: list[str], server: Server, lock: int) -> subprocess.Popen[bytes]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        log = os.open(server.log, flags, 0o600)
        server.log_since = os.fstat(log).st_size
        try:
            return subprocess.Popen(  # noqa: S603 - the plan's program, no shell
                argv,
                cwd=server.cwd,
                env=SERVER_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock,),
                umask=0o077,
                preexec_fn=lambda: self._tie(server.death_signal),  # noqa: PLW1509 - one thread
                **self._plan["account"],
            )
        finally:
            os.close(log)

    def _tie(self, death_signal: int) -> None:
        # Between fork and exec, after the switch of user (which would clear PDEATHSIG).
        self._libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
        if os.getppid() != self._pid:
            os._exit(1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def _clear_stale(self, server: Server) -> None:
        """Remove pid and socket files of the dead; a pid in them may belong to a stranger now."""
        if server.pid_file is not None:
            with contextlib.suppress(OSError, ValueError, IndexError):
                pid = int(Path(server.pid_file).read_bytes().split()[0])
                if Path(f"/proc/{pid}/cwd").resolve() == Path(server.pid_file).parent.resolve():
                    raise Refused(f"process {pid} serves this data already; stop it", server.name)
            Path(server.pid_file).unlink(missing_ok=True)
        for path in server.stale:
            Path(path).unlink(missing_ok=True)

    def _make_cluster(self) -> None:
        made = Path(self._plan["cluster"]["path"])
        scratch = made.with_name(f"{made.name}.new")
        if made.exists():
            return
        server = self._servers[0]
        lock = self._take_life_lock(server)
        try:
            shutil.rmtree(scratch, ignore_errors=True)
            making = self._popen([*self._plan["cluster"]["argv"], str(scratch)], server, lock)
            try:
                code = making.wait(self._plan["timeout_seconds"])
            except subprocess.TimeoutExpired:
                making.kill()
                making.wait()
                code = -signal.SIGKILL
            if code != 0:
                shutil.rmtree(scratch, ignore_errors=True)
                raise Refused(f"initdb ended with exit status {code}", server.name)
            scratch.rename(made)
            parent = os.open(made.parent, os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(parent)  # initdb flushed the files, not the name they have now
            os.close(parent)
        finally:
            os.close(lock)

    def _stop_all(self) -> None:
        running = [(s, s.process) for s in self._servers if s.process is not None]
        for server, process in running:
            process.send_signal(server.stop[0][0])
        for server, process in running:
            self._await_end(server, process)
        with contextlib.suppress(OSError):
            Path(self._plan["state"]["sockets"]).rmdir()  # made again by the next start

    def _await_end(self, server: Server, process: subprocess.Popen[bytes]) -> None:
        for step, (number, patience) in enumerate(server.stop):
            if step:
                process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
                break
        server.process = None
        with contextlib.suppress(Refused, OSError):
            os.close(take_life_lock(server.lock, ORPHAN_STEPS))

    def _bound_logs(self) -> None:
        now = time.monotonic()
        if now - self._logs_checked_at < LOG_CHECK_SECONDS:
            return
        self._logs_checked_at = now
        for server in self._servers:
            with contextlib.suppress(OSError):
                if Path(server.log).stat().st_size > LOG_BYTES_MAX:
                    shutil.copyfile(server.log, f"{server.log}.1")
                    os.truncate(server.log, 0)  # the servers append: they go on at its start

    def _write_state(self, phase: str, failure: dict[str, Any] | None = None) -> None:
        state = {
            **self._plan["state"],
            "phase": phase,
            "failure": failure,
            "guard_pid": self._pid,
            "pids": {s.name: s.process.pid for s in self._servers if s.process is not None},
            "restarts": {s.name: s.restarts for s in self._servers},
        }
        try:
            write_atomically(self._folder / "state.json", json.dumps(state, indent=1))
        except OSError:
            if phase == "starting":
                raise
            # The disk is full or the folder removed: the servers matter more.


def main(*_shown_by_ps: str) -> None:
    """Take the guard's lock, leave the caller's process tree, serve."""
    plan = json.load(sys.stdin)
    os.chdir("/")
    os.umask(0o077)
    lock = Path(plan["folder"]) / "guard.lock"
    until = time.monotonic() + 2.0
    while try_lock(lock) is None:  # somebody may just be looking whether a guard lives
        if time.monotonic() > until:
            raise SystemExit(1)
        time.sleep(0.01)
    if os.fork():
        os._exit(0)
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    Guard(plan).run()
