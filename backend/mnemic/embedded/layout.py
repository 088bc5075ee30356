"""Where the files of a data folder are, and whether they may be trusted.

    data folder/           ours alone: locks, state.json, logs
    └── servers/           belongs to the user that runs the servers
        ├── postgres/      the cluster
        ├── valkey/        the append-only file
        └── run/           the sockets, unless the path is too long for one

No folder that exists already is changed in mode or owner.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from mnemic.embedded.account import Account
from mnemic.errors import ConfigurationError, ServerUnavailable

SETTING = "MEM_EMBEDDED__DATA_DIR"
# sun_path holds 108 bytes with its NUL; the longest name in the folder is `.s.PGSQL.5432.lock`.
_SOCKET_FOLDER_BYTES_MAX = 108 - len("/.s.PGSQL.5432.lock") - 1
# PostgreSQL reads a comma-separated list of folders, so other characters would need quoting.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._/+@=-]+")
_SHORT_ROOT = Path("/tmp")  # noqa: S108 - owner and mode of what is made below it are checked
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


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
    if not given.name or given.name == "..":
        raise ConfigurationError(f"{SETTING} is {data_dir}; name a folder", field=SETTING)
    folder = Path(os.path.realpath(given.parent)) / given.name
    try:
        # The servers' user must be able to pass through what root makes for it.
        _make_folders(folder, 0o711 if account.switched else 0o700)
        status = folder.lstat()
    except OSError as error:
        raise _unusable(folder, error) from error
    check_owned(folder, status, os.geteuid(), SETTING)
    return folder


def check_owned(folder: Path, status: os.stat_result, uid: int, setting: str) -> None:
    """Raises ConfigurationError unless `folder` is a real folder of `uid`, closed to others."""
    if stat.S_ISLNK(status.st_mode):
        raise ConfigurationError(
            f"{folder} is a symbolic link; name the folder it points to "
            f"({os.path.realpath(folder)}) in {setting}",
            field=setting,
        )
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigurationError(
            f"{folder} is not a folder; remove it or name another place in {setting}",
            field=setting,
        )
    if status.st_uid != uid:
        raise ConfigurationError(
            f"{folder} belongs to user id {status.st_uid}, not to {uid}; start as its owner or "
            f"name another folder in {setting}",
            field=setting,
        )
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise ConfigurationError(
            f"{folder} can be written by other users (mode {stat.S_IMODE(status.st_mode):03o}); "
            f"close it (chmod go-w {folder}) or name another folder in {setting}",
            field=setting,
        )


def _make_folders(folder: Path, mode: int) -> None:
    if folder.is_dir() or folder.is_symlink():
        return
    if not folder.parent.is_dir():
        _make_folders(folder.parent, mode)
    make_folder(folder, mode)


def make_folder(folder: Path, mode: int = 0o700, account: Account | None = None) -> bool:
    """`folder` exists; True when it was made now: with exactly `mode`, owned by `account`."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return False
    if mode != 0o700:  # noqa: PLR2004 - what mkdir gave
        folder.chmod(mode)
    if account is not None and account.switched:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    return True


def _unusable(folder: Path, error: OSError) -> ConfigurationError | ServerUnavailable:
    text = f"{folder} cannot be used: {error.strerror}; "
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return ServerUnavailable(
            f"{text}free some space or name a folder on another disk in {SETTING}", field=SETTING
        )
    return ConfigurationError(
        f"{text}name a folder that this user can write in {SETTING}", field=SETTING
    )


def lay_out(folder: Path, account: Account) -> Layout:
    """The folders below `folder`, made when missing. The caller holds `start.lock`."""
    home = folder / "servers"
    try:
        make_folder(home, account=account)
        check_owned(home, home.lstat(), account.uid, SETTING)
        make_folder(home / "valkey", account=account)
        return Layout(folder=folder, home=home, sockets=_socket_folder(home, account))
    except OSError as error:
        raise _unusable(home, error) from error


def _socket_folder(home: Path, account: Account) -> Path:
    inside = home / "run"
    if _fits(inside):
        chosen = inside
    else:
        digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
        chosen = _SHORT_ROOT / f"mnemic-{account.uid}-{digest}"
    make_folder(chosen, account=account)
    check_owned(chosen, chosen.lstat(), account.uid, SETTING)
    return chosen


def _fits(folder: Path) -> bool:
    text = str(folder)
    return (
        len(os.fsencode(text)) <= _SOCKET_FOLDER_BYTES_MAX
        and _PLAIN_PATH.fullmatch(text) is not None
    )
