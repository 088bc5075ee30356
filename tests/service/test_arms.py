"""Arms that only some questions need: each finds what no other arm would, and says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mnemic import MemoryManager, Scope
from mnemic.model.embedding import Embedder
from mnemic.model.recall import Hit, Recall
from mnemic.settings import MemorySettings
from mnemic.testing import a_turn
from mnemic.wiring import Wiring

EIGHTH = datetime(2023, 5, 8, 9, tzinfo=UTC)
OTHERS = 31  # one more than an arm gives; that one stands beside others
WHAT_HAPPENED = "What did we decide about the garden on 8 May 2023?"


async def _garden(memory: MemoryManager, scope: Scope) -> None:
    """Much was decided about the garden; on the day itself something else happened."""
    others = [
        a_turn(
            f"We decided about the garden once more, version {number}.",
            occurred_at=datetime(2021, 1, 1, tzinfo=UTC) + timedelta(days=number),
        )
        for number in range(OTHERS)
    ]
    await memory.sessions.append(others, scope=scope.session("talk"))
    told = a_turn("The kettle broke and Ada laughed.", occurred_at=EIGHTH)
    await memory.sessions.append([told], scope=scope.session("kettle"))
    for name in ("talk", "kettle"):
        await memory.sessions.end(scope=scope.session(name))


def _hit(found: Recall, words: str) -> Hit | None:
    return next((hit for hit in found.hits if words in hit.text), None)


async def _asked(memory: MemoryManager, scope: Scope, question: str) -> Recall:
    return await memory.recall(
        question, scope=scope, floor=0.0, limit=40, memory_types=["episodic"]
    )


@pytest.mark.parametrize(
    "question",
    [
        WHAT_HAPPENED,
        "What did we decide about the garden between April and June 2023?",
        "What did we decide about the garden in 2023?",
    ],
)
async def test_what_happened_at_the_time_asked_for_is_a_candidate(
    memory: MemoryManager, scope: Scope, question: str
) -> None:
    await _garden(memory, scope)

    found = await _asked(memory, scope, question)
    undated = await _asked(memory, scope, "What did we decide about the garden?")

    hit = _hit(found, "User: The kettle")
    assert hit is not None
    assert (hit.near_place, hit.words_place, hit.time_place) == (None, None, 1)
    assert hit.reasons.date > 0
    told = _hit(undated, "User: The kettle")
    assert told is None or (told.time_place, told.reasons.date) == (None, 0)


async def test_a_time_that_tells_too_little_adds_nothing(
    settings: MemorySettings, memory: MemoryManager, embedder: Embedder, scope: Scope
) -> None:
    await _garden(memory, scope)
    recall = settings.recall.model_copy(update={"time_candidates_max": 1})

    async with MemoryManager(
        Wiring(settings.model_copy(update={"recall": recall}), embedder=embedder)
    ) as narrow:
        found = await _asked(narrow, scope, WHAT_HAPPENED)

    told = _hit(found, "User: The kettle")
    assert told is None or told.time_place is None


async def test_an_episode_of_the_time_asked_for_is_a_candidate(
    memory: MemoryManager, scope: Scope
) -> None:
    await _garden(memory, scope)

    found = await _asked(memory, scope, WHAT_HAPPENED)

    assert any(hit.kind == "episode" and hit.time_place == 1 for hit in found.hits)


async def test_a_thing_is_found_under_its_other_names_in_every_kind(
    memory: MemoryManager, wordless: MemoryManager, scope: Scope
) -> None:
    told = "Ada walked through New York City"
    session = scope.session("s")
    await memory.sessions.append([a_turn(f"{told}.")], scope=session)
    await memory.remember(told, scope=scope)
    await memory.remember(told, scope=scope, memory_type="episodic")
    await memory.remember(f"{told}\n1. Walk", scope=scope, memory_type="procedural")
    before = await wordless.recall("NYC?", scope=session)

    await memory.at(scope).semantic.add_alias("New York City", "NYC")

    found = await wordless.recall("NYC?", scope=session)
    assert before.hits == ()
    assert {hit.kind for hit in found.hits} == {"turn", "fact", "episode", "procedure"}
    assert [(hit.entity_place, hit.words_place) for hit in found.hits] == [(1, None)] * 4
    assert all(hit.reasons.nb > 0 for hit in found.hits)


async def test_an_alias_holds_where_it_was_given_and_below(
    memory: MemoryManager, wordless: MemoryManager, scope: Scope
) -> None:
    ours, theirs = scope.project("ours"), scope.project("theirs")
    await memory.at(ours).semantic.add_alias("New York City", "NYC")
    for place in (ours, theirs):
        await memory.remember("Ada walked through New York City", scope=place)

    assert (await wordless.recall("NYC", scope=ours)).returned == 1
    assert (await wordless.recall("NYC", scope=ours.agent("a"))).returned == 1
    assert (await wordless.recall("NYC", scope=theirs)).returned == 0


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize(
    ("told", "question", "read_as"),
    [
        ("Ada loved Barcelona", "barcelonna?", "'barcelonna' is written nowhere here"),
        ("Mother received the parcel", "recieved", "read as 'receiv'"),
        ("Мы были в Казани", "Козань", "read as 'казан'"),
    ],
)
async def test_a_misspelt_word_is_read_as_the_nearest_that_was_written(
    memory: MemoryManager,
    wordless: MemoryManager,
    scope: Scope,
    told: str,
    question: str,
    read_as: str,
    *,
    counted: bool,
) -> None:
    await memory.remember(told, scope=scope)
    await memory.remember("The rota is weekly.", scope=scope)
    if counted:
        await memory.maintenance.count_terms()

    found = await wordless.recall(question, scope=scope)

    assert [hit.text for hit in found.hits] == [told]
    assert (found.hits[0].spelling_place, found.hits[0].words_place) == (1, None)
    assert any(read_as in note for note in found.notes)


async def test_a_word_that_was_written_is_never_taken_for_another(
    memory: MemoryManager, wordless: MemoryManager, scope: Scope
) -> None:
    await memory.remember("Ada loved Barcelona", scope=scope)
    await memory.remember("The rota is weekly.", scope=scope)

    found = await wordless.recall("barcelonna rota", scope=scope, floor=0.0)

    assert [hit.text for hit in found.hits] == ["The rota is weekly."]
    assert found.notes == ("nothing else that is remembered here comes near",)


async def test_words_of_another_scope_are_no_spelling(
    memory: MemoryManager, wordless: MemoryManager, scope: Scope
) -> None:
    await memory.remember("Ada loved Barcelona", scope=scope.project("theirs"))
    await memory.remember("Ada loved Barcelona", scope=Scope.user("somebody-else"))
    await memory.maintenance.count_terms()

    found = await wordless.recall("barcelonna", scope=scope.project("ours"))

    assert found.hits == ()
    assert not any("read as" in note for note in found.notes)
