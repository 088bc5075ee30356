"""Any endpoint that speaks OpenAI's embeddings call.

A server is not trusted to answer well: vectors are put in order by their own index, an answer
that does not hold exactly one for every text is refused whole, and every vector is checked. One
text that the server refuses is found by halving the batch, and cut until the server takes it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from mnemic.embed.fork import renew_in_children
from mnemic.errors import ConfigurationError, EmbedderUnavailable
from mnemic.model.embedding import ModelSignature, Vector, checked_vector, encodable
from mnemic.model.normalise import is_blank

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI
    from openai.types import Embedding

__all__ = ["OpenAIEmbedder"]

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"
NO_KEY: Final = "none"
"""Sent to a server that wants no key; without it the client would send one of the environment."""
BLANK: Final = "-"
"""Stands for a blank text, which the endpoint refuses and which would fail its neighbours."""
CHARS_MIN: Final = 512
"""A text this short is refused for another reason than its length."""
HALVINGS_MAX: Final = 10
DETAIL_CHARS_MAX: Final = 300
CLOSE_SECONDS: Final = 2.0

_REFUSED: Final = frozenset({400, 413, 422})
_BUSY: Final = frozenset({408, 409, 425, 429})
_REMEDIES: Final = {
    401: "check embedding.api_key",
    403: "check embedding.api_key and what it may use",
    404: "check embedding.model and embedding.base_url",
}


class _TextsRefused(Exception):
    """The server understood the call and does not want these texts: they are tried in parts."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class OpenAIEmbedder:
    """An embedding model behind an OpenAI-compatible endpoint; one client a running loop.

    Raises `ConfigurationError` if the `openai` package is missing, or if no key is set for
    OpenAI's own endpoint.
    """

    def __init__(
        self,
        *,
        model: str,
        dimensions: int,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_seconds: float = 10,
        retry_max: int = 2,
        batch_max: int = 64,
    ) -> None:
        if find_spec("openai") is None:
            raise ConfigurationError(
                "embedding.provider is openai, and its client is not installed: "
                "run `pip install 'mnemic[openai]'`"
            )
        if base_url is None and api_key is None:
            raise ConfigurationError(
                "set embedding.api_key for OpenAI, or embedding.base_url for another endpoint"
            )
        self._signature = ModelSignature(model, "remote", dimensions)
        self._base_url = DEFAULT_BASE_URL if base_url is None else base_url
        self._host = _host_of(self._base_url)
        self._api_key = api_key or NO_KEY
        self._timeout_seconds = timeout_seconds
        self._retry_max = retry_max
        self._batch_max = batch_max
        self._names_dimensions = True
        self._renew()
        renew_in_children(self._renew)

    @property
    def signature(self) -> ModelSignature:
        """The model's name at "remote": who serves it, and from where, is not known."""
        return self._signature

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order; a text beyond the model's window by its beginning.

        Raises `EmbedderUnavailable` for what may pass (no connection, too slow, too busy, vectors
        that cannot be used), `ConfigurationError` for what a setting must cure.
        """
        sendable = [BLANK if is_blank(text) else encodable(text) for text in texts]
        vectors: list[Vector] = []
        for start in range(0, len(sendable), self._batch_max):
            vectors += await self._embed_batch(sendable[start : start + self._batch_max])
        return vectors

    async def close(self) -> None:
        """Every client is closed, in the loop that it belongs to."""
        with self._opening:
            endings = list(self._endings.items())
            self._clients.clear()
            self._endings.clear()
        here = asyncio.get_running_loop()
        for loop, ending in endings:
            if loop is here:
                await ending.aclose()
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(_close(ending), loop)
                # A loop that does not come round to it is left with its client.
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.wrap_future(closing), CLOSE_SECONDS)

    def _renew(self) -> None:
        # Clients belong to loops, and a loop does not run in a forked child.
        self._clients: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}
        self._endings: dict[asyncio.AbstractEventLoop, AsyncGenerator[None, None]] = {}
        self._opening = threading.Lock()

    async def _embed_batch(self, texts: list[str]) -> list[Vector]:
        try:
            return await self._request(texts)
        except _TextsRefused as refusal:
            if len(texts) == 1:
                return [await self._embed_shortened(texts[0], refusal)]
        middle = len(texts) // 2
        first = await self._embed_batch(texts[:middle])
        return first + await self._embed_batch(texts[middle:])

    async def _embed_shortened(self, text: str, refusal: _TextsRefused) -> Vector:
        for _ in range(HALVINGS_MAX):
            if len(text) <= CHARS_MIN:
                break
            text = text[: len(text) // 2]
            try:
                return (await self._request([text]))[0]
            except _TextsRefused as again:
                refusal = again
        raise EmbedderUnavailable(
            f"the embedding endpoint refuses a text (HTTP {refusal.status}): {refusal}",
            status=refusal.status,
        )

    async def _request(self, texts: list[str]) -> list[Vector]:
        """The vectors of one call. Raises `_TextsRefused`."""
        try:
            return await self._call(texts, names_dimensions=self._names_dimensions)
        except _TextsRefused as refusal:
            if not self._names_dimensions or "dimensions" not in str(refusal):
                raise
        # A model of one size refuses to be told it; what it gives is checked all the same.
        vectors = await self._call(texts, names_dimensions=False)
        self._names_dimensions = False
        return vectors

    async def _call(self, texts: list[str], *, names_dimensions: bool) -> list[Vector]:
        import openai  # noqa: PLC0415 - an extra, and slow to import

        client = await self._client()
        dimensions = self._signature.dimensions if names_dimensions else openai.omit
        try:
            # The client would wait two minutes if the server asks for it; a recall cannot.
            async with asyncio.timeout(self._timeout_seconds * (self._retry_max + 1)):
                answer = await client.embeddings.create(
                    model=self._signature.name, input=texts, dimensions=dimensions
                )
                return self._ordered(answer.data, count=len(texts))
        except openai.APIStatusError as fault:
            raise _translated(fault) from fault
        except (TimeoutError, openai.APIConnectionError) as fault:
            raise EmbedderUnavailable(
                f"the embedding endpoint at {self._host} cannot be reached in time "
                f"({type(fault).__name__})",
                host=self._host,
            ) from fault
        except EmbedderUnavailable:
            raise
        except Exception as fault:  # whatever parses the answer, its bytes can be any
            raise EmbedderUnavailable(
                "the embedding endpoint does not answer in OpenAI's form; "
                f"check embedding.base_url ({type(fault).__name__})"
            ) from fault

    def _ordered(self, items: Sequence[Embedding], *, count: int) -> list[Vector]:
        by_index = {item.index: item.embedding for item in items}
        if len(items) != count or set(by_index) != set(range(count)):
            raise EmbedderUnavailable(
                f"the embedding endpoint gave {len(items)} vectors for {count} texts",
                expected=count,
                got=len(items),
            )
        return [
            checked_vector(by_index[place], dimensions=self._signature.dimensions)
            for place in range(count)
        ]

    async def _client(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        with self._opening:
            found = self._clients.get(loop)
            if found is not None:
                return found
            from openai import AsyncOpenAI  # noqa: PLC0415 - an extra, and slow to import

            # Weak keys would never go: a client refers to its loop.
            for gone in [known for known in self._clients if known.is_closed()]:
                del self._clients[gone], self._endings[gone]
            client = AsyncOpenAI(
                base_url=self._base_url,
                api_key=self._api_key,
                timeout=self._timeout_seconds,
                max_retries=self._retry_max,
            )
            self._clients[loop] = client
            self._endings[loop] = ending = _closed_at_the_end(client)
        await anext(ending)
        return client


async def _closed_at_the_end(client: AsyncOpenAI) -> AsyncGenerator[None, None]:
    """The client is closed with this, and a loop that ends well closes what it began.

    Else a client whose loop is gone would be closed by a task of another one, and fail.
    """
    try:
        yield
    finally:
        await client.close()


async def _close(ending: AsyncGenerator[None, None]) -> None:
    await ending.aclose()


def _host_of(base_url: str) -> str:
    """The part of the address that may stand in a message: no user, no password, no path."""
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigurationError(
            "embedding.base_url must start with http:// or https:// and name a host"
        )
    return parts.hostname


def _translated(fault: APIStatusError) -> Exception:
    status = fault.status_code
    detail = fault.message[:DETAIL_CHARS_MAX]
    if status in _REFUSED:
        return _TextsRefused(status, detail)
    if status in _BUSY or status >= 500:  # noqa: PLR2004 - HTTP: the server's own fault
        return EmbedderUnavailable(
            f"the embedding endpoint is not serving (HTTP {status}): {detail}", status=status
        )
    remedy = _REMEDIES.get(status, "check embedding.base_url")
    return ConfigurationError(
        f"the embedding endpoint refuses the call (HTTP {status}): {detail}; {remedy}",
        status=status,
    )
