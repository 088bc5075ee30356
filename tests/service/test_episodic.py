from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from mnemic import (
    Conflict,
    EpisodeCreate,
    Forbidden,
    InvalidInput,
    MemoryManager,
    NotFound,
    Outcome,
    Retracted,
    Scope,
)
from mnemic.testing import a_scope

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def an_episode(text: str = "Migrated the ledger to PostgreSQL 18.", **given: Any) -> EpisodeCreate:
    return EpisodeCreate(**{"task_description": text, "occurred_at": AT, **given})


async def test_an_episode_reads_back_as_it_was_told(memory: MemoryManager, scope: Scope) -> None:
    given = an_episode(
        task_type="migration",
        outcome=Outcome.PARTIAL,
        outcome_details="Two tables are left.",
        actions=({"tool": "psql", "args": {"n": 1}},),
        context_summary="The ledger moved; two tables are left.",
        lessons_learned=("Build indexes concurrently.",),
        duration_seconds=12.5,
        tokens_used=4_000,
        importance_score=0.9,
        metadata={"ticket": 17},
        tags=("ledger",),
    )

    kept = await memory.at(scope).episodic.record_episode(given)

    for field in (
        "task_description",
        "task_type",
        "outcome",
        "outcome_details",
        "actions",
        "context_summary",
        "lessons_learned",
        "duration_seconds",
        "tokens_used",
        "importance_score",
        "metadata",
        "tags",
        "occurred_at",
    ):
        assert getattr(kept, field) == getattr(given, field), field
    assert kept.scope_id == scope.id
    assert kept.title


async def test_what_is_not_given_is_filled_in_within_bounds(
    memory: MemoryManager, scope: Scope
) -> None:
    kept = await memory.at(scope).episodic.record_episode(
        an_episode("The release failed because a migration locked the orders table.")
    )

    assert 0 <= kept.importance_score <= 1
    assert kept.outcome is Outcome.FAILURE


async def test_a_failure_matters_more_than_the_same_success(
    memory: MemoryManager, scope: Scope
) -> None:
    one, other = memory.at(scope.project("a")).episodic, memory.at(scope.project("b")).episodic

    worked = await one.record_episode(an_episode(outcome=Outcome.SUCCESS))
    failed = await other.record_episode(an_episode(outcome=Outcome.FAILURE))

    assert failed.importance_score > worked.importance_score


async def test_the_first_of_its_kind_matters_more_than_the_second(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope).episodic

    first = await here.record_episode(an_episode("Moved the ledger to PostgreSQL."))
    other = await here.record_episode(an_episode("Baked a cake for the birthday."))
    again = await here.record_episode(an_episode("Moved the ledger to PostgreSQL."))
    beside = await memory.at(a_scope()).episodic.record_episode(
        an_episode("Moved the ledger to PostgreSQL.")
    )

    assert first.importance_score - again.importance_score == pytest.approx(0.1, abs=0.002)
    assert again.importance_score < other.importance_score < first.importance_score + 0.05
    assert beside.importance_score == first.importance_score


async def test_episodes_are_browsed_newest_first_by_time_outcome_and_type(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope).episodic
    for day, (outcome, kind) in enumerate(
        [(Outcome.SUCCESS, "a"), (Outcome.FAILURE, "b"), (Outcome.SUCCESS, "b")]
    ):
        await here.record_episode(
            an_episode(
                f"Task {day}.",
                occurred_at=AT + timedelta(days=day),
                outcome=outcome,
                task_type=kind,
            )
        )

    async def days(found: Any) -> list[int]:
        return [(episode.occurred_at - AT).days for episode in await found]

    assert await days(here.get_recent()) == [2, 1, 0]
    assert await days(here.get_recent(limit=2)) == [2, 1]
    assert await days(here.get_recent(since=AT + timedelta(days=1))) == [2, 1]
    assert await days(here.get_by_outcome(Outcome.SUCCESS)) == [2, 0]
    assert await days(here.get_by_task_type("b", limit=1)) == [2]


async def test_the_most_alike_episode_is_found_first(memory: MemoryManager, scope: Scope) -> None:
    here = memory.at(scope).episodic
    await here.record_episode(an_episode("Baked bread for the summer party."))
    wanted = await here.record_episode(an_episode("Tuned the slow query of the billing report."))

    found = await here.search_similar("database performance of billing", limit=1)

    assert [episode.id for episode in found] == [wanted.id]


async def test_importance_is_updated_and_bounded(memory: MemoryManager, scope: Scope) -> None:
    here = memory.at(scope).episodic
    kept = await here.record_episode(an_episode())

    await here.update_importance(kept.id, 0.0)

    [again] = await here.get_recent()
    assert again.importance_score == 0.0
    with pytest.raises(InvalidInput, match="score"):
        await here.update_importance(kept.id, 1.01)
    with pytest.raises(NotFound):
        await here.update_importance(uuid4(), 0.5)


async def test_a_summary_is_the_same_in_whichever_order(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope).episodic
    one = await here.record_episode(an_episode("Chose PostgreSQL.", outcome=Outcome.SUCCESS))
    two = await here.record_episode(
        an_episode(
            "The release failed.",
            occurred_at=AT + timedelta(days=3),
            outcome=Outcome.FAILURE,
            lessons_learned=("Build indexes concurrently.",),
        )
    )

    told = await here.summarize_episodes([two.id, one.id])

    assert told == await here.summarize_episodes([one.id, two.id])
    assert told.startswith("2 episodes from 2026-03-02 to 2026-03-05: 1 success, 1 failure.")
    assert "Lesson: Build indexes concurrently." in told
    assert told.splitlines()[1:] == [
        f"- 2026-03-02 (success) {one.title}",
        f"- 2026-03-05 (failure) {two.title}",
    ]
    with pytest.raises(NotFound):
        await here.summarize_episodes([one.id, uuid4()])
    with pytest.raises(InvalidInput):
        await here.summarize_episodes([])


async def test_one_key_is_one_episode(memory: MemoryManager, scope: Scope) -> None:
    here = memory.at(scope).episodic

    one = await here.record_episode(an_episode(), idempotency_key="k")
    two = await here.record_episode(an_episode(), idempotency_key="k")

    assert one == two
    assert len(await here.get_recent()) == 1
    with pytest.raises(Conflict):
        await here.record_episode(an_episode("Another."), idempotency_key="k")


async def test_a_forgotten_episode_is_refused(memory: MemoryManager, scope: Scope) -> None:
    here = memory.at(scope).episodic
    kept = await here.record_episode(an_episode())
    await memory.forget([kept.id], scope=scope)

    with pytest.raises(Retracted):
        await here.record_episode(an_episode())

    assert (await here.record_episode(an_episode(), lift=True)).title == kept.title


async def test_a_child_reads_above_itself_and_writes_there_only_with_a_grant(
    memory: MemoryManager, scope: Scope
) -> None:
    project = scope.project("p")
    agent = project.agent("a")
    kept = await memory.at(project).episodic.record_episode(an_episode())
    below = memory.at(agent).episodic

    assert [episode.id for episode in await below.get_recent()] == [kept.id]
    with pytest.raises(Forbidden, match="wider project scope"):
        await below.update_importance(kept.id, 0.1)
    await memory.grants.allow(agent, to=project)
    await below.update_importance(kept.id, 0.1)
    assert await memory.grants.revoke(agent, to=project)
    with pytest.raises(Forbidden):
        await below.update_importance(kept.id, 0.2)
    assert not await memory.grants.revoke(agent, to=project)
    with pytest.raises(InvalidInput, match=r"^to: "):
        await memory.grants.allow(project, to=agent)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"task_description": " "}, "task_description"),
        ({"task_type": ""}, "task_type"),
        ({"occurred_at": datetime(2026, 1, 1)}, "occurred_at"),  # noqa: DTZ001 - naive on purpose
        ({"actions": ({"a": float("nan")},)}, "actions[0].a"),
        ({"lessons_learned": ("x", "\x00")}, "lessons_learned"),
        ({"duration_seconds": -1.0}, "duration_seconds"),
        ({"duration_seconds": float("inf")}, "duration_seconds"),
        ({"tokens_used": True}, "tokens_used"),
        ({"importance_score": 2}, "importance_score"),
        ({"outcome": "splendid"}, "outcome"),
        ({"metadata": {"k": "\ud800"}}, "metadata.k"),
    ],
)
async def test_what_cannot_be_held_is_named(
    memory: MemoryManager, scope: Scope, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await memory.at(scope).episodic.record_episode(an_episode(**given))

    assert refused.value.field == field


async def test_one_key_changes_an_importance_once(memory: MemoryManager, scope: Scope) -> None:
    here = memory.at(scope).episodic
    kept = await here.record_episode(an_episode())

    await here.update_importance(kept.id, 0.9, idempotency_key="k")
    await here.update_importance(kept.id, 0.2)
    await here.update_importance(kept.id, 0.9, idempotency_key="k")

    assert (await here.get_recent())[0].importance_score == 0.2
