"""Locks that end with the processes that hold them; standard library only."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from pathlib import Path

STATE_FORMAT = 1

# A server whose guard is gone is shutting down by itself: PDEATHSIG told it to.
LEFTOVER_STEPS = ((0, 10.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
# The children of a server that was killed have nobody to wait for.
ORPHAN_STEPS = ((0, 0.2), (signal.SIGQUIT, 1.0), (signal.SIGKILL, 5.0))


class Refused(Exception):
    """A server cannot be started; the text says why, `name` whose log says more."""

    def __init__(self, text: str, name: str = "guard") -> None:
        super().__init__(text)
        self.name = name


def try_lock(path: str | Path, *, shared: bool = False) -> int | None:
    """A new descriptor that holds the flock of `path`, or None while others hold it.

    The lock ends when the last copy of the descriptor, also in forked children, is closed.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def release(descriptor: int) -> None:
    """The lock is free at once, even while a child that was forked meanwhile has a copy."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def write_atomically(path: Path, text: str) -> None:
    """`path` holds `text`; a reader sees the old content or the new one, never a part."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}.new")
    with os.fdopen(
        os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600),
        "w",
        encoding="utf-8",
    ) as file:
        file.write(text)
    scratch.replace(path)


def holders(path: str) -> list[int]:
    """Processes that hold the flock of `path`, as far as this user may look into them."""
    try:
        wanted = Path(path).stat()
    except FileNotFoundError:
        return []
    others = (p for p in Path("/proc").iterdir() if p.name.isdigit() and p.name != f"{os.getpid()}")
    return [int(process.name) for process in others if _holds(process, wanted)]


def _holds(process: Path, wanted: os.stat_result) -> bool:
    with contextlib.suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                # A backup that reads the file is no holder: its descriptor carries no lock.
                if (
                    os.path.samestat(descriptor.stat(), wanted)
                    and "FLOCK" in (process / "fdinfo" / descriptor.name).read_text()
                ):
                    return True
    return False


def _signal_holders(path: str, number: int) -> None:
    wanted = Path(path).stat()
    for pid in holders(path):
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(pid)
            try:
                # A pid that was used again meanwhile is not hit.
                if _holds(Path(f"/proc/{pid}"), wanted):
                    signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)


def take_life_lock(path: str, steps: tuple[tuple[int, float], ...]) -> int:
    """The life lock at `path`, after its holders left: by themselves, or made to by `steps`."""
    for number, patience in steps:
        if number:
            _signal_holders(path, number)
        until = time.monotonic() + patience
        while True:
            descriptor = try_lock(path)
            if descriptor is not None:
                return descriptor
            if time.monotonic() > until:
                break
            time.sleep(0.02)
    seen = ", ".join(map(str, holders(path))) or "none visible: another container?"
    raise Refused(f"processes of an earlier start do not end (pids: {seen})")
