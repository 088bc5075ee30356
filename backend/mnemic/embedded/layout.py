"""Where the files of a data folder are.

    data folder/           ours alone: locks, state.json, logs
    └── servers/           belongs to the user that runs the servers
        ├── postgres/      the cluster
        ├── valkey/        the append-only file
        └── run/           the sockets, unless the path is too long for one

When root starts servers whose user cannot reach the data folder (it is below a closed home,
say), `servers/` is a folder below `/var/lib/mnemic` instead, and `DATA-IS-ELSEWHERE.txt` says so.
The choice is made once: data never stay behind because a mode somewhere has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mnemic.embedded import reach
from mnemic.embedded.account import Account
from mnemic.embedded.boot import command
from mnemic.embedded.failure import DATA_DIR, RUN_AS, unusable
from mnemic.embedded.folders import (
    PASSABLE,
    PRIVATE,
    check_owned,
    make_folders,
    make_owned_folder,
)
from mnemic.embedded.locks import write_atomically
from mnemic.errors import ConfigurationError

STATE_ROOT = Path("/var/lib/mnemic")
POINTER = "DATA-IS-ELSEWHERE.txt"
_THROWAWAY = ".throwaway"
# sun_path holds 108 bytes with its NUL.
_SOCKET_FOLDER_BYTES_MAX = 108 - 1 - len("/.s.PGSQL.5432")
# PostgreSQL reads a comma-separated list of folders, in which other characters need quoting.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._/+@=-]+")
_SHORT_ROOT = Path("/tmp")  # noqa: S108 - owner and mode of what is made there are checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The folders of one start."""

    folder: Path
    home: Path
    sockets: Path

    @property
    def cluster(self) -> Path:
        """PostgreSQL's data."""
        return self.home / "postgres"

    @property
    def valkey(self) -> Path:
        """Valkey's data."""
        return self.home / "valkey"


def open_folder(data_dir: Path, account: Account) -> Path:
    """The data folder, made when missing: absolute, no symlink, ours, not writable by others."""
    given = data_dir.expanduser().absolute()
    if given.name in {"", ".."}:
        raise ConfigurationError(f"{DATA_DIR} is {data_dir}; name a folder", field=DATA_DIR)
    folder = Path(os.path.realpath(given.parent)) / given.name
    try:
        make_folders(folder, PASSABLE if account.switched else PRIVATE)
        check_owned(folder, os.geteuid())
    except OSError as error:
        raise unusable(folder, error) from error
    return folder


def lay_out(folder: Path, account: Account, *, durable: bool) -> Layout:
    """The folders of `folder`, made when missing. The caller holds the start lock."""
    home = _home(folder, account)
    try:
        if home.parent == STATE_ROOT:
            _sweep()
            _mark(home, folder, durable=durable)
        make_owned_folder(home, account)
        check_owned(home, account.uid)
        make_owned_folder(home / "valkey", account)
        return Layout(folder=folder, home=home, sockets=_socket_folder(home, account))
    except OSError as error:
        raise unusable(home, error) from error


def home_of(folder: Path) -> Path:
    """Where the servers' files of a data folder that was laid out are."""
    pointer = folder / POINTER
    return _pointed_at(pointer) if pointer.exists() else folder / "servers"


def remove_home(folder: Path) -> None:
    """The servers' files of a data folder are gone. Nothing runs, and the caller holds its lock."""
    home = home_of(folder)
    shutil.rmtree(home, ignore_errors=True)
    home.with_suffix(_THROWAWAY).unlink(missing_ok=True)


def open_state_root(account: Account) -> Path:
    """The folder for what the servers' user cannot reach elsewhere; made when missing."""
    try:
        make_folders(STATE_ROOT, PASSABLE)
        check_owned(STATE_ROOT, 0, others=(account.uid,))
    except OSError as error:
        raise unusable(STATE_ROOT, error) from error
    if not _can_enter(STATE_ROOT, account):
        raise ConfigurationError(
            f"user {account.name!r} cannot enter {STATE_ROOT}; open it (chmod o+x {STATE_ROOT}), "
            f"or name a folder that user can reach in {DATA_DIR}",
            field=DATA_DIR,
        )
    return STATE_ROOT


def _home(folder: Path, account: Account) -> Path:
    pointer, inside = folder / POINTER, folder / "servers"
    if pointer.exists():
        return _elsewhere(folder, account)
    if not account.switched:
        return inside
    reachable = _can_enter(folder, account)
    if inside.exists() and not reachable:
        raise ConfigurationError(
            f"user {account.name!r}, which runs the servers, can no longer reach {inside}; open "
            f"the folders above it (chmod o+x), or move the data folder and name it in {DATA_DIR}",
            field=DATA_DIR,
        )
    return inside if reachable else _elsewhere(folder, account)


def _elsewhere(folder: Path, account: Account) -> Path:
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
    home = open_state_root(account) / digest
    pointer = folder / POINTER
    if not pointer.exists():
        if home.exists():
            raise ConfigurationError(
                f"{home} holds the data of an earlier {folder}, which was removed; remove {home} "
                f"as well to begin anew, or write its path into {pointer} to have them back"
            )
        write_atomically(
            pointer,
            f"{home}\n\nThe data of this folder are in the folder above: user {account.name!r}, "
            f"which runs the servers, cannot reach this one.\nRemove both together.\n",
        )
    elif (told := _pointed_at(pointer)) != home:
        raise ConfigurationError(
            f"{pointer} says that the data are in {told}, which was made for another path than "
            f"{folder}; move the folder back, or rename {told} to {home} and correct the text"
        )
    elif not home.exists() and (folder / "state.json").exists():
        raise ConfigurationError(
            f"{pointer} says that the data are in {home}, which is gone; restore it, or remove "
            f"{folder} to begin anew"
        )
    return home


def _mark(home: Path, folder: Path, *, durable: bool) -> None:
    mark = home.with_suffix(_THROWAWAY)
    if durable:
        mark.unlink(missing_ok=True)
    else:
        write_atomically(mark, str(folder))


def _sweep() -> None:
    """Throwaway clusters whose data folder was removed are gone: tests leave such behind."""
    for mark in STATE_ROOT.glob(f"*{_THROWAWAY}"):
        with contextlib.suppress(OSError):
            if not (Path(mark.read_text(encoding="utf-8")) / POINTER).exists():
                shutil.rmtree(mark.with_suffix(""), ignore_errors=True)
                mark.unlink()


def _pointed_at(pointer: Path) -> Path:
    return Path(pointer.read_text(encoding="utf-8", errors="surrogateescape").partition("\n")[0])


def _can_enter(folder: Path, account: Account) -> bool:
    if not account.switched:
        return os.access(folder, os.X_OK)
    groups = ",".join(map(str, account.groups))
    ran = subprocess.run(  # noqa: S603 - this interpreter, no shell
        command("reach", str(account.uid), str(account.gid), groups, str(folder)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd="/",
        check=False,
    )
    if ran.returncode not in {0, reach.CANNOT_ENTER}:
        raise ConfigurationError(
            f"root cannot become user {account.name!r} here ({ran.stderr.decode().strip()[-200:]})"
            f"; start as an ordinary user, or name another in {RUN_AS}",
            field=RUN_AS,
        )
    return ran.returncode == 0


def _socket_folder(home: Path, account: Account) -> Path:
    chosen = home / "run"
    text = os.fsencode(chosen)
    if len(text) > _SOCKET_FOLDER_BYTES_MAX or not _PLAIN_PATH.fullmatch(str(chosen)):
        digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
        chosen = _SHORT_ROOT / f"mnemic-{account.uid}-{digest}"
    make_owned_folder(chosen, account)
    check_owned(chosen, account.uid)
    return chosen
