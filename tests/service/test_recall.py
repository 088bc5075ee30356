from __future__ import annotations

from array import array
from datetime import UTC, datetime
from uuid import uuid4

import asyncpg
import pytest

from mnemic import (
    EmbedderUnavailable,
    Forbidden,
    InvalidInput,
    MemoryManager,
    NotFound,
    ProcedureCreate,
    Scope,
    Step,
)
from mnemic.model.embedding import Vector
from mnemic.settings import MemorySettings
from mnemic.store.statistics import PENDING_MAX
from mnemic.testing import TickingClock, a_conversation, a_fact, a_turn
from mnemic.wiring import Wiring

TALK = [
    "Our deploys are frozen on Fridays because of the support rota.",
    "Noted: no deploys on Fridays.",
    "We chose PostgreSQL over a document store for the ledger.",
    "The ledger will live in PostgreSQL.",
    "I prefer short answers without preamble.",
    "Short answers it is.",
]


async def test_the_turn_that_answers_comes_first_with_its_reasons(
    memory: MemoryManager, scope: Scope
) -> None:
    await memory.sessions.append(a_conversation(TALK), scope=scope.session("s"))

    found = await memory.recall("which database holds the ledger?", scope=scope.session("s"))

    best = found.hits[0]
    assert "PostgreSQL" in best.text
    assert best.near_place is not None
    assert best.words_place is not None
    assert best.why[0].startswith(("meaning", "words"))
    assert best.score == pytest.approx(
        best.reasons.base + sum(best.reasons[best.reasons._fields.index("base") + 1 :]),
    )
    assert found.searched == len(TALK)
    assert found.degraded == ()


async def test_scores_fall_and_the_limit_is_an_upper_bound(
    memory: MemoryManager, scope: Scope
) -> None:
    await memory.sessions.append(a_conversation(TALK), scope=scope.session("s"))

    found = await memory.recall("deploys", scope=scope.session("s"), limit=3, floor=0.0)

    scores = [hit.score for hit in found.hits]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)


async def test_nothing_relevant_says_so(memory: MemoryManager, scope: Scope) -> None:
    await memory.sessions.append(a_conversation(TALK), scope=scope.session("s"))

    found = await memory.recall("wxqz vbnm plokij", scope=scope.session("s"))

    assert found.hits == ()
    assert found.low_confidence
    assert found.notes[0].startswith("nothing relevant")


async def test_an_empty_scope_says_so(memory: MemoryManager, scope: Scope) -> None:
    found = await memory.recall("anything", scope=scope)

    assert found.hits == ()
    assert found.notes == ("nothing is remembered in this scope yet",)
    assert found.low_confidence


async def test_a_limit_beyond_the_largest_is_cut_and_said(
    memory: MemoryManager, scope: Scope
) -> None:
    await memory.remember("The rota is weekly.", scope=scope)

    found = await memory.recall("rota", scope=scope, limit=1_000_000)

    assert found.limit == memory.settings.recall.limit_max
    assert "limit cut to 100, the largest" in found.notes


@pytest.mark.parametrize("limit", [0, -1, True, 1.5])
async def test_a_limit_that_is_none_is_refused(
    memory: MemoryManager, scope: Scope, limit: int
) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        await memory.recall("rota", scope=scope, limit=limit)


@pytest.mark.parametrize("query", ["", "  ", "a\x00b", "\ud800", "x" * 10_001])
async def test_a_question_that_cannot_be_asked_is_refused(
    memory: MemoryManager, scope: Scope, query: str
) -> None:
    with pytest.raises(InvalidInput, match="query"):
        await memory.recall(query, scope=scope)


@pytest.mark.parametrize(
    "query",
    ["100%", "file_name", "a\\b", "'; drop table mnemic.turns; --", "a & b | !c <-> d", "(((", "*"],
)
async def test_marks_in_a_question_are_ordinary_text(
    memory: MemoryManager, scope: Scope, query: str
) -> None:
    await memory.remember(f"Literally {query} it says.", scope=scope)

    found = await memory.recall(f"Literally {query}", scope=scope)

    assert query in found.hits[0].text


async def test_only_the_types_asked_for_come_back(memory: MemoryManager, scope: Scope) -> None:
    await memory.sessions.append(a_conversation(TALK), scope=scope.session("s"))
    await memory.remember("Deploys are frozen on Fridays.", scope=scope)

    found = await memory.recall(
        "deploys Friday", scope=scope.session("s"), memory_types=["semantic"], floor=0.0
    )

    assert {hit.kind for hit in found.hits} == {"fact"}
    with pytest.raises(InvalidInput, match="memory_types"):
        await memory.recall("deploys", scope=scope, memory_types=["magic"])


async def test_a_child_sees_its_ancestors_and_no_sibling(
    memory: MemoryManager, scope: Scope
) -> None:
    ours, theirs = scope.project("ours"), scope.project("theirs")
    await memory.remember("Heliotrope is the global word.", scope=scope)
    await memory.remember("Heliotrope is the word of ours.", scope=ours)
    await memory.remember("Heliotrope is the word of theirs.", scope=theirs)
    await memory.remember("Heliotrope is the word of the agent.", scope=ours.agent("a"))

    found = await memory.recall("heliotrope", scope=ours, floor=0.0)

    assert {hit.text for hit in found.hits} == {
        "Heliotrope is the global word.",
        "Heliotrope is the word of ours.",
    }


class Broken:
    """An embedder whose service is away; its signature is the registered one."""

    def __init__(self, embedder: object) -> None:
        self.signature = embedder.signature  # type: ignore[attr-defined]

    async def embed(self, texts: list[str]) -> list[Vector]:
        raise EmbedderUnavailable(count=len(texts))

    async def close(self) -> None:
        """Nothing is open."""


async def test_without_the_embedder_words_are_searched_and_it_is_said(
    settings: MemorySettings, memory: MemoryManager, embedder: object, scope: Scope
) -> None:
    await memory.remember("The staging cluster runs in Frankfurt.", scope=scope)
    wiring = Wiring(settings, clock=TickingClock(), embedder=Broken(embedder))

    async with MemoryManager(wiring) as degraded:
        receipt = await degraded.remember("The staging database is called heron.", scope=scope)
        found = await degraded.recall("staging cluster", scope=scope, floor=0.0)

    assert receipt.vector.value == "pending"
    assert found.degraded == ("vectors: the embedder is unavailable",)
    assert "Frankfurt" in found.hits[0].text


async def test_without_the_embedder_a_procedure_is_found_by_a_misspelt_word(
    settings: MemorySettings, memory: MemoryManager, embedder: object, scope: Scope
) -> None:
    told = ProcedureCreate(name="Rotate the credentials", steps=(Step(action="Ask for new ones"),))
    kept = await memory.at(scope).procedural.record_procedure(told)
    wiring = Wiring(settings, clock=TickingClock(), embedder=Broken(embedder))

    async with MemoryManager(wiring) as degraded:
        found = await degraded.at(scope).procedural.find_matching("credentails")

    assert [one.id for one in found] == [kept.id]


async def test_vectors_that_are_missing_are_filled_later(
    settings: MemorySettings, memory: MemoryManager, embedder: object, scope: Scope
) -> None:
    wiring = Wiring(settings, clock=TickingClock(), embedder=Broken(embedder))
    async with MemoryManager(wiring) as degraded:
        await degraded.sessions.append(a_conversation(TALK), scope=scope.session("s"))
        await degraded.sessions.end(scope=scope.session("s"))
        await degraded.remember("Deploys are frozen on Fridays.", scope=scope)

    report = await memory.maintenance.embed_missing()

    found = await memory.recall("database", scope=scope, floor=0.0, limit=100)
    assert report.done >= len(TALK) + 2
    assert {hit.kind for hit in found.hits} == {"turn", "episode", "fact"}
    assert all(hit.near_place for hit in found.hits)
    assert (await memory.maintenance.embed_missing()).done == 0


async def test_counting_words_changes_no_score(memory: MemoryManager, scope: Scope) -> None:
    await memory.sessions.append(a_conversation(TALK), scope=scope.session("s"))
    await memory.remember("Deploys are frozen on Fridays.", scope=scope)
    before = await memory.recall("deploys on Fridays", scope=scope.session("s"), floor=0.0)

    await memory.maintenance.count_terms()

    after = await memory.recall("deploys on Fridays", scope=scope.session("s"), floor=0.0)
    assert [hit.id for hit in after.hits] == [hit.id for hit in before.hits]
    assert [hit.score for hit in after.hits] == pytest.approx([hit.score for hit in before.hits])
    assert after.searched == before.searched == len(TALK) + 1


async def test_more_writes_than_are_read_uncounted_are_counted_on_the_way(
    memory: MemoryManager, scope: Scope
) -> None:
    turns = [a_turn(f"Line number {n}.") for n in range(PENDING_MAX + 100)]

    await memory.sessions.append(turns, scope=scope.session("long"))

    found = await memory.recall("line", scope=scope.session("long"))
    assert found.searched == PENDING_MAX + 100
    assert not any("catching up" in note for note in found.notes)


async def test_forgotten_memories_are_gone_with_everything_made_for_them(
    memory: MemoryManager, scope: Scope, seen: object
) -> None:
    kept = await memory.remember("The rota is weekly.", scope=scope)
    gone = await memory.remember("The rota starts on Mondays.", scope=scope)
    await memory.maintenance.count_terms()

    forgotten = await memory.forget([gone.id], scope=scope)

    found = await memory.recall("rota", scope=scope, floor=0.0)
    assert forgotten.counts == {"fact": 1}
    assert [hit.id for hit in found.hits] == [kept.id]
    assert found.searched == 1
    for table in ("fact_vectors WHERE memory_id", "fact_evidence WHERE fact_id"):
        query = f"SELECT count(*) FROM mnemic.{table} = $1"
        assert await seen.fetchval(query, gone.id) == 0  # type: ignore[attr-defined]


async def test_forgetting_one_unknown_id_forgets_none(memory: MemoryManager, scope: Scope) -> None:
    kept = await memory.remember("The rota is weekly.", scope=scope)

    with pytest.raises(NotFound):
        await memory.forget([kept.id, uuid4()], scope=scope)

    assert len((await memory.recall("rota", scope=scope)).hits) == 1


async def test_what_another_tenant_owns_is_as_unknown_as_what_never_was(
    memory: MemoryManager, scope: Scope
) -> None:
    theirs = await memory.remember("The rota is weekly.", scope=Scope.user(f"other-{uuid4()}"))
    nobodys = uuid4()

    with pytest.raises(NotFound) as foreign:
        await memory.forget([theirs.id], scope=scope)
    with pytest.raises(NotFound) as missing:
        await memory.forget([nobodys], scope=scope)

    assert str(foreign.value).replace(str(theirs.id), "") == str(missing.value).replace(
        str(nobodys), ""
    )


async def test_a_narrow_scope_cannot_forget_what_a_wider_one_holds(
    memory: MemoryManager, scope: Scope
) -> None:
    wide = await memory.remember("The rota is weekly.", scope=scope)

    with pytest.raises(Forbidden, match="wider global scope"):
        await memory.forget([wide.id], scope=scope.project("p"))


async def test_every_kind_can_be_forgotten(memory: MemoryManager, scope: Scope) -> None:
    session = scope.session("s")
    turns = await memory.sessions.append(a_conversation(TALK), scope=session)
    episode = await memory.sessions.end(scope=session)
    procedure = await memory.remember("Deploy\n1. Tag", scope=scope, memory_type="procedural")
    fact = await memory.remember("The rota is weekly.", scope=scope)
    assert episode is not None

    ids = [*(turn.id for turn in turns), episode.id, procedure.id, fact.id]
    forgotten = await memory.forget(ids, scope=scope)

    assert forgotten.counts == {"turn": 6, "episode": 1, "fact": 1, "procedure": 1}
    assert (await memory.recall("rota", scope=scope, floor=0.0)).searched == 0


class Picky:
    """An embedder that refuses one text, and every batch that holds it."""

    def __init__(self, inner: object, refused: str) -> None:
        self.inner = inner
        self.signature = inner.signature  # type: ignore[attr-defined]
        self.refused = refused

    async def embed(self, texts: list[str]) -> list[Vector]:
        if any(self.refused in text for text in texts):
            raise EmbedderUnavailable(count=len(texts))
        found: list[Vector] = await self.inner.embed(texts)  # type: ignore[attr-defined]
        return found

    async def close(self) -> None:
        """The model stays open for others."""


async def test_a_text_that_the_model_refuses_holds_up_no_other(
    settings: MemorySettings, embedder: object, scope: Scope, seen: asyncpg.Connection
) -> None:
    async with MemoryManager(Wiring(settings, embedder=Broken(embedder))) as degraded:
        for text in ("The poison is here.", "The rota is weekly.", "The vault is shut."):
            await degraded.remember(text, scope=scope)

    async with MemoryManager(Wiring(settings, embedder=Picky(embedder, "poison"))) as picky:
        report = await picky.maintenance.embed_missing()

    waiting = "SELECT content FROM mnemic.facts WHERE tenant_id = $1 AND needs_vector"
    rows = await seen.fetch(waiting, scope.tenant.id)
    assert [row["content"] for row in rows] == ["The poison is here."]
    assert report.failed == 1


class Misshapen(Picky):
    """An embedder whose vectors cannot be kept."""

    async def embed(self, texts: list[str]) -> list[Vector]:
        return [array("f", [0.0] * 384) for _ in texts]


async def test_a_vector_that_cannot_be_kept_is_none(
    settings: MemorySettings, embedder: object, scope: Scope
) -> None:
    wiring = Wiring(settings, clock=TickingClock(), embedder=Misshapen(embedder, ""))

    async with MemoryManager(wiring) as memory:
        receipt = await memory.remember("The rota is weekly.", scope=scope)

    assert receipt.vector.value == "pending"


async def test_one_key_forgets_once_and_answers_the_same(
    memory: MemoryManager, scope: Scope
) -> None:
    kept = await memory.remember("The rota is weekly.", scope=scope)

    first = await memory.forget([kept.id], scope=scope, idempotency_key="k")
    second = await memory.forget([kept.id], scope=scope, idempotency_key="k")

    assert first == second
    assert first.counts == {"fact": 1}


async def test_a_grant_lets_a_narrow_scope_forget_above(
    memory: MemoryManager, scope: Scope
) -> None:
    project, agent = scope.project("p"), scope.project("p").agent("a")
    wide = await memory.remember("The rota is weekly.", scope=project)
    await memory.grants.allow(agent, to=project)

    forgotten = await memory.forget([wide.id], scope=agent)

    assert forgotten.total == 1


async def test_history_does_not_stand_in_the_way_of_what_is_true(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    pet = a_fact(predicate="keeps", object="Miso", content="User keeps a small tabby kitten, Miso")
    kept = await memory.store_fact(pet, scope=scope)
    for number in range(40):
        home = f"house {number} beside a feline animal companion"
        await memory.store_fact(a_fact(predicate="lives_in", object=home), scope=scope)
    old = a_fact(predicate="lives_in", object="a cat", valid_from=datetime(1999, 1, 1, tzinfo=UTC))
    await memory.store_fact(old, scope=scope)

    found = await memory.recall("feline animal companion", scope=scope, floor=0.0)
    await memory.maintenance.embed_missing()

    vectors = "SELECT count(*) FROM mnemic.fact_vectors WHERE scope_id = $1"
    assert kept.id in {hit.id for hit in found.hits}
    assert all(hit.near_place for hit in found.hits)
    assert await seen.fetchval(vectors, scope.id) == 2


async def test_ids_are_taken_as_the_text_they_are_in_json(
    memory: MemoryManager, scope: Scope
) -> None:
    kept = await memory.remember("The rota is weekly.", scope=scope)

    forgotten = await memory.forget([str(kept.id)], scope=scope)  # type: ignore[list-item]

    assert forgotten.total == 1


@pytest.mark.parametrize("ids", [["abc"], "abc", [None], [{}], 7])
async def test_what_is_no_id_is_named(memory: MemoryManager, scope: Scope, ids: object) -> None:
    with pytest.raises(InvalidInput, match=r"^ids: "):
        await memory.forget(ids, scope=scope)  # type: ignore[arg-type]


async def test_a_fact_is_by_its_subject_only_where_that_is_somebody_who_speaks(
    memory: MemoryManager, scope: Scope
) -> None:
    said = [
        a_turn(f"Tea number {number} is mine.", actor=("Robin", "Quinn")[number % 2])
        for number in range(4)
    ]
    await memory.sessions.append(said, scope=scope.session("s"))
    for subject in ("Robin", "Quinn", "The cellar"):
        await memory.store_fact(
            a_fact(subject=subject, predicate="holds", object="tea"), scope=scope
        )

    found = await memory.recall("How much tea has Robin?", scope=scope.session("s"), floor=0.0)

    by = {hit.memory.subject: hit.reasons.actor for hit in found.hits if hit.kind == "fact"}
    assert by["Quinn"] == 0.0 < by["The cellar"] < by["Robin"]
