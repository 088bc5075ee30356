"""Every public method of the manager, its handles and its tiers, found by looking at them."""

from __future__ import annotations

import inspect

from mnemic.manager import MemoryManager
from mnemic.tier import tiers

__all__ = ["public_verbs"]

LIFE = frozenset({"open", "embedded", "null", "start", "close", "at"})
"""How a manager begins and ends, and how one gets to the tiers: nothing is asked of memory."""


def public_verbs() -> set[str]:
    """The names as a call writes them: `recall`, `sessions.start`, `semantic.store_fact`."""
    found = set(_methods(MemoryManager)) - LIFE
    for name, member in inspect.getmembers(MemoryManager, lambda one: isinstance(one, property)):
        handle = inspect.signature(member.fget, eval_str=True).return_annotation
        if not name.startswith("_") and handle.__module__.startswith("mnemic.tier."):
            found |= {f"{name}.{method}" for method in _methods(handle)}
    for name, tier in inspect.getmembers(tiers, inspect.isclass):
        if name.endswith("Memory"):
            verbs = _methods(tier)
            found |= {f"{name.removesuffix('Memory').lower()}.{verb}" for verb in verbs}
    return found


def _methods(owner: type) -> list[str]:
    return [
        name for name, _ in inspect.getmembers(owner, inspect.isroutine) if not name.startswith("_")
    ]
