"""What is known of tools, for whoever offers them."""

from __future__ import annotations

from mnemic.model.affinity import CATEGORIES, PREDICATES, affinities
from mnemic.model.scope import Scope
from mnemic.model.trust import Trust
from mnemic.service.parsing import checked_scope
from mnemic.service.tools import Tools

__all__ = ["tool_affinities"]


async def tool_affinities(tools: Tools, *, scope: Scope) -> dict[str, float]:
    """By tool, from -1 (avoid) to 1 (prefer): what the surest fact about it says.

    A fact is about a tool by its category `tool_affinity` or `tool_avoidance`, or its predicate
    `prefers_tool` or `avoids_tool`; the tool is its object. The surest
    `context.tool_affinities_max` facts are read, and none that came from outside.
    """
    checked_scope(scope)
    facts = await tools.transact(
        scope.tenant.id,
        lambda unit: unit.facts.of_kind(
            scope,
            categories=CATEGORIES,
            predicates=PREDICATES,
            trust=Trust.INFERRED,
            limit=tools.settings.context.tool_affinities_max,
        ),
        read_only=True,
    )
    return affinities(facts)
