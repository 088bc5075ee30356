"""No sequence of calls shows, changes or hints at what is another's: with both walls, or either."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import structlog
from proof.machine import Stage
from proof.runs import play
from proof.verbs import public_verbs
from proof.walls import Defect, Walls, standing

DEEP = 20
POOLED = 0.25
SEEDS_OF = {Walls.BOTH: 0, Walls.PREDICATE_ALONE: 10_000, Walls.POLICIES_ALONE: 20_000}
log = structlog.get_logger("isolation")


def _play(stage: Stage, defect: Defect | None, *, operations: int, seed: int) -> None:
    with standing(stage.walls, defect):
        play(stage, operations=operations, first_seed=seed + SEEDS_OF[stage.walls])
    tally = stage.tally
    log.info(
        "nothing foreign",
        walls=stage.walls.value,
        defect=defect,
        operations=tally.operations,
        runs=tally.runs,
        probes=tally.probes,
        replayed=tally.replayed,
        rows=tally.rows,
    )
    assert tally.operations >= operations
    assert tally.probes > operations // 50
    assert tally.replayed > operations // 50


@pytest.fixture
def seed(pytestconfig: pytest.Config) -> int:
    """The first of a run's, which then counts on; walls of another kind begin elsewhere."""
    first: int = pytestconfig.getoption("--seed")
    return first


@pytest.fixture
def times(pytestconfig: pytest.Config) -> float:
    """How much longer than usual; through a pooler, where it is the second time, shorter."""
    if pytestconfig.getoption("--deep"):
        return DEEP
    return POOLED if pytestconfig.getoption("--through-pgbouncer") else 1


@pytest.mark.parametrize("walls", [Walls.BOTH, Walls.PREDICATE_ALONE, Walls.POLICIES_ALONE])
def test_nothing_foreign_is_shown(
    walls: Walls, stage_for: Callable[..., Stage], times: float, seed: int
) -> None:
    stage = stage_for(walls)

    _play(stage, None, operations=int(1_400 * times), seed=seed)

    assert times < 1 or public_verbs() <= stage.tally.verbs


@pytest.mark.parametrize("walls", [Walls.PREDICATE_ALONE, Walls.POLICIES_ALONE])
def test_either_wall_keeps_tenants_apart_even_where_scopes_are_ignored(
    walls: Walls, stage_for: Callable[..., Stage], times: float, seed: int
) -> None:
    """Ids of scopes follow from the tenant and so hide much by themselves; here they do not."""
    stage = stage_for(walls, tenants_alone=True)

    _play(stage, Defect.SCOPES_IGNORED, operations=int(400 * times), seed=seed)
