"""A question of words that are common here is answered as if all that has them were ranked."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from mnemic import MemoryManager, Recall, Scope
from mnemic.service.question import arms_of
from mnemic.service.recall import parse_query
from mnemic.service.tools import Tools
from mnemic.settings import MemorySettings
from mnemic.testing import a_fact
from mnemic.wiring import Wiring

FACTS, FEW, MANY = 30, 10, 1_000
KEPT = 5


def _by_words(found: Recall) -> list[UUID]:
    """What the words found among the facts, the best first."""
    assert found.explanation is not None
    [arm] = [one for one in found.explanation.arms if (one.kind, one.name) == ("fact", "words")]
    return [hit.id for hit in arm.hits]


async def _words_of(
    settings: MemorySettings,
    embedder: Any,
    scope: Scope,
    question: str,
    *,
    documents_max: int,
    limit: int,
) -> list[UUID]:
    bounds = {"lexical_candidates_max": documents_max, "candidates_max": KEPT}
    bound = settings.model_copy(update={"recall": settings.recall.model_copy(update=bounds)})
    async with MemoryManager(Wiring(bound, embedder=embedder)) as memory:
        return _by_words(
            await memory.recall(question, scope=scope, floor=0.0, limit=limit, explain=True)
        )


@pytest.mark.parametrize("limit", [KEPT, FACTS])
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
    told = {}
    for number in range(FACTS):
        said = f"{'green' if number % 2 else 'black'} tea {number}"
        told[(await memory.store_fact(a_fact(object=said), scope=scope)).id] = said
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
    for number in range(FACTS):
        said = f"{'green' if number % 2 else 'black'} tea {number}"
        await memory.store_fact(a_fact(object=said), scope=scope)
    bounds = {"lexical_candidates_max": FEW, "candidates_max": KEPT}
    recall = tools.settings.recall.model_copy(update=bounds)
    bound = replace(tools, settings=tools.settings.model_copy(update={"recall": recall}))

    async def matched(limit: int) -> str | None:
        query, _ = parse_query(bound, "green tea", limit=limit, memory_types=None, floor=0.0)
        return (await arms_of(bound, query, scope)).match

    assert [await matched(limit) for limit in (1, 7, 8)] == [
        "('green') & ('tea')",
        "('green') & ('tea')",
        "'green'",
    ]
