"""Turn what is remembered into a prompt section."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mnemic.errors import InvalidInput, Unavailable
from mnemic.model.context import Context, Section, fill
from mnemic.model.fact import Fact
from mnemic.model.normalise import shown
from mnemic.model.recall import Hit, RecallQuery
from mnemic.model.scope import Scope
from mnemic.model.token_count import EstimatedTokens, TokenCounter
from mnemic.service.parsing import checked_scope
from mnemic.service.recall import parse_query, recall
from mnemic.service.tools import Tools

__all__ = ["checked_budget", "context"]

FACTS_PART = 2  # facts have half of the budget first; in whole numbers, whatever its size
_COUNTER = EstimatedTokens()


async def context(
    tools: Tools,
    text: str,
    *,
    scope: Scope,
    budget: int | None = None,
    counter: TokenCounter = _COUNTER,
) -> Context:
    """A section of at most `budget` tokens that answers `text`: facts, then what was said.

    Past `context.deadline_ms`, or with the database away, it is empty and `degraded` says why: an
    agent's turn does not fail for want of memory. Raises `InvalidInput`.
    """
    checked_scope(scope)
    settings = tools.settings.context
    allowed = checked_budget(settings.budget_tokens if budget is None else budget)
    query, _ = parse_query(
        tools, text, limit=settings.candidates_max, memory_types=None, floor=None
    )
    try:
        async with asyncio.timeout(settings.deadline_ms / 1_000):
            return await _assemble(tools, query, scope, allowed, counter)
    except TimeoutError:
        reason = f"the deadline of {settings.deadline_ms} ms passed"
    except Unavailable as fault:
        reason = str(fault)
    return fill([], budget=allowed, counter=counter, degraded=(reason,))


async def _assemble(
    tools: Tools, query: RecallQuery, scope: Scope, budget: int, counter: TokenCounter
) -> Context:
    found = await recall(tools, query, scope=scope)
    best = await tools.transact(
        scope.tenant.id,
        lambda unit: unit.facts.best(scope, limit=tools.settings.context.candidates_max),
        read_only=True,
    )
    facts = _facts(found.hits, best)
    known = fill(
        [Section("Facts", tuple(facts))], budget=max(1, budget // FACTS_PART), counter=counter
    )
    kept = known.sections[0].items if known.sections else ()
    rest = [fact for fact in facts if fact not in kept]
    return fill(
        [
            Section("Facts", kept),
            Section("Episodes", _texts(found.hits, "episode")),
            Section("From earlier conversations", _texts(found.hits, "turn")),
            Section("Procedures", _texts(found.hits, "procedure")),
            Section("Further facts", tuple(rest)),
        ],
        budget=budget,
        counter=counter,
        degraded=found.degraded,
    )


def _facts(hits: Sequence[Hit], best: Sequence[Fact]) -> list[str]:
    """What answers the question first, then the surest; each statement once."""
    relevant = [hit.text for hit in hits if hit.kind == "fact"]
    return list(dict.fromkeys([*relevant, *(fact.content for fact in best)]))


def _texts(hits: Sequence[Hit], kind: str) -> tuple[str, ...]:
    dated = (f"{hit.occurred_at:%Y-%m-%d} {hit.text}" for hit in hits if hit.kind == kind)
    return tuple(dict.fromkeys(dated))


def checked_budget(budget: object) -> int:
    """A number of tokens of at least 1; one that no prompt could fill is no limit at all."""
    if isinstance(budget, bool) or not isinstance(budget, int):
        raise InvalidInput(
            f"must be a whole number of tokens, not {type(budget).__name__}", field="budget"
        )
    if budget < 1:
        raise InvalidInput(f"must be at least 1 token, not {shown(budget)}", field="budget")
    return budget
