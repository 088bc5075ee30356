"""What can be set of the model that turns text into vectors."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from mnemic.model.embedding import DIMENSIONS_MAX
from mnemic.settings_section import Section
from mnemic.settings_values import Named, Secret

__all__ = ["EmbeddingSettings"]


class EmbeddingSettings(Section):
    """Which model turns text into vectors."""

    provider: Literal["local", "openai"] = "local"
    model: Named = Field(default="all-MiniLM-L6-v2-int8", max_length=200)
    dimensions: int = Field(
        default=384,
        ge=8,
        le=DIMENSIONS_MAX,
        description=f"numbers a vector; more than {DIMENSIONS_MAX:,} do not fit the covering index",
    )
    base_url: Named | None = Field(default=None, description="OpenAI-compatible endpoint")
    api_key: Secret | None = None
    timeout_seconds: float = Field(default=10, gt=0, le=300)
    retry_max: int = Field(default=2, ge=0, le=10)
    batch_max: int = Field(default=64, ge=1, le=2_048, description="texts a call")
    threads: int = Field(default=1, ge=1, le=64, description="threads of the local model")
    cache_entries_max: int = Field(default=10_000, ge=0, le=1_000_000)
    cosine_mean: float | None = Field(
        default=None, gt=-1, lt=1, description="of random questions and memories, by this model"
    )
    cosine_deviation: float | None = Field(default=None, gt=0, le=1)
    confidence_slope: float | None = Field(
        default=None, gt=0, le=1_000, description="sigmoid(slope · best score - offset)"
    )
    confidence_offset: float | None = Field(default=None, ge=-1_000, le=1_000)

    @model_validator(mode="after")
    def _both_of_a_pair(self) -> Self:
        for one, other in (
            ("cosine_mean", "cosine_deviation"),
            ("confidence_slope", "confidence_offset"),
        ):
            if (getattr(self, one) is None) != (getattr(self, other) is None):
                message = f"embedding.{one} and embedding.{other} are set together, or neither"
                raise ValueError(message)
        return self
