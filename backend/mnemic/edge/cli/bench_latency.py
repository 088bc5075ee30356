"""What the product costs beside the bare drivers: what `mnemic bench latency` does.

Ours and bare take turns, call by call, so that whatever else the machine does meets both alike.
"""

from __future__ import annotations

import operator
import random
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from mnemic.edge.cli.bench_ground import QUESTIONS, SEED, VOCABULARY
from mnemic.errors import MnemicError
from mnemic.model.scope import Scope

if TYPE_CHECKING:
    from mnemic.edge.cli.bench_ground import Ground
    from mnemic.service.tools import Tools
    from mnemic.store.measuring.bare import BarePostgres, BareValkey, Recorder, Transaction
    from mnemic.store.retrieval import CandidateQuery, Found
    from mnemic.store.unit import Unit
    from mnemic.tier.working import WorkingMemory

__all__ = [
    "BESIDE",
    "COMPARED_BESIDE",
    "OPERATIONS",
    "SCOPE",
    "SCORED_MAX",
    "Latency",
    "Size",
    "calls_of",
    "measure",
    "p95",
]

OPERATIONS = (
    "working_get",
    "working_set",
    "episodic_search",
    "semantic_search",
    "procedure_match",
)
BESIDE = (
    "recall_sql",
    "recall",
    "recall_with_embedding",
    "embedding",
    "scoring",
    "remember",
)
COMPARED_BESIDE = ("recall_sql", "recall")
SCORED_MAX = 150
SCOPE = Scope.user("bench").project("ledger")
PROCEDURES_ASKED = 5
KEYS = 100
WORKING_TIMES = 5  # as many calls more: they are shorter
VALUE = {"goal": "ship the ledger", "step": 3, "open": ["refunds", "fees"], "share": 0.25}
_P95 = 18  # of the nineteen cuts that make twenty parts

Call: TypeAlias = Callable[[int], Awaitable[Any]]
Rows: TypeAlias = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured, and among how much."""

    rows: int
    tenants: int
    memories: int
    rounds: int
    calls: int


@dataclass(frozen=True, slots=True)
class _Operation:
    """One call of ours, what the bare driver does in its stead, and whether both saw the same.

    `times` is how many times as many calls it gets.
    """

    name: str
    ours: Call
    bare: Call | None = None
    agree: Callable[[Any, Any], bool] = operator.eq
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds of every call of an operation, by round."""

    name: str
    ours: tuple[tuple[float, ...], ...]
    bare: tuple[tuple[float, ...], ...]

    @property
    def is_compared(self) -> bool:
        """Whether the bare driver did the same."""
        return all(self.bare)

    @property
    def ratios(self) -> tuple[float, ...]:
        """p95 of ours through p95 of the bare driver's, for each round."""
        return tuple(p95(ours) / p95(bare) for ours, bare in zip(self.ours, self.bare, strict=True))

    @property
    def ratio(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.ratios)


def p95(seconds: Sequence[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(seconds, n=20, method="inclusive")[_P95]


def calls_of(size: Size) -> int:
    """How many calls a run makes that are counted, for its progress bar."""
    compared = 2 * WORKING_TIMES + len(OPERATIONS) - 2 + len(COMPARED_BESIDE)
    times = 2 * compared + len(BESIDE) - len(COMPARED_BESIDE)
    return times * size.calls * size.rounds


async def measure(
    made: Ground, size: Size, *, progress: Callable[[int], None]
) -> tuple[Latency, ...]:
    """Every operation, timed on the scope and the database as they are filled.

    Raises `MnemicError` if the bare driver does not see what ours sees.
    """
    results = []
    async with _operations(made) as operations:
        for operation in operations:
            await _agree(operation)
            results.append(await _timed(operation, size, progress))
    return tuple(results)


async def _agree(operation: _Operation) -> None:
    """Both give the same answer, for each of the questions; and both are warm now."""
    for number in range(len(QUESTIONS)):
        ours = await operation.ours(number)
        if operation.bare is not None and not operation.agree(ours, await operation.bare(number)):
            raise MnemicError(f"The bare driver does not see what {operation.name} sees.")


async def _timed(operation: _Operation, size: Size, progress: Callable[[int], None]) -> Latency:
    ours: list[tuple[float, ...]] = []
    bare: list[tuple[float, ...]] = []
    for _ in range(size.rounds):
        mine: list[float] = []
        theirs: list[float] = []
        for number in range(size.calls * operation.times):
            turns: list[tuple[Call, list[float]]] = [(operation.ours, mine)]
            if operation.bare is not None:
                # Each goes first every other time: the second finds warmer caches.
                turns.insert(number % 2, (operation.bare, theirs))
            for call, took in turns:
                began = time.perf_counter()
                await call(number)
                took.append(time.perf_counter() - began)
            progress(len(turns))
        ours.append(tuple(mine))
        bare.append(tuple(theirs))
    return Latency(name=operation.name, ours=tuple(ours), bare=tuple(bare))


@asynccontextmanager
async def _operations(made: Ground) -> AsyncIterator[list[_Operation]]:
    from mnemic.store.measuring.bare import Recorder, bare_postgres, bare_valkey
    from mnemic.tier.tiers import Tiers

    settings = made.tools.settings
    talk = SCOPE.session("bench")
    async with (
        bare_postgres(made.database_url, settings.database) as postgres,
        bare_valkey(made.redis_url, talk, settings.working, made.tools.clock) as valkey,
    ):
        working = await _working(Tiers(made.tools, talk).working, valkey)
        recorder = Recorder(made.tools.database)
        reads = _Reads(made.tools, replace(made.tools, database=recorder), recorder, postgres)
        yield [
            *working,
            *await reads.operations(),
            *await _whole(made.tools),
            _remember(made.tools),
        ]


async def _working(memory: WorkingMemory, bare: BareValkey) -> list[_Operation]:
    """The keys are there before; what is set is as long each time."""
    for number in range(KEYS):
        await memory.set(f"key-{number}", VALUE)

    async def get(number: int) -> Any:
        return await memory.get(f"key-{number % KEYS}")

    async def get_bare(number: int) -> Any:
        return await bare.get(f"key-{number % KEYS}")

    async def keep(number: int) -> None:
        await memory.set(f"key-{number % KEYS}", VALUE)

    async def keep_bare(number: int) -> bytes:
        return await bare.set(f"key-{number % KEYS}", VALUE)

    return [
        _Operation("working_get", get, get_bare, times=WORKING_TIMES),
        _Operation(
            "working_set",
            keep,
            keep_bare,
            agree=lambda _ours, bare: bare == b"ok",
            times=WORKING_TIMES,
        ),
    ]


def _remember(tools: Tools) -> _Operation:
    from mnemic.service.memory_input import parse_memory
    from mnemic.service.remember import remember

    numbers = count()

    async def keep(_number: int) -> object:
        memory = parse_memory(tools, f"Statement {next(numbers)} of the bench", "semantic")
        return await remember(tools, memory, scope=SCOPE)

    return _Operation("remember", keep)


async def _whole(tools: Tools) -> list[_Operation]:
    """Recall as a caller has it, of a question that was never asked, and what of it is no SQL."""
    from mnemic.service.calibration import scale_of
    from mnemic.service.question import read_question
    from mnemic.service.recall import parse_query, searched
    from mnemic.service.weighing import Weighing

    questions = _unasked()
    query, _ = parse_query(tools, QUESTIONS[0], limit=None, memory_types=None, floor=0.0)
    words, statistics = await read_question(tools, query, SCOPE)
    done = await searched(tools, query, scope=SCOPE)
    candidates = [one.candidate for one in done.found.values()][:SCORED_MAX]
    scale = scale_of(tools, await tools.live_model())

    async def ask(_number: int) -> object:
        return await _ids(tools, next(questions))

    async def embed(_number: int) -> object:
        return await tools.vectors([next(questions)])

    async def weigh(_number: int) -> object:
        return Weighing(tools, words, statistics, scale).all(candidates)

    return [
        _Operation("recall_with_embedding", ask),
        _Operation("embedding", embed),
        _Operation("scoring", weigh),
    ]


def _unasked() -> Iterator[str]:
    """Questions, no two alike, in words that are drawn as those of the memories."""
    numbers = random.Random(SEED)  # noqa: S311 - made-up talk, not a secret
    asked: set[str] = set()
    while True:
        first, second, third = (int(VOCABULARY * numbers.random() ** 3) for _ in range(3))
        question = f"When did word{first} meet word{second} or word{third}?"
        if question not in asked:
            asked.add(question)
            yield question


class _Reads:
    """The operations that read PostgreSQL. What each sends is noted first, then sent bare."""

    def __init__(self, tools: Tools, noting: Tools, recorder: Recorder, bare: BarePostgres) -> None:
        self._tools = tools
        self._noting = noting
        self._recorder = recorder
        self._bare = bare

    async def operations(self) -> list[_Operation]:
        """Searches as the store does them, and the two verbs as they are."""
        arms = [await self._arms(question) for question in QUESTIONS]
        return [
            await self._search("episodic_search", "episode", arms),
            await self._search("semantic_search", "fact", arms),
            await self._verb("procedure_match", _match, _hold_the_ids),
            await self._statements(arms),
            await self._verb("recall", _recall, _hold_the_ids),
        ]

    async def _arms(self, question: str) -> CandidateQuery:
        """What a recall of the question looks for."""
        from mnemic.service.question import arms_of
        from mnemic.service.recall import parse_query

        query, _ = parse_query(self._tools, question, limit=None, memory_types=None, floor=None)
        return await arms_of(self._tools, query, SCOPE)

    async def _search(self, name: str, kind: str, arms: Sequence[CandidateQuery]) -> _Operation:
        """The store's call in its unit: no embedding and no scoring."""

        async def search(tools: Tools, number: int) -> list[Found]:
            async def work(unit: Unit) -> list[Found]:
                return await unit.retrieval.candidates(SCOPE, arms[number], (kind,))

            return await tools.transact(SCOPE.tenant.id, work, read_only=True)

        return await self._verb(name, search, _are_the_candidates)

    async def _statements(self, arms: Sequence[CandidateQuery]) -> _Operation:
        """The store's calls of a recall in their unit: what is known, what is found, its rows."""
        from mnemic.model.naming import names_in
        from mnemic.model.ranking_values import TURN
        from mnemic.service.recall import parse_query, searched
        from mnemic.store.candidate_columns import OTHER_KINDS
        from mnemic.store.wording import stems_of

        asked = []
        for question in QUESTIONS:
            query, _ = parse_query(self._tools, question, limit=None, memory_types=None, floor=0.0)
            done = await searched(self._tools, query, scope=SCOPE)
            hits = [(one.candidate.kind, one.candidate.id) for one in done.kept]
            asked.append((list(dict.fromkeys(stems_of(question))), names_in(question), hits))

        async def read(tools: Tools, number: int) -> list[UUID]:
            terms, names, hits = asked[number]

            async def work(unit: Unit) -> list[UUID]:
                await unit.statistics.read(SCOPE, terms, names)
                await unit.retrieval.candidates(SCOPE, arms[number], (TURN, *OTHER_KINDS))
                return list(await unit.retrieval.hits.by_ids(SCOPE, hits))

            return await tools.transact(SCOPE.tenant.id, work, read_only=True, keep_plans=True)

        return await self._verb("recall_sql", read, _hold_the_ids)

    async def _verb(
        self,
        name: str,
        call: Callable[[Tools, int], Awaitable[Any]],
        agree: Callable[[Any, Any], bool],
    ) -> _Operation:
        sent: list[tuple[Transaction, ...]] = []
        for number in range(len(QUESTIONS)):
            self._recorder.transactions.clear()
            await call(self._noting, number)
            sent.append(tuple(self._recorder.transactions))

        async def ours(number: int) -> Any:
            return await call(self._tools, number % len(QUESTIONS))

        async def bare(number: int) -> Any:
            return await self._bare.replay(sent[number % len(QUESTIONS)])

        return _Operation(name, ours, bare, agree)


def _are_the_candidates(found: Sequence[Found], rows: Sequence[Rows]) -> bool:
    """Whether the rows of the one statement are those, by their ids."""
    return sorted(one.candidate.id for one in found) == sorted(row[0] for row in rows[0])


def _hold_the_ids(memories: Sequence[UUID], rows: Sequence[Rows]) -> bool:
    """Whether each of the memories is among the rows of the last statement, of whichever kind."""
    return set(memories) <= {value for row in rows[-1] for value in row if isinstance(value, UUID)}


async def _match(tools: Tools, number: int) -> list[UUID]:
    from mnemic.service.procedures import match_procedures

    found = await match_procedures(tools, QUESTIONS[number], scope=SCOPE, limit=PROCEDURES_ASKED)
    return [one.id for one in found]


async def _recall(tools: Tools, number: int) -> list[UUID]:
    return await _ids(tools, QUESTIONS[number])


async def _ids(tools: Tools, question: str) -> list[UUID]:
    from mnemic.service.recall import parse_query, recall

    # Made-up talk and vectors reach no floor, and without hits their rows would not be read.
    query, notes = parse_query(tools, question, limit=None, memory_types=None, floor=0.0)
    found = await recall(tools, query, scope=SCOPE, notes=notes)
    return [hit.id for hit in found.hits]
