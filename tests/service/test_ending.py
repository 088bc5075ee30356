"""What stands in memory when a session has ended, after turns of it were forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import asyncpg
import pytest

from mnemic import (
    FactCreate,
    MemoryManager,
    ProcedureCreate,
    Scope,
    Step,
    ThinkerUnavailable,
)
from mnemic.model.embedding import Embedder
from mnemic.model.episode import EpisodeDraft
from mnemic.model.turn import Turn
from mnemic.service.forget import forget
from mnemic.service.tools import Tools
from mnemic.settings import MemorySettings
from mnemic.testing import TickingClock, a_conversation, a_fact, a_turn
from mnemic.think import RulesThinker, SessionRecord
from mnemic.wiring import Wiring

SECRET = "The vault code is heliotrope."
PUBLIC = "Deploys are frozen on Fridays."


class Interrupted:
    """The rules; while they read a session for the first time, its first turn is forgotten."""

    def __init__(self, scope: Scope) -> None:
        self.tools: Tools | None = None
        self._rules = RulesThinker()
        self._scope = scope
        self.read = 0

    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        draft = await self._rules.summarise(session)
        self.read += 1
        first = session.turns[0]
        if self.read == 1 and self.tools is not None and isinstance(first, Turn):
            await forget(self.tools, [first.id], scope=self._scope)
        return draft

    def extract_facts(
        self, text: str, *, actor: str, occurred_at: datetime
    ) -> Sequence[FactCreate]:
        return self._rules.extract_facts(text, actor=actor, occurred_at=occurred_at)


async def test_a_turn_forgotten_while_the_session_ends_is_not_in_its_episode(
    settings: MemorySettings, embedder: Embedder, clock: TickingClock, scope: Scope
) -> None:
    session = scope.session("s")
    thinker = Interrupted(session)
    wiring = Wiring(settings, clock=clock, embedder=embedder, thinker=thinker)
    async with MemoryManager(wiring) as memory:
        thinker.tools = memory._tools
        await memory.sessions.append(a_conversation([SECRET, PUBLIC]), scope=session)

        ended = await memory.sessions.end(scope=session)

        assert ended is not None
        [episode] = await memory.at(scope).episodic.get_recent()
    assert thinker.read == 2
    assert episode.message_count == 1
    assert "heliotrope" not in f"{episode.title} {episode.summary} {episode.key_topics}"


async def test_every_turn_counts_once_where_some_were_forgotten(
    memory: MemoryManager, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = scope.session("s")
    monkeypatch.setattr("mnemic.service.sessions._PAGE", 3)
    turns = [a_turn(f"Decision {number} was made.") for number in range(10)]
    receipts = await memory.sessions.append(turns, scope=session)
    await memory.forget([receipts[1].id, receipts[2].id], scope=session)

    await memory.sessions.end(scope=session)

    [episode] = await memory.at(scope).episodic.get_recent()
    assert episode.message_count == 8


async def test_a_fact_moves_up_with_all_that_made_it_sure(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session = scope.session("s")
    for _ in range(4):
        receipt = await memory.store_fact(a_fact(), scope=session)
    before = await seen.fetchrow("SELECT * FROM mnemic.facts WHERE id = $1", receipt.id)
    await memory.sessions.append(a_conversation([PUBLIC]), scope=session)

    await memory.sessions.end(scope=session)

    after = await seen.fetchrow(
        "SELECT * FROM mnemic.facts WHERE scope_id = $1 AND status = 'live'", scope.id
    )
    assert before is not None
    assert after is not None
    assert after["reinforcement_count"] == 4
    for name in ("confidence", "first_learned", "last_reinforced"):
        assert after[name] == before[name]


async def test_a_fact_moves_up_with_its_id_and_an_equal_one_above_takes_its_evidence(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    session, here = scope.session("s"), memory.at(scope).semantic
    above = await memory.store_fact(a_fact(), scope=scope)
    equal = await memory.store_fact(a_fact(), scope=session)
    other = await memory.store_fact(a_fact(object="Valkey"), scope=session)
    await memory.sessions.append(a_conversation([PUBLIC]), scope=session)

    await memory.sessions.end(scope=session)

    known = {fact.id: fact.reinforcement_count for fact in await here.get_by_entity("User")}
    assert known == {above.id: 2, other.id: 1}
    rows = await seen.fetch(
        "SELECT id, superseded_by FROM mnemic.facts WHERE scope_id = $1", session.id
    )
    assert [tuple(row) for row in rows] == [(equal.id, above.id)]
    sources = await seen.fetchval(
        "SELECT count(*) FROM mnemic.fact_evidence WHERE fact_id = $1", other.id
    )
    assert sources == 1


@pytest.mark.parametrize("known_above", [False, True])
async def test_a_value_that_replaced_another_in_its_session_can_be_forgotten_above(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, *, known_above: bool
) -> None:
    session = scope.session("s")
    oslo, bergen = (a_fact(predicate="lives_in", object=city) for city in ("Oslo", "Bergen"))
    if known_above:
        await memory.store_fact(bergen, scope=scope)
    await memory.store_fact(oslo, scope=session)
    await memory.store_fact(bergen, scope=session)
    await memory.sessions.append(a_conversation([PUBLIC]), scope=session)
    await memory.sessions.end(scope=session)
    [known] = await memory.at(scope).semantic.get_by_entity("User")

    gone = await memory.forget([known.id], scope=scope)

    left = await seen.fetch(
        "SELECT object, superseded_by FROM mnemic.facts WHERE tenant_id = $1", scope.tenant.id
    )
    assert gone.counts == {"fact": 1}
    assert [tuple(row) for row in left] == [("Oslo", None)]


async def test_a_fact_that_moved_up_is_found_by_meaning_at_once(
    memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    await memory.remember("The vault code is purple.", scope=session)
    await memory.sessions.append(a_conversation(["Hello.", "Hello."]), scope=session)
    before = await memory.recall("what colour opens the safe?", scope=session, floor=0.0)

    await memory.sessions.end(scope=session)

    after = await memory.recall("what colour opens the safe?", scope=scope, floor=0.0)
    told = {hit.text: hit for found in (before, after) for hit in found.hits if hit.kind == "fact"}
    [fact] = [hit for hit in after.hits if hit.kind == "fact"]
    assert fact.near_place is not None
    assert fact.reasons.cosine > 0.2
    assert len(told) == 1


class Careless(RulesThinker):
    """The rules, with something in the draft that nobody can keep."""

    def __init__(self, **changed: Any) -> None:
        self._changed = changed

    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        return replace(await super().summarise(session), **self._changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"title": "a\x00b"},
        {"title": " "},
        {"summary": "\ud800"},
        {"summary": None},
        {"key_topics": "word"},
        {"lessons_learned": (7,)},
        {"importance_score": 7.0},
        {"importance_score": float("nan")},
        {"outcome": "fine"},
    ],
    ids=repr,
)
async def test_what_a_thinker_gives_is_checked_and_its_session_stays_open(
    settings: MemorySettings,
    embedder: Embedder,
    clock: TickingClock,
    scope: Scope,
    changed: dict[str, Any],
) -> None:
    session = scope.session("s")
    wiring = Wiring(settings, clock=clock, embedder=embedder, thinker=Careless(**changed))
    async with MemoryManager(wiring) as memory:
        await memory.sessions.append(a_conversation([PUBLIC]), scope=session)

        with pytest.raises(ThinkerUnavailable, match=next(iter(changed))):
            await memory.sessions.end(scope=session)
        with pytest.raises(ThinkerUnavailable):
            await memory.remember("It went well.", scope=scope, memory_type="episodic")

        assert await memory.at(scope).episodic.get_recent() == []
    async with MemoryManager(Wiring(settings, clock=clock, embedder=embedder)) as memory:
        ended = await memory.sessions.end(scope=session)
        assert ended is not None
        assert ended.created


def _failing() -> Iterator[FactCreate]:
    yield a_fact()
    raise RuntimeError("out of order")


class _Stating(RulesThinker):
    """States whatever it is told to."""

    def __init__(self, makes: Callable[[], Any]) -> None:
        self.makes = makes

    def extract_facts(self, text: str, *, actor: str, occurred_at: datetime) -> Any:
        del text, actor, occurred_at
        return self.makes()


@pytest.mark.parametrize(
    "makes",
    [
        lambda: None,
        lambda: [None],
        lambda: ["text"],
        lambda: [a_fact(confidence=2.0)],
        lambda: [a_fact(valid_from=datetime(2026, 3, 2))],  # noqa: DTZ001 - without a zone
        lambda: [a_fact(object="\0")],
        lambda: [a_fact()] * 1_001,
        _failing,
    ],
    ids=["nothing", "none", "text", "too sure", "no zone", "NUL", "too many", "broken off"],
)
async def test_statements_that_cannot_be_kept_are_the_thinkers_fault(
    settings: MemorySettings,
    embedder: Embedder,
    clock: TickingClock,
    scope: Scope,
    makes: Callable[[], Any],
) -> None:
    wiring = Wiring(settings, clock=clock, embedder=embedder, thinker=_Stating(makes))
    async with MemoryManager(wiring) as memory:
        with pytest.raises(ThinkerUnavailable):
            await memory.remember("I use Vim.", scope=scope)

        assert await memory.at(scope).semantic.search_facts("Vim") == []


WAITING = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"


async def test_two_sessions_with_a_procedure_of_one_new_name_end_at_once(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    project = scope.project("p")
    sessions = [project.session("one"), project.session("two")]
    for session in sessions:
        await memory.at(session).procedural.record_procedure(
            ProcedureCreate(
                name="Deploy", task_type="deploy", steps=(Step(action=f"Tell {session.name}"),)
            )
        )
        await memory.sessions.append(a_conversation([PUBLIC]), scope=session)
    held = seen.transaction()
    await held.start()
    # Both have moved, or are to move, their procedures when neither can move its turns.
    await seen.fetch("SELECT FROM mnemic.turns WHERE tenant_id = $1 FOR UPDATE", scope.tenant.id)
    ends = [asyncio.ensure_future(memory.sessions.end(scope=session)) for session in sessions]
    async with asyncio.timeout(30):
        while await seen.fetchval(WAITING) < len(ends):  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)

    await held.rollback()
    receipts = await asyncio.gather(*ends)

    assert all(receipt is not None and receipt.created for receipt in receipts)
    versions = await seen.fetch(
        "SELECT p.status, p.version, s.steps FROM mnemic.procedures p"
        " JOIN mnemic.procedure_versions s ON s.procedure_id = p.id AND s.tenant_id = p.tenant_id"
        " WHERE p.tenant_id = $1 AND p.scope_id = $2",
        scope.tenant.id,
        project.id,
    )
    assert {(row["status"], row["version"]) for row in versions} == {("live", 2)}
    assert sum("Tell" in row["steps"] for row in versions) == 2
