"""`mnemic bench scale`: what it fills in is found, and its figures follow what was found."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from mnemic.edge.cli import bench_crowd, bench_scale
from mnemic.edge.cli.bench_confidence import Whose
from mnemic.edge.cli.bench_ground import Ground
from mnemic.edge.cli.bench_peers import load_peers, measure_peers
from mnemic.edge.cli.bench_questions import Conversation, Question
from mnemic.edge.cli.bench_scale import Place, PlannedEmbedder, Size
from mnemic.model.transcript import Utterance
from mnemic.settings import MemorySettings
from mnemic.testing import a_turn
from mnemic.wiring import Wiring

SIZE = Size(rows=(120, 40), tenants=3, questions=4)
WAYS = {"candidates", "bare candidates", "recall", "bare recall"}
TALK = ("I keep bees on the roof.", "My cello is from Cremona.", "We moved to Tartu in May.")


@pytest.fixture
def planned() -> PlannedEmbedder:
    return PlannedEmbedder()


@pytest.fixture
async def ground(servers: Any, database: Any, planned: PlannedEmbedder) -> AsyncIterator[Ground]:
    """A database of the test's own, on the servers of the run."""
    settings = MemorySettings(
        database_url=database.app_url,
        redis_url=servers.redis_url,
        database={"require_durable": False},
    )
    wiring = Wiring(settings, embedder=planned)
    yield Ground(await wiring.open(), database.app_url, database.admin_url, servers.redis_url)
    await wiring.close()


def unwatched(_count: int) -> None:
    """Nobody watches."""


async def test_every_size_is_filled_asked_and_told(
    ground: Ground, planned: PlannedEmbedder
) -> None:
    places = await bench_scale.fill(ground, planned, SIZE)

    await bench_scale.measure(ground, places, progress=unwatched)

    document = bench_scale.document_of(places, SIZE, ())
    connection = await asyncpg.connect(ground.admin_url)
    turns = await connection.fetchval(
        "SELECT count(*) FROM mnemic.turns t JOIN mnemic.turn_vectors v ON v.memory_id = t.id"
    )
    pending = await connection.fetchval(
        "SELECT count(*) FROM mnemic.tenants_due($1, 9, now())", "count_terms"
    )
    await connection.close()
    assert list(document["places"]) == ["120 rows", "40 rows", "3 tenants"]
    assert document["rows"] == turns
    assert pending == 0
    for figures in document["places"].values():
        assert set(figures["ways"]) == WAYS
        assert figures["ways"]["candidates"]["recall@10"] == 1.0
        assert all(0 < one["p50_ms"] <= one["p95_ms"] for one in figures["ways"].values())


async def test_what_is_not_found_lowers_the_figure(
    ground: Ground, planned: PlannedEmbedder
) -> None:
    [place, *_] = await bench_scale.fill(ground, planned, SIZE)
    place.asked = [
        bench_scale.Asked(one.scope, one.text, one.vector, (*one.nearest[:5], *_unknown(5)))
        for one in place.asked
    ]

    await bench_scale.measure(ground, [place], progress=unwatched)

    told = bench_scale.document_of([place], SIZE, ())["places"]["120 rows"]["ways"]
    assert told["candidates"]["recall@10"] == 0.5


def _unknown(count: int) -> list[Any]:
    return [uuid4() for _ in range(count)]


class Echo:
    """A store that finds what it is told to find."""

    name = "echo"

    def __init__(self, place: Place) -> None:
        self.found = {
            (one.scope.tenant.external_id, one.text): list(one.nearest[:3]) for one in place.asked
        }
        self.closed = False

    def load(self, tenant: str, turns: Any) -> None:
        """It is told."""

    def search(self, tenant: str, question: str) -> list[Any]:
        return self.found[tenant, question]

    def close(self) -> None:
        self.closed = True


async def test_a_peer_is_asked_the_same_and_one_that_is_missing_is_named(
    ground: Ground, planned: PlannedEmbedder
) -> None:
    [place, *_] = await bench_scale.fill(ground, planned, SIZE)
    echo = Echo(place)

    peers, skipped = await load_peers(ground, [place], planned)
    await measure_peers([*peers, echo], [place], progress=unwatched)

    missing = [name for name in ("langgraph", "mem0") if find_spec(name) is None]
    told = bench_scale.document_of([place], SIZE, skipped)
    assert len(skipped) == len(missing)
    assert all(any(name in line for line in told["skipped"]) for name in missing)
    assert told["places"]["120 rows"]["ways"]["echo"]["recall@10"] == 0.3
    assert echo.closed


def _conversation() -> Conversation:
    said = [
        Utterance(
            session="talk",
            turn=a_turn(text, actor="Mira", external_id=str(place)),
            line=place,
        )
        for place, text in enumerate(TALK, start=1)
    ]
    asked = (
        Question(text="What does Mira keep on the roof?", category=4, evidence=_places(0)),
        Question(text="Where did Mira move to?", category=2, evidence=_places(2, 99)),
        Question(text="What did Tom say?", category=5, evidence=_places(1)),
    )
    turns = {("talk", place): one for place, one in enumerate(said)}
    return Conversation(name="one", entries=tuple(said), turns=turns, questions=asked, skipped=0)


def _places(*at: int) -> frozenset[tuple[str, int]]:
    return frozenset(("talk", place) for place in at)


async def test_answers_are_looked_for_in_a_crowd(ground: Ground, planned: PlannedEmbedder) -> None:
    crowd = await bench_crowd.fill(ground, [_conversation()], 200)

    await bench_crowd.ask(ground, crowd, [_conversation()], progress=unwatched)

    connection = await asyncpg.connect(ground.admin_url)
    turns = await connection.fetchval("SELECT count(*) FROM mnemic.turns")
    words = await connection.fetchval(
        "SELECT count(*) FROM mnemic.turns WHERE tsv @@ 'bee | cello | tartu'"
    )
    await connection.close()
    document = bench_crowd.document_of(crowd, ground.tools.settings, planned.signature)
    assert (turns, document["turns"], document["questions"]) == (200, 200, 2)
    assert words > len(TALK), "the crowd speaks of other things"
    assert document["r@20"] == 0.75, "half of one question's evidence does not exist"
    assert set(document["times"]) == {
        "full text",
        "full text of an actor",
        "candidates",
        "recall",
    }


async def test_the_last_conversation_is_foreign_until_it_is_there(
    ground: Ground, planned: PlannedEmbedder
) -> None:
    one = _conversation()
    other = replace(one, name="two")
    crowd = await bench_crowd.fill(ground, [one, other], 100)

    await bench_crowd.ask_foreign(ground, crowd, [one, other])
    before = list(crowd.judged)
    await bench_crowd.admit(ground, [one, other])
    await bench_crowd.ask(ground, crowd, [one, other], progress=unwatched)

    assert [judged.whose for judged in before] == [Whose.FOREIGN, Whose.RENAMED] * 2
    document = bench_crowd.document_of(crowd, ground.tools.settings, planned.signature)
    counts = {name: asked["questions"] for name, asked in document["confidence"]["asked"].items()}
    assert counts == {"own": 4, "adversarial": 2, "foreign": 2, "renamed": 2}
    assert document["default_floor"]["costs_r@10"] == pytest.approx(
        document["r@10"] - document["default_floor"]["r@10"]
    )
    bench_crowd.show(document)


@pytest.mark.story
def test_scale_is_told_as_one_document(bare: Any, tmp_path: Path) -> None:
    ended = bare("bench", "scale", "--rows", "60", "--tenants", "2", "--questions", "3", "--json")

    document = ended.document
    assert ended.code == 0, ended.err
    assert set(document["places"]) == {"60 rows", "2 tenants"}
    assert not (tmp_path / "data").exists(), "it used the data folder that is set"
