"""Every command of this edge, and what they have in common."""

from __future__ import annotations

from typing import Annotated

import typer

from mnemic.edge.cli.bench import bench
from mnemic.edge.cli.db import db
from mnemic.edge.cli.db_placement import demote_tenant, isolate_tenant, promote_tenants
from mnemic.edge.cli.demo import demo
from mnemic.edge.cli.doctor import doctor
from mnemic.edge.cli.endings import Run
from mnemic.edge.cli.explaining import why_not
from mnemic.edge.cli.forget import forget
from mnemic.edge.cli.ingest import ingest
from mnemic.edge.cli.recall import context, recall
from mnemic.edge.cli.remember import remember
from mnemic.edge.cli.session import sessions
from mnemic.edge.cli.settings import show_settings
from mnemic.edge.logs import LogLevel, log_to_stderr

__all__ = ["EPILOG", "add_commands"]

EPILOG = """Exit codes:
  0  done
  1  a check failed, or something unexpected happened
  2  invalid input
  3  not found, conflict or forbidden
  4  settings or servers are not fit to serve
  5  a server is away; nothing was changed, try again
130  interrupted; 141 when the reader of the output has gone

Without MEM_DATABASE_URL and MEM_REDIS_URL every command uses, and starts, embedded servers."""

MEMORY, OPERATION = "Memory", "Operation"


def add_commands(app: typer.Typer) -> None:
    """The app has the commands of this edge and the options that stand before every command."""
    app.callback()(_before)
    db.command("promote")(promote_tenants)
    db.command("demote")(demote_tenant)
    db.command("isolate")(isolate_tenant)
    app.command("demo")(demo)
    app.command("ingest", rich_help_panel=MEMORY)(ingest)
    app.command("remember", rich_help_panel=MEMORY)(remember)
    app.command("recall", rich_help_panel=MEMORY)(recall)
    app.command("why-not", rich_help_panel=MEMORY)(why_not)
    app.command("context", rich_help_panel=MEMORY)(context)
    app.command("forget", rich_help_panel=MEMORY)(forget)
    app.add_typer(
        sessions, name="session", rich_help_panel=MEMORY, help="End, pause and resume sessions."
    )
    app.add_typer(
        db, name="db", rich_help_panel=OPERATION, help="The roles, and the revisions of the schema."
    )
    app.add_typer(
        bench, name="bench", rich_help_panel=OPERATION, help="Measure, on servers of its own."
    )
    app.command("doctor", rich_help_panel=OPERATION)(doctor)
    app.command("settings", rich_help_panel=OPERATION)(show_settings)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer passes it by place
    if wanted:
        from mnemic import __version__

        typer.echo(f"mnemic {__version__}")
        raise typer.Exit


def _before(
    context: typer.Context,
    *,
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="MEM_DEBUG", help="Show where an error happened."),
    ] = False,
    log_level: Annotated[
        LogLevel,
        typer.Option("--log-level", envvar="MEM_LOG_LEVEL", help="Logs go to standard error."),
    ] = LogLevel.WARNING,
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Say which this is."),
    ] = False,
) -> None:
    """Memory for agents: remember, recall, and a prompt section within its budget."""
    del version
    if isinstance(context.obj, Run):
        context.obj.debug = debug
    log_to_stderr(log_level)
