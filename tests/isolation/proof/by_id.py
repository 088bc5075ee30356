"""Methods that are given ids: which kinds they take, and what else they are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from mnemic.model.episode import Episode, EpisodeId, Outcome
from mnemic.model.procedure import Step
from mnemic.model.scope import Scope
from mnemic.model.trust import Trust
from proof.choices import Choices, chance, pick
from proof.moves import FILTERS, WORDS, Values, key, text
from proof.oracle import Oracle
from proof.world import START

__all__ = ["BY_ID", "ByIds"]


@dataclass(frozen=True, slots=True)
class ByIds:
    """A verb that takes ids of `kinds`; `told` draws what it is told beside them.

    `values` makes the arguments. Texts that it is told stand where the memory stands.
    """

    kinds: tuple[str, ...]
    told: Callable[[Choices, Oracle, Scope], Values]
    values: Callable[[list[UUID], Values], Values]
    ids_max: int = 1


def _one(name: str) -> Callable[[list[UUID], Values], Values]:
    return lambda ids, told: {name: ids[0], **told}


def _many(name: str) -> Callable[[list[UUID], Values], Values]:
    return lambda ids, told: {name: ids, **told}


def _episode(ids: list[UUID], told: Values) -> Values:
    """An episode of that id, which the caller made up but for the id."""
    text = f"I use {told['mark']} for deploys."
    return {"episode": Episode(
        id=EpisodeId(ids[0]), scope_id=ids[0], title=text, summary=text, key_topics=(),
        user_intents=(), tools_used=(), agents_used=(), task_type="note", task_description=text,
        outcome=Outcome.SUCCESS, outcome_details=None, actions=(), context_summary=None,
        lessons_learned=(), duration_seconds=None, tokens_used=None, importance_score=0.5,
        message_count=0, started_at=None, ended_at=None, occurred_at=START, recorded_at=START,
        session_id=None, trust=Trust.USER, source="caller",
    )}  # fmt: skip


def _mark(choices: Choices, oracle: Oracle, scope: Scope) -> Values:
    return {"mark": oracle.mint(scope)}


def _key(choices: Choices, oracle: Oracle, scope: Scope) -> Values:
    return key(choices)


def _nothing(choices: Choices, oracle: Oracle, scope: Scope) -> Values:
    return {}


def _score(choices: Choices, oracle: Oracle, scope: Scope) -> Values:
    return {"score": choices.below(11) / 10}


def _reason(choices: Choices, oracle: Oracle, scope: Scope) -> Values:
    return {"reason": text(choices, oracle, scope), **key(choices)}


def _perhaps_reason(choices: Choices, oracle: Oracle, scope: Scope) -> Values:
    return {"reason": text(choices, oracle, scope) if chance(choices, 2) else None}


def _outcome(choices: Choices, oracle: Oracle, scope: Scope) -> Values:
    told: dict[str, Any] = {"success": chance(choices, 2), **key(choices)}
    return {**told, "note": text(choices, oracle, scope)}


def _steps(choices: Choices, oracle: Oracle, scope: Scope) -> Values:
    steps = [Step(action=text(choices, oracle, scope)) for _ in range(1 + choices.below(2))]
    return {"steps": steps, **key(choices)}


def _asked(choices: Choices, oracle: Oracle, scope: Scope) -> Values:
    query = f"{pick(choices, WORDS)} {pick(choices, WORDS)}"
    return {"query": query, "limit": 3, "filters": pick(choices, (None, *FILTERS))}


BY_ID: dict[str, ByIds] = {
    "forget": ByIds(
        ("turn", "episode", "fact", "procedure"), _perhaps_reason, _many("ids"), ids_max=2
    ),
    "why_not": ByIds(("turn", "episode", "fact", "procedure"), _asked, _one("memory_id")),
    "episodic.update_importance": ByIds(("episode",), _score, _one("episode_id")),
    "episodic.summarize_episodes": ByIds(("episode",), _nothing, _many("episode_ids"), ids_max=3),
    "semantic.reinforce_fact": ByIds(("fact",), _key, _one("fact_id")),
    "semantic.deprecate_fact": ByIds(("fact",), _reason, _one("fact_id")),
    "semantic.extract_facts_from_episode": ByIds(("episode",), _mark, _episode),
    "semantic.resolve_conflict": ByIds(("fact",), _nothing, _many("fact_ids"), ids_max=3),
    "semantic.verify_fact": ByIds(("fact",), _nothing, _one("fact_id")),
    "procedural.record_outcome": ByIds(("procedure",), _outcome, _one("procedure_id")),
    "procedural.update_steps": ByIds(("procedure",), _steps, _one("procedure_id")),
}


def some_ids(choices: Choices, known: list[UUID], *, at_most: int, least: int = 1) -> list[UUID]:
    """Distinct ids among the known ones, or fewer if there are not so many."""
    chosen: dict[UUID, None] = {}
    for _ in range(least + choices.below(at_most - least + 1)):
        if known:
            chosen.setdefault(pick(choices, known))
    return list(chosen)
