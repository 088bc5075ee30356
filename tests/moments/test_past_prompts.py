"""A past prompt is rebuilt byte for byte, whatever was written since."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from mnemic import (
    Conflict,
    EmbedderUnavailable,
    EpisodeCreate,
    Forbidden,
    MemoryManager,
    NotFound,
    Outcome,
    ProcedureCreate,
    Recall,
    Retracted,
    Scope,
    Step,
)
from mnemic.testing import TickingClock, a_fact, a_scope, a_turn

MOMENTS = 200
THOROUGHLY = 8
# What is taken away, so that some moment must be told otherwise; and how it is given back.
KEPT = "UPDATE mnemic.memory_history h SET {what} WHERE tenant_id = $1 AND {where}"
CONTROLS = {
    **{
        name: KEPT.format(what=f"before = before - '{name}'", where=f"before ? '{name}'")
        for name in ("scope_id", "confidence", "status", "steps", "importance_score")
    },
    "vectors": KEPT.format(what="known_until = '-infinity'", where="before = '{}'"),
    "sessions": "UPDATE mnemic.sessions SET moved_at = '-infinity' WHERE tenant_id = $1",
    "embedded": "UPDATE mnemic.turns SET embedded_at = NULL WHERE tenant_id = $1",
}
COPY = """
    DROP TABLE IF EXISTS history, ended, embedded;
    CREATE TEMP TABLE history AS SELECT * FROM mnemic.memory_history;
    CREATE TEMP TABLE ended AS SELECT id, moved_at FROM mnemic.sessions;
    CREATE TEMP TABLE embedded AS SELECT id, embedded_at FROM mnemic.turns;
"""
RESTORE = """
    UPDATE mnemic.memory_history h SET before = k.before, known_until = k.known_until
      FROM history k WHERE k.tenant_id = h.tenant_id AND k.id = h.id;
    UPDATE mnemic.sessions s SET moved_at = k.moved_at FROM ended k WHERE k.id = s.id;
    UPDATE mnemic.turns t SET embedded_at = k.embedded_at FROM embedded k WHERE k.id = t.id;
"""
NAMES = ("Ada", "Ben", "User")
THINGS = ("Oslo", "Bergen", "Lima", "PostgreSQL", "Valkey", "tea", "coffee")
PREDICATES = ("lives_in", "uses", "likes", "works_at")
SAYINGS = (
    "We moved the carts to Valkey because PostgreSQL was slow.",
    "Ada said that she likes tea more than coffee.",
    "The release failed, the migration locked the payments table.",
    "Where did you see the tickets for Lima?",
    "I flew from Oslo to Bergen in March.",
    "Remember to run the tests before you tag the release.",
)
QUESTIONS = (
    "where does Ada live?",
    "what do we use for the carts?",
    "how is a release made?",
    "who likes tea or coffee?",
    "when was the flight to Bergen?",
)
STEPS = ("Run the tests", "Tag the release", "Press the button", "Tell Ada", "Drink tea")
REFUSED = (Conflict, EmbedderUnavailable, Forbidden, NotFound, Retracted)


@dataclass
class World:
    """A person's memory under way, with a project and its sessions."""

    memory: MemoryManager
    clock: TickingClock
    embedder: Any
    chance: random.Random
    top: Scope = field(default_factory=a_scope)
    open: list[Scope] = field(default_factory=list)
    over: list[Scope] = field(default_factory=list)
    facts: list[tuple[Scope, UUID]] = field(default_factory=list)
    episodes: list[tuple[Scope, UUID]] = field(default_factory=list)
    procedures: list[tuple[Scope, UUID]] = field(default_factory=list)
    sessions: int = 0

    @property
    def project(self) -> Scope:
        return self.top.project("shop")

    def place(self) -> Scope:
        return self.chance.choice([self.top, self.project, *self.open])

    def _one_of(self, known: list[tuple[Scope, UUID]]) -> tuple[Scope, UUID]:
        """With where it stands now, unless it stood above before."""
        place, one = self.chance.choice(known)
        return (self.project if place in self.over else place), one

    def a_time(self) -> datetime | None:
        days = self.chance.randint(-400, 60)
        return self.chance.choice([None, self.clock() + timedelta(days=days)])

    async def tell(self) -> None:
        pick, place = self.chance.choice, self.place()
        start, end = self.a_time(), self.a_time()
        fact = a_fact(
            subject=pick(NAMES),
            predicate=pick(PREDICATES),
            object=pick(THINGS),
            confidence=pick((0.5, 0.9)),
            valid_from=start,
            valid_to=end if end is not None and (start is None or end > start) else None,
        )
        receipt = await self.memory.store_fact(fact, scope=place)
        self.facts.append((place, receipt.id))

    async def _with_fact(self, act: Callable[[Any, UUID], Awaitable[Any]]) -> None:
        if self.facts:
            place, fact = self._one_of(self.facts)
            await act(self.memory.at(place).semantic, fact)

    async def confirm(self) -> None:
        await self._with_fact(lambda facts, one: facts.reinforce_fact(one))

    async def retract(self) -> None:
        await self._with_fact(lambda facts, one: facts.deprecate_fact(one, "wrong"))

    async def verify(self) -> None:
        await self._with_fact(lambda facts, one: facts.verify_fact(one))

    async def resolve(self) -> None:
        live = await self.memory.at(self.project).semantic.get_by_entity("Ada")
        alike = [one.id for one in live if one.predicate == "uses" and one.subject == "Ada"]
        if len(alike) > 1:
            await self.memory.at(self.project).semantic.resolve_conflict(alike)

    async def alias(self) -> None:
        facts = self.memory.at(self.place()).semantic
        await facts.add_alias(self.chance.choice(THINGS), self.chance.choice(("cache", "home")))

    async def say(self) -> None:
        if len(self.open) < 3:
            self.sessions += 1
            self.open.append(self.project.session(f"s-{self.sessions}"))
        said = [
            a_turn(
                self.chance.choice(SAYINGS),
                actor=self.chance.choice(NAMES),
                role=self.chance.choice(("user", "assistant")),
                occurred_at=self.clock() - timedelta(hours=self.chance.randint(0, 50)),
            )
            for _ in range(self.chance.randint(1, 4))
        ]
        await self.memory.sessions.append(said, scope=self.chance.choice(self.open))

    async def end(self) -> None:
        if self.open:
            ended = self.open.pop(self.chance.randrange(len(self.open)))
            with suppress(NotFound):
                await self.memory.sessions.end(scope=ended, outcome="success")
            self.over.append(ended)

    async def happen(self) -> None:
        place = self.place()
        told = EpisodeCreate(
            task_description=f"{self.chance.choice(SAYINGS)} {self.chance.random():.3f}",
            outcome=self.chance.choice(list(Outcome)),
            occurred_at=self.clock(),
        )
        episode = await self.memory.at(place).episodic.record_episode(told)
        self.episodes.append((place, episode.id))

    async def weigh(self) -> None:
        if self.episodes:
            place, one = self._one_of(self.episodes)
            episodes = self.memory.at(place).episodic
            await episodes.update_importance(one, self.chance.random())

    async def teach(self) -> None:
        place = self.place()
        made = await self.memory.at(place).procedural.record_procedure(
            ProcedureCreate(
                name=self.chance.choice(("Make a release", "Book a flight")), steps=self._steps()
            )
        )
        self.procedures.append((place, made.id))

    def _steps(self) -> tuple[Step, ...]:
        return tuple(Step(action=one) for one in self.chance.sample(STEPS, 3))

    async def relearn(self) -> None:
        if self.procedures:
            place, one = self._one_of(self.procedures)
            await self.memory.at(place).procedural.update_steps(one, list(self._steps()))

    async def try_it(self) -> None:
        if self.procedures:
            place, one = self._one_of(self.procedures)
            await self.memory.at(place).procedural.record_outcome(one, self.chance.random() < 0.5)

    async def lose_or_find_the_embedder(self) -> None:
        self.embedder.away = not self.embedder.away

    async def maintain(self) -> None:
        await self.memory.maintenance.embed_missing()
        await self.memory.maintenance.count_terms()

    async def act(self) -> None:
        """Something happens, a while later than what happened before."""
        self.clock.advance(timedelta(seconds=self.chance.choice((0, 1, 90, 86_400))))
        acts = (
            *(self.tell,) * 6,
            *(self.confirm,) * 3,
            *(self.say,) * 4,
            *(self.teach, self.relearn, self.try_it, self.happen, self.weigh),
            *(self.retract, self.resolve, self.verify, self.alias, self.end),
            *(self.maintain, self.lose_or_find_the_embedder),
        )
        with suppress(*REFUSED):
            await self.chance.choice(acts)()
        self.clock.advance(timedelta(seconds=1))


@dataclass(frozen=True)
class Asked:
    """What was asked, when, and what was answered."""

    scope: Scope
    question: str
    at: datetime
    thoroughly: bool
    answer: list[object]


def _told(found: Recall) -> tuple[object, ...]:
    return tuple(getattr(found, one.name) for one in fields(found) if one.name != "took")


async def _ask(
    memory: MemoryManager, scope: Scope, question: str, *, thoroughly: bool, **moment: Any
) -> list[object]:
    facts = memory.at(scope).semantic
    answer: list[object] = [await memory.context(question, scope=scope, budget=200, **moment)]
    if thoroughly:
        found = await memory.recall(question, scope=scope, limit=20, floor=0.0, **moment)
        answer += [
            _told(found),
            await facts.search_facts(question, **moment),
            await facts.get_by_entity("Ada", **moment),
            await facts.get_by_entity("home", **moment),
        ]
    return answer


async def _lived(world: World, *, moments: int) -> list[Asked]:
    """What was answered at so many moments of a life, which goes on for a while afterwards."""
    asked: list[Asked] = []
    while len(asked) < moments:
        for _ in range(1 + (len(asked) % 4 == 0)):
            await world.act()
        if world.embedder.away:  # whether it is there is no part of what was known
            continue
        scope = world.chance.choice([world.place(), *world.over[-2:]])
        question, at = world.chance.choice(QUESTIONS), world.clock()
        thoroughly = not len(asked) % THOROUGHLY
        answer = await _ask(world.memory, scope, question, thoroughly=thoroughly)
        asked.append(Asked(scope, question, at, thoroughly, answer))
        world.clock.advance(timedelta(microseconds=1))
    for _ in range(20):
        await world.act()
    world.embedder.away = False
    await world.maintain()
    return asked


async def _again(memory: MemoryManager, one: Asked, **moment: datetime) -> list[object]:
    return await _ask(memory, one.scope, one.question, thoroughly=one.thoroughly, **moment)


async def _first_wrong(memory: MemoryManager, asked: list[Asked]) -> int | None:
    for place, one in enumerate(asked):
        if await _again(memory, one, as_of=one.at, known_at=one.at) != one.answer:
            return place
    return None


async def test_past_prompts_are_rebuilt_byte_for_byte(
    memory: MemoryManager,
    clock: TickingClock,
    embedder: Any,
    seen: asyncpg.Connection,
    pytestconfig: pytest.Config,
) -> None:
    chance = random.Random(pytestconfig.getoption("seed"))
    world = World(memory, clock, embedder, chance)
    asked = await _lived(world, moments=MOMENTS)
    thorough = asked[::THOROUGHLY]

    wrong = await _first_wrong(memory, asked)
    changed = [one for one in thorough if await _again(memory, one) != one.answer]

    assert wrong is None
    assert len(changed) > len(thorough) // 2  # what is answered now is something else

    # And nothing of what is kept could be left out.
    await seen.execute(COPY)
    missed = []
    for name, taking in CONTROLS.items():
        await seen.execute(taking, world.top.tenant.id)
        if await _first_wrong(memory, thorough) is None:
            missed.append(name)
        await seen.execute(RESTORE)
    assert missed == []
    assert await _first_wrong(memory, thorough) is None
