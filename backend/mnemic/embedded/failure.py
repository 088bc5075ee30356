"""What went wrong, in words that name the remedy."""

from __future__ import annotations

import errno
import re
from pathlib import Path

from mnemic.errors import ConfigurationError, ServerUnavailable

DATA_DIR, RUN_AS = "MEM_EMBEDDED__DATA_DIR", "MEM_EMBEDDED__RUN_AS"
_TAIL_LINES = 12
_TAIL_BYTES = 8_192
_MORE_SPACE = f"free some space, or name a folder on another disk in {DATA_DIR}"

# What the servers' logs say, and what helps; the first match counts.
_REMEDIES = (
    (r"No space left on device|Disk quota exceeded", _MORE_SPACE),
    (r"Read-only file system", f"name a folder on a writable disk in {DATA_DIR}"),
    (
        r"Permission denied|Operation not permitted",
        f"let the servers' user ({RUN_AS}) reach its files again, or name another {DATA_DIR}",
    ),
    (
        r"could not bind Unix address|Failed opening Unix socket|could not create Unix-domain",
        f"name a shorter path, on a disk that can hold sockets, in {DATA_DIR}",
    ),
    (
        r"Cannot allocate memory|could not create shared memory|could not map anonymous",
        "free some memory, or raise the container's limit; PostgreSQL wants 200 MB",
    ),
    (r"invalid locale name", "install the C library's C.UTF-8 locale (glibc 2.35 has it)"),
    (
        r"append only file|Unexpected end of file reading the|Bad file format",
        "move valkey/appendonlydir out of the data folder: only working memory begins anew",
    ),
)


def unusable(folder: Path, error: OSError) -> ConfigurationError | ServerUnavailable:
    """The error to raise when the system refuses `folder`."""
    text = f"{folder} cannot be used: {error.strerror}"
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return ServerUnavailable(f"{text}; {_MORE_SPACE}", field=DATA_DIR)
    return ConfigurationError(
        f"{text}; name a folder that this user can write in {DATA_DIR}", field=DATA_DIR
    )


def out_of_space(folder: Path, *, free: int, needed: int) -> ServerUnavailable:
    """The error to raise when a new cluster would not fit."""
    return ServerUnavailable(
        f"{folder} has {free >> 20} MiB free and a new database takes {needed >> 20} MiB; "
        f"{_MORE_SPACE}",
        field=DATA_DIR,
    )


def server_failed(folder: Path, server: str, text: str, *, since: int) -> ServerUnavailable:
    """The error to raise when a server ended: the end of its log, and what helps.

    `since` is the size of that log before this attempt: what an earlier one said is history.
    """
    end = tail(folder, server, since=since)
    log = folder / f"{server}.log"
    remedy = next(
        (help_ for pattern, help_ in _REMEDIES if re.search(pattern, f"{text}\n{end}")),
        f"the whole log is {log}",
    )
    return ServerUnavailable(
        f"the embedded {server} of {folder} failed: {text}; {remedy}; its log ends:\n{end}",
        server=server,
        log=str(log),
    )


def tail(folder: Path, server: str, *, since: int = 0) -> str:
    """The last lines of a server's log, of those behind byte `since`."""
    try:
        with (folder / f"{server}.log").open("rb") as log:
            size = log.seek(0, 2)
            log.seek(max(since if since <= size else 0, size - _TAIL_BYTES))
            text = log.read().decode(errors="replace")
    except OSError as error:
        return f"({error.strerror})"
    return "\n".join(text.splitlines()[-_TAIL_LINES:]) or "(nothing)"
