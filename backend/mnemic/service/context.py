"""Turn what is remembered into a prompt section."""

from __future__ import annotations

import asyncio

from mnemic.errors import InvalidInput, Unavailable
from mnemic.model.context import (
    EPISODES,
    FACTS_FOUND,
    PROCEDURES,
    PROCEDURES_APPROVED,
    TURNS,
    Context,
    ContextForm,
)
from mnemic.model.context_choice import Sources, choose
from mnemic.model.context_fill import Quotas, fill
from mnemic.model.normalise import shown
from mnemic.model.recall import RecallQuery
from mnemic.model.scope import Scope
from mnemic.service.calibration import calibration_of
from mnemic.service.parsing import checked_scope
from mnemic.service.procedures import match_procedures
from mnemic.service.recall import parse_query
from mnemic.service.recall_again import recall_again, surest_facts
from mnemic.service.token_count import Counted
from mnemic.service.tools import Tools
from mnemic.settings import ContextSettings

__all__ = ["checked_budget", "checked_form", "context"]

# Procedures are asked for by what they fit, which is more than being like the question.
_ASKED_TYPES = ("episodic", "semantic")


async def context(
    tools: Tools,
    text: str,
    *,
    scope: Scope,
    budget: int | str | None = None,
    form: ContextForm | str = ContextForm.MARKDOWN,
) -> Context:
    """A section of at most `budget` tokens: what is known, then what answers `text`.

    Past `context.deadline_ms`, or with the database away, it is empty and `degraded` says why: an
    agent's turn does not fail for want of memory. Raises `InvalidInput`.
    """
    checked_scope(scope)
    settings = tools.settings.context
    allowed, written = checked_budget(budget, settings), checked_form(form)
    query, _ = parse_query(
        tools, text, limit=settings.candidates_max, memory_types=_ASKED_TYPES, floor=None
    )
    try:
        async with asyncio.timeout(settings.deadline_ms / 1_000):
            return _written(tools, await gather(tools, query, scope), allowed, written)
    except TimeoutError:
        reason = f"the deadline of {settings.deadline_ms} ms passed"
    except Unavailable as fault:
        reason = str(fault)
    return Context(budget=allowed, form=written, degraded=(reason,))


async def gather(tools: Tools, query: RecallQuery, scope: Scope) -> Sources:
    """All that a section may show; whatever it reads of memory is read here."""
    settings = tools.settings.context
    found = await recall_again(tools, query, scope=scope)
    facts = await surest_facts(tools, scope=scope, limit=settings.facts_max)
    procedures = await match_procedures(
        tools, query.text, scope=scope, limit=settings.procedures_max
    )
    return Sources(hits=found.hits, facts=facts, procedures=procedures, degraded=found.degraded)


def _written(tools: Tools, sources: Sources, budget: int, form: ContextForm) -> Context:
    settings = tools.settings.context
    choice = choose(
        sources,
        episodes_max=settings.episodes_max,
        episode_confidence_min=settings.episode_confidence_min,
        confidence=calibration_of(tools.settings.embedding, tools.embedder.signature).confidence,
    )
    return fill(
        choice.known,
        choice.found,
        budget=budget,
        quotas=_quotas(settings, budget),
        counter=Counted(tools.counter),
        form=form,
        refused=choice.refused,
        degraded=sources.degraded,
    )


def _quotas(settings: ContextSettings, budget: int) -> Quotas:
    shares = {
        PROCEDURES_APPROVED: settings.procedures_share,
        FACTS_FOUND: settings.facts_share,
        EPISODES: settings.episodes_share,
        TURNS: settings.turns_share,
        PROCEDURES: settings.procedures_share,
    }
    return Quotas(
        stable=min(settings.stable_tokens_max, _part(settings.stable_share, budget)),
        by_title={title: _part(share, budget) for title, share in shares.items()},
    )


def _part(share: float, budget: int) -> int:
    """In whole numbers, whatever the size of the budget."""
    return budget * round(share * 1_000) // 1_000


def checked_budget(budget: object, settings: ContextSettings) -> int:
    """A number of tokens of at least 1; one that no prompt could fill is no limit at all.

    "recall" and "deep" stand for the ones that are set, and so does leaving it out.
    """
    named = {
        None: settings.budget_tokens,
        "recall": settings.recall_budget_tokens,
        "deep": settings.deep_budget_tokens,
    }
    if budget is None or (isinstance(budget, str) and budget in named):
        return named[budget]
    if isinstance(budget, bool) or not isinstance(budget, int):
        raise InvalidInput(
            f'must be a whole number of tokens, "recall" or "deep", not {shown(budget)}',
            field="budget",
        )
    if budget < 1:
        raise InvalidInput(f"must be at least 1 token, not {shown(budget)}", field="budget")
    return budget


def checked_form(form: object) -> ContextForm:
    """One of the forms that a section can be written in."""
    try:
        return ContextForm(form)  # type: ignore[arg-type]
    except ValueError:
        raise InvalidInput(
            f"must be one of {', '.join(ContextForm)}, not {shown(form)}", field="form"
        ) from None
