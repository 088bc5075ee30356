"""What can be set of prompt sections."""

from __future__ import annotations

from pydantic import Field

from mnemic.settings_section import Section

__all__ = ["ContextSettings"]


class ContextSettings(Section):
    """The prompt section. A share is one of the budget, and what it leaves is filled by others."""

    budget_tokens: int = Field(default=300, ge=16, le=1_000_000)
    recall_budget_tokens: int = Field(
        default=1_500, ge=16, le=1_000_000, description='of `budget="recall"`'
    )
    deep_budget_tokens: int = Field(
        default=4_000, ge=16, le=1_000_000, description='of `budget="deep"`'
    )
    stable_share: float = Field(default=0.5, ge=0, le=0.9, description="for the stable part")
    stable_tokens_max: int = Field(
        default=300, ge=0, le=1_000_000, description="of the stable part, whatever the budget"
    )
    facts_share: float = Field(default=0.25, ge=0, le=1)
    episodes_share: float = Field(default=0.25, ge=0, le=1)
    turns_share: float = Field(default=0.5, ge=0, le=1)
    procedures_share: float = Field(default=0.25, ge=0, le=1)
    candidates_max: int = Field(default=50, ge=1, le=1_000, description="hits that are looked at")
    facts_max: int = Field(default=200, ge=1, le=1_000, description="facts that are looked at")
    procedures_max: int = Field(default=5, ge=1, le=100)
    episodes_max: int = Field(default=5, ge=0, le=100)
    episode_confidence_min: float = Field(
        default=0.7, ge=0, le=1, description="how likely an episode answers, or it is left out"
    )
    tool_affinities_max: int = Field(default=100, ge=1, le=1_000)
    deadline_ms: int = Field(default=500, ge=1, le=60_000)
