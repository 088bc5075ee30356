"""A small server on loopback that speaks OpenAI's embeddings call, well or badly as told."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import pytest
import uvicorn

from mnemic.embed import OpenAIEmbedder

DIMENSIONS = 8

Body = dict[str, Any]
Answer = tuple[int, Any]


def raw_vector(text: str) -> list[float]:
    """What this server's model makes of a text: whole numbers, far from unit length."""
    return [float(1 + byte) for byte in sha256(text.encode()).digest()[:DIMENSIONS]]


def answer_with(vectors: list[Any], *, indices: list[Any] | None = None) -> Answer:
    places = indices if indices is not None else range(len(vectors))
    data = [
        {"object": "embedding", "index": place, "embedding": vector}
        for place, vector in zip(places, vectors, strict=True)
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return 200, {"object": "list", "model": "toy", "data": data, "usage": usage}


def floats(body: Body) -> Answer:
    return answer_with([raw_vector(text) for text in body["input"]])


def base64_floats(body: Body) -> Answer:
    packed = [struct.pack(f"<{DIMENSIONS}f", *raw_vector(text)) for text in body["input"]]
    return answer_with([base64.b64encode(raw).decode() for raw in packed])


def refusal(status: int, message: str) -> Answer:
    return status, {"error": {"message": message, "type": "invalid_request_error"}}


@dataclass
class Endpoint:
    """`answer` decides each answer; `bodies`, `keys` and `connections` tell what came."""

    url: str
    answer: Callable[[Body], Answer] = base64_floats
    headers: dict[str, str] = field(default_factory=dict)
    bodies: list[Body] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    connections: set[tuple[str, int]] = field(default_factory=set)
    held: threading.Event = field(default_factory=threading.Event)
    release: threading.Event | None = None

    raw_vector = staticmethod(raw_vector)
    answer_with = staticmethod(answer_with)
    floats = staticmethod(floats)
    refusal = staticmethod(refusal)

    @property
    def inputs(self) -> list[list[str]]:
        return [body["input"] for body in self.bodies]

    def always(self, answer: Answer) -> None:
        self.answer = lambda _: answer

    def hold(self) -> None:
        """From now on a request is answered only after `release.set()`."""
        self.release = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        content = b""
        more = True
        while more:
            message = await receive()
            content += message.get("body", b"")
            more = message.get("more_body", False)
        self.bodies.append(json.loads(content))
        self.keys.append(dict(scope["headers"]).get(b"authorization", b"").decode())
        self.connections.add(tuple(scope["client"]))
        self.held.set()
        if self.release is not None:
            await asyncio.to_thread(self.release.wait)
        status, payload = self.answer(self.bodies[-1])
        headers = {"content-type": "application/json"} | self.headers
        names = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": names})
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        await send({"type": "http.response.body", "body": raw})


class Listening:
    """A server on a port of its own, in a thread of its own; `endpoint` is changed each test."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self.endpoint = Endpoint(self.url)
        config = uvicorn.Config(
            self._serve, interface="asgi3", lifespan="off", log_level="critical", ws="none"
        )
        self._server = uvicorn.Server(config)
        # Requests wait in the listener's queue until the server is up.
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True
        )
        self._thread.start()

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        await self.endpoint(scope, receive, send)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=10)
        self._listener.close()


@pytest.fixture(scope="session")
def listening() -> Iterator[Listening]:
    listening = Listening()
    yield listening
    listening.close()


@pytest.fixture
def endpoint(listening: Listening) -> Iterator[Endpoint]:
    endpoint = listening.endpoint = Endpoint(listening.url)
    yield endpoint
    if endpoint.release is not None:
        endpoint.release.set()


@pytest.fixture(scope="session")
async def remote(listening: Listening) -> AsyncIterator[OpenAIEmbedder]:
    """An embedder of the endpoint that never retries; one for all, as a client takes 0.1 s."""
    embedder = OpenAIEmbedder(
        model="toy", dimensions=DIMENSIONS, base_url=listening.url, timeout_seconds=5, retry_max=0
    )
    yield embedder
    await embedder.close()
