"""`mnemic forget`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mnemic.edge.cli.memory import id_of, with_memory
from mnemic.edge.cli.options import JsonOption
from mnemic.edge.cli.scopes import described, scoped
from mnemic.edge.cli.writing import is_terminal, write_json, write_line
from mnemic.errors import InvalidInput, NotFound
from mnemic.model.scope import Scope

__all__ = ["forget"]


@scoped()
def forget(
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="The ids that `recall --why` shows.")
    ],
    *,
    reason: Annotated[str | None, typer.Option("--reason", help="Why, for the audit log.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
    scope: Scope,
) -> None:
    """Delete memories by their exact ids: all of them, or none.

    What was made of them follows: facts that rest on nothing else, and words in episodes.
    The scope must be the one in which they stand.
    """
    wanted = [id_of(one, field="ids") for one in ids]
    if not yes:
        if as_json or not is_terminal(sys.stdin):
            raise InvalidInput("nobody can be asked here; add --yes", field="--yes")
        what = "this memory" if len(wanted) == 1 else f"these {len(wanted)} memories"
        if not typer.confirm(f"Delete {what} of {described(scope)} for good?", err=True):
            write_line("Nothing was deleted.")
            raise typer.Exit(1)
    try:
        gone = with_memory(lambda memory: memory.forget(wanted, scope=scope, reason=reason))
    except NotFound as fault:
        told = str(fault).removesuffix(".")
        raise NotFound(f"{told}; for a narrower one add --project, say.", **fault.context) from None
    if as_json:
        write_json({"counts": gone.counts, "total": gone.total, "reworded": gone.reworded})
        return
    counted = ", ".join(f"{count} {kind}" for kind, count in gone.counts.items())
    write_line(f"Forgotten: {counted}")
    if gone.reworded:
        what = "1 episode is" if gone.reworded == 1 else f"{gone.reworded} episodes are"
        write_line(f"{what} told anew without it.")
