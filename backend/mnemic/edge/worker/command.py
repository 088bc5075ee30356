"""`mnemic worker` and `mnemic beat`: maintenance, and the clock that asks for it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from mnemic.edge.logs import LogLevel, log_to_stderr

__all__ = ["add_commands"]


class Pool(StrEnum):
    """How tasks run beside each other."""

    PREFORK = "prefork"
    THREADS = "threads"
    SOLO = "solo"


ConcurrencyOption = Annotated[
    int, typer.Option("--concurrency", min=1, max=256, help="Tasks at once.")
]
PoolOption = Annotated[
    Pool, typer.Option("--pool", help="Processes, threads, or one task at a time in this process.")
]


def add_commands(app: typer.Typer) -> None:
    """`app` knows `worker` and `beat`."""
    app.command("worker")(run_worker)
    app.command("beat")(run_beat)


def run_worker(
    context: typer.Context,
    *,
    concurrency: ConcurrencyOption = 2,
    pool: PoolOption = Pool.PREFORK,
) -> None:
    """Run maintenance when beat asks for it: end idle sessions, embed what has no vector.

    Stays in the foreground. SIGTERM lets running tasks finish; SIGQUIT does not.
    """
    _log(context)
    from mnemic.edge.worker.running import work  # noqa: PLC0415 - `mnemic --help` must not load it
    from mnemic.settings_reading import read_settings  # noqa: PLC0415 - as above

    raise typer.Exit(work(read_settings(), concurrency=concurrency, pool=pool.value))


def run_beat(context: typer.Context) -> None:
    """Ask for maintenance on schedule. One is enough; a second one does no harm.

    Stays in the foreground and keeps no state. SIGTERM ends it.
    """
    _log(context)
    from mnemic.edge.worker.running import tick  # noqa: PLC0415 - `mnemic --help` must not load it
    from mnemic.settings_reading import read_settings  # noqa: PLC0415 - as above

    tick(read_settings())


def _log(context: typer.Context) -> None:
    """Services say what they do, unless `mnemic --log-level` said otherwise."""
    program = context.parent
    told = program.get_parameter_source("log_level") if program is not None else None
    if told is None or told.name == "DEFAULT":
        log_to_stderr(LogLevel.INFO)
