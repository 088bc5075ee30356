"""The offline embedder: one model a process, shared by every loop and thread."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence

from mnemic.embed.minilm import SIGNATURE, MiniLM
from mnemic.errors import EmbedderUnavailable, MnemicError
from mnemic.model.embedding import ModelSignature, Vector

__all__ = ["LocalEmbedder"]

# A session may hold threads, and no thread survives a fork: each process loads its own. What a
# child inherits is left alone, for taking it down would wait for threads that are not there.
_models: dict[tuple[int, int], MiniLM] = {}
_loading = threading.Lock()


def _renew_lock() -> None:
    global _loading  # noqa: PLW0603 - a lock held by another thread while forking stays locked
    _loading = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def _model(threads: int) -> MiniLM:
    key = (os.getpid(), threads)
    found = _models.get(key)
    if found is not None:
        return found
    with _loading:
        if key not in _models:
            _models[key] = MiniLM(threads=threads)
        return _models[key]


def _vectors(texts: Sequence[str], threads: int) -> list[Vector]:
    try:
        return _model(threads).vectors(texts)
    except MnemicError:
        raise
    except Exception as fault:  # onnxruntime's errors have no other base
        raise EmbedderUnavailable(f"the offline model failed: {fault}") from fault


class LocalEmbedder:
    """MiniLM in this process, loaded on first use.

    A text is embedded by its first 256 tokens, some 190 English words. `batch_max` bounds the texts
    that one thread works on at a time: a cancelled call ends between two batches.
    """

    in_process = True
    """No network is waited for, and what is embedded for nothing costs this processor alone."""

    def __init__(self, *, threads: int = 1, batch_max: int = 64) -> None:
        self._threads = threads
        self._batch_max = batch_max

    @property
    def signature(self) -> ModelSignature:
        """all-MiniLM-L6-v2-int8, at the digest of its weights."""
        return SIGNATURE

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order; worked out in a thread, so the loop stays free.

        Raises `ConfigurationError` if the model's files are missing or not the ones this release
        was made with, `EmbedderUnavailable` if the model fails.
        """
        vectors: list[Vector] = []
        for start in range(0, len(texts), self._batch_max):
            batch = texts[start : start + self._batch_max]
            vectors += await asyncio.to_thread(_vectors, batch, self._threads)
        return vectors

    async def close(self) -> None:
        """Nothing to do: the model belongs to the process and serves its other embedders."""
