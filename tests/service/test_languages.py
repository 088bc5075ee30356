"""Whatever is said in Chinese, Japanese, Korean, Russian or Arabic is found among its like."""

from __future__ import annotations

import pytest
from spoken_languages import LANGUAGES, Language

from mnemic import MemoryManager, Scope
from mnemic.embed.minilm import SIGNATURE
from mnemic.testing import a_conversation, a_scope

KINDS = ("turn", "fact", "episode", "procedure", "turn", "fact")
UNREAD = {
    "chinese": ("Han",),
    "japanese": ("Han", "Kana"),
    "korean": ("Hangul",),
    "russian": ("Cyrillic",),
    "arabic": ("Arabic",),
}


@pytest.fixture(params=LANGUAGES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def language(name: str) -> Language:
    return LANGUAGES[name]


@pytest.fixture
async def filled(memory: MemoryManager, language: Language) -> Scope:
    """A scope with two hundred sentences, and those that are asked for, in every kind."""
    scope = a_scope()
    singles = [said for said, _ in language.one_character if said not in dict(language.asked)]
    turns = [*language.others, *singles]
    for (said, _), kind in zip(language.asked, KINDS, strict=True):
        if kind == "turn":
            turns.insert(len(turns) // 2, said)
        elif kind == "fact":
            await memory.remember(said, scope=scope)
        elif kind == "episode":
            await memory.remember(said, scope=scope, memory_type="episodic")
        else:
            await memory.remember(f"{said}\n1. {said}", scope=scope, memory_type="procedural")
    await memory.sessions.append(a_conversation(turns), scope=scope.session("s"))
    return scope


async def test_a_sentence_is_found_by_its_words_and_what_was_never_said_is_not(
    memory: MemoryManager,
    wordless: MemoryManager,
    filled: Scope,
    language: Language,
    name: str,
) -> None:
    session = filled.session("s")
    for said, question in (*language.asked, *language.one_character):
        by_words = await wordless.recall(question, scope=session)
        with_meaning = await memory.recall(question, scope=session)

        for found in (by_words, with_meaning):
            assert found.hits, f"{question}: {found.notes}"
            assert said in found.hits[0].text, f"{question}: {found.hits[0].text}"
            assert found.hits[0].words_place is not None
        assert by_words.degraded
        notes = " ".join(with_meaning.notes)
        assert f"{SIGNATURE.name} does not read" in notes
        assert any(script in notes for script in UNREAD[name])
    nothing = await memory.recall(language.foreign, scope=session)
    assert nothing.low_confidence
    assert nothing.hits == (), (
        nothing.hits[0].text,
        nothing.hits[0].score,
        nothing.hits[0].reasons,
    )
    assert any("nothing relevant" in note for note in nothing.notes)
