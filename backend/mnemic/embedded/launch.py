"""Starting the guard of a data folder."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from pathlib import Path
from typing import Any

from mnemic.embedded.account import Account
from mnemic.embedded.binaries import Binaries, Versions, find_binaries, read_versions
from mnemic.embedded.boot import command
from mnemic.embedded.control import POLL_SECONDS, guard_lives, read_state
from mnemic.embedded.copies import copied
from mnemic.embedded.failure import out_of_space, tail, unusable
from mnemic.embedded.layout import Layout, lay_out
from mnemic.embedded.plan import make_plan
from mnemic.errors import ConfigurationError, ServerUnavailable

_CLUSTER_BYTES = 100 << 20  # 39 MiB of templates, 16 MiB of log, room for the first tables


def launch(folder: Path, account: Account, *, durable: bool, deadline: float) -> None:
    """A guard lives and has spoken. The caller holds the start lock; no guard lives."""
    binaries, versions = _runnable(account, deadline)
    layout = lay_out(folder, account, durable=durable)
    _check_cluster(layout, versions)
    plan = make_plan(
        layout,
        binaries=binaries,
        versions=versions,
        account=account,
        durable=durable,
        earlier_pids=read_state(folder).get("pids", {}),
        instance=secrets.token_hex(8),
        timeout_seconds=max(1.0, deadline - time.monotonic()),
    )
    _run_guard(folder, plan)
    while read_state(folder).get("instance") != plan["state"]["instance"]:
        if time.monotonic() > deadline or not guard_lives(folder):
            _check_writable(folder)
            raise ServerUnavailable(
                f"the guard of {folder} does not start; its log ends:\n{tail(folder, 'guard')}"
            )
        time.sleep(POLL_SECONDS)


def _runnable(account: Account, deadline: float) -> tuple[Binaries, Versions]:
    binaries = find_binaries()
    try:
        return binaries, read_versions(binaries, account)
    except PermissionError as error:
        if not account.switched:
            raise ConfigurationError(
                f"{error.filename} may not be executed; reinstall the wheels with their modes"
            ) from error
    binaries = copied(binaries, account, deadline)
    try:
        return binaries, read_versions(binaries, account)
    except PermissionError as error:
        raise ConfigurationError(
            f"user {account.name!r} may not execute {error.filename}; is its disk mounted noexec?"
        ) from error


def _check_cluster(layout: Layout, versions: Versions) -> None:
    try:
        major = (layout.cluster / "PG_VERSION").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        disk = os.statvfs(layout.home)
        free = disk.f_bavail * disk.f_frsize
        if free < _CLUSTER_BYTES:
            raise out_of_space(layout.home, free=free, needed=_CLUSTER_BYTES) from None
        return
    if major != versions.postgres_major:
        raise ConfigurationError(
            f"{layout.cluster} was made by PostgreSQL {major}, and this release brings "
            f"{versions.postgres}; export the memories with the release that made them and import "
            "them into a new folder, named in MEM_EMBEDDED__DATA_DIR"
        )


def _run_guard(folder: Path, plan: dict[str, Any]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    log = os.open(folder / "guard.log", flags, 0o600)
    try:
        # Returns at once: the guard forks, so that it is nobody's child whom it could surprise.
        subprocess.run(  # noqa: S603 - this interpreter, no shell
            command("guard", str(folder)),
            input=json.dumps(plan).encode(),
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
            check=False,
        )
    finally:
        os.close(log)


def _check_writable(folder: Path) -> None:
    trial = folder / "trial.new"
    try:
        trial.write_bytes(bytes(65_536))
        trial.unlink()
    except OSError as error:
        trial.unlink(missing_ok=True)
        raise unusable(folder, error) from error
