"""Servers that a test can take away: a socket in front of each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

from working_proxy import Proxy

__all__ = ["postgres_behind", "valkey_behind"]

_SOCKET = ".s.PGSQL.5432"


@asynccontextmanager
async def valkey_behind(folder: Path, url: str) -> AsyncIterator[Proxy]:
    """A proxy in front of Valkey; its `url` leads there until it is cut."""
    proxy = Proxy(folder, url)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.close()


@asynccontextmanager
async def postgres_behind(folder: Path, url: str) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy in front of PostgreSQL, and the URL that leads through it."""
    behind = dict(parse_qsl(urlsplit(url).query))["host"]
    async with valkey_behind(folder, f"unix://{quote(f'{behind}/{_SOCKET}')}") as proxy:
        (folder / _SOCKET).symlink_to(proxy.path)
        yield proxy, f"{url.partition('?')[0]}?host={quote(str(folder))}"
