"""Words of scripts without spaces: which pairs of a question tell something."""

from __future__ import annotations

import pytest

from mnemic.model.words import single_characters, telling_words


@pytest.mark.parametrize(
    ("question", "seen", "told"),
    [
        # Nothing is known of the memories: every pair, and every Han character.
        ("我喜欢猫", None, "我喜 喜欢 欢猫 我 喜 欢 猫"),
        ("고양이는 어디에", None, "고양 양이 이는 어디 디에"),
        # What overlaps a pair that some memory has was cut across two words.
        ("我喜欢猫", {"喜欢"}, "喜欢 我 喜 欢 猫"),
        ("고양이는", {"양이"}, "양이"),
        # Of pairs that nobody has every second one, and characters outside of these.
        ("天气预报说明天会下雨", set(), "天气 预报 说明 天会 下雨"),
        ("天气预报", {"报"}, "天气 预报 报"),
        # Particles and what Japanese writes in hiragana tell nothing.
        ("我的猫在哪里", set(), "我 的 猫 在 哪 里"),
        ("飼っている犬の名前", set(), "名前 飼 犬"),
        ("飼っている犬の名前", {"名前"}, "名前 飼 犬 名 前"),
        # Of a Korean word its beginning alone; of one syllable and a particle, the syllable.
        ("고양이는 어디에 있나요", set(), "고양 어디 있나"),
        ("집에서", set(), "집에 집"),
        ("집에서", {"집에"}, "집에 집"),
        # A character by itself, and words that have spaces between them.
        ("猫", None, "猫"),
        ("猫", set(), "猫"),
        ("Where is 猫 today", set(), "where is 猫 today"),
    ],
)
def test_the_pairs_that_tell(question: str, seen: set[str] | None, told: str) -> None:
    assert " ".join(telling_words(question, seen)) == told


@pytest.mark.parametrize(
    ("text", "singles"),
    [("我喜欢猫", "我喜欢猫"), ("猫", ""), ("고양이 집", "고양이"), ("猫猫", "猫"), ("plain", "")],
)
def test_single_characters_are_those_of_runs(text: str, singles: str) -> None:
    assert "".join(single_characters(text)) == singles
