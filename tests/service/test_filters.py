"""A filter acts before anything is cut off, and says no more than it was asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemic import (
    EmbedderUnavailable,
    EpisodeCreate,
    Filter,
    InvalidInput,
    MemoryManager,
    NaiveTimestamp,
    Outcome,
    Scope,
    Trust,
)
from mnemic.model.embedding import Embedder, Vector
from mnemic.settings import MemorySettings
from mnemic.store import filtered
from mnemic.testing import TickingClock, a_conversation, a_fact, a_turn
from mnemic.wiring import Wiring

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)


async def _episodes(memory: MemoryManager, scope: Scope, **outcomes: str) -> dict[str, Any]:
    """An episode of each outcome, by the word that it is about."""
    kept = {}
    for word, outcome in outcomes.items():
        episode = EpisodeCreate(
            task_description=f"The deploy of {word} went its way.",
            occurred_at=AT,
            outcome=Outcome(outcome),
            metadata={"word": word, "n": len(kept)},
            tags=(word,),
        )
        kept[word] = (await memory.at(scope).episodic.record_episode(episode)).id
    return kept


async def test_a_bare_value_means_equality_and_several_keys_mean_all(
    memory: MemoryManager, scope: Scope
) -> None:
    kept = await _episodes(memory, scope, ledger="success", search="failure", portal="success")

    of_success = await memory.recall(
        "the deploy", scope=scope, floor=0.0, filters={"outcome": "success"}
    )
    of_both = await memory.recall(
        "the deploy", scope=scope, floor=0.0, filters={"outcome": "success", "tags": "ledger"}
    )

    assert {hit.id for hit in of_success.hits} == {kept["ledger"], kept["portal"]}
    assert [hit.id for hit in of_both.hits] == [kept["ledger"]]


async def test_both_operators_on_one_field_count(memory: MemoryManager, scope: Scope) -> None:
    kept = await _episodes(memory, scope, a="success", b="success", c="success", d="success")

    found = await memory.recall(
        "the deploy", scope=scope, floor=0.0, filters={"metadata.n": {"ge": 1, "lt": 3}}
    )

    assert {hit.id for hit in found.hits} == {kept["b"], kept["c"]}


async def test_an_empty_filter_is_none_and_an_empty_in_lets_nothing_pass(
    memory: MemoryManager, scope: Scope
) -> None:
    await _episodes(memory, scope, ledger="success")

    everything = [
        await memory.recall("the deploy", scope=scope, filters=filters) for filters in (None, {})
    ]
    nothing = await memory.recall("the deploy", scope=scope, filters={"tags": {"in": []}})

    assert [found.returned for found in everything] == [1, 1]
    assert nothing.hits == ()
    assert nothing.notes == ("nothing that is remembered here passes the filter",)


@pytest.mark.parametrize("few", [filtered.FEW_ROWS_MAX, 0])
async def test_what_passes_is_found_however_far_it_is_from_the_question(
    memory: MemoryManager, scope: Scope, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(filtered, "FEW_ROWS_MAX", few)
    session = scope.session("s")
    near = [f"The deploy of release {number} is frozen on Fridays." for number in range(150)]
    far = [f"My cat sleeps on the sofa, number {number}." for number in range(5)]
    await memory.sessions.append(a_conversation(near), scope=session)
    tagged = [a_turn(text, tags=("cat",), external_id=f"cat {text}") for text in far]
    await memory.sessions.append(tagged, scope=session)

    found = await memory.recall(
        "when is the deploy frozen?", scope=session, limit=5, floor=0.0, filters={"tags": "cat"}
    )
    of_many = await memory.recall(
        "when is the deploy frozen?",
        scope=session,
        limit=100,
        floor=0.0,
        filters={"tags": {"ne": "cat"}},
    )

    assert {hit.memory.tags for hit in found.hits} == {("cat",)}
    assert found.returned == 5
    assert of_many.returned == 100
    assert {hit.memory.tags for hit in of_many.hits} == {()}


async def test_as_many_come_back_as_were_asked_for_if_so_many_pass(
    settings: MemorySettings, embedder: Embedder, scope: Scope
) -> None:
    session = scope.session("s")
    few = settings.recall.model_copy(update={"candidates_max": 5, "neighbours": 0})
    wiring = Wiring(settings.model_copy(update={"recall": few}), embedder=embedder)
    async with MemoryManager(wiring) as memory:
        texts = [f"Number {number} is noted." for number in range(40)]
        turns = [a_turn(text, tags=("odd",) * (at % 2)) for at, text in enumerate(texts)]
        await memory.sessions.append(turns, scope=session)

        found = await memory.recall(
            "a cat", scope=session, limit=19, floor=0.0, filters={"tags": "odd"}
        )

    assert found.returned == 19
    assert {hit.memory.tags for hit in found.hits} == {("odd",)}


async def test_a_neighbour_that_does_not_pass_is_read_with_its_neighbour_and_not_returned(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    talk = ["Which database holds the ledger?", "PostgreSQL does."]
    await memory.sessions.append(a_conversation(talk), scope=session)

    found = await memory.recall(
        "which database holds the ledger?",
        scope=session,
        floor=0.0,
        filters={"role": "assistant"},
    )

    assert [hit.text for hit in found.hits] == ["Assistant: PostgreSQL does."]
    assert found.hits[0].reasons.neighbour > 0


class Away:
    """An embedder whose service is away; its signature is the registered one."""

    def __init__(self, embedder: Embedder) -> None:
        self.signature = embedder.signature

    async def embed(self, texts: list[str]) -> list[Vector]:
        raise EmbedderUnavailable(f"{len(texts)} texts")

    async def close(self) -> None:
        """Nothing is open."""


async def test_without_the_embedder_and_without_a_word_of_it_what_passes_still_comes_back(
    settings: MemorySettings, memory: MemoryManager, embedder: Embedder, scope: Scope
) -> None:
    await memory.remember("The model is registered.", scope=scope.session("elsewhere"))
    wiring = Wiring(settings, clock=TickingClock(), embedder=Away(embedder))

    async with MemoryManager(wiring) as degraded:
        kept = await _episodes(degraded, scope, ledger="failure", portal="success")

        found = await degraded.recall(
            "wxqz plokij", scope=scope, floor=0.0, filters={"outcome": "failure"}
        )

    assert [hit.id for hit in found.hits] == [kept["ledger"]]
    assert found.degraded


async def test_the_actor_legs_obey_the_filter(memory: MemoryManager, scope: Scope) -> None:
    session = scope.session("s")
    turns = [
        a_turn("Vera likes green tea.", actor="Vera", tags=("old",)),
        a_turn("I like black tea now.", actor="Vera", tags=("new",)),
        a_turn("I like coffee.", actor="Bob", tags=("new",)),
    ]
    await memory.sessions.append(turns, scope=session)

    found = await memory.recall(
        "which tea does Vera like?", scope=session, floor=0.0, filters={"tags": "new"}
    )

    assert [hit.text for hit in found.hits] == [
        "Vera: I like black tea now.",
        "Bob: I like coffee.",
    ]
    assert found.hits[0].reasons.actor > 0


async def test_times_compare_as_instants_whatever_their_zone(
    memory: MemoryManager, scope: Scope
) -> None:
    for hour in range(3):
        await memory.remember(
            f"The build number {hour} was green.",
            scope=scope,
            memory_type="episodic",
            occurred_at=AT + timedelta(hours=hour),
        )

    found = await memory.recall(
        "the build",
        scope=scope,
        floor=0.0,
        filters={"occurred_at": {"ge": "2026-03-01T11:00:00+01:00", "lt": AT + timedelta(hours=2)}},
    )

    assert [hit.occurred_at for hit in found.hits] == [AT + timedelta(hours=1)]


async def test_with_a_filter_nothing_needs_to_be_asked(memory: MemoryManager, scope: Scope) -> None:
    kept = await _episodes(memory, scope, ledger="success", portal="failure")
    turns = [a_turn(f"Tea {at}.", occurred_at=AT + timedelta(days=at)) for at in range(3)]
    await memory.sessions.append(turns, scope=scope.session("s"))

    of_time = await memory.recall(
        "", scope=scope, filters={"occurred_at": {"le": AT}}, explain=True
    )
    of_kind = await memory.recall("", scope=scope.session("s"), filters={"kind": "turn"}, limit=2)

    assert {hit.id for hit in of_time.hits} == set(kept.values())
    assert of_time.degraded == ()
    assert of_time.explanation is not None
    assert {arm.name for arm in of_time.explanation.arms} == {"newest"}
    assert [hit.text for hit in of_kind.hits] == ["User: Tea 2.", "User: Tea 1."]
    for filters in (None, {}):
        with pytest.raises(InvalidInput, match="query"):
            await memory.recall("", scope=scope, filters=filters)


async def test_trust_is_asked_for_by_number_or_name(memory: MemoryManager, scope: Scope) -> None:
    for trust in (Trust.OPERATOR, Trust.EXTERNAL):
        fact = a_fact(object=f"tool {trust.name}", trust=trust)
        await memory.store_fact(fact, scope=scope)

    found = [
        await memory.recall("the tool", scope=scope, floor=0.0, filters={"trust": {"le": most}})
        for most in ("user", 2)
    ]

    assert [[hit.trust for hit in one.hits] for one in found] == [[Trust.OPERATOR]] * 2


async def test_a_missing_value_fails_every_comparison_but_ne_and_not(
    memory: MemoryManager, scope: Scope
) -> None:
    kept = await _episodes(memory, scope, ledger="success")
    asked: list[tuple[dict[str, Any], bool]] = [
        ({"metadata.owner": "ada"}, False),
        ({"metadata.owner": {"lt": "z"}}, False),
        ({"metadata.owner": {"ne": "ada"}}, True),
        ({"not": {"metadata.owner": "ada"}}, True),
        ({"metadata.owner": {"exists": False}}, True),
        ({"metadata.owner": None}, True),
        ({"metadata.owner": {"ne": None}}, False),
    ]

    found = [
        [hit.id for hit in (await memory.recall("a", scope=scope, floor=0.0, filters=told)).hits]
        for told, _ in asked
    ]

    assert found == [[kept["ledger"]] if passes else [] for _, passes in asked]


@pytest.mark.parametrize(
    ("told", "hint"),
    [
        ({"outcom": "success"}, "did you mean outcome?"),
        ({"importance": {"gte": 0.5}}, "did you mean ge?"),
        ({"metadata": {"a": 1}}, "did you mean metadata.<path>?"),
        ({"user_id": {"ne": None}}, "is no field"),
        ({"or": [{"not": {"nobody": 1}}]}, "is no field"),
        ({"outcome": "sucess"}, "success, failure, partial"),
        ({"tags": ["a"]}, "for several use in"),
        ({"tags": {"in": "red"}}, "in must be a list"),
        ({"occurred_at": {"ge": "2026-03-01"}}, "a time with a zone such as"),
        ({"metadata.a": {"lt": None}}, "no order"),
    ],
)
async def test_what_cannot_be_asked_is_refused_with_what_can(
    memory: MemoryManager, scope: Scope, told: dict[str, Any], hint: str
) -> None:
    with pytest.raises(InvalidInput, match="filters") as refused:
        await memory.recall("deploy", scope=scope, filters=told)

    assert hint in str(refused.value)


async def test_a_time_without_a_zone_is_refused_as_such(
    memory: MemoryManager, scope: Scope
) -> None:
    with pytest.raises(NaiveTimestamp):
        await memory.recall(
            "deploy", scope=scope, filters={"occurred_at": {"ge": AT.replace(tzinfo=None)}}
        )


def test_json_text_is_read_and_a_key_given_twice_is_refused() -> None:
    read = Filter.from_text('{"metadata.a\\\\.b": {"in": [1, "x", null]}}')

    assert read == Filter.from_json({"metadata.a\\.b": {"in": [1, "x", None]}})
    for text in ('{"tags": "a", "tags": "b"}', "{", "[1]", '{"importance": NaN}', "9" * 5_000):
        with pytest.raises(InvalidInput, match="filters"):
            Filter.from_text(text)
