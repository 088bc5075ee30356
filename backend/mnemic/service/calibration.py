"""What the cosines and the scores of the model that is set mean."""

from __future__ import annotations

from dataclasses import dataclass

from mnemic.model.confidence import ConfidenceMap
from mnemic.model.embedding import CosineScale, ModelSignature
from mnemic.service.tools import Tools
from mnemic.settings import EmbeddingSettings
from mnemic.store.embedding_models import RegisteredModel

__all__ = ["Calibration", "calibration_of", "scale_of"]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The map of the best score to a confidence, and what must be said of it."""

    confidence: ConfidenceMap
    notes: tuple[str, ...] = ()


def calibration_of(settings: EmbeddingSettings, signature: ModelSignature) -> Calibration:
    """By the settings, else by the model itself; a model that has no map has the default one's.

    Then a note says so, for its scores are spread otherwise.
    """
    if settings.confidence_slope is not None and settings.confidence_offset is not None:
        return Calibration(ConfidenceMap(settings.confidence_slope, settings.confidence_offset))
    if signature.confidence is not None:
        return Calibration(signature.confidence)
    note = (
        f"{signature.name} has no confidence map: confidence is that of the default model, which "
        "may be wrong here; set embedding.confidence_slope and embedding.confidence_offset"
    )
    return Calibration(ConfidenceMap(), (note,))


def scale_of(tools: Tools, model: RegisteredModel | None) -> CosineScale | None:
    """How the model spreads its cosines: as set, else as it says, else as is registered."""
    settings, signature = tools.settings.embedding, tools.embedder.signature
    if settings.cosine_mean is not None and settings.cosine_deviation is not None:
        return CosineScale(settings.cosine_mean, settings.cosine_deviation)
    if signature.scale is not None:
        return signature.scale
    if model is None or model.cosine_mean is None or model.cosine_deviation is None:
        return None
    return CosineScale(model.cosine_mean, model.cosine_deviation)
