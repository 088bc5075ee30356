"""What the methods of working memory are called with; no other scope sees what it holds.

But the episode of a session that ends may tell of its task and its notes, one scope up.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mnemic.model.scope import Scope
from mnemic.model.working import TaskState
from proof.choices import Choices, chance, pick
from proof.moves import Move, Values, unknown_id
from proof.oracle import Oracle

__all__ = ["WORKING"]

KEYS = (
    "a",
    "a*",
    "*",
    "a:b",
    "a\x1fb",
    "{a}",
    "[a-z]",
    "a\x00b",
    "A",
    "\N{CYRILLIC SMALL LETTER A}",
)
PATTERNS = ("*", "a*", "?", "[a-z]", r"\*", "cn*")


def _key(choices: Choices, oracle: Oracle, scope: Scope) -> str:
    return oracle.mint_private(scope) if chance(choices, 4) else pick(choices, KEYS)


def _set(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    how: dict[str, Any] = pick(choices, ({}, {"durable": True}, {"ttl_seconds": 60}, {}))
    key = _key(choices, oracle, scope)
    return {"key": key, "value": {"held": [oracle.mint_private(scope)]}, **how}


def _named(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    tokens = [one for one in oracle.private if isinstance(one, str)]
    return {"key": pick(choices, (*KEYS, *tokens[-20:]))}


def _pattern(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {"pattern": pick(choices, PATTERNS)}


def _task(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {"state": TaskState(current_step=1, description=oracle.mint_working(scope))}


def _note(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {"content": f"Do not forget {oracle.mint_working(scope)}."}


def _checkpoint(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    own = oracle.own_checkpoints(scope)
    return {"checkpoint_id": str(pick(choices, own) if own else unknown_id(oracle.tokens))}


def _nothing(choices: Choices, oracle: Oracle, scope: Scope, at: datetime) -> Values:
    return {}


WORKING: dict[str, Move] = {
    "working.set": _set,
    "working.get": _named,
    "working.delete": _named,
    "working.exists": _named,
    "working.list_keys": _pattern,
    "working.get_all": _nothing,
    "working.clear": _nothing,
    "working.set_task_state": _task,
    "working.get_task_state": _nothing,
    "working.append_scratchpad": _note,
    "working.get_scratchpad": _nothing,
    "working.create_checkpoint": _nothing,
    "working.restore_checkpoint": _checkpoint,
    "working.checkpoints": _nothing,
    "working.record": _nothing,
    "working.status": _nothing,
}
