"""`mnemic db …`: the roles, and the revisions of the schema."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemic.edge.cli.endings import FAILED
from mnemic.edge.cli.memory import waiting
from mnemic.edge.cli.options import JsonOption
from mnemic.edge.cli.progress import counting
from mnemic.edge.cli.writing import clipped, write_json, write_line, write_side
from mnemic.errors import ConfigurationError, InvalidInput

if TYPE_CHECKING:
    from pydantic import SecretStr

    from mnemic.settings import MemorySettings
    from mnemic.store.revisions import Revision
    from mnemic.store.upgrade import Check, Step
    from mnemic.wiring import Servers

__all__ = ["db", "owner_url", "prepare"]

DIFFERENCES_SHOWN_MAX = 20
LINE_CHARS_MAX = 200

db = typer.Typer(no_args_is_help=True)


async def prepare(servers: Servers) -> None:
    """The embedded server has its database and roles; another one is set up by `db init`."""
    from mnemic.store.roles import init
    from mnemic.wiring import EMBEDDED_DATABASE

    if servers.started is not None and servers.embeds_database:
        await init(servers.started.postgres_url(), database=EMBEDDED_DATABASE)


@db.command("init")
def init_database(
    *,
    admin_url: Annotated[
        str | None,
        typer.Option(
            "--admin-url",
            envvar="MEM_ADMIN_URL",
            show_envvar=True,
            help="A superuser's URL. Default: the embedded server's.",
        ),
    ] = None,
    database: Annotated[str, typer.Option("--database", help="The database to set up.")] = "mnemic",
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the statements instead, for a managed server.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Set up the database, its three roles, extensions and schema; repeating changes nothing.

    The roles get the passwords that MEM_DATABASE_URL and MEM_DATABASE_OWNER_URL hold, if any.
    """
    with waiting("Setting up"):
        from mnemic.settings_reading import read_settings
        from mnemic.store.roles import init_sql

        settings = read_settings()
        passwords = _passwords(settings)
        if sql:
            text = init_sql(database=database, **passwords)
            if as_json:
                write_json({"sql": text})
            else:
                sys.stdout.write(f"{text}\n")
            return
        report = _init(settings, admin_url, database, passwords)
    if as_json:
        write_json(report)
        return
    made = "was made" if report["database_created"] else "was there"
    write_line(
        f"The database {report['database']} {made}; its roles, extensions and schema are set up."
    )
    write_line("Next: mnemic db upgrade")


@db.command("upgrade")
def upgrade_database(
    *,
    revision: Annotated[
        str, typer.Argument(metavar="[REVISION]", help="The revision to stand at.")
    ] = "head",
    as_json: JsonOption = False,
) -> None:
    """Bring the schema to this release's; nothing happens if it is there already."""
    from mnemic.store.upgrade import upgrade

    with owner_url() as url:
        moved = _with_bar("Upgrading", lambda report: upgrade(url, revision, progress=report))
    _show_moved(url, *moved, as_json=as_json)


@db.command("downgrade")
def downgrade_database(
    revision: Annotated[
        str, typer.Argument(metavar="REVISION", help="The older revision, or base.")
    ],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take the schema back to an older revision; what later ones added is lost."""
    from mnemic.store.upgrade import downgrade

    if not yes:
        if as_json or not sys.stdin.isatty():
            raise InvalidInput(
                "it loses data and nobody can be asked here; add --yes", field="--yes"
            )
        typer.confirm(f"Lose what came after {revision}?", err=True, abort=True)
    with owner_url() as url:
        moved = _with_bar("Downgrading", lambda report: downgrade(url, revision, progress=report))
    _show_moved(url, *moved, as_json=as_json)


@db.command("current")
def show_current(*, as_json: JsonOption = False) -> None:
    """Say which revision the database stands at, and what is pending."""
    from mnemic.store.upgrade import current

    with owner_url(serving_will_do=True) as url:
        stands = current(url)
    _show_stand(url, stands, as_json=as_json)


@db.command("check")
def check_database(*, as_json: JsonOption = False) -> None:
    """Compare the database with this release: revision, tables, policies, rights.

    Exits with 1 if they differ.
    """
    from mnemic.store.upgrade import check

    with owner_url() as url, waiting("Comparing"):
        found = check(url)
    if as_json:
        write_json(
            {
                "ok": found.ok,
                **_stand_json(url, found.revision),
                "differences": list(found.differences),
                "violations": list(found.violations),
            }
        )
    else:
        _show_check(url, found)
    if not found.ok:
        raise typer.Exit(FAILED)


@db.command("sql")
def print_sql(
    span: Annotated[
        str, typer.Argument(metavar="[FROM:TO]", help="From one revision to another.")
    ] = "base:head",
    *,
    as_json: JsonOption = False,
) -> None:
    """Print the statements between two revisions; no server is needed."""
    from mnemic.store.upgrade import sql

    start, colon, to = span.partition(":")
    if not colon:
        raise InvalidInput("must look like FROM:TO, for example base:head", field="FROM:TO")
    text = sql(start or "base", to or "head")
    if as_json:
        write_json({"sql": text})
    else:
        sys.stdout.write(text)


def _show_check(url: str, found: Check) -> None:
    _show_stand(url, found.revision, as_json=False)
    told = [f"differs: {one}" for one in found.differences]
    told += [f"broken: {one}" for one in found.violations]
    shown = DIFFERENCES_SHOWN_MAX if found.revision.is_head else 0
    for line in told[:shown]:
        write_line(clipped(line, LINE_CHARS_MAX))
    if len(told) > shown:
        write_line(f"{len(told) - shown} {'more ' if shown else ''}differences; --json lists them")
    write_line("The database is as this release expects it." if found.ok else _REMEDY)


_REMEDY = "Run `mnemic db upgrade`; if that changes nothing, somebody else has altered the schema."


@contextmanager
def owner_url(*, serving_will_do: bool = False) -> Iterator[str]:
    """The URL of the role that migrates, its server running meanwhile."""
    import asyncio

    from mnemic.settings_reading import read_settings
    from mnemic.wiring import resolve_servers

    settings = read_settings()
    owner, serving = settings.database_owner_url, settings.database_url
    if owner is None and serving is not None and serving_will_do:
        owner = serving
    if owner is not None:
        yield owner.get_secret_value()
        return
    if serving is not None:
        raise ConfigurationError(
            "MEM_DATABASE_OWNER_URL is not set; set it to a URL that logs in as mnemic_owner"
        )
    with waiting("Starting PostgreSQL"):
        servers = asyncio.run(resolve_servers(settings, migrate=False))
    try:
        asyncio.run(prepare(servers))
        yield servers.owner_url or ""
    finally:
        asyncio.run(servers.close())


def _with_bar(
    words: str, move: Callable[[Callable[[Step], None]], Revision]
) -> tuple[Revision, int]:
    """The move is made; where it led, and over how many revisions."""
    steps = 0
    with counting(words, 1) as advance:

        def report(step: Step) -> None:
            nonlocal steps
            steps = step.done
            advance(1, step.total)

        stands = move(report)
    return stands, steps


def _init(
    settings: MemorySettings,
    admin_url: str | None,
    database: str,
    passwords: dict[str, SecretStr | str | None],
) -> dict[str, Any]:
    import asyncio

    from mnemic.store.roles import init
    from mnemic.wiring import resolve_servers

    async def run() -> dict[str, Any]:
        started = None
        url = admin_url
        if url is None:
            if settings.database_url or settings.database_owner_url:
                raise InvalidInput(
                    "is needed, since MEM_DATABASE_URL names a server of your own",
                    field="--admin-url",
                )
            started = await resolve_servers(settings, migrate=False)
            url = started.started.postgres_url() if started.started else ""
        try:
            done = await init(url, database=database, **passwords)
        finally:
            if started is not None:
                await started.close()
        return {"database": done.database, "database_created": done.database_created}

    return asyncio.run(run())


def _passwords(settings: MemorySettings) -> dict[str, SecretStr | str | None]:
    """The passwords of the two roles that log in, out of the URLs that log in as them."""
    from mnemic.store.roles import APP_ROLE, OWNER_ROLE

    return {
        "app_password": _password_of(settings.database_url, APP_ROLE, "MEM_DATABASE_URL"),
        "owner_password": _password_of(
            settings.database_owner_url, OWNER_ROLE, "MEM_DATABASE_OWNER_URL"
        ),
    }


def _password_of(url: SecretStr | None, role: str, setting: str) -> str | None:
    from urllib.parse import unquote, urlsplit

    if url is None:
        return None
    parts = urlsplit(url.get_secret_value())
    if parts.username is not None and unquote(parts.username) != role:
        write_side(f"{setting} does not log in as {role}; its password is left out of this.")
        return None
    return unquote(parts.password) if parts.password else None


def _place(url: str) -> str:
    """The database as a person may be told of it: which server, and as whom."""
    from mnemic.settings_values import without_password

    return without_password(url)


def _stand_json(url: str, stands: Revision) -> dict[str, Any]:
    return {
        "database": _place(url),
        "current": stands.current,
        "head": stands.head,
        "pending": list(stands.pending),
        "is_head": stands.is_head,
    }


def _show_stand(url: str, stands: Revision, *, as_json: bool) -> None:
    if as_json:
        write_json(_stand_json(url, stands))
        return
    pending = ", ".join(stands.pending)
    rest = "this release's" if stands.is_head else f"pending: {pending}"
    write_line(f"{_place(url)} stands at {stands.current or 'no revision'}; {rest}.")


def _show_moved(url: str, stands: Revision, steps: int, *, as_json: bool) -> None:
    if as_json:
        write_json({**_stand_json(url, stands), "steps": steps})
        return
    moved = (
        f"{steps} {'revision' if steps == 1 else 'revisions'} done" if steps else "nothing to do"
    )
    write_line(f"{_place(url)} stands at {stands.current or 'no revision'}: {moved}.")
