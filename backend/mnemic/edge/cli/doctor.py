"""`mnemic doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from mnemic.edge.cli.db import prepare
from mnemic.edge.cli.endings import FAILED
from mnemic.edge.cli.memory import waiting
from mnemic.edge.cli.options import JsonOption
from mnemic.edge.cli.writing import write_json, write_line

if TYPE_CHECKING:
    from pathlib import Path

    from mnemic.service.doctor import Finding
    from mnemic.settings import MemorySettings
    from mnemic.wiring import Servers

__all__ = ["doctor"]

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(*, as_json: JsonOption = False) -> None:
    """Check servers, role, row security, schema, model and disk; each with its remedy.

    Exits with 1 when something fails. Nothing is changed, but embedded servers are started.
    """
    import asyncio

    with waiting("Examining"):
        findings = asyncio.run(_findings())
    failed = any(one.verdict == "fail" for one in findings)
    if as_json:
        told = [
            {
                "check": one.check,
                "verdict": one.verdict.value,
                "detail": one.detail,
                "remedy": one.remedy,
            }
            for one in findings
        ]
        write_json({"ok": not failed, "findings": told})
    else:
        _show(findings)
    if failed:
        raise typer.Exit(FAILED)


async def _findings() -> list[Finding]:
    from mnemic.embed import open_embedder
    from mnemic.errors import MnemicError
    from mnemic.service.doctor import Patient, examine, failure
    from mnemic.settings_reading import read_settings
    from mnemic.wiring import resolve_servers

    settings = read_settings(warns=False)
    findings = _about_variables()
    servers = None
    try:
        servers = await resolve_servers(settings, migrate=False)
        await prepare(servers)
    except MnemicError as fault:
        findings.append(failure("embedded servers", fault))
    set_urls = [
        url.get_secret_value() if url else None
        for url in (settings.database_url, settings.redis_url)
    ]
    patient = Patient(
        database_url=servers.database_url if servers else set_urls[0],
        redis_url=servers.redis_url if servers else set_urls[1],
        data_dir=_data_folder(settings, servers),
        embeds_database=not set_urls[0],
        database=settings.database,
        open_embedder=lambda: open_embedder(settings.embedding),
    )
    try:
        return [*findings, *await examine(patient)]
    finally:
        if servers is not None:
            await servers.close()


def _data_folder(settings: MemorySettings, servers: Servers | None) -> Path | None:
    """Where embedded servers keep, or would keep, what they hold."""
    from mnemic.embedded.layout import home_of

    if servers is None:
        return settings.embedded.data_dir
    return home_of(servers.started.data_dir) if servers.started is not None else None


def _about_variables() -> list[Finding]:
    from mnemic.service.doctor import Finding, Verdict
    from mnemic.settings_reading import unknown_variables

    return [
        Finding(
            check="settings",
            verdict=Verdict.WARN,
            detail=f"{name} is set but is no setting",
            remedy=f"did you mean {meant}?" if meant else "unset it",
        )
        for name, meant in unknown_variables().items()
    ]


def _show(findings: list[Finding]) -> None:
    width = max(len(one.check) for one in findings)
    for one in findings:
        verdict = one.verdict.value
        write_line(f"{verdict:<4}  {one.check:<{width}}  {one.detail}", style=_STYLES[verdict])
        if one.remedy:
            write_line(f"{'':<4}  {'':<{width}}  → {one.remedy}")
    counts = {verdict: sum(one.verdict == verdict for one in findings) for verdict in _STYLES}
    write_line(f"{counts['ok']} ok, {counts['warn']} to look at, {counts['fail']} to repair")
