"""Embedders: the offline model, and any OpenAI-compatible endpoint."""

from __future__ import annotations

from mnemic.embed.local import LocalEmbedder

__all__ = ["LocalEmbedder"]
