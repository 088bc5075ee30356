"""A cache of vectors in front of any embedder."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from hashlib import sha256
from typing import TypeAlias

from mnemic.embed.fork import renew_in_children
from mnemic.errors import EmbedderUnavailable
from mnemic.model.cache_counts import CacheCounts
from mnemic.model.embedding import Embedder, ModelSignature, Vector, checked_vector, encodable

__all__ = ["CachedEmbedder"]

_Key: TypeAlias = bytes
_Flight: TypeAlias = Future[Vector | None]


class CachedEmbedder:
    """The inner embedder, asked once for a text while it is among the last `entries_max`.

    Keys are digests of model signature and text. A text that several calls want at the same time
    is asked for by the first of them, also across loops and threads. If that call fails or is
    cancelled the others ask for themselves: nobody fails for somebody else's text. With
    `entries_max=0` nothing is kept. Vectors are shared; they are not to be changed.
    """

    def __init__(self, inner: Embedder, *, entries_max: int) -> None:
        self._inner = inner
        self._entries_max = entries_max
        self._renew()
        renew_in_children(self._renew)
        self._prefix = f"{inner.signature.key}\n".encode()
        self._hits = 0
        self._misses = 0

    @property
    def signature(self) -> ModelSignature:
        """The inner embedder's."""
        return self._inner.signature

    @property
    def in_process(self) -> bool:
        """Whether the inner embedder's model runs in this process."""
        return bool(getattr(self._inner, "in_process", False))

    @property
    def hits(self) -> int:
        """Texts answered without asking the model for them."""
        return self._hits

    @property
    def misses(self) -> int:
        """Texts that the model was asked for."""
        return self._misses

    def known(self, text: str) -> Vector | None:
        """The vector of a text that is kept; nobody is asked, and nothing is waited for."""
        key = self._key(text)
        with self._lock:
            if (vector := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                self._hits += 1
        return vector

    def counts(self) -> CacheCounts:
        """How often it helped."""
        with self._lock:
            return CacheCounts(hits=self._hits, misses=self._misses, entries=len(self._kept))

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order, as the inner embedder would give it: checked."""
        keys = [self._key(text) for text in texts]
        wanted = dict(zip(keys, texts, strict=True))
        found, own, joined = self._claim(list(wanted))
        with self._lock:
            self._hits += len(texts) - len(own)
        if own:
            found |= await self._fly(own, [wanted[key] for key in own])
        deserted: list[_Key] = []
        for key, flight in joined.items():
            vector = await asyncio.wrap_future(flight)
            if vector is None:
                deserted.append(key)
            else:
                found[key] = vector
        if deserted:
            found |= await self._ask(deserted, [wanted[key] for key in deserted])
        return [found[key] for key in keys]

    async def close(self) -> None:
        """The inner embedder is closed and nothing is kept."""
        with self._lock:
            self._kept.clear()
        await self._inner.close()

    def _key(self, text: str) -> _Key:
        return sha256(self._prefix + encodable(text).encode()).digest()

    def _renew(self) -> None:
        # Entries would be as good in a forked child, but may have been caught in mid-change.
        self._kept: OrderedDict[_Key, Vector] = OrderedDict()
        self._flights: dict[_Key, _Flight] = {}
        self._lock = threading.Lock()

    def _claim(
        self, keys: Sequence[_Key]
    ) -> tuple[dict[_Key, Vector], dict[_Key, _Flight], dict[_Key, _Flight]]:
        """What is kept, what this call must ask for, and what another is asking for already."""
        found: dict[_Key, Vector] = {}
        own: dict[_Key, _Flight] = {}
        joined: dict[_Key, _Flight] = {}
        with self._lock:
            for key in keys:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    found[key] = self._kept[key]
                elif key in self._flights:
                    joined[key] = self._flights[key]
                else:
                    flight: _Flight = Future()
                    # From here on a waiter that is cancelled cannot cancel it for the others.
                    flight.set_running_or_notify_cancel()
                    own[key] = self._flights[key] = flight
        return found, own, joined

    async def _fly(self, own: dict[_Key, _Flight], texts: Sequence[str]) -> dict[_Key, Vector]:
        """The vectors of this call's own texts; whoever waits for one learns how it ended."""
        landed: dict[_Key, Vector] = {}
        try:
            landed = await self._ask(list(own), texts)
        finally:
            with self._lock:
                for key in own:
                    del self._flights[key]
            for key, flight in own.items():
                flight.set_result(landed.get(key))
        return landed

    async def _ask(self, keys: Sequence[_Key], texts: Sequence[str]) -> dict[_Key, Vector]:
        with self._lock:
            self._misses += len(keys)
        vectors = await self._inner.embed(texts)
        if len(vectors) != len(keys):
            raise EmbedderUnavailable(
                f"the embedder gave {len(vectors)} vectors for {len(keys)} texts",
                expected=len(keys),
                got=len(vectors),
            )
        # Checked before they are kept: what is misshapen would be answered for ever.
        dimensions = self.signature.dimensions
        checked = [checked_vector(one, dimensions=dimensions) for one in vectors]
        landed = dict(zip(keys, checked, strict=True))
        with self._lock:
            self._kept.update(landed)
            while len(self._kept) > self._entries_max:
                self._kept.popitem(last=False)
        return landed
