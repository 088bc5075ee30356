"""Writers that go on whatever happens, and remember what each call was told.

Every call writes in a tenant of its own, so that what it left can be held against what the same
call leaves when nothing goes wrong.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from wire_rows import RowReader, Rows
from wire_verbs import Verb

from mnemic import MemoryManager, OutcomeUnknown, Scope, Unavailable

PAUSE_SECONDS = 0.02
RETRIES_MAX = 3
FINAL_RETRIES_MAX = 100
ANSWERS_AGAIN_MAX = 300
_tenants = count(1)


@dataclass(slots=True)
class Call:
    """One write: what it was told last, and its answer if there was one."""

    verb: Verb
    scope: Scope
    made: Any
    told: str = "running"
    answer: Any = None


@dataclass(frozen=True, slots=True)
class Clean:
    """What a verb finds, and what it leaves, when nothing goes wrong."""

    before: Rows
    after: Rows


@dataclass(slots=True)
class Load:
    """`calls` holds everything that was begun."""

    memory: MemoryManager
    verbs: list[Verb]
    chance: random.Random
    calls: list[Call] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    over: bool = False

    async def write(self) -> None:
        """One writer, until it is over."""
        while not self.over:
            verb = self.chance.choice(self.verbs)
            scope = Scope.user(f"chaos-{next(_tenants)}").project("x")
            try:
                made = await verb.prepare(self.memory, scope)
            except Unavailable:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            call = Call(verb, scope, made)
            self.calls.append(call)
            await self._carry_out(call)

    async def acknowledged(self, number: int) -> None:
        """Returns when so many calls were."""
        while self.counts()["acknowledged"] < number:  # noqa: ASYNC110 - the writers are counted
            await asyncio.sleep(PAUSE_SECONDS)

    async def _carry_out(self, call: Call) -> None:
        """Tried again or given up, as chance has it."""
        for _ in range(1 + self.chance.randrange(RETRIES_MAX)):
            try:
                call.answer = await call.verb.act(self.memory, call.scope, call.made, "key-1")
            except OutcomeUnknown:
                call.told = "unknown"
            except Unavailable:
                # What an earlier attempt may have done, this one does not know.
                call.told = "unknown" if call.told == "unknown" else "refused"
            except Exception as fault:  # noqa: BLE001 - none other is part of the contract
                call.told = "unknown"
                self.faults.append(f"{call.verb.name}: {fault!r}")
            else:
                call.told = "acknowledged"
                return
            await asyncio.sleep(PAUSE_SECONDS)

    async def broken_promises(
        self, readers: list[RowReader], cleans: dict[str, Clean], *, completes: bool = True
    ) -> list[str]:
        """What was lost, done by half or done though refused; then calls are completed."""
        waiting: Iterator[tuple[int, Call]] = iter(enumerate(self.calls))
        wrong = list(self.faults)

        async def look(reader: RowReader) -> None:
            for number, call in waiting:
                clean = cleans[call.verb.name]
                now = await reader.of(call.scope, self.memory)
                left = now.differing(clean.after, but=_unchecked(call))
                if call.told == "acknowledged" and left:
                    wrong.append(f"{call.verb.name} was acknowledged and is lost: {left}")
                undone = now.differing(clean.before)
                if call.told == "refused" and undone:
                    wrong.append(f"{call.verb.name} was refused and has an effect: {undone}")
                if call.told == "unknown" and left and undone and not call.verb.in_steps:
                    wrong.append(f"{call.verb.name} is done by half: {left}")
                if completes and (call.told != "acknowledged" or number < ANSWERS_AGAIN_MAX):
                    wrong.extend(await self._completed(call, reader, clean))

        await asyncio.gather(*map(look, readers))
        return wrong

    async def _completed(self, call: Call, reader: RowReader, clean: Clean) -> list[str]:
        answers = [
            await call.verb.act(self.memory, call.scope, call.made, "key-1") for _ in range(2)
        ]
        if call.told == "acknowledged" and call.verb.takes_key:
            answers.append(call.answer)
        left = (await reader.of(call.scope, self.memory)).differing(
            clean.after, but=_unchecked(call)
        )
        told = []
        if left:
            told.append(f"{call.verb.name} is not completed by its retry: {left}")
        if any(one != answers[0] for one in answers):
            told.append(f"{call.verb.name} has two answers: {answers}")
        return told

    def counts(self) -> Counter[str]:
        """How many calls were told what."""
        return Counter(call.told for call in self.calls)


def _unchecked(call: Call) -> str:
    """A verb without a key is witnessed each time it is called."""
    return "" if call.verb.takes_key else "audit_log"


async def clean_runs(
    memory: MemoryManager, reader: RowReader, verbs: list[Verb]
) -> dict[str, Clean]:
    """Each verb once, in peace."""
    found = {}
    for verb in verbs:
        scope = Scope.user(f"chaos-{next(_tenants)}").project("x")
        made = await verb.prepare(memory, scope)
        before = await reader.of(scope, memory)
        await verb.act(memory, scope, made, "key-1")
        found[verb.name] = Clean(before, await reader.of(scope, memory))
    return found
