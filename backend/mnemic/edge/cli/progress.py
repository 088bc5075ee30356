"""Progress bars on standard error, for a person who watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mnemic.edge.cli.writing import is_terminal, printable, side_console

__all__ = ["counting"]


@contextmanager
def counting(words: str, total: int) -> Iterator[Callable[..., None]]:
    """A bar that `advance(count, total)` moves on; nothing at all when nobody watches.

    `total` may be left out there; given, it replaces the first guess.
    """
    if not is_terminal(sys.stderr):
        yield _silent
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=side_console(), transient=True) as bar:
        task = bar.add_task(printable(words), total=total)

        def advance(count: int, total: int | None = None) -> None:
            bar.update(task, advance=count, total=total)

        yield advance


def _silent(_count: int, _total: int | None = None) -> None:
    """Nobody watches."""
