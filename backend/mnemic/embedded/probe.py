"""Whether a server answers, asked over its socket in its own protocol."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

_TIMEOUT_SECONDS = 2.0
_STARTUP_BODY = (
    struct.pack("!i", 196_608) + b"user\0postgres\0database\0postgres\0\0"
)  # protocol 3.0
_TERMINATE = b"X" + struct.pack("!i", 4)
_READY_FOR_QUERY = b"Z"
_ERROR = b"E"


def postgres_answers(socket_path: str, pid_file: Path) -> bool:
    """True when a session can be opened; False while the server starts, recovers or is gone.

    The server is asked only when its pid file says `ready`: each question before that would cost
    it a process and a line in its log.
    """
    try:
        # As bytes: the data folder, whose path stands in it, may be of any encoding.
        if pid_file.read_bytes().splitlines()[-1].strip() != b"ready":
            return False
        with _connected(socket_path) as connection, connection.makefile("rb") as replies:
            connection.sendall(struct.pack("!i", 4 + len(_STARTUP_BODY)) + _STARTUP_BODY)
            while True:
                kind = replies.read(1)
                if kind in {b"", _ERROR}:
                    return False
                (length,) = struct.unpack("!i", replies.read(4))
                replies.read(length - 4)
                if kind == _READY_FOR_QUERY:
                    connection.sendall(_TERMINATE)
                    return True
    except (OSError, IndexError, struct.error):
        return False


def valkey_answers(socket_path: str) -> bool:
    """True when PING is answered; False while the server loads its log or is gone."""
    try:
        with _connected(socket_path) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def _connected(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_TIMEOUT_SECONDS)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection
