"""From settings to an embedder."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from mnemic.embed import CachedEmbedder, open_embedder
from mnemic.errors import ConfigurationError
from mnemic.model.embedding import ModelSignature
from mnemic.settings import EmbeddingSettings


async def test_the_default_is_the_offline_model_behind_a_cache() -> None:
    embedder = open_embedder(EmbeddingSettings())

    first = await embedder.embed(["The user prefers green tea."])
    second = await embedder.embed(["The user prefers green tea."])

    assert embedder.signature == ModelSignature("all-MiniLM-L6-v2-int8", "8199be6f.1", 384)
    assert isinstance(embedder, CachedEmbedder)
    assert (embedder.hits, embedder.misses) == (1, 1)
    assert first == second
    await embedder.close()


async def test_an_endpoint_is_called_as_the_settings_say(endpoint: Any) -> None:
    settings = EmbeddingSettings.model_validate(
        {
            "provider": "openai",
            "model": "toy",
            "dimensions": 8,
            "base_url": endpoint.url,
            "api_key": "a-key",
            "batch_max": 2,
        }
    )
    embedder = open_embedder(settings)

    vectors = await embedder.embed(["one", "two", "three"])

    assert embedder.signature.key == "toy@remote/8"
    assert len(vectors) == 3
    assert endpoint.inputs == [["one", "two"], ["three"]]
    assert endpoint.keys == ["Bearer a-key"] * 2
    await embedder.close()


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"model": "all-mpnet-base-v2"}, "embedding.model"),
        ({"dimensions": 512}, "embedding.dimensions"),
        ({"provider": "openai", "api_key": "k"}, "embedding.model"),
        ({"provider": "openai", "model": "m"}, "embedding.api_key"),
        ({"provider": "openai", "model": "m", "base_url": "here"}, "embedding.base_url"),
    ],
)
def test_settings_that_fit_no_model_are_refused_by_name(
    changes: dict[str, Any], setting: str
) -> None:
    settings = EmbeddingSettings.model_validate(changes)

    with pytest.raises(ConfigurationError, match=setting):
        open_embedder(settings)


def test_a_missing_client_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "mnemic.embed.remote.find_spec", lambda name: None if name == "openai" else find(name)
    )
    settings = EmbeddingSettings.model_validate(
        {"provider": "openai", "model": "toy", "api_key": "k"}
    )

    with pytest.raises(ConfigurationError, match=r"pip install 'mnemic\[openai\]'"):
        open_embedder(settings)
