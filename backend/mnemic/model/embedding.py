"""What an embedding is: a unit vector of float32 under a model's signature.

Every vector passes `checked_vector` on its way in, from whichever model it comes, so that a cosine
is a dot product and no NaN, zero or misshapen vector reaches an index. Vectors of two signatures
are never compared; their cosines are, once `CosineScale` has brought them to one scale.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import mul
from statistics import fmean, median, pstdev
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from mnemic.errors import EmbedderUnavailable, EmbeddingMismatch, InvalidInput
from mnemic.model.confidence import ConfidenceMap

__all__ = [
    "DIMENSIONS_MAX",
    "NORM_MIN",
    "CosineScale",
    "Embedder",
    "ModelSignature",
    "Vector",
    "checked_vector",
    "cosine",
    "encodable",
    "recentred",
]

if TYPE_CHECKING:
    Vector: TypeAlias = array[float]
else:
    Vector = array  # Python 3.11 cannot subscript it
"""float32 (`typecode` "f"), unit length, one number a dimension."""

DIMENSIONS_MAX: Final = 1_310
"""Vectors of more numbers do not fit the covering index."""

NORM_MIN: Final = 1e-6
"""A raw vector shorter than this has no direction worth keeping."""

UNIT_ERROR: Final = 2.0**-23
"""How far the length of a unit vector is from 1 at most, as its numbers are rounded to float32."""

REFERENCE_MEAN: Final = 0.094
REFERENCE_DEVIATION: Final = 0.112
"""Of the default model's cosines between a question and a turn of a conversation, both random."""


def encodable(text: str) -> str:
    """The text with "?" for each lone surrogate, which no tokenizer and no JSON can carry."""
    return text.encode(errors="replace").decode()


def checked_vector(values: Sequence[float], *, dimensions: int) -> Vector:
    """The values at unit length, as float32; of what was made by this, the same bytes again.

    Raises `EmbedderUnavailable` if there are not `dimensions` of them, if one is not a number or
    not finite, or if all are (nearly) zero. The norm is a correctly rounded `math.hypot`, so the
    same values give the same bytes on every machine.
    """
    if len(values) != dimensions:
        raise EmbedderUnavailable(
            f"a vector of {len(values)} numbers came where the model is set to {dimensions}; "
            "set embedding.dimensions to what the model gives",
            expected=dimensions,
            got=len(values),
        )
    if any(kind is bool or not issubclass(kind, (int, float)) for kind in set(map(type, values))):
        raise EmbedderUnavailable("a vector holds something that is not a number")
    try:
        norm = math.hypot(*values)
    except OverflowError:
        norm = math.inf
    if not math.isfinite(norm):
        raise EmbedderUnavailable("a vector holds NaN or a number that is not finite")
    if norm < NORM_MIN:
        raise EmbedderUnavailable("a vector is zero; it has no direction", norm=norm)
    if isinstance(values, array) and values.typecode == "f" and abs(norm - 1.0) <= UNIT_ERROR:
        return values[:]  # what came in stays its owner's
    return array("f", [value / norm for value in values])


def cosine(one: Vector, other: Vector) -> float:
    """How alike two vectors of one model are, from -1 to 1.

    Both have unit length, so this is their dot product. Raises `EmbeddingMismatch` if they differ
    in length, for then two models made them.
    """
    if len(one) != len(other):
        raise EmbeddingMismatch(
            f"vectors of {len(one)} and {len(other)} numbers cannot be compared",
            lengths=(len(one), len(other)),
        )
    product: float = sum(map(mul, one, other))
    return max(-1.0, min(1.0, product))


@dataclass(frozen=True, slots=True)
class CosineScale:
    """How a model spreads its cosines: mean and deviation over random (query, memory) pairs.

    The ranking's weights and floors are set on the default model's cosines; `apply` brings another
    model's to that scale. The default value is the default model's own scale: it changes nothing.
    """

    mean: float = REFERENCE_MEAN
    deviation: float = REFERENCE_DEVIATION

    def __post_init__(self) -> None:
        if not math.isfinite(self.mean):
            raise InvalidInput("must be a finite number", field="mean")
        if not math.isfinite(self.deviation) or self.deviation <= 0:
            raise InvalidInput("must be a finite number above 0", field="deviation")

    @classmethod
    def of(cls, cosines: Iterable[float]) -> CosineScale:
        """The scale of a model, from its cosines of random pairs.

        Raises `InvalidInput` if there are none, if they are all the same, or if one is not finite.
        """
        sample = list(cosines)
        if not sample or not all(map(math.isfinite, sample)):
            raise InvalidInput("needs finite cosines of some random pairs", field="cosines")
        return cls(fmean(sample), pstdev(sample))

    def apply(self, value: float) -> float:
        """The cosine that the default model would have given, from -1 to 1."""
        if self.mean == REFERENCE_MEAN and self.deviation == REFERENCE_DEVIATION:
            return value
        standard = (value - self.mean) / self.deviation
        return max(-1.0, min(1.0, REFERENCE_MEAN + REFERENCE_DEVIATION * standard))


@dataclass(frozen=True, slots=True)
class ModelSignature:
    """Which model made a vector: its name, the revision of its weights, the length of its vectors.

    Two vectors may be compared only if their signatures are equal. `scripts` are those whose words
    it was made to understand, as `scripts_in` names them; `scale` is how it spreads its cosines,
    `confidence` what its scores mean; each None if that is not known.
    """

    name: str
    revision: str
    dimensions: int
    scripts: frozenset[str] | None = field(default=None, compare=False)
    scale: CosineScale | None = field(default=None, compare=False)
    confidence: ConfidenceMap | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """The signature as one word, stable across releases: `name@revision/dimensions`."""
        return f"{self.name}@{self.revision}/{self.dimensions}"


def recentred(cosines: Sequence[float]) -> list[float]:
    """Cosines of texts that the model cannot read, from 0 to 1: how far above the median they are.

    To such a model all of them are much alike, so only the differences tell.
    """
    middle = median(cosines) if cosines else 0.0
    return [max(0.0, (one - middle) / (1.0 - middle)) if middle < 1.0 else 0.0 for one in cosines]


class Embedder(Protocol):
    """Turns texts into vectors.

    One whose model runs in this process may say so by an attribute `in_process`, which is true: a
    question is then embedded while the store is read.
    """

    @property
    def signature(self) -> ModelSignature:
        """Which model the vectors come from."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in the order of the texts; none is ever left out or shifted.

        A text beyond the model's window is embedded by its beginning. Raises
        `EmbedderUnavailable` if the model gives no usable vectors now, `ConfigurationError` if it
        never will.
        """
        ...

    async def close(self) -> None:
        """Nothing of this embedder is open any more; calling it twice is harmless."""
        ...
