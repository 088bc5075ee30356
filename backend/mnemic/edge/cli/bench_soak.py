"""Whether a process that serves for long stays as small as it was: what `mnemic bench soak` does.

After each of the steps the process is measured. What it needed to warm up is left out; through the
rest a straight line is laid, and what that line gains over the whole is the growth.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemic.errors import ConfigurationError
from mnemic.model.scope import Scope

if TYPE_CHECKING:
    from mnemic.edge.cli.bench_ground import Ground
    from mnemic.store.measuring.connections import ConnectionCounter

__all__ = ["STEPS", "Growth", "Sample", "Soak", "growth_of", "soak"]

STEPS = 100
WARM_UP = 0.3  # the part of the samples that is left out
MEMORIES = 100
AT_ONCE = 8
SCOPES = 64
KEYS = 16
VERBS = ("set", "get", "exists", "delete")
QUESTIONS_ASKED = 200
# Less than one over the whole is none: they come in whole numbers.
COUNT_GROWTH_MAX = 0.5
RSS_GROWTH_MAX_BYTES = 8 * 1_048_576
_SELF = Path("/proc/self")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Sample:
    """The process after a step. Connections are those that the servers count."""

    rss: int
    descriptors: int
    postgres: int
    valkey: int


@dataclass(frozen=True, slots=True)
class Growth:
    """What a line through the samples after warming up gains over the whole of them."""

    first: int
    last: int
    gained: float
    limit: float

    @property
    def is_flat(self) -> bool:
        """Whether it gains no more than the limit."""
        return self.gained <= self.limit


@dataclass(frozen=True, slots=True)
class Soak:
    """A run and what became of the process meanwhile."""

    operations: int
    recalls: int
    seconds: float
    samples: tuple[Sample, ...]
    growths: dict[str, Growth]

    @property
    def is_flat(self) -> bool:
        """Whether nothing grew."""
        return all(growth.is_flat for growth in self.growths.values())


def growth_of(values: Sequence[int], *, limit: float) -> Growth:
    """The growth over `values` without the first `WARM_UP` of them, by least squares."""
    kept = values[int(len(values) * WARM_UP) :]
    middle = (len(kept) - 1) / 2
    average = sum(kept) / len(kept)
    spread = sum((place - middle) ** 2 for place in range(len(kept)))
    lean = sum((place - middle) * (value - average) for place, value in enumerate(kept))
    slope = lean / spread if spread else 0.0
    return Growth(kept[0], kept[-1], slope * (len(kept) - 1), limit)


def _judged(samples: Sequence[Sample]) -> dict[str, Growth]:
    limits = {
        "rss": RSS_GROWTH_MAX_BYTES,
        "descriptors": COUNT_GROWTH_MAX,
        "postgres": COUNT_GROWTH_MAX,
        "valkey": COUNT_GROWTH_MAX,
    }
    return {
        name: growth_of([getattr(one, name) for one in samples], limit=limit)
        for name, limit in limits.items()
    }


async def soak(
    made: Ground,
    *,
    operations: int,
    recalls: int,
    progress: Callable[[int], None],
    beside: Callable[[], Awaitable[None]] | None = None,
) -> Soak:
    """So many operations and recalls were done, eight at once, and the process was watched.

    `beside` is awaited in each step: what is wrong on purpose, to see that it is found. Raises
    `ConfigurationError` where the process cannot be measured.
    """
    from mnemic.edge.cli.bench_ground import fill_scope
    from mnemic.store.measuring.connections import connection_counter

    _resident()  # refused now rather than after the first step
    scope = Scope.user("soak").project("ledger")
    if recalls:
        await fill_scope(made.tools, scope, MEMORIES)
    load = _Load(made, scope)
    samples: list[Sample] = []
    started = time.perf_counter()
    async with connection_counter(made.admin_url, made.redis_url) as counter:
        for step in range(STEPS):
            await load.step(_share(operations, step), _share(recalls, step))
            if beside is not None:
                await beside()
            samples.append(await _sample(counter))
            progress(1)
    seconds = time.perf_counter() - started
    return Soak(operations, recalls, seconds, tuple(samples), _judged(samples))


def _share(whole: int, step: int) -> int:
    """How much of the whole is done in a step; all steps together do just that."""
    return whole * (step + 1) // STEPS - whole * step // STEPS


async def _sample(counter: ConnectionCounter) -> Sample:
    postgres, valkey = await counter.counts()
    return Sample(_resident(), _descriptors(), postgres, valkey)


def _resident() -> int:
    """The bytes of this process that lie in memory."""
    try:
        pages = int((_SELF / "statm").read_text(encoding="ascii").split()[1])
    except OSError:
        raise ConfigurationError("A soak reads /proc/self; run it on Linux.") from None
    return pages * _PAGE


def _descriptors() -> int:
    return sum(1 for _ in (_SELF / "fd").iterdir())


class _Load:
    """Operations of working memory and recalls, the same ones over and over."""

    def __init__(self, made: Ground, scope: Scope) -> None:
        from mnemic.tier.tiers import Tiers

        self._tools = made.tools
        self._scope = scope
        scopes = (scope.session(f"soak-{number}") for number in range(SCOPES))
        self._working = [Tiers(made.tools, one).working for one in scopes]
        self._done = 0
        self._asked = 0

    async def step(self, operations: int, recalls: int) -> None:
        """So many more of each are done."""
        await _at_once(operations, self._operate)
        await _at_once(recalls, self._recall)

    async def _operate(self) -> None:
        number, self._done = self._done, self._done + 1
        memory = self._working[number // KEYS % SCOPES]
        key = f"key-{number % KEYS}"
        verb = VERBS[number // (KEYS * SCOPES) % len(VERBS)]
        if verb == "set":
            await memory.set(key, {"step": number, "open": ["a", "b"]}, ttl_seconds=3_600)
        else:
            await getattr(memory, verb)(key)

    async def _recall(self) -> None:
        from mnemic.service.recall import parse_query, recall

        number, self._asked = self._asked, self._asked + 1
        text = f"What is known of word{number % QUESTIONS_ASKED}?"
        query, notes = parse_query(self._tools, text, limit=None, memory_types=None, floor=0.0)
        await recall(self._tools, query, scope=self._scope, notes=notes)


async def _at_once(times: int, call: Callable[[], Awaitable[Any]]) -> None:
    """The call was made so many times, by eight who each wait for their own."""

    async def some(share: int) -> None:
        for _ in range(share):
            await call()

    async with asyncio.TaskGroup() as group:
        for place in range(AT_ONCE):
            group.create_task(some(times * (place + 1) // AT_ONCE - times * place // AT_ONCE))
