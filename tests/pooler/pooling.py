"""A PgBouncer of the test run's own, in front of the roles that serve."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from mnemic.embedded import EmbeddedServers
from mnemic.embedded.account import server_account

PORT = 6432
START_SECONDS_MAX = 10.0
POLL_SECONDS = 0.02
# Debian keeps it where only an administrator's shell looks.
_FOLDERS = (None, "/usr/sbin:/usr/local/sbin")

DEFAULTS = {
    "pool_mode": "transaction",
    "default_pool_size": "4",
    "max_client_conn": "500",
    "query_wait_timeout": "20",
}


def pgbouncer_program() -> str | None:
    """Where PgBouncer is installed, or nothing."""
    found = (shutil.which("pgbouncer", path=folders) for folders in _FOLDERS)
    return next((one for one in found if one), None)


class PgBouncer:
    """Listens on a socket of its own until `stop`; `settings` are those of its own file."""

    def __init__(
        self,
        servers: EmbeddedServers,
        *,
        roles: tuple[str, ...],
        **settings: str,
    ) -> None:
        program = pgbouncer_program()
        if program is None:
            raise FileNotFoundError("pgbouncer is not installed")
        account = server_account(None)
        self.folder = Path(tempfile.mkdtemp(prefix="pgb-"))
        users = "".join(f'"{role}" ""\n' for role in roles)
        (self.folder / "users.txt").write_text(users, encoding="utf-8")
        server = parse_qs(urlsplit(servers.postgres_url()).query)["host"][0]
        here = {
            "listen_addr": "",
            "listen_port": str(PORT),
            "unix_socket_dir": str(self.folder),
            "auth_type": "trust",
            "auth_file": str(self.folder / "users.txt"),
            "logfile": str(self.folder / "pgbouncer.log"),
        }
        lines = [f"{name} = {value}\n" for name, value in {**DEFAULTS, **settings, **here}.items()]
        (self.folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = host={server}\n[pgbouncer]\n{''.join(lines)}", encoding="utf-8"
        )
        for path in (self.folder, *self.folder.iterdir()):
            path.chmod(0o755 if path.is_dir() else 0o644)
            if account.switched:
                shutil.chown(path, account.uid, account.gid)
        self._process = subprocess.Popen(
            [program, "--quiet", self.folder / "pgbouncer.ini"],
            stdin=subprocess.DEVNULL,
            **account.popen_arguments(),
        )
        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + START_SECONDS_MAX
        path = self.folder / f".s.PGSQL.{PORT}"
        while time.monotonic() < until and self._process.poll() is None:
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(str(path)) == 0:
                    return
            time.sleep(POLL_SECONDS)
        told = self.log
        self.stop()
        raise RuntimeError(f"pgbouncer did not start: {told}")

    @property
    def log(self) -> str:
        """What it has written so far."""
        path = self.folder / "pgbouncer.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def url(self, user: str, database: str) -> str:
        """Where `user` enters `database` through it."""
        host = quote(str(self.folder))
        return f"postgresql://{quote(user)}@/{quote(database)}?host={host}&port={PORT}"

    def stop(self) -> None:
        """The process has ended, and its folder is gone."""
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class PooledServers:
    """The servers; the roles that serve come in through the pooler, everybody else directly."""

    def __init__(self, servers: EmbeddedServers, pooler: PgBouncer, roles: tuple[str, ...]) -> None:
        self.direct = servers
        self._pooler = pooler
        self._roles = roles

    def __getattr__(self, name: str) -> Any:
        return getattr(self.direct, name)

    def postgres_url(self, user: str = "postgres", database: str = "postgres") -> str:
        """As the servers' own, but for the roles that serve."""
        if user in self._roles:
            return self._pooler.url(user, database)
        return self.direct.postgres_url(user, database)
