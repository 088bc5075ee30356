"""Runs a command, and fails when it leaves something behind: a process, a socket, a file.

    leftovers.py COMMAND ARGUMENT…

The command gets a temporary folder of its own as TMPDIR. Whatever it starts is found again, also
what detached itself: this process adopts orphans (Linux only). What is left is named and removed.
The exit status is the command's, or 1 when it left something.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GRACE_SECONDS = 20.0  # servers that were told to stop are writing their last checkpoint
POLL_SECONDS = 0.05
_PR_SET_CHILD_SUBREAPER = 36
# Where servers keep what does not fit below their data folder; under CI, one run has them alone.
_SHARED = ("/tmp/mnemic-[0-9]*", "/var/lib/mnemic/*")  # noqa: S108 - looked at, never written
_KEPT = {"binaries"}  # a copy of the servers' programs, made once for all data folders


def run(command: list[str]) -> int:
    """The exit status; afterwards nothing of the command's is left."""
    adopt_orphans()
    before = shared()
    folder = Path(tempfile.mkdtemp(prefix="mnemic-run-"))
    folder.chmod(0o711)  # servers that root starts run as another user
    try:
        child = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(folder)})
        status = wait_for(child)
        left = [*processes_left(), *files_left(folder)]
        left += sorted(map(str, shared() - before)) if os.environ.get("CI") else []
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for one in left:
        print(f"left behind: {one}", file=sys.stderr)
    return status or (1 if left else 0)


def adopt_orphans() -> None:
    """Children of ours whose parent ends become our children, instead of init's."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def shared() -> set[Path]:
    """What lies in the places that all runs share."""
    found = (path for pattern in _SHARED for path in Path("/").glob(pattern.lstrip("/")))
    return {path for path in found if path.name not in _KEPT}


def wait_for(child: subprocess.Popen[bytes]) -> int:
    """The exit status of `child`; an interrupt is left to it to handle."""
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            return child.wait()


def processes_left() -> list[str]:
    """Descendants that live on after the grace, by command line; they are killed."""
    until = time.monotonic() + GRACE_SECONDS
    while reap() and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
    left = []
    while reap():
        for child in children():
            left.append(f"process {child} ({command_line(child)})")
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
    return list(dict.fromkeys(left))


def reap() -> bool:
    """Whether children are left, once those that have ended are cleared away."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True


def children() -> list[int]:
    """The children of this process."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            # The name, in brackets, may hold anything; the parent is the second field after it.
            after = status.read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
            if int(after.split()[1]) == os.getpid():
                found.append(int(status.parent.name))
    return found


def command_line(process: int) -> str:
    """What `process` was started with, for a person."""
    try:
        raw = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return "gone"
    return raw.replace(b"\0", b" ").decode(errors="replace").strip()[:200]


def files_left(folder: Path) -> list[str]:
    """What lies in the temporary folder, but for the empty folder that pytest keeps."""
    return [
        str(path)
        for path in sorted(folder.iterdir())
        if not (path.name.startswith("pytest-of-") and not any(path.iterdir()))
    ]


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
