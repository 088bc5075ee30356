"""`mnemic session …`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from mnemic.edge.cli.documents import session_json
from mnemic.edge.cli.memory import with_memory
from mnemic.edge.cli.options import JsonOption
from mnemic.edge.cli.scopes import described, scoped
from mnemic.edge.cli.writing import write_json, write_line
from mnemic.model.scope import Scope

if TYPE_CHECKING:
    from mnemic.model.session import Session

__all__ = ["sessions"]

sessions = typer.Typer(no_args_is_help=True)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name of the session.")]


class Verdict(StrEnum):
    """How a session went."""

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"


@sessions.command("end")
@scoped(session=False)
def end(
    name: NameArgument,
    *,
    outcome: Annotated[
        Verdict | None,
        typer.Option("--outcome", help="How it went. Default: told by what was said."),
    ] = None,
    as_json: JsonOption = False,
    scope: Scope,
) -> None:
    """End a session: it becomes one episode, and its memories move to the scope above it."""
    within = scope.session(name)
    receipt = with_memory(
        lambda memory: memory.sessions.end(scope=within, outcome=outcome.value if outcome else None)
    )
    if as_json:
        write_json({"episode": receipt.to_json() if receipt else None})
    elif receipt is None:
        write_line("Ended, without an episode: nothing was said in it.")
    elif receipt.created:
        write_line(f"Ended: episode {receipt.id} in {described(scope)}")
    else:
        write_line(f"Had ended already: episode {receipt.id} in {described(scope)}")


@sessions.command("pause")
@scoped(session=False)
def pause(name: NameArgument, *, as_json: JsonOption = False, scope: Scope) -> None:
    """Let a session rest."""
    within = scope.session(name)
    _show(with_memory(lambda memory: memory.sessions.pause(scope=within)), as_json=as_json)


@sessions.command("resume")
@scoped(session=False)
def resume(name: NameArgument, *, as_json: JsonOption = False, scope: Scope) -> None:
    """Make a paused session active again."""
    within = scope.session(name)
    _show(with_memory(lambda memory: memory.sessions.resume(scope=within)), as_json=as_json)


def _show(session: Session, *, as_json: bool) -> None:
    if as_json:
        write_json(session_json(session))
    else:
        write_line(f"{session.name}: {session.state.value}, {session.turn_count} turns")
