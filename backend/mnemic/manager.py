"""The front door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack
from uuid import UUID

from mnemic.errors import MnemicError
from mnemic.model.context import Context, ContextForm
from mnemic.model.explanation import WhyNot
from mnemic.model.fact import FactCreate
from mnemic.model.filters import Filter
from mnemic.model.recall import Recall
from mnemic.model.receipt import Receipt
from mnemic.model.scope import Scope
from mnemic.service.context import context
from mnemic.service.forget import Forgotten, forget
from mnemic.service.memory_input import MemoryOptions, parse_fact, parse_memory
from mnemic.service.parsing import checked_flag, checked_given, checked_moment
from mnemic.service.recall import parse_query
from mnemic.service.recall_again import recall_again
from mnemic.service.record_fact import record_facts
from mnemic.service.remember import remember
from mnemic.service.tool_affinities import tool_affinities
from mnemic.service.tools import Tools
from mnemic.service.why_not import why_not
from mnemic.settings import MemorySettings
from mnemic.settings_reading import read_settings
from mnemic.tier.grants import Grants
from mnemic.tier.lifecycle import Lifecycle
from mnemic.tier.maintenance import Maintenance
from mnemic.tier.sessions import Sessions
from mnemic.tier.tiers import Tiers
from mnemic.tier.transcripts import Transcripts
from mnemic.wiring import Wiring, embedded_settings

__all__ = ["MemoryManager"]


class MemoryManager:
    """Memory for agents. Open it once a process and inject it.

    ```python
    async with MemoryManager.open() as memory:
        await memory.remember("Deploys are frozen on Fridays", scope=Scope.user("u-17"))
        found = await memory.recall("can I deploy today?", scope=Scope.user("u-17"))
    ```

    Every method is safe to call from many tasks at once. All of them raise `InvalidInput` for what
    cannot be held (naming the field and the remedy) and `Unavailable`, which is safe to retry, when
    a part that is needed is away.
    """

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._opened: Tools | None = None

    @classmethod
    def open(cls, settings: MemorySettings | None = None) -> Self:
        """A manager on the servers that `settings` names, or on embedded ones for what it does not.

        Use it with `async with`, or call `start` and `close`. Without `settings` they are read from
        the environment; `ConfigurationError` lists what is wrong there.
        """
        chosen = read_settings() if settings is None else settings
        return cls(Wiring(checked_given(chosen, MemorySettings, field="settings")))

    @classmethod
    def embedded(cls, data_dir: Path | str) -> Self:
        """A manager on embedded servers whose data lies in `data_dir`, whatever the environment."""
        return cls(Wiring(embedded_settings(data_dir)))

    @staticmethod
    def null() -> MemoryManager:
        """A manager that remembers nothing, for services that run without memory."""
        from mnemic.null import NullMemoryManager  # noqa: PLC0415 - it is one of these itself

        return NullMemoryManager()

    async def start(self) -> Self:
        """The servers are reached, their schema fits, and memory is ready.

        Raises `ConfigurationError` with the remedy if the role or the schema is not fit to serve,
        `Unavailable` if a server is away.
        """
        self._opened = await self._wiring.open()
        return self

    async def close(self) -> None:
        """Every connection is closed; embedded servers stop when their last user closes."""
        self._opened = None
        await self._wiring.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def _tools(self) -> Tools:
        if self._opened is None:
            raise MnemicError("The manager is not open; use `async with MemoryManager.open(…)`.")
        return self._opened

    async def remember(
        self,
        content: str,
        *,
        scope: Scope,
        memory_type: str = "semantic",
        **options: Unpack[MemoryOptions],
    ) -> Receipt:
        """The memory is committed in `scope`; the receipt says where and how safely.

        `memory_type` is "semantic" (statements; equal knowledge reinforces), "episodic" (what
        happened), "procedural" (a name, then numbered or bulleted steps) or "working" (the value
        of `key`, made if absent, for `ttl_seconds`). Further keywords:
        `importance` (0 to 1), `outcome`, `occurred_at` (with a zone), `metadata`, `tags`,
        `trust`, `source`, `lift` (take back what was forgotten here) and `idempotency_key`: the
        same key with the same content gives the first receipt again, with another content it
        raises `Conflict`. Raises `Retracted` for what was forgotten here.
        """
        memory = parse_memory(self._tools, content, memory_type, **options)
        return await remember(self._tools, memory, scope=scope)

    async def store_fact(
        self, fact: FactCreate, *, scope: Scope, **options: Unpack[MemoryOptions]
    ) -> Receipt:
        """The statement is live in `scope`; an equal one is reinforced.

        A new value of a single-valued predicate closes the old one. Keywords as for `remember`.
        """
        memory = parse_fact(self._tools, fact, **options)
        return await record_facts(self._tools, [fact], memory, scope=scope)

    async def recall(  # noqa: PLR0913 - each narrows the question
        self,
        query: str,
        *,
        scope: Scope,
        limit: int | None = None,
        memory_types: Sequence[str] | None = None,
        floor: float | None = None,
        filters: Filter | Mapping[str, Any] | None = None,
        explain: bool = False,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
    ) -> Recall:
        """The memories visible from `scope` that answer `query`, best first, with reasons.

        At most `limit` (default `recall.limit_default`, cut to `recall.limit_max` with a note);
        of `memory_types` ("episodic", "semantic", "procedural"; all by default); none that scores
        below `floor` (default `recall.score_floor`); only those that pass `filters`, such as
        `{"outcome": "success"}` or `where("outcome").eq("success")` (the query may be "" then).
        `Recall.degraded` names what was not searched. With `explain` the answer tells how it was
        searched, and what each arm of the search found; with `as_of` what was true then, with
        `known_at` of what was known then.
        """
        tools = self._tools.at(checked_moment(as_of, known_at))
        told = checked_flag(explain, field="explain")
        asked = partial(parse_query, tools, query, limit=limit, floor=floor, filters=filters)
        checked, notes = asked(memory_types=memory_types)
        return await recall_again(tools, checked, scope=scope, notes=notes, explain=told)

    async def why_not(
        self,
        query: str,
        memory_id: UUID,
        *,
        scope: Scope,
        limit: int | None = None,
        memory_types: Sequence[str] | None = None,
        floor: float | None = None,
        filters: Filter | Mapping[str, Any] | None = None,
    ) -> WhyNot:
        """Why a `recall` with these arguments does not answer with this memory, if it does not.

        The first stage that dropped it, with its score and its place in each arm of the search.
        Raises `NotFound` for an id that is not visible from `scope`.
        """
        checked, _ = parse_query(
            self._tools,
            query,
            limit=limit,
            memory_types=memory_types,
            floor=floor,
            filters=filters,
        )
        return await why_not(self._tools, checked, memory_id, scope=scope)

    async def context(
        self,
        query: str,
        *,
        scope: Scope,
        budget: int | str | None = None,
        form: ContextForm | str = ContextForm.MARKDOWN,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
    ) -> Context:
        """A prompt section about `query` of at most `budget` tokens, whole items.

        `budget` is a number of tokens, "recall" (1,500) or "deep" (4,000); by default 300. `form`
        is "text", "markdown", "xml", "json" or "messages", and the budget holds for the text in
        it. What anybody may have written is data, in frames that nothing in it can leave; only
        what was approved stands as an instruction. When memory is away or late the section is
        empty and says why in `degraded`. `as_of` and `known_at`, both with the time of a past call,
        rebuild what it gave, byte for byte, but for what was forgotten since.
        """
        tools = self._tools.at(checked_moment(as_of, known_at))
        return await context(tools, query, scope=scope, budget=budget, form=form)

    async def tool_affinities(self, scope: Scope) -> dict[str, float]:
        """What is known of tools by their names: confidence that one suits, or minus that it fails.

        Of the strongest `context.tool_affinities_max`, the strongest first; for a catalogue to
        break ties by. What came from outside (trust beyond inferred) counts for nothing.
        """
        return await tool_affinities(self._tools, scope=scope)

    async def forget(
        self,
        ids: Sequence[UUID],
        *,
        scope: Scope,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Forgotten:
        """The memories of exactly these ids are gone, all or none, and refused from now on.

        So are facts that rested on them alone; the episode of a session is told anew without what
        was said there.
        Raises `NotFound` for an id that is not visible from `scope`, `Forbidden` for one that
        stands in a wider scope without a grant.
        """
        return await forget(self._tools, ids, scope=scope, reason=reason, key=idempotency_key)

    def at(self, scope: Scope) -> Tiers:
        """The tiers of one scope: `working`, `episodic`, `semantic`, `procedural`."""
        return Tiers(self._tools, scope)

    @property
    def grants(self) -> Grants:
        """Who may write above his own scope."""
        return Grants(self._tools)

    @property
    def sessions(self) -> Sessions:
        """Start, append, pause, resume, end."""
        return Sessions(self._tools)

    @property
    def lifecycle(self) -> Lifecycle:
        """Hooks: spawn, pause, resume, terminate."""
        return Lifecycle(self._tools)

    @property
    def transcripts(self) -> Transcripts:
        """Ingest conversations that were held elsewhere."""
        return Transcripts(self._tools)

    @property
    def maintenance(self) -> Maintenance:
        """What the worker runs."""
        return Maintenance(self._tools)

    @property
    def settings(self) -> MemorySettings:
        """What was set."""
        return self._wiring.settings
