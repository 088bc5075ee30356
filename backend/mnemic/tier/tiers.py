"""The tiers of one scope: what `memory.at(scope)` gives."""

from __future__ import annotations

from mnemic.model.scope import Scope
from mnemic.service.parsing import checked_scope
from mnemic.service.tools import Tools
from mnemic.tier.episodic import EpisodicMemory
from mnemic.tier.procedural import ProceduralMemory
from mnemic.tier.semantic import SemanticMemory
from mnemic.tier.working import WorkingMemory

__all__ = ["Tiers"]


class Tiers:
    """The memory of one scope, tier by tier, with the method names of the plan."""

    def __init__(self, tools: Tools, scope: Scope) -> None:
        self.scope = checked_scope(scope)
        self.working = WorkingMemory(tools.working, scope)
        self.episodic = EpisodicMemory(tools, scope)
        self.semantic = SemanticMemory(tools, scope)
        self.procedural = ProceduralMemory(tools, scope)
