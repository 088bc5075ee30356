"""Whether what was taken is there, as it came."""

from __future__ import annotations

from typing import Any

from hostile.surface import Leaf, Method
from mnemic import Receipt, Scope
from mnemic.tier.working import WorkingMemory
from oracles.stage import Stage

__all__ = ["UNREADABLE", "as_kept", "notes_of"]

UNREADABLE = object()
"""Of questions, reasons and switches nothing reads back."""

_ASKED = {"limit", "floor"}  # the reply tells the effective one, and a note that it was cut
_NAMES = {
    "fact": {"occurred_at": "first_learned"},
    "episode": {"content": "task_description", "importance": "importance_score"},
}


async def as_kept(
    stage: Stage, method: Method, leaf: Leaf, given: dict[str, Any], reply: Any, scope: Scope
) -> Any:
    """What is kept in the place of the leaf."""
    if leaf.name in _ASKED:
        return UNREADABLE
    if method.path[:2] == ("at", "working"):
        return await _in_working(stage.memory.at(scope).working, leaf, given)
    one = reply[0] if isinstance(reply, list) and len(reply) == 1 else reply
    return (
        await _of_receipt(stage, leaf, one, scope)
        if isinstance(one, Receipt)
        else (_attribute(one, leaf.path))
    )


async def _in_working(working: WorkingMemory, leaf: Leaf, given: dict[str, Any]) -> Any:
    """Only `set`, `set_task_state` and `append_scratchpad` leave anything."""
    if "value" in given:
        if leaf.name not in {"key", "value"}:
            return UNREADABLE
        held = await working.get_all()
        return held[given["key"]] if leaf.name == "value" else _only(held, given["key"])
    if "state" in given:
        return _attribute(await working.get_task_state(), leaf.path)
    return (await working.get_scratchpad())[-1] if leaf.name == "content" else UNREADABLE


async def _of_receipt(stage: Stage, leaf: Leaf, receipt: Receipt, scope: Scope) -> Any:
    if receipt.kind == "working":
        return receipt.key if leaf.name == "key" else UNREADABLE
    if receipt.kind == "session":
        return UNREADABLE
    memory = await stage.kept(receipt, scope)
    if receipt.kind == "fact" and leaf.path == ("importance",):
        return memory.metadata["importance"]
    renamed = _NAMES.get(receipt.kind, {}).get(leaf.name) if len(leaf.path) == 1 else None
    return _attribute(memory, (renamed,) if renamed else leaf.path)


def _attribute(held: Any, path: tuple[str, ...]) -> Any:
    """The attribute at the end of the path; its first part may be the name of the whole."""
    if not hasattr(held, path[0]):
        path = path[1:]
    if not path:
        return UNREADABLE
    for name in path:
        first = held[0] if isinstance(held, (list, tuple)) and held else held
        held = getattr(first, name, UNREADABLE)
    return held


def notes_of(reply: Any) -> tuple[str, ...]:
    """What the reply says of what was kept."""
    one = reply[0] if isinstance(reply, list) and reply else reply
    found = getattr(one, "notes", ())
    return tuple(found)


def _only(held: dict[str, Any], key: str) -> str:
    """The key as it is listed."""
    [listed] = [one for one in held if one == key]
    return listed
