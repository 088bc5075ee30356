"""Oracle 5: no argument widens what a caller reaches, and oracle 14: bounds are upper bounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mnemic import Context, Recall, Scope
from mnemic.model.recall import MemoryItem
from mnemic.model.token_count import EstimatedTokens

__all__ = ["nothing_wider", "within_budget", "within_limit"]


def nothing_wider(found: Iterable[MemoryItem], scope: Scope, *, own: set[Any]) -> None:
    """Every memory found stands in the caller's chain, and is one that he could see before."""
    held = list(found)
    outside = [one for one in held if one.scope_id not in scope.visible_ids]
    assert not outside, f"from outside of the chain: {outside}"
    assert {one.id for one in held} <= own, "something else than what was his"


def within_limit(found: Recall, asked: int, largest: int) -> None:
    """At most what was asked for came, and a cut is said."""
    assert found.limit == min(asked, largest)
    assert found.returned <= found.limit
    assert any("limit cut" in note for note in found.notes) == (asked > largest)


def within_budget(section: Context) -> None:
    """The text costs at most the budget, as counted anew; what did not fit is listed."""
    assert section.tokens == EstimatedTokens().count(section.text) <= section.budget
    shown = [item for part in section.sections for item in part.items]
    left = [one.item for one in section.omitted if "the same" not in one.reason]
    assert all(one.reason for one in section.omitted)
    assert len(shown) + len(left) == len({*shown, *left})
