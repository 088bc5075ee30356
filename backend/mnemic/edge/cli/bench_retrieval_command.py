"""`mnemic bench retrieval`, from its options to its document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mnemic.edge.cli.bench_questions import Conversation, read_conversations
from mnemic.edge.cli.progress import counting
from mnemic.model.transcript import Bounds

__all__ = ["ablated", "conversations_of", "retrieved"]


def conversations_of(data: Path) -> list[Conversation]:
    """The conversations of a folder, as long as the settings let texts be."""
    from mnemic.settings_reading import read_settings

    limits = read_settings(warns=False).limits  # opening memory tells
    bounds = Bounds(
        text_chars_max=limits.text_chars_max,
        metadata_bytes_max=limits.metadata_bytes_max,
        tags_max=limits.tags_max,
    )
    return list(read_conversations(data, bounds=bounds))


async def retrieved(data: Path, *, together: bool) -> dict[str, Any]:
    """Each conversation in a project of its own, or all in one, asked through the public calls."""
    from mnemic.edge.cli.bench_confidence import Curve, curve_of
    from mnemic.edge.cli.bench_retrieval import (
        Asked,
        ask,
        ask_foreign,
        document_of,
        load,
        memory_to_measure,
        project_of,
    )

    conversations = conversations_of(data)
    asked: list[Asked] = []
    async with memory_to_measure() as (memory, exact, embedder):
        with counting("Loading", len(conversations)) as advance:
            for one in conversations:
                await load(memory, one, project_of(one, together=together))
                advance(1)
        await memory.maintenance.promote_vectors()
        with counting("Asking", sum(len(one.questions) for one in conversations)) as advance:
            for one in conversations:
                scope = project_of(one, together=together)
                asked += await ask(memory, exact, embedder, one, scope, progress=advance)
        foreign = [] if together else await ask_foreign(memory, conversations)
    curve = Curve(
        judged=[*(one.judged for one in asked), *foreign],
        cosines=[value for one in asked for value in one.cosines],
    )
    return document_of(
        asked,
        skipped=sum(one.skipped for one in conversations),
        conversations=len(conversations),
        curve=curve_of(curve, memory.settings, embedder.signature),
    )


async def ablated(data: Path) -> dict[str, Any]:
    """The score without each of its parts, and with others, on two halves of the conversations."""
    from mnemic.edge.cli.bench_ablation import VARIANTS, document_of, staged, tried
    from mnemic.embed import open_embedder
    from mnemic.settings_reading import read_settings

    settings = read_settings(warns=False)
    conversations = conversations_of(data)
    embedder = open_embedder(settings.embedding.model_copy(update={"cache_entries_max": 0}))
    try:
        halves = staged(conversations, embedder, terms_max=settings.limits.query_terms_max)
        with counting("Trying", len(VARIANTS)) as advance:
            figures = await tried(halves, VARIANTS, progress=advance)
    finally:
        await embedder.close()
    return document_of(halves, figures)
