"""Servers to measure on: started for it, set up as in production, and thrown away."""

from __future__ import annotations

import asyncio
import random
import tempfile
from array import array
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from mnemic.embed.cached import CachedEmbedder
from mnemic.model.embedding import Embedder, ModelSignature, Vector
from mnemic.model.episode import EpisodeCreate
from mnemic.model.fact import FactCreate
from mnemic.model.procedure import ProcedureCreate, Step
from mnemic.model.scope import Scope
from mnemic.model.turn import TurnCreate

if TYPE_CHECKING:
    from mnemic.embedded import EmbeddedServers
    from mnemic.service.tools import Tools

__all__ = ["QUESTIONS", "DigestEmbedder", "Ground", "fill_scope", "ground", "throwaway"]

DATABASE = "mnemic_bench"
SEED = 20_260_302
VOCABULARY = 4_000
WORDS_A_MEMORY = 12
AT_ONCE = 8  # writers of the scope; as many connections are there
TURNS_A_SESSION = 50
VECTORS_CACHED_MAX = 4_096
QUESTIONS = (
    "When did word7 meet word90?",
    "What is known of word3?",
    "Who said word12 or word150?",
)


class DigestEmbedder:
    """A vector from the digest of a text: embedding is not what is measured."""

    signature = ModelSignature(name="digest", revision="1", dimensions=384)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        numbers = random.Random(sha256(text.encode()).digest())  # noqa: S311 - not a secret
        values = [numbers.gauss(0, 1) for _ in range(self.signature.dimensions)]
        length = sum(value * value for value in values) ** 0.5
        return array("f", [value / length for value in values])

    async def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What is measured on: the product's own tools, and where the servers are."""

    tools: Tools
    database_url: str
    """As the role that serves."""
    admin_url: str
    """As the administrator of the throwaway cluster, who sees every row."""
    redis_url: str
    owner_url: str | None = None
    """As the owner, who builds the indexes of large tenants."""


@asynccontextmanager
async def ground(embedder: Embedder | None = None) -> AsyncIterator[Ground]:
    """A migrated database on servers of its own, durable as in production; gone afterwards.

    Whatever servers are set are left alone. Without an embedder one gives vectors of digests.
    Raises `ServerUnavailable` with the remedy.
    """
    from mnemic.embedded import start
    from mnemic.settings import EmbeddedSettings

    with throwaway() as folder:
        servers = await asyncio.to_thread(start, EmbeddedSettings(data_dir=folder))
        try:
            async with _opened(servers, embedder or DigestEmbedder()) as made:
                yield made
        finally:
            await asyncio.to_thread(servers.close)


@contextmanager
def throwaway() -> Iterator[Path]:
    """A data folder for embedded servers, which have stopped when it goes, with all they kept."""
    from mnemic.embedded.layout import remove_home

    with tempfile.TemporaryDirectory(prefix="mnemic-bench-") as parent:
        Path(parent).chmod(0o755)  # root's servers run as another user
        folder = Path(parent) / "data"
        try:
            yield folder
        finally:
            remove_home(folder)  # below a folder that nobody else knows: no other user is left


@asynccontextmanager
async def _opened(servers: EmbeddedServers, inner: Embedder) -> AsyncIterator[Ground]:
    from pydantic import SecretStr

    from mnemic.settings import CacheSettings, MemorySettings
    from mnemic.store.roles import APP_ROLE, OWNER_ROLE, init
    from mnemic.store.upgrade import upgrade
    from mnemic.wiring import Wiring

    await init(servers.postgres_url(), database=DATABASE)
    await asyncio.to_thread(upgrade, servers.postgres_url(OWNER_ROLE, DATABASE))
    url = servers.postgres_url(APP_ROLE, DATABASE)
    embedder = CachedEmbedder(inner, entries_max=VECTORS_CACHED_MAX)
    settings = MemorySettings(
        database_url=SecretStr(url),
        redis_url=SecretStr(servers.redis_url),
        database_owner_url=None,
        cache=CacheSettings(recalls_max=0, facts_max=0),
    )
    wiring = Wiring(settings, embedder=embedder)
    tools = await wiring.open()
    try:
        yield Ground(
            tools,
            url,
            servers.postgres_url(database=DATABASE),
            servers.redis_url,
            servers.postgres_url(OWNER_ROLE, DATABASE),
        )
    finally:
        await wiring.close()


async def fill_scope(tools: Tools, scope: Scope, memories: int) -> None:
    """The scope holds so many memories, kept by the product's own verbs: a quarter of each kind.

    Their words are counted. Of fewer than four the kinds that come first are there.
    """
    from mnemic.service.maintain import count_due_terms

    numbers = random.Random(SEED)  # noqa: S311 - made-up talk, not a secret
    said = [_said(numbers) for _ in range(memories)]
    at = datetime(2026, 3, 2, 9, tzinfo=UTC)
    keep = _Keeper(tools, scope, at)
    ended = await keep.turns(said[0::4])
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, text: str) -> None:
        async with limit:
            await keep.other(number, text)

    async with asyncio.TaskGroup() as group:
        for number, text in enumerate(said):
            made = number % 4 == 1 and number // 4 < ended  # each session has made an episode
            if number % 4 and not made:
                group.create_task(one(number, text))
    await count_due_terms(tools)


def _said(numbers: random.Random) -> str:
    places = (int(VOCABULARY * numbers.random() ** 3) for _ in range(WORDS_A_MEMORY))
    return " ".join(f"word{place}" for place in places)


class _Keeper:
    """Keeps one memory after another in a scope."""

    def __init__(self, tools: Tools, scope: Scope, at: datetime) -> None:
        from mnemic.tier.sessions import Sessions
        from mnemic.tier.tiers import Tiers

        self._sessions = Sessions(tools)
        self._tiers = Tiers(tools, scope)
        self._scope = scope
        self._at = at

    async def turns(self, texts: Sequence[str]) -> int:
        """What was said, in sessions that have ended, each with its episode; how many they are."""
        for first in range(0, len(texts), TURNS_A_SESSION):
            turns = [
                TurnCreate(
                    actor="User" if number % 2 else "Assistant",
                    text=text,
                    occurred_at=self._at + timedelta(minutes=first + number),
                    external_id=str(first + number),
                )
                for number, text in enumerate(texts[first : first + TURNS_A_SESSION])
            ]
            session = self._scope.session(f"s{first}")
            await self._sessions.append(turns, scope=session)
            await self._sessions.end(scope=session)
        return -(-len(texts) // TURNS_A_SESSION)

    async def other(self, number: int, text: str) -> None:
        """An episode, a fact or a procedure, by its number."""
        await (self._episode, self._fact, self._procedure)[number % 4 - 1](number, text)

    async def _episode(self, _number: int, text: str) -> None:
        told = EpisodeCreate(task_description=text, occurred_at=self._at)
        await self._tiers.episodic.record_episode(told)

    async def _fact(self, number: int, text: str) -> None:
        fact = FactCreate(subject=f"thing {number}", predicate="noted", object=text)
        await self._tiers.semantic.store_fact(fact)

    async def _procedure(self, number: int, text: str) -> None:
        """Every second one has a trigger."""
        procedure = ProcedureCreate(
            name=f"{text} {number}",
            steps=(Step(action=text),),
            trigger_pattern=f"word{number}$" if number // 4 % 2 else None,
        )
        await self._tiers.procedural.record_procedure(procedure)
