"""Under a filter that leaves out a part of a kind each arm still works, and alone can win."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemic import EpisodeCreate, MemoryManager, RecallStage, Scope, where
from mnemic.model.embedding import Embedder
from mnemic.model.recall import Recall
from mnemic.settings import MemorySettings
from mnemic.testing import a_fact, a_turn
from mnemic.wiring import Wiring

DAY = datetime(2023, 5, 8, 9, tzinfo=UTC)
LONG_BEFORE = datetime(2021, 1, 1, tzinfo=UTC)
OTHERS = 31  # one more than an arm gives
IN = where("tags").eq("in")
OUT = where("tags").eq("out")
ARMS = ("near", "words", "actor_near", "actor_words", "spelling", "entity", "time")


def _arms_of(found: Recall) -> list[set[str]]:
    """Which arms found each hit."""
    return [
        {name for name in ARMS if getattr(hit, f"{name}_place") is not None} for hit in found.hits
    ]


async def _said(memory: MemoryManager, scope: Scope, *texts: str, **given: Any) -> None:
    """Turns of a session of their own: nothing stands beside them."""
    values = {"tags": ("in",), "occurred_at": LONG_BEFORE, **given}
    for number, text in enumerate(texts):
        session = scope.session(f"{text[:40]} {number} {values['tags']}")
        await memory.sessions.append([a_turn(text, **values)], scope=session)
        await memory.sessions.end(scope=session)


async def _asked(memory: MemoryManager, scope: Scope, question: str, **given: Any) -> Recall:
    values: dict[str, Any] = {"filters": IN, "floor": 0.0, "memory_types": ["episodic"], **given}
    values["filters"] = values["filters"] & where("kind").eq("turn")
    return await memory.recall(question, scope=scope, **values)


def _garden(number: int) -> str:
    return f"We decided about the garden once more, version {number}."


async def test_meaning_alone_can_win(memory: MemoryManager, scope: Scope) -> None:
    cat = "The feline was resting upon its couch."
    await _said(memory, scope, cat, "The budget was approved.", "Valkey holds carts.")
    await _said(memory, scope, cat, tags=("out",))

    found = await _asked(memory, scope, "Where do cats like sleeping?")

    assert found.hits[0].memory.tags == ("in",)
    assert cat in found.hits[0].text
    assert _arms_of(found)[0] == {"near"}


async def test_words_alone_can_win(
    memory: MemoryManager, wordless: MemoryManager, scope: Scope
) -> None:
    await _said(wordless, scope, "Ticket QX77 was closed.")
    await _said(wordless, scope, "Ticket QX77 was opened.", tags=("out",))
    await _said(memory, scope, "My cat sleeps.")

    found = await _asked(memory, scope, "QX77")

    assert found.hits[0].text == "User: Ticket QX77 was closed."
    assert found.returned == 2
    assert _arms_of(found)[0] == {"words"}


async def test_the_actor_alone_can_win(memory: MemoryManager, scope: Scope) -> None:
    await _said(memory, scope, *map(_garden, range(OTHERS)))
    perhaps = "A bus left for Denver; once more it was decided, about a pump in the garden."
    await _said(memory, scope, perhaps, actor="Vera")
    await _said(memory, scope, perhaps, actor="Vera", tags=("out",))

    found = await _asked(memory, scope, "What did Vera decide about the garden once more?")

    assert (found.hits[0].memory.actor, found.hits[0].memory.tags) == ("Vera", ("in",))  # type: ignore[union-attr]
    assert _arms_of(found)[0] == {"actor_near", "actor_words"}


@pytest.mark.parametrize("kind", ["turn", "fact", "episode", "procedure"])
async def test_another_name_alone_can_win_in_every_kind(
    memory: MemoryManager, wordless: MemoryManager, scope: Scope, kind: str
) -> None:
    told = "Ada walked through New York City"
    for tags in (["in"], ["out"]):
        await _said(memory, scope, f"{told}.", tags=tuple(tags))
        await memory.store_fact(a_fact(object=tags[0], content=told, tags=tuple(tags)), scope=scope)
        episode = EpisodeCreate(task_description=told, occurred_at=DAY, tags=tuple(tags))
        await memory.at(scope).episodic.record_episode(episode)
        await memory.remember(
            f"{told} {tags[0]}\n1. Walk", scope=scope, memory_type="procedural", tags=tags
        )
    asked: dict[str, Any] = {"scope": scope, "filters": IN & where("kind").eq(kind)}
    before = await wordless.recall("NYC?", floor=0.1, **asked)

    await memory.at(scope).semantic.add_alias("New York City", "NYC")

    found = await wordless.recall("NYC?", **asked)
    assert before.hits == ()
    assert [hit.memory.tags for hit in found.hits] == [("in",)]
    assert _arms_of(found) == [{"entity"}]
    assert found.hits[0].entity_place == 1


@pytest.mark.parametrize(
    "asked", ["on 8 May 2023", "between April and June 2023", "in 2023", "in May 2023"]
)
async def test_a_time_alone_can_win(memory: MemoryManager, scope: Scope, asked: str) -> None:
    await _said(memory, scope, *map(_garden, range(OTHERS)))
    await _said(memory, scope, "The kettle broke.", occurred_at=DAY)
    await _said(memory, scope, "The kettle broke.", occurred_at=DAY, tags=("out",))

    question = f"What did we decide about the garden {asked}?"
    found = await _asked(memory, scope, question, limit=40)
    undated = await _asked(memory, scope, "What did we decide about the garden?", limit=30)

    [kettle] = [hit for hit in found.hits if "kettle" in hit.text]
    assert kettle.memory.tags == ("in",)
    assert _arms_of(found)[found.hits.index(kettle)] - {"near", "words"} == {"time"}
    assert kettle.time_place == 1
    assert kettle.reasons.date > 0
    assert not [hit for hit in undated.hits if "kettle" in hit.text]


async def test_what_a_time_alone_found_can_be_first(
    memory: MemoryManager, wordless: MemoryManager, scope: Scope
) -> None:
    await _said(wordless, scope, "The kettle broke.", occurred_at=DAY)
    await _said(wordless, scope, "A lamp fell.", occurred_at=LONG_BEFORE)
    await _said(wordless, scope, "The kettle broke.", occurred_at=DAY, tags=("out",))

    found = await _asked(wordless, scope, "What happened on 8 May 2023?", limit=1)

    assert [hit.text for hit in found.hits] == ["User: The kettle broke."]
    assert _arms_of(found) == [{"time"}]
    assert found.hits[0].memory.tags == ("in",)


async def test_spelling_alone_can_win(
    memory: MemoryManager, wordless: MemoryManager, scope: Scope
) -> None:
    for tags in (("in",), ("out",)):
        await _said(memory, scope, f"Ada loved Barcelona, said {tags[0]}.", tags=tags)
    await _said(memory, scope, "The rota is weekly.")

    found = await _asked(wordless, scope, "barcelonna?", limit=1)

    assert [hit.memory.tags for hit in found.hits] == [("in",)]
    assert _arms_of(found) == [{"spelling"}]


async def test_how_many_happened_at_a_time_is_counted_among_those_that_pass(
    settings: MemorySettings, memory: MemoryManager, embedder: Embedder, scope: Scope
) -> None:
    for number in range(3):
        await _said(memory, scope, f"Lamp {number} broke.", occurred_at=DAY, tags=("out",))
    await _said(memory, scope, "The kettle broke.", occurred_at=DAY)
    recall = settings.recall.model_copy(update={"time_candidates_max": 2})
    wiring = Wiring(settings.model_copy(update={"recall": recall}), embedder=embedder)

    async with MemoryManager(wiring) as narrow:
        few = await _asked(narrow, scope, "What happened on 8 May 2023?")
        many = await _asked(narrow, scope, "What happened on 8 May 2023?", filters=OUT)

    assert [hit.time_place for hit in few.hits] == [1]
    assert [hit.time_place for hit in many.hits] == [None] * 3


async def test_why_not_and_explain_know_the_arms_of_a_filter(
    memory: MemoryManager, scope: Scope
) -> None:
    await memory.at(scope).semantic.add_alias("New York City", "NYC")
    kept = {}
    for tags in (("in",), ("out",)):
        session = scope.session(tags[0])
        said = a_turn("I saw New York City.", occurred_at=DAY, tags=tags)
        [receipt] = await memory.sessions.append([said], scope=session)
        kept[tags[0]] = receipt.id
        await memory.sessions.end(scope=session)
    question = "Who saw NYC on 8 May 2023?"

    found = await memory.recall(question, scope=scope, floor=0.0, filters=IN, explain=True)
    why = {
        name: await memory.why_not(question, one, scope=scope, floor=0.0, filters=IN)
        for name, one in kept.items()
    }

    assert found.explanation is not None
    places = found.explanation.places(kept["in"])
    assert (places["entity"], places["time"]) == (1, 1)
    assert found.explanation.places(kept["out"]) == {}
    assert why["in"].stage is RecallStage.RETURNED
    assert (why["in"].ranks["entity"], why["in"].ranks["time"]) == (1, 1)
    assert why["out"].stage is RecallStage.FILTER


async def test_a_question_of_the_past_has_these_arms_under_a_filter_too(
    memory: MemoryManager, scope: Scope
) -> None:
    await memory.at(scope).semantic.add_alias("New York City", "NYC")
    for tags in (("in",), ("out",)):
        await _said(memory, scope, "Ada saw New York City.", occurred_at=DAY, tags=tags)
    question = "What of NYC on 8 May 2023?"
    live = await _asked(memory, scope, question)
    moment = live.hits[0].memory.recorded_at + timedelta(days=1)

    past = await _asked(memory, scope, question, known_at=moment)

    assert [hit.id for hit in past.hits] == [hit.id for hit in live.hits]
    assert _arms_of(past) == _arms_of(live)
    assert {"entity", "time"} <= _arms_of(past)[0]
