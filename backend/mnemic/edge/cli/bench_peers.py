"""LangGraph's store and mem0 with the same turns on the same server, where they are installed.

Neither is a dependency. Each gets a database of its own beside ours, with the defaults that it
comes with, and the vectors that ours has. mem0 does not think (`infer=False`): its rows are written
by its own vector store, many at once, as adding one after another would take hours. Its rows have
no words to be found by, so that vectors alone decide, as with the others.
"""

from __future__ import annotations

import importlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from mnemic.edge.cli.bench_scale import DIMENSIONS, K, Place, PlannedEmbedder
from mnemic.edge.cli.writing import write_side

if TYPE_CHECKING:
    from mnemic.edge.cli.bench_ground import Ground
    from mnemic.store.measuring.scaling import Told

__all__ = ["Peer", "load_peers", "measure_peers"]

BATCH = 500
_Vectors = Callable[[str], list[float]]


class Peer(Protocol):
    """Another store of memories, as its own documentation uses it."""

    name: str

    def load(self, tenant: str, turns: Sequence[Told]) -> None:
        """The turns stand in the tenant's part of it."""

    def search(self, tenant: str, question: str) -> list[UUID]:
        """The ids of its first ten."""

    def close(self) -> None:
        """Nothing of it is open."""


class _LangGraph:
    name = "langgraph store"

    def __init__(self, url: str, vectors: _Vectors) -> None:
        store: Any = importlib.import_module("langgraph.store.postgres")
        self._put: Any = importlib.import_module("langgraph.store.base").PutOp
        index = {
            "dims": DIMENSIONS,
            "embed": lambda texts: [vectors(text) for text in texts],
            "fields": ["text"],
        }
        self._opened = store.PostgresStore.from_conn_string(url, index=index)
        self._store = self._opened.__enter__()
        self._store.setup()

    def load(self, tenant: str, turns: Sequence[Told]) -> None:
        for part in _parts(turns):
            self._store.batch(
                [self._put((tenant,), str(one.id), {"text": one.text}) for one in part]
            )

    def search(self, tenant: str, question: str) -> list[UUID]:
        found = self._store.search((tenant,), query=question, limit=K)
        return [UUID(item.key) for item in found]

    def close(self) -> None:
        self._opened.__exit__(None, None, None)


class _Planned:
    """What mem0 asks for vectors."""

    def __init__(self, vectors: _Vectors) -> None:
        self._vectors = vectors

    def embed(self, text: str, _action: str | None = None) -> list[float]:
        return self._vectors(text)


class _Mem0:
    name = "mem0"

    def __init__(self, url: str, vectors: _Vectors) -> None:
        os.environ["MEM0_TELEMETRY"] = "False"  # before it is imported
        self._folder = tempfile.TemporaryDirectory(prefix="mnemic-bench-mem0-")
        os.environ["MEM0_DIR"] = self._folder.name
        memory: Any = importlib.import_module("mem0").Memory
        store = {
            "connection_string": url,
            "collection_name": "turns",
            "embedding_model_dims": DIMENSIONS,
        }
        unused = {"provider": "openai", "config": {"api_key": "unused"}}
        self._memory = memory.from_config(
            {
                "vector_store": {"provider": "pgvector", "config": store},
                "llm": unused,
                "embedder": unused,
                "history_db_path": f"{self._folder.name}/history.db",
            }
        )
        self._memory.embedding_model = _Planned(vectors)

    def load(self, tenant: str, turns: Sequence[Told]) -> None:
        for part in _parts(turns):
            self._memory.vector_store.insert(
                vectors=[one.vector for one in part],
                payloads=[{"data": one.text, "user_id": tenant} for one in part],
                ids=[str(one.id) for one in part],
            )

    def search(self, tenant: str, question: str) -> list[UUID]:
        found = self._memory.search(question, filters={"user_id": tenant}, top_k=K, threshold=0.0)
        return [UUID(one["id"]) for one in found["results"]]

    def close(self) -> None:
        self._memory.vector_store.connection_pool.close()
        self._folder.cleanup()


# What is imported, what is to be installed for it, and who asks it.
_PEERS: tuple[tuple[str, str, Callable[[str, _Vectors], Peer]], ...] = (
    ("langgraph.store.postgres", "langgraph-checkpoint-postgres psycopg[binary]", _LangGraph),
    ("mem0", "mem0ai psycopg[binary,pool]", _Mem0),
)


def _parts(turns: Sequence[Told]) -> Iterator[Sequence[Told]]:
    for first in range(0, len(turns), BATCH):
        yield turns[first : first + BATCH]


async def load_peers(
    made: Ground, places: Sequence[Place], embedder: PlannedEmbedder
) -> tuple[list[Peer], list[str]]:
    """Those that are installed hold what ours holds; why the others were left out is said aloud."""
    from mnemic.store.measuring.scaling import beside, rows_of

    said: dict[str, list[float]] = {}

    def vectors(text: str) -> list[float]:
        return said.get(text) or list(embedder.planned[text])

    peers: list[Peer] = []
    skipped = []
    for module, packages, make in _PEERS:
        if find_spec(module.partition(".")[0]) is None:
            skipped.append(f"{module} is not installed: pip install {packages}")
            write_side(f"SKIPPED: {skipped[-1]}")
            continue
        peers.append(make(await beside(made.admin_url, f"peer_{len(peers)}"), vectors))
    model = (await made.tools.live_model()).id
    for place in places if peers else ():
        for owner in place.owners:
            turns = await rows_of(made.admin_url, owner.scope, model=model)
            said.update((one.text, one.vector) for one in turns)
            for peer in peers:
                peer.load(owner.scope.tenant.external_id, turns)
            said.clear()
    return peers, skipped


async def measure_peers(
    peers: Sequence[Peer], places: Sequence[Place], *, progress: Callable[[int], None]
) -> None:
    """Every question is asked of every peer; afterwards they are closed."""
    for peer in peers:
        for place in places:
            for one in place.asked:
                began = time.perf_counter()
                found = peer.search(one.scope.tenant.external_id, one.text)
                place.note(peer.name, time.perf_counter() - began, found, one)
                progress(1)
        peer.close()
