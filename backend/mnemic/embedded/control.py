"""What the locks and the state of a data folder say.

`start.lock` orders those who start and a guard that is about to stop; `users.lock` is held
shared by every user; `guard.lock` by the guard; `state.json` is the guard's account of itself.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mnemic.embedded.locks import STATE_FORMAT, release, try_lock
from mnemic.errors import ConfigurationError, ServerUnavailable

POLL_SECONDS = 0.02
START, USERS, GUARD, STATE = "start.lock", "users.lock", "guard.lock", "state.json"


@contextmanager
def start_lock(folder: Path, deadline: float) -> Iterator[None]:
    """Nobody else starts, and no guard decides to stop."""
    while (lock := try_lock(folder / START)) is None:
        if time.monotonic() > deadline:
            raise ServerUnavailable(
                f"another program has been starting or stopping the servers of {folder} for too "
                "long; look into guard.log there, or raise MEM_EMBEDDED__START_TIMEOUT_SECONDS"
            )
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        release(lock)


def guard_lives(folder: Path) -> bool:
    """True while a guard of this folder runs, whatever its state."""
    lock = try_lock(folder / GUARD)
    if lock is not None:
        release(lock)
    return lock is None


def is_unused(folder: Path) -> bool:
    """True when no user is left. The caller holds the start lock."""
    lock = try_lock(folder / USERS)
    if lock is not None:
        release(lock)
    return lock is not None


def stops_now(folder: Path) -> bool:
    """True while a guard lives that nobody uses: it is about to stop, or stopping."""
    try:
        if not guard_lives(folder):
            return False
        starting = try_lock(folder / START)
        if starting is None:
            return True  # the guard is stopping, or somebody starts: soon we know
        try:
            return is_unused(folder)
        finally:
            release(starting)
    except FileNotFoundError:
        return False


def read_state(folder: Path) -> dict[str, Any]:
    """The guard's last words; empty when there never was one."""
    try:
        state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (
        ValueError,
        RecursionError,
    ):  # torn when the power went, or not ours
        state = None
    if not isinstance(state, dict) or state.get("format") != STATE_FORMAT:
        raise ConfigurationError(
            f"{folder / STATE} was written by another release, or is broken; end the programs that "
            f"use {folder}, then remove that file"
        )
    return state
