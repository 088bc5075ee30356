"""Making folders and judging those that exist. None that exists is changed in mode or owner."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from mnemic.embedded.account import Account
from mnemic.embedded.failure import DATA_DIR
from mnemic.errors import ConfigurationError

PRIVATE = 0o700
PASSABLE = 0o711  # others may pass through to what is theirs; they can neither list nor read
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_folders(folder: Path, mode: int) -> None:
    """`folder` exists, with its parents; those made now have `mode`."""
    if folder.is_dir() or folder.is_symlink():
        return
    if not folder.parent.is_dir():
        make_folders(folder.parent, mode)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=mode)
        folder.chmod(mode)  # whatever the umask took away


def make_owned_folder(folder: Path, account: Account) -> None:
    """`folder` exists; when made now, it belongs to `account` and is closed to others."""
    if os.path.lexists(folder):
        return
    if not account.switched:
        make_folders(folder, PRIVATE)
        return
    # A kill between mkdir and chown must not leave a folder of root's under the final name.
    scratch = folder.with_name(f"{folder.name}.new")
    with contextlib.suppress(FileNotFoundError):
        scratch.rmdir()
    scratch.mkdir(mode=PRIVATE)
    os.chown(scratch, account.uid, account.gid, follow_symlinks=False)
    scratch.rename(folder)


def check_owned(folder: Path, uid: int, *, others: tuple[int, ...] = ()) -> None:
    """Raises ConfigurationError unless `folder` is a real folder of `uid`, closed to others."""
    status = folder.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise ConfigurationError(
            f"{folder} is a symbolic link; name the folder it points to "
            f"({os.path.realpath(folder)}) in {DATA_DIR}",
            field=DATA_DIR,
        )
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigurationError(
            f"{folder} is not a folder; remove it, or name another place in {DATA_DIR}",
            field=DATA_DIR,
        )
    if status.st_uid not in {uid, *others}:
        raise ConfigurationError(
            f"{folder} belongs to user id {status.st_uid}, not to {uid}; start as its owner, or "
            f"name another folder in {DATA_DIR}",
            field=DATA_DIR,
        )
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise ConfigurationError(
            f"{folder} can be written by other users (mode {stat.S_IMODE(status.st_mode):04o}); "
            f"close it (chmod go-w {folder}), or name another folder in {DATA_DIR}",
            field=DATA_DIR,
        )
