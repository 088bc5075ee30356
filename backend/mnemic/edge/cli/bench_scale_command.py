"""`mnemic bench scale`, from its options to its document."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnemic.edge.cli.bench_scale import Size
from mnemic.edge.cli.memory import waiting
from mnemic.edge.cli.progress import counting

__all__ = ["Asking", "crowded", "scaled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What is measured: tenants of which sizes, and whether others are measured beside."""

    size: Size
    peers: bool


async def scaled(asking: Asking) -> dict[str, Any]:
    """Tenants of every size in one database, asked beside the bare driver and the peers."""
    from mnemic.edge.cli.bench_ground import ground
    from mnemic.edge.cli.bench_peers import load_peers, measure_peers
    from mnemic.edge.cli.bench_scale import PlannedEmbedder, document_of, fill, measure

    embedder = PlannedEmbedder()
    async with AsyncExitStack() as servers:
        with waiting("Starting PostgreSQL and Valkey"):
            made = await servers.enter_async_context(ground(embedder))
        with waiting("Filling the database"):
            places = await fill(made, embedder, asking.size)
        asked = sum(len(place.asked) for place in places)
        with counting("Asking", asked) as advance:
            await measure(made, places, progress=advance)
        skipped: list[str] = []
        if asking.peers:
            with waiting("Filling the peers"):
                peers, skipped = await load_peers(made, places, embedder)
            with counting("Asking the peers", asked * len(peers)) as advance:
                await measure_peers(peers, places, progress=advance)
        return document_of(places, asking.size, skipped)


async def crowded(data: Path, rows: int) -> dict[str, Any]:
    """The conversations of a folder among so many turns, in one scope, by the model that is set."""
    from mnemic.edge.cli.bench_crowd import admit, ask, ask_foreign, document_of, fill
    from mnemic.edge.cli.bench_ground import ground
    from mnemic.edge.cli.bench_retrieval_command import conversations_of
    from mnemic.embed import open_embedder
    from mnemic.settings_reading import read_settings

    given = read_settings(warns=False)
    conversations = conversations_of(data)
    async with AsyncExitStack() as servers:
        with waiting("Starting PostgreSQL and Valkey"):
            made = await servers.enter_async_context(ground(open_embedder(given.embedding)))
        with waiting("Filling the scope"):
            crowd = await fill(made, conversations, rows)
        with waiting("Asking about what is not there yet"):
            await ask_foreign(made, crowd, conversations)
            await admit(made, conversations)
        with counting("Asking", sum(len(one.questions) for one in conversations)) as advance:
            await ask(made, crowd, conversations, progress=advance)
        return document_of(crowd, made.tools.settings, made.tools.embedder.signature)
