"""What each public method is called with: one function a verb, which draws its arguments.

Every text holds words that all tenants use and a token of its own, so that whoever asks with those
words finds everybody's texts, if anything lets him.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from mnemic.model.episode import EpisodeCreate
from mnemic.model.fact import FactCreate
from mnemic.model.procedure import ProcedureCreate, Step
from mnemic.model.scope import Scope
from mnemic.model.transcript import StatedFact, Utterance
from mnemic.model.turn import TurnCreate
from proof.choices import Choices, chance, pick
from proof.oracle import Oracle

__all__ = ["CONVERSATIONS", "GRANTS", "OPERATOR", "PLACING", "READS", "WRITES", "Move"]

Values = dict[str, Any]
Move = Callable[[Choices, Oracle, Scope, datetime], Values]

WORDS = ("deploys", "Friday", "PostgreSQL", "Vim", "tea", "Berlin", "the staging cluster", "tests")
PREDICATES = ("uses", "works_at", "lives_in", "prefers", "noted")
SENTENCES = (
    "I use {} and {}.",
    "We decided that {} come before {}.",
    "I prefer {} to {}.",
    "{} failed because of {}.",
    "What about {} and {}?",
)
KEYS = ("k1", "k2", "k1\x1fk2")
NAMES = ("Deploy the service", "Brew tea", "deploy the service ")
TASKS = ("conversation", "deploy", "general", "note")
OUTCOMES = ("success", "failure", "partial", "completed")
FILTERS: tuple[Values, ...] = (
    {"outcome": "success"},
    {"trust": {"ge": 0}},
    {"not": {"kind": "fact"}},
    {"or": [{"metadata.note": {"exists": True}}, {"source": {"ne": "caller"}}]},
    {"tags": {"in": []}},
)


def text(choices: Choices, oracle: Oracle, scope: Scope) -> str:
    """A sentence with a token that stands in `scope`."""
    words = (pick(choices, WORDS), pick(choices, WORDS))
    return f"{pick(choices, SENTENCES).format(*words)} See {oracle.mint(scope)}."


def key(choices: Choices) -> Values:
    """Now and then an idempotency key that others use as well."""
    return {"idempotency_key": pick(choices, KEYS)} if chance(choices, 4) else {}


def question(choices: Choices, oracle: Oracle, scope: Scope) -> str:
    """A question in common words; now and then with a token of anybody."""
    asked = f"{pick(choices, WORDS)} {pick(choices, WORDS)}"
    tokens = [one for one in oracle.places if isinstance(one, str)]
    del scope
    return f"{asked} {pick(choices, tokens)}" if tokens and chance(choices, 3) else asked


def _remember(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    kind = pick(choices, ("semantic", "episodic", "procedural"))
    content = text(choices, oracle, scope)
    if kind == "procedural":
        content = f"{pick(choices, NAMES)}\n1. {content}\n2. {pick(choices, WORDS)}"
    lift = {"lift": True} if chance(choices, 4) else {}
    told = {"metadata": {"note": oracle.mint(scope)}, "tags": [oracle.mint(scope)]}
    return {"content": content, "memory_type": kind, **key(choices), **lift, **told}


def _fact(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> FactCreate:
    own = chance(choices, 2)
    return FactCreate(
        subject=pick(choices, ("User", "Berlin", "a")),
        predicate=pick(choices, PREDICATES),
        object=f"{pick(choices, WORDS)} {oracle.mint(scope)}" if own else pick(choices, WORDS),
        content=text(choices, oracle, scope) if chance(choices, 2) else None,
        valid_from=at - timedelta(days=choices.below(3)) if chance(choices, 3) else None,
    )


def _store_fact(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {"fact": _fact(choices, oracle, scope, at), **key(choices)}


def _record_episode(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    episode = EpisodeCreate(
        task_description=text(choices, oracle, scope),
        occurred_at=at,
        task_type=pick(choices, TASKS),
        outcome_details=oracle.mint(scope),
        context_summary=text(choices, oracle, scope) if chance(choices, 2) else None,
        lessons_learned=(text(choices, oracle, scope),),
        actions=({"did": oracle.mint(scope)},),
    )
    return {"episode": episode, **key(choices)}


def _record_procedure(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    own = f" {oracle.mint(scope)}" if chance(choices, 2) else ""
    procedure = ProcedureCreate(
        name=f"{pick(choices, NAMES)}{own}",
        steps=(Step(action=text(choices, oracle, scope), expected=oracle.mint(scope)),),
        task_type=pick(choices, TASKS),
        trigger_pattern=pick(choices, (None, "deploy", ".*")),
        preconditions=(oracle.mint(scope),),
    )
    return {"procedure": procedure, **key(choices)}


def _add_alias(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    alias = pick(choices, (oracle.mint(scope), pick(choices, WORDS)))
    return {"name": pick(choices, ("User", *WORDS)), "alias": alias}


def _nothing(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {}


def _turns(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {
        "turns": [
            TurnCreate(
                text=text(choices, oracle, scope),
                actor=pick(choices, ("User", "Assistant", "a")),
                role=pick(choices, ("user", "assistant")),
                occurred_at=at,
                caption=oracle.mint(scope) if chance(choices, 4) else None,
                external_id=f"t{choices.below(20)}" if chance(choices, 2) else None,
            )
            for _ in range(1 + choices.below(3))
        ]
    }


def _end(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {"outcome": pick(choices, (None, *OUTCOMES))}


def _spawn(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {"task": question(choices, oracle, scope), "budget": 2_000}


def _wake(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    own = oracle.own_checkpoints(scope)
    return {"checkpoint_id": str(pick(choices, own)) if own and chance(choices, 2) else None}


def _ingest(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    """Two sessions and a fact, as a file tells them; ids of turns repeat between tenants."""
    project = pick(choices, (None, "p", "P"))
    base = scope
    if project is not None and not scope.path:
        base = scope.project(project)
    entries: list[Any] = []
    for line in range(1 + choices.below(2)):
        name = f"told {choices.below(3)}"
        turn = TurnCreate(
            text=text(choices, oracle, base.session(name)),
            actor="User",
            occurred_at=at,
            external_id=f"line {choices.below(5)}",
        )
        entries.append(Utterance(session=name, turn=turn, project=project, line=line + 1))
    fact = _fact(choices, oracle, base, at)
    mark = f"f{choices.below(5)}"
    entries.append(StatedFact(fact=fact, external_id=mark, project=project, line=9))
    return {"entries": entries, "keep_open": chance(choices, 3)}


def _grant(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {"to": pick(choices, scope.chain)}


def _moment(choices: Choices, at: datetime) -> Values:
    """Mostly now; else a moment that lies a few minutes back, of either clock or both."""
    if not chance(choices, 4):
        return {}
    then = at - timedelta(minutes=choices.below(20))
    return pick(choices, ({"as_of": then, "known_at": then}, {"as_of": then}, {"known_at": then}))


def _ask(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    kinds = pick(choices, (None, ("episodic",), ("semantic", "procedural")))
    return {
        "query": question(choices, oracle, scope),
        "limit": pick(choices, (None, 100, 3)),
        "memory_types": kinds,
        "floor": pick(choices, (0.0, None)),
        "filters": pick(choices, (None, *FILTERS)),
        "explain": chance(choices, 3),
        **_moment(choices, at),
    }


def _context(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    asked = {"query": question(choices, oracle, scope), "budget": pick(choices, (2_000, 60, None))}
    return {**asked, **_moment(choices, at)}


def _search(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {"query": question(choices, oracle, scope), "limit": 50}


def _search_facts(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {**_search(choices, oracle, scope, at), **_moment(choices, at)}


def _recent(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    since = at - timedelta(minutes=choices.below(5)) if chance(choices, 3) else None
    return {"limit": 100, "since": since}


def _by_outcome(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {"outcome": pick(choices, OUTCOMES), "limit": 100}


def _by_task(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {"task_type": pick(choices, TASKS), "limit": 100}


def _by_entity(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    tokens = [one for one in oracle.places if isinstance(one, str)]
    entity = pick(choices, ("User", "a", *WORDS, *tokens[-20:]))
    return {"entity": entity, "limit": 100, **_moment(choices, at)}


def _matching(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {"context": question(choices, oracle, scope), "limit": 50}


def _best(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {"task_type": pick(choices, TASKS)}


WRITES: dict[str, Move] = {
    "remember": _remember,
    "store_fact": _store_fact,
    "episodic.record_episode": _record_episode,
    "semantic.store_fact": _store_fact,
    "semantic.add_alias": _add_alias,
    "semantic.remove_alias": _add_alias,
    "procedural.record_procedure": _record_procedure,
    "transcripts.ingest": _ingest,
}
CONVERSATIONS: dict[str, Move] = {
    "sessions.append": _turns,
    "sessions.start": _nothing,
    "sessions.end": _end,
    "sessions.pause": _nothing,
    "sessions.resume": _nothing,
    "lifecycle.spawn": _spawn,
    "lifecycle.pause": _nothing,
    "lifecycle.resume": _wake,
    "lifecycle.terminate": _end,
}
GRANTS: dict[str, Move] = {"grants.allow": _grant, "grants.revoke": _grant}
READS: dict[str, Move] = {
    "recall": _ask,
    "context": _context,
    "tool_affinities": _nothing,
    "episodic.search_similar": _search,
    "episodic.get_recent": _recent,
    "episodic.get_by_outcome": _by_outcome,
    "episodic.get_by_task_type": _by_task,
    "semantic.search_facts": _search_facts,
    "semantic.get_by_entity": _by_entity,
    "procedural.find_matching": _matching,
    "procedural.get_best_procedure": _best,
}
OPERATOR = (
    "maintenance.end_idle_sessions",
    "maintenance.embed_missing",
    "maintenance.count_terms",
    "maintenance.expire",
    "maintenance.caches",
    "maintenance.promote_vectors",
)
"""Verbs of whoever runs the service: they belong to no tenant, and their answers to nobody else."""

PLACING: dict[str, tuple[dict[str, str], ...]] = {
    "maintenance.promote": ({},),
    "maintenance.demote": ({},),
    "maintenance.isolate": ({"isolation": "dedicated"}, {"isolation": "shared"}),
}
"""What the operator does with one tenant: its memories stand elsewhere, and are the same."""


def of_session(choices: Choices, oracle: Oracle, home: Scope) -> Scope:
    """A session below `home`: an open one, one that ended, or a new one with a telling name."""
    known = [one for one in (*oracle.open_sessions, *oracle.ended_sessions) if one.parent == home]
    if known and not chance(choices, 3):
        return pick(choices, known)
    made = home.session(f"s{choices.below(2)}")
    if chance(choices, 2):
        mark = oracle.mint(home)
        made = home.session(f"s {mark}")
        oracle.places[mark] = made
    return made


def unknown_id(number: int) -> UUID:
    """An id that nothing has."""
    return UUID(int=0xFEED << 112 | 0x4 << 76 | 0b10 << 62 | number)
