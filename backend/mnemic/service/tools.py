"""What every verb is handed: time, randomness, models and connections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self, TypeVar
from uuid import UUID

import structlog
from pydantic import SecretStr

from mnemic.embed.cached import CachedEmbedder
from mnemic.errors import (
    ConfigurationError,
    EmbedderUnavailable,
    EmbeddingMismatch,
    MnemicError,
)
from mnemic.model.embedding import DIMENSIONS_MAX, Embedder, Vector, checked_vector
from mnemic.model.moment import Moment
from mnemic.model.reranker import Reranker
from mnemic.model.scope import Scope, TenantId
from mnemic.model.token_count import EstimatedTokens, TokenCounter
from mnemic.service.caches import Caches
from mnemic.settings import CacheSettings, MemorySettings
from mnemic.store.embedding_models import RegisteredModel
from mnemic.store.unit import Database, Unit
from mnemic.store.working.opening import WorkingPlaces
from mnemic.think import Thinker

__all__ = ["Tools"]

T = TypeVar("T")
_TENANTS_NOTED_MAX = 10_000
_SCOPES_NOTED_MAX = 10_000
# A past prompt is rebuilt for whoever asks why, not within an agent's turn.
_PAST_DEADLINE_MS = 10_000
log = structlog.get_logger("mnemic")


@dataclass(slots=True, kw_only=True)
class Tools:
    """Built once by `wiring`; a replay with the same tools gives the same bytes."""

    settings: MemorySettings
    database: Database
    embedder: Embedder
    thinker: Thinker
    working: WorkingPlaces
    clock: Callable[[], datetime]
    new_id: Callable[[], UUID]
    counter: TokenCounter = field(default_factory=EstimatedTokens)
    reranker: Reranker | None = None
    owner_url: str | SecretStr | None = None
    moment: Moment | None = None
    caches: Caches = field(default_factory=lambda: Caches(CacheSettings()))
    ahead: int = 0
    """How many questions are being embedded before it is known whom they name."""
    _live_model: RegisteredModel | None = None
    _written: Counter[TenantId] = field(default_factory=Counter)
    _named: set[UUID] = field(default_factory=set)

    def now(self) -> datetime:
        """The time, in UTC."""
        return self.clock()

    async def transact(
        self,
        tenant: TenantId | None,
        work: Callable[[Unit], Awaitable[T]],
        *,
        read_only: bool = False,
        keep_plans: bool = False,
    ) -> T:
        """`work` in one transaction of `tenant`; see `Database.transact`.

        The statements of the past have no kept plans: what they read depends on the moment.
        """
        moment = None if tenant is None else self.moment
        return await self.database.transact(
            tenant,
            work,
            read_only=read_only,
            moment=moment,
            keep_plans=keep_plans and moment is None,
        )

    def at(self, moment: Moment) -> Self:
        """Tools that read what was known and true then, by the clock of then; they write nothing.

        Without any time in it they are the same.
        """
        if moment == Moment():
            return self
        known_at = moment.known_at
        clock = self.clock if known_at is None else lambda: known_at
        patience = max(self.settings.context.deadline_ms, _PAST_DEADLINE_MS)
        context = self.settings.context.model_copy(update={"deadline_ms": patience})
        settings = self.settings.model_copy(update={"context": context})
        return replace(self, moment=moment, clock=clock, settings=settings)

    async def live_model(self) -> RegisteredModel:
        """The registered model that answers; the embedder's own if none ever was.

        Raises `EmbeddingMismatch` if the stored vectors were made by another model than the one
        that is set: their vectors cannot be compared. Raises `ConfigurationError` if the
        embedder's vectors fit no index.
        """
        if self._live_model is None:
            signature = self.embedder.signature
            if not 1 <= signature.dimensions <= DIMENSIONS_MAX:
                raise ConfigurationError(
                    f"The embedder's vectors have {signature.dimensions:,} numbers; the index "
                    f"takes 1 to {DIMENSIONS_MAX:,}. Let the model give shorter ones."
                )

            async def registered(unit: Unit) -> RegisteredModel | None:
                if (found := await unit.models.live()) is None:
                    await unit.models.register(signature)
                    found = await unit.models.live()
                return found

            live = await self.transact(None, registered)
            if live is None or live.signature != signature.key:
                raise EmbeddingMismatch(
                    f"The vectors here were made with {live.signature if live else 'no model'}, "
                    f"but MEM_EMBEDDING__MODEL gives {signature.key}; set the model back.",
                )
            self._live_model = live
        return self._live_model

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One unit vector a text, checked whichever embedder it comes from.

        Those of a cache are the cache's own, which are not to be changed.

        Raises `EmbedderUnavailable` for a wrong number of vectors, one that is misshapen, and
        whatever fault the embedder has of its own.
        """
        try:
            made = await self.embedder.embed(texts)
        except MnemicError:
            raise
        except Exception as fault:  # a host's own embedder fails in its own ways
            # Not in its words, which may quote what it was given.
            raise EmbedderUnavailable(f"the embedder failed: {type(fault).__name__}") from fault
        if len(made) != len(texts):
            raise EmbedderUnavailable(expected=len(texts), got=len(made))
        if isinstance(self.embedder, CachedEmbedder):
            return made  # they were checked before they were kept
        dimensions = self.embedder.signature.dimensions
        return [checked_vector(one, dimensions=dimensions) for one in made]

    async def vectors(self, texts: Sequence[str]) -> list[Vector] | None:
        """One vector a text, or nothing when the embedder is down: rows are kept without."""
        if not texts:
            return []
        try:
            return await self.embed(texts)
        except EmbedderUnavailable as fault:
            log.warning("embedding_unavailable", texts=len(texts), reason=str(fault))
            return None

    def known_vector(self, text: str) -> Vector | None:
        """The vector of a text that was embedded lately, without asking the embedder for it."""
        return self.embedder.known(text) if isinstance(self.embedder, CachedEmbedder) else None

    @property
    def embeds_here(self) -> bool:
        """Whether the model runs in this process: it is soon done, and nobody is paid for it."""
        return bool(getattr(self.embedder, "in_process", False))

    def named_lately(self, scope: Scope) -> bool:
        """Whether the last question in the scope named somebody who speaks there."""
        return scope.id in self._named

    def note_named(self, scope: Scope, *, named: bool) -> None:
        """A question was asked in the scope, which named somebody or nobody."""
        if not named:
            self._named.discard(scope.id)
        else:
            if len(self._named) >= _SCOPES_NOTED_MAX:
                self._named.clear()
            self._named.add(scope.id)

    @property
    def known_model(self) -> RegisteredModel | None:
        """The `live_model`, if it was asked for before."""
        return self._live_model

    def written_since_count(self, tenant: TenantId, written: int | None) -> int:
        """How many memories this process wrote for the tenant since it last counted words.

        `written` more were written; nothing means that they are counted now.
        """
        if written is None:
            self._written.pop(tenant, None)
            return 0
        self._written[tenant] += written
        if len(self._written) > _TENANTS_NOTED_MAX:
            self._written.clear()
        return self._written[tenant]
