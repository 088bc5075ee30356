"""M: models, migrations, and what comes in from outside."""

from __future__ import annotations

import io
import json
from array import array
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest
from pydantic import SecretStr

from mnemic import (
    ConfigurationError,
    EmbeddingMismatch,
    MemoryManager,
    MemorySettings,
    RecallStage,
    Scope,
    Unavailable,
    UnknownFormat,
    upgrade,
)
from mnemic.edge.mcp.refusals import refusal
from mnemic.model.embedding import ModelSignature, Vector
from mnemic.model.transcript import BadLine, Entry, read
from mnemic.service.doctor import Patient, Verdict, examine
from mnemic.store.upgrade import current
from mnemic.testing import HashingEmbedder, a_fact, a_scope, a_turn
from oracles.failing import failing
from oracles.reading import ways_that_show
from oracles.stored import canonical_facts, difference, rows_of

NOT_APPLICABLE: dict[str, str] = {
    "M13": "tests/edge/test_mcp_stdio.py reads every line of standard output while all is logged.",
}

OLD, NEW = datetime(2019, 1, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC)


class Sized(HashingEmbedder):
    """Hashed words under another name or size."""

    def __init__(self, name: str, dimensions: int) -> None:
        self.signature = ModelSignature(name, "1", dimensions)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        made = await super().embed(texts)
        size = self.signature.dimensions
        return [array("f", (list(one) * (size // len(one) + 1))[:size]) for one in made]


@pytest.mark.parametrize("dimensions", [1_536, 3_072, 4_000])
async def test_m02_a_model_whose_vectors_fit_no_index_is_refused_before_anything_is_kept(
    opened: Callable[..., Any], own_settings: MemorySettings, dimensions: int
) -> None:
    with pytest.raises(ConfigurationError, match="1,310"):
        async with opened(own_settings, embedder=Sized("large", dimensions)):
            raise AssertionError(dimensions)

    async with opened(own_settings, embedder=Sized("fitting", 1_310)) as memory:
        scope = a_scope()
        await memory.remember("The lease is red.", scope=scope)
        found = await memory.recall("lease", scope=scope, floor=0.0)
        assert found.hits[0].near_place == 1


async def test_m03_another_model_of_the_same_size_is_not_mixed_in(
    opened: Callable[..., Any], memory: MemoryManager, scope: Scope
) -> None:
    await memory.remember("The lease is red.", scope=scope)
    size = HashingEmbedder.signature.dimensions

    with pytest.raises(EmbeddingMismatch, match="another-words@1/32"):
        async with opened(embedder=Sized("another-words", size)):
            raise AssertionError

    async with opened(embedder=Sized("hashed-words", size)) as same:
        assert (await same.recall("lease", scope=scope, floor=0.0)).hits[0].near_place == 1


async def test_m05_indexes_that_a_restore_left_out_are_found_with_what_makes_them(
    database: Any, owner: asyncpg.Connection, memory: MemoryManager
) -> None:
    patient = Patient(
        database_url=database.app_url,
        redis_url=None,
        data_dir=None,
        embeds_database=False,
        database=memory.settings.database,
        open_embedder=HashingEmbedder,
    )

    async def indexes() -> Any:
        return next(one for one in await examine(patient) if one.check == "indexes")

    whole = await indexes()
    await owner.execute("DROP INDEX mnemic.turn_vectors_exact_idx, mnemic.facts_subject_idx")
    lacking = await indexes()
    await owner.execute(str(lacking.remedy).partition(": ")[2])
    repaired = await indexes()

    assert (whole.verdict, repaired.verdict) == (Verdict.OK, Verdict.OK)
    assert lacking.verdict is Verdict.FAIL
    assert "turn_vectors_exact_idx" in lacking.detail
    assert "facts_subject_idx" in lacking.detail


@pytest.mark.parametrize("password", ["p@ss%", "p%40ss%25", "100%(s)s", "a/b:c?d#e"])
async def test_m08_any_password_in_a_url_reaches_migrations_and_service(
    opened: Callable[..., Any], database: Any, own_settings: MemorySettings, password: str
) -> None:
    def keyed(url: str) -> str:
        return url.replace("@", f":{quote(password, safe='')}@", 1)

    stands = upgrade(keyed(database.owner_url))
    secret = SecretStr(keyed(database.app_url))
    async with opened(own_settings.model_copy(update={"database_url": secret})) as memory:
        scope = a_scope()
        await memory.remember("The lease is red.", scope=scope)
        found = await memory.recall("lease", scope=scope, floor=0.0)

    assert stands.is_head
    assert current(keyed(database.owner_url)).is_head
    assert found.returned == 1


def lines(*entries: dict[str, Any]) -> list[Entry]:
    text = "\n".join(json.dumps(entry) for entry in entries)
    return list(read(io.BytesIO(text.encode())))


async def test_m11_what_comes_in_twice_is_there_once_and_what_was_replaced_stays_so(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    said = {"type": "turn", "session": "s", "actor": "User", "text": "The lease is red."}
    home = {"type": "fact", "subject": "User", "predicate": "lives_in"}
    entries = [
        *({**said, "at": f"2026-03-02T09:0{minute}:00Z"} for minute in range(2)),
        {**home, "object": "Oslo", "valid_from": NEW.isoformat()},
        {**home, "object": "Lima", "valid_from": OLD.isoformat()},
    ]
    await memory.transcripts.ingest(lines(*entries), scope=scope)
    before, known = await rows_of(seen, scope), await canonical_facts(seen, scope)

    again = await memory.transcripts.ingest(lines(*entries), scope=scope)

    assert (again.turns_added, again.facts_added, again.problem_count) == (0, 0, 0)
    assert difference(before, await rows_of(seen, scope)) == {}
    assert [(row[2], row[3], row[8]) for row in known] == [
        ("lima", "superseded", "oslo"),
        ("oslo", "live", None),
    ]
    assert await ways_that_show(memory, scope, "Lima") == set()
    assert await ways_that_show(memory, scope, "Oslo")


@pytest.mark.parametrize(
    "text", ["", " \n", "[]", "{}", '{"memories": []}', "<xml/>", '{"data": {"x": 1}}', "null"]
)
async def test_m12_what_holds_nothing_that_can_be_read_is_not_an_empty_success(
    memory: MemoryManager, scope: Scope, text: str
) -> None:
    told: list[Any] = []
    try:
        told = list(read(io.BytesIO(text.encode())))
    except UnknownFormat as refused:
        told = [refused]
    good = lines({"type": "fact", "subject": "User", "predicate": "uses", "object": "Valkey"})
    report = await memory.transcripts.ingest(good, scope=scope)

    assert told
    assert all(isinstance(one, BadLine | UnknownFormat) for one in told)
    assert report.facts_added == 1


async def test_m22_nothing_that_the_database_says_is_told_or_asked_again(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    word = "heliotrope"
    calls: list[Callable[[], Any]] = [
        lambda: memory.store_fact(a_fact(object=word), scope=scope),
        lambda: memory.remember(f"It was {word}.", scope=scope, memory_type="episodic"),
        lambda: memory.sessions.append([a_turn(word)], scope=scope.session("s")),
    ]

    told = []
    async with failing(seen, scope, "audit_log", "INSERT"):
        for call in calls:
            with pytest.raises(Unavailable) as refused:
                await call()
            told += [str(refused.value), str(refusal(refused.value)), str(refused.value.context)]

    for internal in ("no space left", "mnemic.", "audit_log", "INSERT", "refusal_", word):
        assert not [one for one in told if internal in one], internal
    await calls[0]()
    found = await memory.recall(word, scope=scope, floor=0.0)
    assert word in found.hits[0].text


async def test_m21_what_explains_a_recall_is_that_recall(
    memory: MemoryManager, scope: Scope
) -> None:
    chance, words = Random(1), ("lease", "vault", "red", "green", "deploy", "cat", "sofa")
    session = scope.session("s")
    said = [a_turn(f"The {' '.join(chance.sample(words, 3))} it was.") for _ in range(30)]
    kept = [one.id for one in await memory.sessions.append(said, scope=session)]
    facts = [await memory.store_fact(a_fact(object=word), scope=scope) for word in words]
    kept += [one.id for one in facts]

    for _ in range(100):
        query = " ".join(chance.sample(words, chance.randint(1, 4)))
        scores = [hit.score for hit in (await memory.recall(query, scope=session, floor=0.0)).hits]
        asked: dict[str, Any] = {
            "scope": session,
            "limit": 8,
            "floor": min(sum(scores[3:5]) / 2, 1.0),
        }
        live = await memory.recall(query, **asked)
        told = await memory.recall(query, explain=True, **asked)
        returned = {hit.id for hit in live.hits}
        doubted = {*chance.sample(kept, 3), chance.choice([hit.id for hit in live.hits])}
        why = {one: (await memory.why_not(query, one, **asked)).stage for one in doubted}

        assert (live.explanation, told.explanation is None) == (None, False)
        assert [hit.id for hit in told.hits] == [hit.id for hit in live.hits]
        assert 0 < len(returned) <= 8
        told_so = {one for one, stage in why.items() if stage is RecallStage.RETURNED}
        assert told_so == doubted & returned
