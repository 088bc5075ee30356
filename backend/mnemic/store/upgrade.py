"""Moving a database between the revisions of its schema, and saying where it stands.

The functions are plain ones: a host calls them from its own deploy, inside a running loop or
outside of it. Each runs Alembic in a thread of its own, one at a time in a process; a lock in the
database keeps other processes out. A run is one transaction: it lands as a whole or not at all.
"""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncpg
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext, MigrationInfo
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from pydantic import SecretStr
from sqlalchemy.exc import DBAPIError

from mnemic.errors import InvalidInput, MnemicError, SchemaMismatch, StoreUnavailable
from mnemic.schema import metadata
from mnemic.store.catalogue import violations
from mnemic.store.connecting import connected
from mnemic.store.faults import translated
from mnemic.store.migrating import OWNER_SETTING, required
from mnemic.store.revisions import Revision, migrations_folder, revision_of

__all__ = ["Check", "Revision", "Step", "check", "current", "downgrade", "sql", "upgrade"]

T = TypeVar("T")

_one_at_a_time = threading.Lock()  # Alembic keeps its context in module globals


@dataclass(frozen=True, slots=True)
class Step:
    """A revision that was just applied or undone: the `done`th of `total`."""

    done: int
    total: int
    revision: str
    title: str


@dataclass(frozen=True, slots=True)
class Check:
    """How a database differs from what this release expects; nothing to repair if `ok`."""

    revision: Revision
    differences: tuple[str, ...]
    violations: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether it stands at the head, has exactly the tables, and every wall holds."""
        return self.revision.is_head and not self.differences and not self.violations


def upgrade(
    url: str | SecretStr | None,
    revision: str = "head",
    *,
    progress: Callable[[Step], None] | None = None,
) -> Revision:
    """The database stands at `revision`; nothing happens if it already does.

    `url` logs in as `mnemic_owner`. `progress` is called from another thread, after each revision
    and before the commit. Raises `ConfigurationError` if the database was not set up,
    `SchemaMismatch` if it is newer than this release or somebody else's, and `StoreUnavailable` if
    it cannot be reached or is too busy; then nothing was changed.
    """
    return _move(command.upgrade, 1, url, revision, progress)


def downgrade(
    url: str | SecretStr | None,
    revision: str,
    *,
    progress: Callable[[Step], None] | None = None,
) -> Revision:
    """The database stands at the older `revision`; what later ones added is lost. As `upgrade`."""
    return _move(command.downgrade, -1, url, revision, progress)


def current(url: str | SecretStr, *, setting: str = OWNER_SETTING) -> Revision:
    """Where the database stands, asked as any of its roles."""
    return _in_thread(lambda: asyncio.run(_current(url, setting)))


def check(url: str | SecretStr | None) -> Check:
    """How the database differs from this release: revision, tables, policies, functions, rights."""

    def work() -> Check:
        found: list[Any] = []

        def compare(_heads: object, context: MigrationContext) -> list[Any]:
            found.extend(compare_metadata(context, metadata))
            return []

        config = _config(url, reads_only=True)
        script = ScriptDirectory.from_config(config)
        with EnvironmentContext(config, script, fn=compare, dont_mutate=True):
            script.run_env()
        broken, stands = asyncio.run(_walls(required(url)))
        return Check(stands, tuple(map(_shown, found)), tuple(broken))

    return _in_thread(work)


def sql(start: str = "base", to: str = "head") -> str:
    """The statements from one revision to another, for an operator to read or to run by hand."""

    def work() -> str:
        written = io.StringIO()
        config = _config(None, output=written)
        script = ScriptDirectory.from_config(config)
        move = (
            command.upgrade
            if _position(script, start) <= _position(script, to)
            else (command.downgrade)
        )
        move(config, f"{start}:{to}", sql=True)
        return written.getvalue()

    return _in_thread(work)


def head() -> str:
    """The revision that this release serves."""
    return _script().get_current_head() or ""


def _move(
    move: Callable[[Config, str], None],
    direction: int,
    url: str | SecretStr | None,
    revision: str,
    progress: Callable[[Step], None] | None,
) -> Revision:
    def work() -> Revision:
        given = required(url)
        config = _config(given)
        script = ScriptDirectory.from_config(config)
        target = _position(script, revision)
        stands = asyncio.run(_current(given, OWNER_SETTING))
        if direction * (target - _position(script, stands.current or "base")) < 0:
            raise InvalidInput(
                f"the database is at {stands.current or 'base'}; {revision} lies the other way",
                field="revision",
            )
        config.attributes["report"] = _reporter(script, revision, progress)
        move(config, revision)
        return asyncio.run(_current(given, OWNER_SETTING))

    return _in_thread(work)


def _reporter(
    script: ScriptDirectory, revision: str, progress: Callable[[Step], None] | None
) -> Callable[[MigrationInfo], None] | None:
    if progress is None:
        return None
    done, total = 0, 0

    def report(step: MigrationInfo) -> None:
        nonlocal done, total
        done += 1
        moved = step.up_revision_id or ""
        if done == 1:
            before = _position(script, moved) - (1 if step.is_upgrade else 0)
            total = abs(_position(script, revision) - before)
        progress(Step(done, total, moved, script.get_revision(moved).doc.rstrip(".")))

    return report


async def _current(url: str | SecretStr, setting: str) -> Revision:
    async with connected(url, setting=setting) as connection:
        return await revision_of(connection)


async def _walls(url: str | SecretStr) -> tuple[list[str], Revision]:
    async with connected(url, setting=OWNER_SETTING) as connection:
        return await violations(connection), await revision_of(connection)


def _script() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config(None))


def _ordered(script: ScriptDirectory) -> list[str]:
    """Every revision, oldest first; the history is one line."""
    return [revision.revision for revision in script.walk_revisions()][::-1]


def _position(script: ScriptDirectory, revision: str) -> int:
    """How many revisions lie behind a database at `revision`."""
    ordered = _ordered(script)
    if revision == "base":
        return 0
    if revision == "head":
        return len(ordered)
    if revision not in ordered:
        raise InvalidInput(
            f"there is no revision {revision}; there are base, head and {', '.join(ordered)}",
            field="revision",
        )
    return ordered.index(revision) + 1


def _config(
    url: str | SecretStr | None, *, reads_only: bool = False, output: io.StringIO | None = None
) -> Config:
    config = Config(output_buffer=output)
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes.update(url=url, reads_only=reads_only)
    return config


def _in_thread(work: Callable[[], T]) -> T:
    """`work` in a thread without a running loop, alone in this process, its faults in our words."""
    with _one_at_a_time, ThreadPoolExecutor(1, "mnemic-upgrade") as thread:
        try:
            return thread.submit(work).result()
        except DBAPIError as fault:
            raise _translated(fault) from fault
        except CommandError as fault:
            raise SchemaMismatch(f"the migrations cannot run: {fault}") from fault
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as fault:
            raise translated(fault) or fault from fault


def _translated(fault: DBAPIError) -> MnemicError:
    cause = getattr(fault.orig, "__cause__", None)
    state = getattr(fault.orig, "sqlstate", None) or getattr(cause, "sqlstate", "") or ""
    if state in {"55P03", "57014"}:
        return StoreUnavailable(
            "the database is too busy to be changed now; nothing was changed, try again",
            sqlstate=state,
        )
    if fault.connection_invalidated or state.startswith(("08", "53", "57", "58")):
        return StoreUnavailable("the connection was lost; nothing was changed", sqlstate=state)
    return MnemicError(f"nothing was changed; the database refused: {fault.orig}", sqlstate=state)


def _shown(difference: Any) -> str:
    """A difference that Alembic found, in one line: what is to be done, to what, on which table."""
    if isinstance(difference, list):
        return "; ".join(map(_shown, difference))
    return " ".join(
        _named(part) for part in difference if part is not None and not isinstance(part, dict)
    )


def _named(part: Any) -> str:
    name, table = getattr(part, "name", None), getattr(part, "table", None)
    if isinstance(part, str) or name is None:
        return str(getattr(part, "arg", part))
    return f"{name} on {table.name}" if table is not None else str(name)
