"""Empty, blank and degenerate input: nothing is made of nothing, and nothing means no more."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from mnemic import EpisodeCreate, InvalidInput, MemoryManager, Outcome, Scope
from mnemic.model.embedding import Embedder
from mnemic.model.transcript import Utterance
from mnemic.testing import a_fact, a_turn
from oracles.answers import refused
from oracles.ranked import assert_ranked
from oracles.reach import nothing_wider
from oracles.stage import Stage

NOT_APPLICABLE: dict[str, str] = {}

AT = datetime(2026, 3, 1, tzinfo=UTC)


async def test_c02_of_no_messages_nothing_is_made(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    before = await stage.stored(session)

    none = await memory.sessions.append([], scope=session)
    empty = await memory.transcripts.ingest([], scope=scope)
    for text in ("", "  ", "\n\t"):
        await refused(
            memory.sessions.append([a_turn(text)], scope=session),
            field="text",
            control=memory.recall("anything", scope=scope),
        )

    assert none == []
    assert (empty.sessions, empty.turns_added, empty.problem_count) == ((), 0, 0)
    assert await stage.stored(session) == before
    assert len(await memory.sessions.append([a_turn()], scope=session)) == 1


@pytest.mark.parametrize("blank", ["\u200b", "\u3000", "\u3164", "\u2800", "\ufeff \u00a0", "\x07"])
async def test_c03_what_nobody_can_see_is_blank_in_every_script(
    stage: Stage, memory: MemoryManager, scope: Scope, blank: str
) -> None:
    before = await stage.stored(scope)

    for hostile, field, harmless in (
        (memory.remember(blank, scope=scope), "content", memory.recall("x", scope=scope)),
        (
            memory.store_fact(a_fact(object=blank), scope=scope),
            "object",
            memory.recall("x", scope=scope),
        ),
        (
            memory.at(scope).working.append_scratchpad(blank),
            "content",
            memory.at(scope).working.get_scratchpad(),
        ),
    ):
        await refused(hostile, field=field, control=harmless)

    assert await stage.stored(scope) == before
    kept = await memory.remember(f"visible{blank}", scope=scope)
    assert (await stage.kept(kept, scope)).content == f"visible{blank}"


async def test_c05_a_bad_item_moves_no_source_of_those_after_it(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    texts = ["I live in Oslo.", "I live\x00 nowhere.", "I work at Acme."]
    said = [a_turn(text, external_id=f"m-{place}") for place, text in enumerate(texts)]
    session = scope.session("s")
    entries = [Utterance(session="s", turn=turn, line=at) for at, turn in enumerate(said, 1)]

    report = await memory.transcripts.ingest(entries, scope=scope, keep_open=True)
    receipts = await memory.sessions.append([said[0], said[2]], scope=session)

    kept = [await stage.kept(one, session) for one in receipts]
    assert [one.text for one in kept] == [texts[0], texts[2]]
    assert [one.line for one in report.problems] == [2]
    assert report.turns_added == 2
    assert not any(one.created for one in receipts)


async def test_c06_an_empty_text_is_refused_before_it_meets_the_embedder(
    memory: MemoryManager, embedder: Embedder, scope: Scope
) -> None:
    session = scope.session("s")

    await refused(
        memory.sessions.append([a_turn("good"), a_turn("")], scope=session),
        field="text",
        control=memory.sessions.append([a_turn("good")], scope=session),
    )
    empty, plain = await embedder.embed(["", "plain"])

    assert len(empty) == len(plain) == embedder.signature.dimensions
    # A session in which nothing was said has nothing to embed either.
    silent = scope.session("silent")
    await memory.sessions.start(scope=silent)
    assert await memory.sessions.end(scope=silent) is None


async def test_c08_a_limit_of_nothing_is_refused_everywhere(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope)

    for ask in (
        lambda limit: memory.recall("x", scope=scope, limit=limit),
        lambda limit: here.semantic.search_facts("x", limit),
        lambda limit: here.semantic.get_by_entity("x", limit),
        lambda limit: here.episodic.search_similar("x", limit),
        here.episodic.get_recent,
        lambda limit: here.episodic.get_by_outcome(Outcome.SUCCESS, limit),
        lambda limit: here.episodic.get_by_task_type("x", limit),
        lambda limit: here.procedural.find_matching("x", limit),
    ):
        await refused(ask(0), field="limit", control=ask(1))
        await refused(ask(-1), field="limit", control=ask(1))


async def test_c10_an_empty_id_is_neither_a_filter_nor_a_wildcard(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope)
    await memory.store_fact(a_fact(), scope=scope)

    for make, field in (
        (Scope.user, "tenant"),
        (Scope.organisation, "tenant"),
        (scope.project, "project"),
        (scope.agent_type, "agent_type"),
        (scope.agent, "agent_instance"),
        (scope.session, "session"),
    ):
        await refused(_made(make, ""), field=field, control=_made(make, "x"))
    for ask, field in (
        (here.semantic.get_by_entity, "entity"),
        (here.episodic.get_by_task_type, "task_type"),
        (here.procedural.get_best_procedure, "task_type"),
    ):
        await refused(ask(""), field=field, control=ask("User"))

    assert len(await here.semantic.get_by_entity("User")) == 1


async def _made(make: Any, name: str) -> Scope:
    scope: Scope = make(name)
    return scope


async def test_c11_a_filter_that_is_left_out_is_none_and_a_null_in_its_place_is_refused(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope).episodic
    kept = await here.record_episode(EpisodeCreate(task_description="Built it", occurred_at=AT))

    without = await memory.recall("built", scope=scope, floor=0.0)
    left_out = await memory.recall("built", scope=scope, floor=0.0, memory_types=None, limit=None)

    assert [hit.id for hit in left_out.hits] == [hit.id for hit in without.hits] == [kept.id]
    assert await here.get_recent(since=None) == await here.get_recent() == [kept]
    nothing: Any = None
    await refused(
        here.get_by_outcome(nothing), field="outcome", control=here.get_by_outcome(kept.outcome)
    )
    await refused(
        here.get_by_task_type(nothing),
        field="task_type",
        control=here.get_by_task_type(kept.task_type),
    )
    with pytest.raises(InvalidInput, match="memory_types"):
        await memory.recall("built", scope=scope, memory_types={"a": None})


async def test_c13_an_empty_list_of_what_is_allowed_allows_nothing(
    memory: MemoryManager, scope: Scope
) -> None:
    fact = await memory.store_fact(a_fact(), scope=scope)
    here = memory.at(scope)

    none = await memory.recall("User uses PostgreSQL", scope=scope, memory_types=[])
    some = await memory.recall("User uses PostgreSQL", scope=scope, memory_types=["semantic"])

    assert none.hits == ()
    nothing_wider([hit.memory for hit in some.hits], scope, own={fact.id})
    assert some.returned == 1
    await refused(
        memory.forget([], scope=scope), field="ids", control=memory.forget([fact.id], scope=scope)
    )
    await refused(
        here.episodic.summarize_episodes([]),
        field="episode_ids",
        control=here.episodic.get_recent(),
    )


async def test_c14_a_fresh_session_holds_empty_lists(memory: MemoryManager, scope: Scope) -> None:
    session = scope.session("s")
    await memory.sessions.start(scope=session)
    here = memory.at(session)

    assert await here.working.get_scratchpad() == []
    assert await here.working.list_keys() == []
    assert await here.working.get_all() == {}
    assert await here.working.checkpoints() == []
    assert await here.episodic.get_recent() == []
    assert (await memory.recall("anything", scope=session)).hits == ()
    await here.working.append_scratchpad("a note")
    assert await here.working.get_scratchpad() == ["a note"]


@pytest.mark.parametrize(
    "asked", ["wxqz vbnm plokij", "q", "zzzzzzzzzz", "\u4e22\u9f98\u9ea4", "?!"]
)
async def test_c15_nonsense_is_answered_with_nothing_and_never_with_the_best_scores(
    memory: MemoryManager, scope: Scope, asked: str
) -> None:
    session = scope.session("s")
    words = ("lease", "vault", "deploy", "rota", "ledger", "portal", "kettle", "garden")
    said = [
        a_turn(f"The {words[at % 8]} of {words[at // 8 % 8]} number {at} stays as it was.")
        for at in range(1_000)
    ]
    await memory.sessions.append(said, scope=session)

    gated = await memory.recall(asked, scope=session)
    every = await memory.recall(asked, scope=session, floor=0.0)
    meant = await memory.recall("What about the lease of vault number 8?", scope=session)

    assert_ranked(every)
    assert gated.hits == ()
    assert gated.low_confidence
    assert any(note.startswith("nothing relevant") for note in gated.notes)
    scores = [hit.score for hit in every.hits]
    assert len(scores) == 10
    assert max(scores) < meant.hits[0].score - 0.1
    assert meant.hits[0].text == "User: The lease of vault number 8 stays as it was."
    assert len({hit.score for hit in meant.hits}) > 1
