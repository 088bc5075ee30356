"""Embedders: the offline model, and any OpenAI-compatible endpoint."""

from __future__ import annotations

from mnemic.embed.cached import CachedEmbedder
from mnemic.embed.local import LocalEmbedder
from mnemic.embed.minilm import DIMENSIONS, MODEL_NAME
from mnemic.embed.remote import OpenAIEmbedder
from mnemic.errors import ConfigurationError
from mnemic.model.embedding import Embedder
from mnemic.settings import EmbeddingSettings

__all__ = ["CachedEmbedder", "LocalEmbedder", "OpenAIEmbedder", "open_embedder"]


def open_embedder(settings: EmbeddingSettings) -> Embedder:
    """The embedder that the settings name, behind a cache; nothing is loaded or called yet.

    Raises `ConfigurationError` if the settings name a model that cannot be had this way.
    """
    return CachedEmbedder(_uncached(settings), entries_max=settings.cache_entries_max)


def _uncached(settings: EmbeddingSettings) -> Embedder:
    if settings.provider == "local":
        if settings.model != MODEL_NAME:
            raise ConfigurationError(
                f"embedding.model: the offline model is {MODEL_NAME}, not {settings.model}; "
                "leave it out, or set embedding.provider to openai"
            )
        if settings.dimensions != DIMENSIONS:
            raise ConfigurationError(
                f"embedding.dimensions: {MODEL_NAME} gives {DIMENSIONS}, not {settings.dimensions}"
            )
        return LocalEmbedder(threads=settings.threads, batch_max=settings.batch_max)
    if settings.model == MODEL_NAME:
        raise ConfigurationError(
            "embedding.model: name the endpoint's model, for example text-embedding-3-small"
        )
    return OpenAIEmbedder(
        model=settings.model,
        dimensions=settings.dimensions,
        base_url=settings.base_url,
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
        timeout_seconds=settings.timeout_seconds,
        retry_max=settings.retry_max,
        batch_max=settings.batch_max,
    )
