"""A question of words that are common here is answered as if all that has them were ranked."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from mnemic import MemoryManager, ProcedureCreate, Recall, Scope, Step
from mnemic.service.question import arms_of
from mnemic.service.recall import parse_query
from mnemic.service.tools import Tools
from mnemic.settings import MemorySettings
from mnemic.testing import a_conversation, a_fact
from mnemic.wiring import Wiring

TURNS, FEW, MANY = 30, 10, 1_000
KEPT = 5


def _by_words(found: Recall, kind: str = "turn") -> list[UUID]:
    """What the words found among those of a kind, the best first."""
    assert found.explanation is not None
    arms = {(one.kind, one.name): one.hits for one in found.explanation.arms}
    return [hit.id for hit in arms.get((kind, "words"), ())]


async def _words_of(
    settings: MemorySettings,
    embedder: Any,
    scope: Scope,
    question: str,
    *,
    documents_max: int,
    limit: int,
) -> list[UUID]:
    # Without neighbours: where they come to all that is there, the arms are asked for no more.
    bounds = {"lexical_candidates_max": documents_max, "candidates_max": KEPT, "neighbours": 0}
    bound = settings.model_copy(update={"recall": settings.recall.model_copy(update=bounds)})
    async with MemoryManager(Wiring(bound, embedder=embedder)) as memory:
        return _by_words(
            await memory.recall(question, scope=scope, floor=0.0, limit=limit, explain=True)
        )


async def _told(memory: MemoryManager, scope: Scope) -> dict[UUID, str]:
    """Turns about tea, every second of them about green tea."""
    said = [f"{'green' if place % 2 else 'black'} tea {place}" for place in range(TURNS)]
    kept = await memory.sessions.append(a_conversation(said), scope=scope.session("tea"))
    return dict(zip((turn.id for turn in kept), said, strict=True))


@pytest.mark.parametrize("limit", [KEPT, TURNS])
@pytest.mark.parametrize(
    ("question", "among"),
    [
        ("green tea", "green tea"),  # both are common: what has both
        ("green zebra", "green"),  # nothing has the other
        ("tea", "tea"),  # there is no other
    ],
)
async def test_what_has_another_word_of_the_question_too_is_found_first(
    memory: MemoryManager,
    settings: MemorySettings,
    embedder: Any,
    scope: Scope,
    question: str,
    among: str,
    limit: int,
) -> None:
    told = await _told(memory, scope)
    scope = scope.session("tea")
    ask = partial(_words_of, settings, embedder, scope, question, limit=limit)

    few, many = await ask(documents_max=FEW), await ask(documents_max=MANY)

    assert few[:KEPT] == many[:KEPT]
    assert all(among in told[identity] for identity in few[:KEPT])
    having = [identity for identity, said in told.items() if among in said]
    assert len(few) >= min(limit, len(having))


async def test_common_words_are_matched_together_and_only_where_enough_have_both(
    tools: Tools, scope: Scope
) -> None:
    memory = MemoryManager(Wiring(tools.settings))
    memory._opened = tools
    await _told(memory, scope)
    scope = scope.session("tea")
    bounds = {"lexical_candidates_max": FEW, "candidates_max": KEPT}
    recall = tools.settings.recall.model_copy(update=bounds)
    bound = replace(tools, settings=tools.settings.model_copy(update={"recall": recall}))

    async def matched(limit: int) -> str | None:
        query, _ = parse_query(bound, "green tea", limit=limit, memory_types=None, floor=0.0)
        return (await arms_of(bound, query, scope)).match

    assert [await matched(limit) for limit in (1, 15, 16)] == [
        "('green') & ('tea')",
        "('green') & ('tea')",
        "'green'",
    ]


async def test_a_few_facts_and_procedures_are_found_beside_many_turns(
    tools: Tools, scope: Scope
) -> None:
    memory = MemoryManager(Wiring(tools.settings))
    bounds = {"lexical_candidates_max": FEW, "candidates_max": KEPT}
    recall = tools.settings.recall.model_copy(update=bounds)
    memory._opened = replace(tools, settings=tools.settings.model_copy(update={"recall": recall}))
    await _told(memory, scope)
    scope = scope.session("tea")
    fact = await memory.store_fact(a_fact(object="green cups"), scope=scope)
    steps = (Step(action="Heat the water to 80 degrees"),)
    way = ProcedureCreate(name="Brew green leaves", steps=steps)
    procedure = await memory.at(scope).procedural.record_procedure(way)

    found = await memory.recall("green tea", scope=scope, floor=0.0, limit=KEPT, explain=True)
    fitting = await memory.at(scope).procedural.find_matching("green tea")

    assert found.explanation is not None
    assert _by_words(found, "fact") == [fact.id]
    assert _by_words(found, "procedure") == [procedure.id]
    assert [one.id for one in fitting] == [procedure.id]
