"""The state machine: any tenant, any scope, any public method, in any order and at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from mnemic.embedded import EmbeddedServers
from mnemic.model.scope import Scope, Tenant
from proof.by_id import BY_ID, some_ids
from proof.canaries import shape_of, tokens_in
from proof.cast import HOMES, LEAVES, TENANTS
from proof.choices import Choices, Seeded, chance, pick
from proof.moves import (
    CONVERSATIONS,
    GRANTS,
    OPERATOR,
    PLACING,
    READS,
    WRITES,
    of_session,
    unknown_id,
)
from proof.oracle import Oracle
from proof.play import Leak, Play
from proof.truth import no_foreign_rows, no_strange_ids, replayed
from proof.walls import Walls
from proof.working_moves import WORKING
from proof.world import Answer, Call, World, open_world

__all__ = ["Stage", "Tally", "machine_on"]

T = TypeVar("T")
AT_ONCE_MAX = 6
FOREIGN_SESSION_VERBS = (
    "sessions.pause",
    "sessions.resume",
    "sessions.end",
    "lifecycle.resume",
    "lifecycle.terminate",
)
SEEDS = st.integers(0, 2**32 - 1)


@dataclass(slots=True)
class Tally:
    """What was done so far."""

    operations: int = 0
    replayed: int = 0
    probes: int = 0
    runs: int = 0
    rows: int = 0
    verbs: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a machine plays: a database for everybody, and one for whoever is replayed alone."""

    servers: EmbeddedServers
    among: str
    alone: str
    loop: asyncio.AbstractEventLoop
    walls: Walls
    tally: Tally = field(default_factory=Tally)
    tenants_alone: bool = False
    is_maintained: bool = True

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work gives, on the one loop of the run."""
        return self.loop.run_until_complete(work)


class IsolationMachine(RuleBasedStateMachine):
    """Each rule makes one or more calls; the answers are searched at once."""

    stage: ClassVar[Stage]

    def __init__(self) -> None:
        super().__init__()
        self.stack = AsyncExitStack()
        self.failed = False
        oracle = Oracle(tenants_alone=self.stage.tenants_alone)
        self.play = Play(self.stage.wait(self._world()), oracle)

    async def _world(self) -> World:
        stage = self.stage
        return await open_world(stage.servers, stage.among, stage.walls, self.stack)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        self.failed = True
        done = self.stage.wait(work)
        self.failed = False
        return done

    def _move(self, choices: Choices, scope: Scope) -> Call:
        """A write, a read or a step of a conversation, with its arguments."""
        moves = pick(choices, (WRITES, CONVERSATIONS, READS, WORKING, WRITES, READS, GRANTS))
        verb = pick(choices, tuple(moves))
        if moves is GRANTS and chance(choices, 2):
            moves, verb = READS, "recall"
        if moves is CONVERSATIONS or (moves is not GRANTS and chance(choices, 4)):
            scope = of_session(choices, self.play.oracle, scope)
        if verb == "transcripts.ingest" and scope.parent is not None:
            scope = scope.parent if scope.level.value == "session" else scope
        values = moves[verb](choices, self.play.oracle, scope, self.play.at)
        note(f"{verb} at {scope}")
        return self.play.call(verb, scope, values, blind=chance(choices, 12))

    @rule(seed=SEEDS)
    def something_happens(self, seed: int) -> None:
        choices = Seeded(seed)
        pick(
            choices,
            (
                *[self._several_tenants_at_once] * 4,
                *[self._one_of_a_busy_tenant] * 4,
                *[self._somebody_uses_an_id] * 4,
                *[self._somebody_probes] * 3,
                self._the_operator_does_what_is_due,
            ),
        )(choices)

    def _one_of_a_busy_tenant(self, choices: Choices) -> None:
        home = pick(choices, HOMES[: len(HOMES) // 4])
        self._do(self.play.make(self._move(choices, home)))

    def _several_tenants_at_once(self, choices: Choices) -> None:
        first = choices.below(len(TENANTS))
        number = 1 + choices.below(AT_ONCE_MAX)
        calls = []
        for place in range(first, first + number):
            tenant = TENANTS[place % len(TENANTS)]
            homes = [home for home in HOMES if home.tenant == tenant]
            calls.append(self._move(choices, pick(choices, homes)))
        self._do(self.play.make_together(calls))

    def _somebody_uses_an_id(self, choices: Choices) -> None:
        oracle = self.play.oracle
        verb = pick(choices, tuple(BY_ID))
        takes, scope = BY_ID[verb], pick(choices, HOMES)
        if known := oracle.visible(scope, takes.kinds) or some_ids(
            choices, oracle.hidden(scope, takes.kinds), at_most=1
        ):
            place = oracle.places[known[0]]
            scope = place if not oracle.may_see(scope, known[0]) else scope
        ids = some_ids(choices, known, at_most=takes.ids_max) or [unknown_id(self.play.number)]
        told = takes.told(choices, oracle, scope)
        call = self.play.call(verb, scope, takes.values(ids, told))
        self._do(self.play.make(call, upward=sorted(tokens_in(repr(told)))))

    def _somebody_probes(self, choices: Choices) -> None:
        probes = (
            self._probe_id,
            self._probe_id,
            self._probe_checkpoint,
            self._probe_session,
        )
        pick(choices, probes)(choices)

    def _probe_id(self, choices: Choices) -> None:
        oracle = self.play.oracle
        verb = pick(choices, tuple(BY_ID))
        takes, scope = BY_ID[verb], pick(choices, HOMES)
        hidden = oracle.hidden(scope, takes.kinds)
        if not hidden:
            return
        own = some_ids(
            choices, oracle.visible(scope, takes.kinds), at_most=takes.ids_max - 1, least=0
        )
        told = takes.told(choices, oracle, scope)
        pair = [
            takes.values([one, *own], told)
            for one in (pick(choices, hidden), unknown_id(self.play.number))
        ]
        self.stage.tally.probes += 1
        self._do(self.play.compare(verb, scope, pair))

    def _probe_checkpoint(self, choices: Choices) -> None:
        oracle = self.play.oracle
        scope = pick(choices, HOMES)
        foreign = [one for one in oracle.checkpoints if not oracle.may_see(scope, one)]
        if not foreign:
            return
        self.stage.tally.probes += 1
        ids = (pick(choices, foreign), unknown_id(self.play.number))
        pair = [{"checkpoint_id": str(one)} for one in ids]
        self._do(self.play.compare("working.restore_checkpoint", scope, pair))

    def _probe_session(self, choices: Choices) -> None:
        oracle = self.play.oracle
        home = pick(choices, HOMES)
        foreign = [one for one in oracle.open_sessions if one.parent != home and "cn" in one.name]
        if not foreign:
            return
        verb = pick(choices, FOREIGN_SESSION_VERBS)
        self.stage.tally.probes += 1
        answers = []
        for name in (pick(choices, foreign).name, "s cn00000000z"):
            call = self.play.call(verb, home.session(name), {})
            answers.append(self._do(self.play.world.run(call)))
        if len({shape_of(one.text) for one in answers}) > 1 or answers[0].fault is None:
            raise Leak(f"a foreign session is told apart: {answers}")

    def _the_operator_does_what_is_due(self, choices: Choices) -> None:
        if chance(choices, 3):
            self.play.at += timedelta(hours=1)
        if self.stage.is_maintained:
            verb = pick(choices, (*OPERATOR, *PLACING))
            if verb in PLACING:
                call = self.play.call(verb, pick(choices, HOMES), pick(choices, PLACING[verb]))
            else:
                call = self.play.call(verb, None, {})
            self._do(self.play.make(call))

    @rule()
    def a_minute_passes(self) -> None:
        """The simplest thing to happen, which hypothesis tries first and shrinks to."""
        self.play.at += timedelta(minutes=1)

    def teardown(self) -> None:
        tally = self.stage.tally
        try:
            if not self.failed:
                self.stage.wait(self._audit())
        finally:
            tally.runs += 1
            tally.operations += len(self.play.answers)
            tally.verbs.update(answer.call.verb for answer in self.play.answers)
            self.stage.wait(self.stack.aclose())

    async def _audit(self) -> None:
        """Rows are nobody else's, and whoever made most calls is replayed without the others."""
        self.stage.tally.rows += await no_foreign_rows(self.play.world)
        await no_strange_ids(self.play)
        counts = Counter(answer.call.scope for answer in self.play.answers)
        tenants: Counter[Tenant] = Counter()
        for scope, times in counts.items():
            if scope is not None:
                tenants[scope.tenant] += times
        for tenant, _ in tenants.most_common(1):
            await self._replay(self.play.calls_of(tenant), tenant)
            branches = [one for one in LEAVES if one.tenant == tenant and one in counts]
            for branch in sorted(branches, key=lambda one: -counts[one])[:1]:
                answers = self.play.calls_without(branch)
                if answers is not None and not self.stage.tenants_alone:
                    await self._replay(answers, f"{tenant} but for {branch.name}")

    async def _replay(self, answers: Sequence[Answer], who: object) -> None:
        """The calls are answered as before in a database where nobody else makes any."""
        stage = self.stage
        async with AsyncExitStack() as stack:
            world = await open_world(stage.servers, stage.alone, stage.walls, stack)
            stage.tally.replayed += await replayed(world, answers, who)


def machine_on(stage: Stage) -> type[IsolationMachine]:
    """The machine, on that stage."""
    return type("IsolationMachine", (IsolationMachine,), {"stage": stage})
