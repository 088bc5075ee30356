"""What the guard is told: how each server runs. Every option has its reason beside it."""

from __future__ import annotations

import signal
from typing import Any

from mnemic.embedded.account import Account
from mnemic.embedded.binaries import Binaries, Versions
from mnemic.embedded.layout import Layout
from mnemic.embedded.locks import STATE_FORMAT

POSTGRES_SOCKET = ".s.PGSQL.5432"
VALKEY_SOCKET = "valkey.sock"

# As fast as posix for a parallel index build, not bounded by a container's 64 MB /dev/shm, not
# removed when the user logs out (RemoveIPC), and gone with the cluster.
_SHARED_MEMORY = {"dynamic_shared_memory_type": "mmap"}

# Written into postgresql.conf by initdb; an operator may change them there or with ALTER SYSTEM.
_CLUSTER_DEFAULTS = {
    **_SHARED_MEMORY,  # initdb itself needs it, too
    "shared_buffers": "128MB",
    "max_connections": "100",
    "max_wal_size": "256MB",
    # Before recovery, one call flushes what a thousand would: 0.3 s instead of up to 3 s beside
    # a busy neighbour on the same disk. PostgreSQL's reservation is about kernels before 5.8.
    "recovery_init_sync_method": "syncfs",
    "maintenance_work_mem": "128MB",
    # A session whose program was killed ends within seconds, not with its statement.
    "client_connection_check_interval": "5s",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Statements and their values are memories: they stay out of the log, which outlives erasure.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}

_INITDB = (
    "--username=postgres",
    "--auth-local=trust",  # the socket's folder is closed to other users
    "--auth-host=reject",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    # The text search parser asks the C library what a letter is; under C every character beyond
    # ASCII is one, so that “hello” keeps its quotes.
    "--lc-ctype=C.UTF-8",
    "--data-checksums",
    "--no-instructions",
)

# Given on the command line at every start: these are not for changing.
_POSTGRES = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "logging_collector": "off",
    **_SHARED_MEMORY,
}
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_DURABLE = {"fsync": "on", "full_page_writes": "on"}

_VALKEY = {
    "port": "0",
    "unixsocketperm": "700",
    "daemonize": "no",
    "appendonly": "yes",
    "aof-load-truncated": "yes",
    "save": "",
    "maxmemory-policy": "noeviction",
    "always-show-logo": "no",
    # Slow and large commands are kept with their values; memories must not stay behind in there.
    "commandlog-execution-slower-than": "-1",
    "commandlog-request-larger-than": "-1",
    "commandlog-reply-larger-than": "-1",
}


def make_plan(
    layout: Layout,
    *,
    binaries: Binaries,
    versions: Versions,
    account: Account,
    durable: bool,
    earlier_pids: dict[str, int],
    instance: str,
    timeout_seconds: float,
) -> dict[str, Any]:
    """The guard's plan, JSON-compatible."""
    initdb = [str(binaries.postgres_bin / "initdb"), *_INITDB]
    initdb += [f"--set={name}={value}" for name, value in _CLUSTER_DEFAULTS.items()]
    if not durable:
        initdb.append("--no-sync")
    return {
        "folder": str(layout.folder),
        "home": str(layout.home),
        "timeout_seconds": timeout_seconds,
        "earlier_pids": earlier_pids,
        "account": account.popen_arguments(),
        "cluster": {"path": str(layout.cluster), "argv": [*initdb, "-D"]},
        "servers": [
            _postgres(layout, binaries, durable=durable),
            _valkey(layout, binaries, durable=durable),
        ],
        "state": {
            "format": STATE_FORMAT,
            "instance": instance,
            "durable": durable,
            "account": account.name,
            "home": str(layout.home),
            "sockets": str(layout.sockets),
            "versions": {"postgres": versions.postgres, "valkey": versions.valkey},
        },
    }


def _postgres(layout: Layout, binaries: Binaries, *, durable: bool) -> dict[str, Any]:
    options = {
        **_POSTGRES,
        **(_DURABLE if durable else _NOT_DURABLE),
        "unix_socket_directories": str(layout.sockets),
    }
    argv = [str(binaries.postgres_bin / "postgres"), "-D", str(layout.cluster)]
    for name, value in options.items():
        argv += ["-c", f"{name}={value}"]
    socket = layout.sockets / POSTGRES_SOCKET
    return {
        "name": "postgres",
        "argv": argv,
        "cwd": str(layout.home),
        "lock": str(layout.folder / "postgres.lock"),
        "log": str(layout.folder / "postgres.log"),
        "pid_file": str(layout.cluster / "postmaster.pid"),
        "stale": [str(socket), f"{socket}.lock"],
        "death_signal": int(signal.SIGINT),
        "stop": [
            (int(signal.SIGINT), 30.0),  # fast: sessions end, a checkpoint is written
            (int(signal.SIGQUIT), 6.0),  # immediate: the next start recovers
            (int(signal.SIGKILL), 5.0),
        ],
    }


def _valkey(layout: Layout, binaries: Binaries, *, durable: bool) -> dict[str, Any]:
    socket = layout.sockets / VALKEY_SOCKET
    options = {
        **_VALKEY,
        "appendfsync": "everysec" if durable else "no",
        "unixsocket": str(socket),
    }
    argv = [str(binaries.valkey_server)]
    for name, value in options.items():
        argv += [f"--{name}", value]
    return {
        "name": "valkey",
        "argv": argv,
        "cwd": str(layout.valkey),  # its data folder: no `dir` option, so nothing to quote
        "lock": str(layout.folder / "valkey.lock"),
        "log": str(layout.folder / "valkey.log"),
        "pid_file": None,
        "stale": [str(socket)],
        "death_signal": int(signal.SIGTERM),
        "stop": [(int(signal.SIGTERM), 15.0), (int(signal.SIGKILL), 5.0)],
    }
