"""The command `mnemic`: every edge's commands in one program."""

from __future__ import annotations

import sys

import typer

from mnemic.edge.cli import commands
from mnemic.edge.cli.endings import run_app
from mnemic.edge.mcp import command as mcp_commands
from mnemic.edge.worker import command as worker_commands

__all__ = ["app", "run"]


def app() -> typer.Typer:
    """The whole program."""
    made = typer.Typer(
        no_args_is_help=True,
        epilog=commands.EPILOG,
        pretty_exceptions_enable=False,
        pretty_exceptions_show_locals=False,
        rich_markup_mode="rich",
    )
    for edge in (commands, mcp_commands, worker_commands):
        edge.add_commands(made)
    return made


def run() -> None:
    """The process has run the command that its arguments name, and ends with its exit code."""
    sys.exit(run_app(app(), sys.argv[1:]))


if __name__ == "__main__":
    run()
