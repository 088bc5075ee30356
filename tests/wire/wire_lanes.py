"""Runs a verb with one fault at one message, and holds the outcome against what was promised.

What is promised: the call succeeds and its effect is there; or it says that nothing was changed,
and nothing was; or it says that the outcome is unknown. After each, the same call with the same
idempotency key ends with exactly one effect and one answer.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from wire_proxy import Fault, WireProxy
from wire_rows import RowReader, Rows
from wire_verbs import Verb

from mnemic import MemoryManager, OutcomeUnknown, Scope, Unavailable

RETRIES_MAX = 5
POINT_SECONDS_MAX = 30.0
_tenants = count(1)


@dataclass(frozen=True, slots=True)
class Point:
    """A fault at a message of a verb."""

    verb: Verb
    fault: Fault
    message: int

    def __str__(self) -> str:
        return f"{self.verb.name}: {self.fault} at message {self.message}"


@dataclass(slots=True)
class Tally:
    """What came of the points; `wrong` says what broke a promise."""

    outcomes: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def points(self) -> int:
        """How many faults were made."""
        return self.outcomes.total()


@dataclass(slots=True)
class Clean:
    """A run of a verb in which nothing went wrong."""

    messages: int
    rows: Rows


@dataclass(slots=True)
class Lane:
    """A manager behind a proxy of its own; one point at a time."""

    memory: MemoryManager
    proxy: WireProxy
    reader: RowReader

    async def clean(self, verb: Verb) -> Clean:
        """How many messages the verb takes on a new connection, and what it leaves."""
        await self._begin_anew()
        scope = _a_tenant()
        made = await verb.prepare(self.memory, scope)
        await self.reader.of(scope, self.memory)
        self.proxy.arm()
        await verb.act(self.memory, scope, made, "key-1")
        return Clean(self.proxy.seen, await self.reader.of(scope, self.memory))

    async def _begin_anew(self) -> None:
        """What was prepared on older connections does not shorten the next conversation."""
        pool = await self.memory._tools.database._pool()
        await pool.expire_connections()

    async def run(self, point: Point, clean: Clean, tally: Tally) -> None:
        """The point, counted in `tally`."""
        scope = _a_tenant()
        verb = point.verb
        await self._begin_anew()
        made = await verb.prepare(self.memory, scope)
        before = await self.reader.of(scope, self.memory)
        self.proxy.arm(point.fault, point.message)
        answer, fault = await self._told(verb, scope, made)
        struck = self.proxy.struck
        self.proxy.arm()
        if not struck:
            tally.missed[verb.name] += 1
        else:
            tally.outcomes["success" if fault is None else type(fault).__name__] += 1
        now = await self.reader.of(scope, self.memory)
        wrong = "" if verb.in_steps and fault else self._judged(fault, before, now, clean)
        first = answer if fault is None else await self._retried(verb, scope, made)
        again = await self._retried(verb, scope, made)
        if not wrong and again != first:
            wrong = f"two answers to one key: {first!r} and {again!r}"
        witnesses = "" if verb.takes_key else "audit_log"
        left = (await self.reader.of(scope, self.memory)).differing(clean.rows, but=witnesses)
        if not wrong and (differing := left):
            wrong = f"not exactly one effect: {differing}"
        if wrong:
            tally.wrong.append(f"{point}: {wrong}")

    async def _told(self, verb: Verb, scope: Scope, made: Any) -> tuple[Any, Exception | None]:
        try:
            return await verb.act(self.memory, scope, made, "key-1"), None
        except Exception as fault:  # noqa: BLE001 - which ones there are is what is asked
            return None, fault

    @staticmethod
    def _judged(fault: Exception | None, before: Rows, now: Rows, clean: Clean) -> str:
        if fault is None:
            differing = now.differing(clean.rows)
            return f"success without its effect: {differing}" if differing else ""
        if not isinstance(fault, Unavailable):
            return f"an error that is no part of the contract: {fault!r}"
        if isinstance(fault, OutcomeUnknown):
            known = now.exact == before.exact or not now.differing(clean.rows)
            return "" if known else f"half an effect: {now.differing(clean.rows)}"
        if now.exact != before.exact:
            return f"{fault!r} although something was changed: {now.differing(before)}"
        return ""

    async def _retried(self, verb: Verb, scope: Scope, made: Any) -> Any:
        for attempt in range(RETRIES_MAX):
            try:
                return await verb.act(self.memory, scope, made, "key-1")
            except Unavailable:
                if attempt == RETRIES_MAX - 1:
                    raise
        raise AssertionError


async def clean_runs(lanes: list[Lane], verbs: Iterable[Verb]) -> dict[str, Clean]:
    """Each verb without a fault."""
    waiting, found = iter(verbs), dict[str, Clean]()

    async def serve(lane: Lane) -> None:
        for verb in waiting:
            found[verb.name] = await lane.clean(verb)

    async with asyncio.TaskGroup() as tasks:
        for lane in lanes:
            tasks.create_task(serve(lane))
    return found


async def run_points(lanes: list[Lane], points: Iterable[Point], cleans: dict[str, Clean]) -> Tally:
    """Every point, each on the next free lane."""
    tally = Tally()
    waiting: Iterator[Point] = iter(points)

    async def serve(lane: Lane) -> None:
        for point in waiting:
            try:
                async with asyncio.timeout(POINT_SECONDS_MAX):
                    await lane.run(point, cleans[point.verb.name], tally)
            except TimeoutError as late:
                where = traceback.format_exception(late.__cause__ or late)
                tally.wrong.append(f"{point}: it hangs: {''.join(where)}")

    async with asyncio.TaskGroup() as tasks:
        for lane in lanes:
            tasks.create_task(serve(lane))
    return tally


def _a_tenant() -> Scope:
    return Scope.user(f"wire-{next(_tenants)}").project("x")
