"""The registry of embedding models; vectors of two models are never compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mnemic.model.embedding import ModelSignature
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["EmbeddingModelStore", "RegisteredModel"]

LIVE = Statement("""
    SELECT m.id, m.signature, m.cosine_mean, m.cosine_deviation
      FROM mnemic.embedding_models m WHERE m.state = 'live'
""")

REGISTER = Statement("""
    INSERT INTO mnemic.embedding_models (signature, name, dimensions, state)
    VALUES (:signature, :name, :dimensions, 'live')
    ON CONFLICT DO NOTHING
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredModel:
    """The model whose vectors answer, by the number that its vectors carry."""

    id: int
    signature: str
    cosine_mean: float | None
    cosine_deviation: float | None


class EmbeddingModelStore:
    """Registers the first model and names the live one. Holds no tenant's data."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def live(self) -> RegisteredModel | None:
        """The live model, if one was ever registered."""
        row = await self._unit.fetch_one(LIVE)
        return RegisteredModel(**row) if row is not None else None

    async def register(self, signature: ModelSignature) -> None:
        """The model is live, unless another one is already."""
        await self._unit.execute(
            REGISTER,
            signature=signature.key,
            name=signature.name,
            dimensions=signature.dimensions,
        )
