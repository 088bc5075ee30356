"""Size limits: nothing is cut without a word, and no bound is somebody else's exception."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from mcp import Client

from mnemic import MemoryManager, NotFound, Scope, TurnCreate, VectorState
from mnemic.edge.mcp.server import build_server
from mnemic.model.embedding import Embedder, Vector
from mnemic.model.transcript import Utterance
from mnemic.testing import a_conversation, a_fact, a_turn
from oracles.answers import refused
from oracles.reach import within_budget, within_limit
from oracles.stage import HashingEmbedder, Stage

NOT_APPLICABLE: dict[str, str] = {}

AT = datetime(2026, 3, 1, tzinfo=UTC)
MANY = 40_000  # more than the 32,767 values that one statement can bind


async def test_b04_two_long_keys_that_differ_at_their_end_are_two(
    memory: MemoryManager, scope: Scope
) -> None:
    one, other = "k" * 499 + "a", "k" * 499 + "b"
    here = memory.at(scope)

    for name in (one, other):
        await here.working.set(name, name[-1])
        await here.semantic.store_fact(a_fact(subject=name, object=name[-1]))
        await memory.at(scope.project(name)).working.set("k", name[-1])
        await memory.remember(f"Note {name[-1]}", scope=scope, idempotency_key=name)

    assert [await here.working.get(name) for name in (one, other)] == ["a", "b"]
    facts = [await here.semantic.get_by_entity(name) for name in (one, other)]
    assert [[fact.object for fact in found] for found in facts] == [["a"], ["b"]]
    own = [await memory.at(scope.project(name)).working.get("k") for name in (one, other)]
    assert own == ["a", "b"]
    assert await here.working.get(one[:-1]) is None


async def test_b05_a_question_of_58000_words_is_refused_by_the_core_on_every_path(
    memory: MemoryManager, scope: Scope
) -> None:
    flood = "word " * 58_000
    here = memory.at(scope)
    await memory.remember("The gyrfalcon nests on the tower", scope=scope)

    for asked, field in (
        (memory.recall, "query"),
        (memory.context, "query"),
        (here.semantic.search_facts, "query"),
        (here.episodic.search_similar, "query"),
        (here.procedural.find_matching, "context"),
    ):
        own = {"scope": scope} if asked in {memory.recall, memory.context} else {}
        await refused(asked(flood, **own), field=field, control=asked("gyrfalcon", **own))

    # As long as it may be, it is answered by its most selective words.
    long = "so and then we the of it " * 390 + "gyrfalcon nests tower"
    assert len(long) < 10_000
    found = await memory.recall(long, scope=scope, floor=0.0)
    assert [hit.words_place for hit in found.hits] == [1]


async def test_b09_one_text_that_is_too_long_costs_no_other_its_vector(embedder: Embedder) -> None:
    short = [f"Release {place} went out" for place in range(9)]
    texts = [*short[:4], "overlong " * 200_000, *short[4:]]

    together = await embedder.embed(texts)
    alone = await embedder.embed(short)

    assert len(together) == len(texts)
    assert all(len(one) == embedder.signature.dimensions for one in together)
    near = [
        sum(a * b for a, b in zip(one, other, strict=True))
        for one, other in zip([*together[:4], *together[5:]], alone, strict=True)
    ]
    assert min(near) > 0.99


async def test_b10_a_message_of_100_kb_is_kept_whole_and_a_longer_one_refused(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    longest = ("A line of a long log, \u00e9. " * 5_000)[:100_000]

    await refused(
        memory.sessions.append([a_turn(longest + "x")], scope=session),
        field="text",
        control=memory.sessions.append([a_turn(longest, external_id="m")], scope=session),
    )

    [kept] = await memory.sessions.append([a_turn(longest, external_id="m")], scope=session)
    assert not kept.created
    assert (await stage.kept(kept, session)).text == longest


async def test_b11_a_conversation_of_three_batches_is_kept_turn_by_turn(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    said = a_conversation([f"Line {place} of the log" for place in range(600)])
    entries = [Utterance(session="s", turn=turn, line=at) for at, turn in enumerate(said)]

    report = await memory.transcripts.ingest(entries, scope=scope, keep_open=True)

    rows = await stage.seen.fetch(
        "SELECT text, seq FROM mnemic.turns WHERE tenant_id = $1 ORDER BY seq", scope.tenant.id
    )
    assert (report.turns_added, report.problem_count) == (600, 0)
    assert [row["text"] for row in rows] == [turn.text for turn in said]
    assert [row["seq"] for row in rows] == list(range(600))


async def test_b12_more_values_than_a_statement_can_bind_are_no_driver_error(
    stage: Stage, scope: Scope
) -> None:
    strangers = [uuid4() for _ in range(MANY)]

    async with stage.another(limits={"batch_max": 100_000}) as memory:
        kept = await memory.store_fact(a_fact(), scope=scope)
        with pytest.raises(NotFound):
            await memory.forget([kept.id, *strangers], scope=scope)
        found = await stage.tools.transact(
            scope.tenant.id,
            lambda unit: unit.facts.by_ids(scope, [*strangers, kept.id]),
            read_only=True,
        )
        gone = await memory.forget([kept.id] * MANY, scope=scope)

    assert [fact.id for fact in found] == [kept.id]
    assert gone.counts == {"fact": 1}


async def _sixty_facts(memory: MemoryManager, scope: Scope) -> None:
    for place in range(60):
        await memory.store_fact(a_fact(object=f"tool {place}"), scope=scope)


async def test_b13_more_than_the_most_is_cut_and_said_to_be(
    memory: MemoryManager, scope: Scope
) -> None:
    await _sixty_facts(memory, scope)

    for asked in (3, 5_000, 10**5_000):
        found = await memory.recall("User uses tool", scope=scope, limit=asked, floor=0.0)
        within_limit(found, asked, 100)


async def test_b14_a_model_that_asks_for_a_million_is_told_the_most(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    await memory.store_fact(a_fact(), scope=scope)

    async with Client(build_server(memory, scope)) as client:
        cut = await client.call_tool("recall", {"query": "tools", "limit": 1_000_000})
        few = await client.call_tool("recall", {"query": "tools", "limit": 5})

    assert cut.structured_content is not None
    assert few.structured_content is not None
    assert cut.structured_content["limit"] == 100
    assert "limit cut to 100, the largest" in cut.structured_content["notes"]
    assert few.structured_content["limit"] == 5
    assert not any("cut" in note for note in few.structured_content["notes"])


async def test_b15_the_reply_tells_the_limit_that_held(memory: MemoryManager, scope: Scope) -> None:
    await _sixty_facts(memory, scope)
    semantic = memory.at(scope).semantic

    found = await memory.recall("User uses tool", scope=scope, limit=20, floor=0.0)
    all_of_it = await semantic.get_by_entity("User", 60)

    within_limit(found, 20, 100)
    assert found.returned == 20
    assert len(all_of_it) == 60


async def test_b16_the_end_of_a_session_cuts_nothing_of_what_was_said(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    text = "We looked at the ledger. " * 80 + "At last we chose PostgreSQL."
    [said] = await memory.sessions.append([a_turn(text)], scope=session)
    await memory.store_fact(a_fact(content=text), scope=session)

    ended = await memory.sessions.end(scope=session)

    assert ended is not None
    assert (await stage.kept(said, scope)).text == text
    [fact] = await memory.at(scope).semantic.get_by_entity("User")
    assert fact.content == text
    found = await memory.recall("chose PostgreSQL", scope=scope, memory_types=["episodic"])
    assert f"User: {text}" in [hit.text for hit in found.hits]


@pytest.mark.parametrize(
    "budget",
    [600_000_000, sys.maxsize, 10**400, 10**5_000],
    ids=["600 million", "maxsize", "beyond a float", "beyond what can be printed"],
)
async def test_b17_a_huge_budget_is_no_budget_at_all(
    memory: MemoryManager, scope: Scope, budget: int
) -> None:
    await _sixty_facts(memory, scope)

    plenty = await memory.context("User uses tool", scope=scope, budget=100_000)
    huge = await memory.context("User uses tool", scope=scope, budget=budget)
    small = await memory.context("User uses tool", scope=scope, budget=60)

    assert huge.text == plenty.text != ""
    assert huge.omitted == ()
    within_budget(huge)
    within_budget(small)
    assert small.omitted != ()


class OneShort(HashingEmbedder):
    """An endpoint that answers with a vector less than it was sent texts."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        made = await super().embed(texts)
        return made[:-1] if len(texts) > 1 else made


async def test_b18_vectors_that_are_too_few_are_given_to_nobody(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")

    async with stage.another(embedder=OneShort()) as short:
        kept = await short.sessions.append(_said("first", "second", "third"), scope=session)
    pending = await _vectors(stage, scope)
    control = await memory.sessions.append(_said("fourth", "fifth"), scope=session)

    assert [one.vector for one in kept] == [VectorState.PENDING] * 3
    assert pending == set()
    assert [one.vector for one in control] == [VectorState.READY] * 2
    assert await _vectors(stage, scope) == {one.id for one in control}


def _said(*texts: str) -> list[TurnCreate]:
    return [a_turn(f"The {text} word", external_id=text) for text in texts]


async def _vectors(stage: Stage, scope: Scope) -> set[UUID]:
    rows = await stage.seen.fetch(
        "SELECT memory_id FROM mnemic.turn_vectors WHERE tenant_id = $1", scope.tenant.id
    )
    return {row["memory_id"] for row in rows}
