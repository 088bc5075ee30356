"""How often the caches of this process helped."""

from __future__ import annotations

from mnemic.embed.cached import CachedEmbedder
from mnemic.model.cache_counts import CacheCounts
from mnemic.service.tools import Tools

__all__ = ["cache_counts"]


def cache_counts(tools: Tools) -> dict[str, CacheCounts]:
    """Of `vectors`, `recalls` and surest `facts`; a host's own embedder counts for itself."""
    embedder = tools.embedder
    vectors = embedder.counts() if isinstance(embedder, CachedEmbedder) else CacheCounts()
    caches = tools.caches
    return {
        "vectors": vectors,
        "recalls": caches.recalls.counts(),
        "facts": caches.facts.counts(),
    }
