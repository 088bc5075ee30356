"""The memories that hits tell of, whole, by kind and id."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from mnemic import EpisodeCreate, MemoryManager, ProcedureCreate, Scope
from mnemic.model.procedure import Step
from mnemic.store import retrieval
from mnemic.store.unit import Unit
from mnemic.testing import a_fact, a_scope, a_turn

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
KINDS = ("turn", "episode", "fact", "procedure")


async def _kept(memory: MemoryManager, scope: Scope) -> dict[str, UUID]:
    """One memory of each kind."""
    here = memory.at(scope)
    [turn] = await memory.sessions.append([a_turn("I keep bees.")], scope=scope.session("s"))
    episode = await here.episodic.record_episode(
        EpisodeCreate(task_description="Kept bees", occurred_at=AT)
    )
    fact = await here.semantic.store_fact(a_fact(object="bees"))
    procedure = await here.procedural.record_procedure(
        ProcedureCreate(name="Keep bees", steps=(Step(action="Look into the hive."),))
    )
    return {"turn": turn.id, "episode": episode.id, "fact": fact.id, "procedure": procedure.id}


async def _read(
    memory: MemoryManager, scope: Scope, hits: Sequence[tuple[str, UUID]], *, keep: bool = False
) -> dict[UUID, Any]:
    async def read(unit: Unit) -> dict[UUID, Any]:
        return dict(await unit.retrieval.hits.by_ids(scope, hits))

    tools = memory._tools
    return await tools.transact(scope.tenant.id, read, read_only=True, keep_plans=keep)


@pytest.mark.parametrize("keep", [False, True])
async def test_each_is_what_its_own_store_reads(
    memory: MemoryManager, scope: Scope, *, keep: bool
) -> None:
    ids = await _kept(memory, scope)
    session = scope.session("s")

    async def alone(unit: Unit) -> dict[str, list[Any]]:
        return {
            "turn": await unit.turns.of_session(session, session=session.id, first_seq=0, limit=9),
            "episode": await unit.episodes.by_ids(session, [ids["episode"]]),
            "fact": await unit.facts.by_ids(session, [ids["fact"]]),
            "procedure": await unit.procedures.by_ids(session, [ids["procedure"]]),
        }

    told = await memory._tools.transact(scope.tenant.id, alone, read_only=True)
    found = await _read(memory, session, list(ids.items()), keep=keep)

    assert [told[kind] for kind in KINDS] == [[found[ids[kind]]] for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS)
async def test_one_kind_alone_is_read(memory: MemoryManager, scope: Scope, kind: str) -> None:
    ids = await _kept(memory, scope)
    hit = (kind, ids[kind])

    found = await _read(memory, scope.session("s"), [hit, hit])

    assert list(found) == [ids[kind]]
    assert type(found[ids[kind]]).__name__.lower() == kind


async def test_nothing_is_read_of_another_kind_or_of_an_id_that_is_nobodys(
    memory: MemoryManager, scope: Scope
) -> None:
    ids = await _kept(memory, scope)
    turned = dict(zip(KINDS, [*KINDS[1:], KINDS[0]], strict=True))

    crossed = [(turned[kind], identity) for kind, identity in ids.items()]
    nobodys = [(kind, uuid4()) for kind in KINDS]
    unknown = [("goal", ids["fact"])]

    assert await _read(memory, scope.session("s"), [*crossed, *nobodys, *unknown]) == {}
    assert await _read(memory, scope.session("s"), unknown) == {}
    assert await _read(memory, scope.session("s"), []) == {}


async def test_what_is_not_seen_from_the_scope_is_missing(
    memory: MemoryManager, scope: Scope
) -> None:
    ids = await _kept(memory, scope)
    beside = scope.session("other")

    # What is kept above is seen from each session, what was said in one is not from the others.
    assert set(await _read(memory, beside, list(ids.items()))) == {*ids.values()} - {ids["turn"]}
    assert await _read(memory, a_scope(), list(ids.items())) == {}


async def test_a_fact_or_a_procedure_that_is_not_live_any_more_is_missing(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection
) -> None:
    ids = await _kept(memory, scope)
    for table, status in (("facts", "superseded"), ("procedures", "retired")):
        await seen.execute(
            f"UPDATE mnemic.{table} SET status = '{status}', retired_at = now() WHERE id = ANY($1)",
            list(ids.values()),
        )

    found = await _read(memory, scope.session("s"), list(ids.items()))

    assert set(found) == {ids["turn"], ids["episode"]}


def test_rows_become_candidates_of_all_fields_in_their_places() -> None:
    columns = (
        *("id", "stems", "stem_count", "word_count", "occurred_at", "cosine", "session_id", "seq"),
        *("actor", "role", "ends_with_question", "first_person", "has_name", "has_time_expr"),
    )
    found = retrieval.turn_found((*columns, 1, 2, 3, 4))

    assert found._asdict() == {
        "candidate": found.candidate,
        "near_place": 1,
        "words_place": 2,
        "actor_near_place": 3,
        "actor_words_place": 4,
        "passes": True,
    }
    assert found.candidate._asdict() == {
        "length": "stem_count",
        "has_time_expression": "has_time_expr",
        "kind": "turn",
        "importance": None,
        "confidence": None,
    } | {name: name for name in columns if name not in {"stem_count", "has_time_expr"}}


def test_rows_of_other_kinds_say_nothing_of_sessions() -> None:
    columns = ("id", "stems", "length", "word_count", "occurred_at", "kind", "cosine", "actor")
    found = retrieval.other_found((*columns, "importance", "confidence", 5, 6))

    assert (found.near_place, found.words_place, found.passes) == (5, 6, True)
    assert (found.actor_near_place, found.actor_words_place) == (None, None)
    assert found.candidate._asdict() == {
        **dict.fromkeys(("session_id", "seq")),
        "role": "",
        **dict.fromkeys(
            ("ends_with_question", "first_person", "has_name", "has_time_expression"), False
        ),
    } | {name: name for name in (*columns, "importance", "confidence")}
