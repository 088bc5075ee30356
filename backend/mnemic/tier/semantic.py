"""Semantic memory: what is known, why, and since when."""

from __future__ import annotations

from datetime import datetime
from typing import Unpack
from uuid import UUID

from mnemic.model.episode import Episode
from mnemic.model.fact import Fact, FactCreate
from mnemic.model.recall import RecallQuery
from mnemic.model.scope import Scope
from mnemic.service.facts import (
    add_alias,
    deprecate_fact,
    extract_facts,
    facts_of_entity,
    reinforce_fact,
    remove_alias,
    resolve_conflict,
    verify_fact,
)
from mnemic.service.memory_input import MemoryOptions, parse_fact
from mnemic.service.parsing import checked_limit, checked_moment, checked_query
from mnemic.service.recall_again import recall_again
from mnemic.service.record_fact import record_fact
from mnemic.service.tools import Tools

__all__ = ["SemanticMemory"]


class SemanticMemory:
    """The facts of a scope and of those above it.

    `limit` is 1 to `recall.limit_max`; a larger one is cut to it. What is searched for can be asked
    of a past moment: what was true `as_of` then, of what was known at `known_at`.
    """

    def __init__(self, tools: Tools, scope: Scope) -> None:
        self._tools = tools
        self._scope = scope

    async def store_fact(self, fact: FactCreate, **options: Unpack[MemoryOptions]) -> Fact:
        """The fact as it is kept in this scope; an equal one is reinforced.

        A new value of a single-valued predicate closes the old one. A value that a later one has
        replaced already is returned as history. Keywords as for `MemoryManager.remember`. Raises
        `InvalidInput`, `Retracted`, `Conflict` for a used key, `NotFound` if the key's fact was
        forgotten since.
        """
        memory = parse_fact(self._tools, fact, **options)
        return await record_fact(self._tools, fact, memory, scope=self._scope)

    async def search_facts(
        self,
        query: str,
        limit: int = 10,
        *,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
    ) -> list[Fact]:
        """The facts most like `query` in meaning and words, best first."""
        tools = self._tools.at(checked_moment(as_of, known_at))
        settings = self._tools.settings.recall
        asked = RecallQuery(
            text=checked_query(query, self._tools.settings.limits),
            limit=checked_limit(limit, largest=settings.limit_max)[0],
            kinds=("fact",),
            floor=0.0,
        )
        found = await recall_again(tools, asked, scope=self._scope)
        return [hit.memory for hit in found.hits if isinstance(hit.memory, Fact)]

    async def get_by_entity(
        self,
        entity: str,
        limit: int = 20,
        *,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
    ) -> list[Fact]:
        """Facts with `entity`, or an alias of it, as subject or object; the surest first."""
        tools = self._tools.at(checked_moment(as_of, known_at))
        settings = self._tools.settings.recall
        bound, _ = checked_limit(limit, largest=settings.limit_max)
        return await facts_of_entity(tools, entity, scope=self._scope, limit=bound)

    async def reinforce_fact(self, fact_id: UUID, *, idempotency_key: str | None = None) -> Fact:
        """The fact, surer by one confirmation (+0.1, at most 1), once for each key.

        Raises `NotFound`, `Conflict` if it is not live, `Forbidden`.
        """
        return await reinforce_fact(self._tools, fact_id, scope=self._scope, key=idempotency_key)

    async def deprecate_fact(
        self, fact_id: UUID, reason: str, *, idempotency_key: str | None = None
    ) -> None:
        """The fact is retired with a reason, and its value refused until it is lifted.

        Raises `NotFound`, `Conflict` if it is not live, `Forbidden`.
        """
        await deprecate_fact(self._tools, fact_id, reason, scope=self._scope, key=idempotency_key)

    async def extract_facts_from_episode(self, episode: Episode) -> list[Fact]:
        """The statements the rules read in an episode, as facts with it as evidence.

        Doing it again changes nothing; what was retracted here is left out, and a value that is
        outdated already comes with its `status`. The episode is read again by its id. Raises
        `NotFound` if it is not visible from here, `Conflict` in a session that has ended.
        """
        return await extract_facts(self._tools, episode, scope=self._scope)

    async def resolve_conflict(
        self, fact_ids: list[UUID], *, idempotency_key: str | None = None
    ) -> Fact:
        """The winner of facts with one subject and predicate; the others become its history.

        The most trusted wins, then the one that became true last, then the surest; why stands in
        the others' `status_reason`. Raises `InvalidInput`, `NotFound`, `Forbidden`.
        """
        return await resolve_conflict(self._tools, fact_ids, scope=self._scope, key=idempotency_key)

    async def verify_fact(self, fact_id: UUID, *, idempotency_key: str | None = None) -> Fact:
        """The fact with `verification`: supported, unsupported or contradicted, and when.

        Raises `NotFound`, `Conflict` if it is not live, `Forbidden`.
        """
        return await verify_fact(self._tools, fact_id, scope=self._scope, key=idempotency_key)

    async def add_alias(self, name: str, alias: str, *, idempotency_key: str | None = None) -> None:
        """In this scope and below, `alias` means what `name` means. Raises `InvalidInput`."""
        await add_alias(self._tools, name, alias, scope=self._scope, key=idempotency_key)

    async def remove_alias(
        self, name: str, alias: str, *, idempotency_key: str | None = None
    ) -> None:
        """In this scope `alias` does not mean `name` any more, and nothing is kept of it.

        Forgetting facts does not take away their names' aliases. Raises `NotFound` if it did not
        mean it in exactly this scope.
        """
        await remove_alias(self._tools, name, alias, scope=self._scope, key=idempotency_key)
