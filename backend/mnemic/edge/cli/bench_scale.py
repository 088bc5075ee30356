"""How recall fares with tenants of every size: what `mnemic bench scale` does.

One database holds them all at once. Ours and the bare driver take turns, call by call.
"""

from __future__ import annotations

import random
import time
from array import array
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.edge.cli.bench_ground import SEED, DigestEmbedder
from mnemic.edge.cli.writing import write_line
from mnemic.model.embedding import Vector
from mnemic.model.retrieval_measures import mean, percentile, recall_at
from mnemic.model.scope import Scope

if TYPE_CHECKING:
    from mnemic.edge.cli.bench_ground import Ground
    from mnemic.model.recall import Recall, RecallQuery
    from mnemic.service.tools import Tools
    from mnemic.store.measuring.bare import BarePostgres, Transaction
    from mnemic.store.measuring.scaling import Owner
    from mnemic.store.retrieval import CandidateQuery, Found
    from mnemic.store.unit import Unit

__all__ = [
    "K",
    "Place",
    "PlannedEmbedder",
    "Size",
    "candidates",
    "document_of",
    "fill",
    "measure",
    "promoted",
    "routes_of",
    "show",
]

K = 10
DIMENSIONS = 384
POOL = 512
VOCABULARY = 4_000
MANY_ROWS_EACH = 20
NOISE = 0.7
_DIGITS = 4


class PlannedEmbedder(DigestEmbedder):
    """Each question has the vector that was planned for it: embedding is not what is measured."""

    def __init__(self) -> None:
        self.planned: dict[str, Vector] = {}

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text."""
        return [self.planned.get(text) or self._vector(text) for text in texts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Rows of each large tenant, how many small ones stand beside, and questions to each size."""

    rows: tuple[int, ...]
    tenants: int
    questions: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to a scope, with its vector and the nearest turns there."""

    scope: Scope
    text: str
    vector: Vector
    nearest: tuple[UUID, ...] = ()


@dataclass(slots=True)
class Place:
    """Tenants of one size, what is asked of them, and what came of it, in seconds and shares."""

    name: str
    owners: tuple[Owner, ...]
    asked: list[Asked]
    times: dict[str, list[float]] = field(default_factory=dict)
    recalls: dict[str, list[float]] = field(default_factory=dict)
    routes: set[str] = field(default_factory=set)

    def note(self, name: str, seconds: float, found: Sequence[UUID] | None, one: Asked) -> None:
        """How long a call took, and which of the nearest it found."""
        self.times.setdefault(name, []).append(seconds)
        if found is not None:
            self.recalls.setdefault(name, []).append(recall_at(K, found, one.nearest))


def routes_of(found: Recall) -> set[str]:
    """Which way each search for the nearest went, where an answer tells."""
    return {f"{leg.name}: {leg.plan}" for leg in getattr(found, "route", ())}


async def promoted(made: Ground) -> None:
    """Tenants beyond the bound have their indexes, as maintenance makes them."""
    from mnemic.service.promote import promote_due

    if made.owner_url is not None:
        await promote_due(made.owner_url, made.tools.settings, at=made.tools.now())


async def candidates(
    tools: Tools, query: RecallQuery, scope: Scope
) -> tuple[CandidateQuery, Callable[[Unit], Awaitable[list[Found]]]]:
    """What a recall asks the store for, and the turns that it gets, by the route that it takes."""
    from mnemic.service.arms import words_asked
    from mnemic.service.question import arms_of
    from mnemic.service.routing import routing_of

    arms = await arms_of(tools, query, scope)
    statistics = await tools.transact(
        scope.tenant.id, lambda unit: unit.statistics.read(scope, []), read_only=True
    )
    words = words_asked(tools, query.text, statistics)
    routing = routing_of(("turn",), words, statistics, tools.settings.recall)

    async def search(unit: Unit) -> list[Found]:
        near = await unit.retrieval.approximate.nearest(scope, arms, routing)
        return await unit.retrieval.candidates(scope, replace(arms, given=near.ids), ("turn",))

    return arms, search


async def fill(made: Ground, embedder: PlannedEmbedder, size: Size) -> list[Place]:
    """The database holds the tenants of all sizes, and each question knows its nearest turns."""
    from mnemic.store.measuring.filling import settle
    from mnemic.store.measuring.scaling import Words, fill_turns, nearest

    numbers = random.Random(SEED)  # noqa: S311 - made-up vectors, not a secret
    pool = [_unit([numbers.gauss(0, 1) for _ in range(DIMENSIONS)]) for _ in range(POOL)]
    words = [f"word{int(VOCABULARY * numbers.random() ** 3)}" for _ in range(8 * VOCABULARY)]
    model = (await made.tools.live_model()).id
    places = _places(size, numbers)
    await fill_turns(
        made.admin_url,
        [owner for place in places for owner in place.owners],
        model=model,
        words=Words(vocabulary=words),
        pool=pool,
        middle=array("f", [0.0] * DIMENSIONS),
    )
    await promoted(made)
    await settle(made.admin_url)
    for place in places:
        for number in range(size.questions):
            owner = numbers.choice(place.owners)
            text = f"{place.name} {number}: {' '.join(numbers.sample(words, 3))}"
            vector = _question(pool, numbers)
            embedder.planned[text] = vector
            [found] = await nearest(made.admin_url, owner.scope, [vector], model=model, k=K)
            place.asked.append(Asked(owner.scope, text, vector, tuple(found)))
    return places


def _places(size: Size, numbers: random.Random) -> list[Place]:
    from mnemic.store.measuring.scaling import Owner

    places = [
        Place(f"{rows:,} rows", (Owner(scope=Scope.user(f"scale-{rows}"), rows=rows),), [])
        for rows in size.rows
    ]
    if size.tenants:
        small = tuple(
            Owner(
                scope=Scope.user(f"small-{number}"),
                rows=1 + int(3 * MANY_ROWS_EACH * numbers.random() ** 2),
            )
            for number in range(size.tenants)
        )
        places.append(Place(f"{size.tenants:,} tenants", small, []))
    return places


def _question(pool: Sequence[Vector], numbers: random.Random) -> Vector:
    """Near to some turns, as a question is: two of the pool, and noise."""
    one, other = numbers.sample(pool, 2)
    noise = _unit([numbers.gauss(0, 1) for _ in range(DIMENSIONS)])
    return _unit([a + b + NOISE * c for a, b, c in zip(one, other, noise, strict=True)])


def _unit(values: Sequence[float]) -> Vector:
    length = sum(value * value for value in values) ** 0.5
    return array("f", [value / length for value in values])


async def measure(
    made: Ground, places: Sequence[Place], *, progress: Callable[[int], None]
) -> None:
    """Every question is asked of the candidate statement and of recall, and of the bare driver."""
    from mnemic.store.measuring.bare import Recorder, bare_postgres

    recorder = Recorder(made.tools.database)
    noting = replace(made.tools, database=recorder)
    async with bare_postgres(made.database_url, made.tools.settings.database) as bare:
        reader = _Reader(made.tools, noting, recorder, bare)
        for place in places:
            for number, one in enumerate(place.asked):
                await reader.ask(place, one, number)
                progress(1)


class _Reader:
    """Asks a question in every way. What ours sends is noted first, then sent bare."""

    def __init__(self, tools: Tools, noting: Tools, recorder: Any, bare: BarePostgres) -> None:
        self._tools = tools
        self._noting = noting
        self._recorder = recorder
        self._bare = bare

    async def ask(self, place: Place, one: Asked, number: int) -> None:
        from mnemic.service.recall import parse_query, recall

        query, _ = parse_query(
            self._tools, one.text, limit=K, memory_types=("episodic",), floor=0.0
        )
        _, turns = await candidates(self._tools, query, one.scope)

        async def search(tools: Tools) -> list[UUID]:
            found = await tools.transact(one.scope.tenant.id, turns, read_only=True)
            near = [hit for hit in found if hit.near_place is not None and hit.near_place <= K]
            return [hit.candidate.id for hit in near]

        async def whole(tools: Tools) -> None:
            found = await recall(tools, query, scope=one.scope)
            place.routes.update(routes_of(found))

        calls: dict[str, Callable[[Tools], Awaitable[list[UUID] | None]]]
        calls = {"candidates": search, "recall": whole}
        for name, call in calls.items():
            self._recorder.transactions.clear()
            await call(self._noting)
            sent: tuple[Transaction, ...] = tuple(self._recorder.transactions)
            for turn in (0, 1):
                # Each goes first every other time: the second finds warmer caches.
                began = time.perf_counter()
                if (turn + number) % 2:
                    await self._bare.replay(sent)
                    place.note(f"bare {name}", time.perf_counter() - began, None, one)
                else:
                    found = await call(self._tools)
                    place.note(name, time.perf_counter() - began, found, one)


def document_of(places: Sequence[Place], size: Size, skipped: Sequence[str]) -> dict[str, Any]:
    """The figures: milliseconds, and shares from 0 to 1."""
    return {
        "questions": size.questions,
        "k": K,
        "rows": sum(owner.rows for place in places for owner in place.owners),
        "skipped": list(skipped),
        "places": {
            place.name: {
                "rows": sum(owner.rows for owner in place.owners),
                "tenants": len(place.owners),
                "routes": sorted(place.routes) or ["exact"],
                "ways": {
                    name: {
                        "p50_ms": round(percentile(times, 0.5) * 1_000, _DIGITS),
                        "p95_ms": round(percentile(times, 0.95) * 1_000, _DIGITS),
                        **(
                            {f"recall@{K}": round(mean(place.recalls[name]), _DIGITS)}
                            if name in place.recalls
                            else {}
                        ),
                    }
                    for name, times in place.times.items()
                },
            }
            for place in places
        },
    }


def show(document: dict[str, Any]) -> None:
    """The figures as a table."""
    write_line(
        f"{document['rows']:,} turns in one database, {document['questions']} questions a size"
    )
    write_line(f"{'':<16}{'':<18}{'p50 ms':>9}{'p95 ms':>9}{'recall@10':>11}")
    for place, figures in document["places"].items():
        for name, one in figures["ways"].items():
            share = one.get(f"recall@{document['k']}")
            shown = "" if share is None else f"{share * 100:.1f} %"
            write_line(
                f"{place:<16}{name:<18}{one['p50_ms']:>9.2f}{one['p95_ms']:>9.2f}{shown:>11}"
            )
        write_line(f"{'':<16}route: {', '.join(figures['routes'])}")
    for reason in document["skipped"]:
        write_line(f"SKIPPED: {reason}")
