"""No sequence of calls shows, changes or hints at what is another's: with both walls, or either."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from proof.machine import Stage
from proof.runs import play
from proof.verbs import public_verbs
from proof.walls import Walls, standing

OPERATIONS = 1_700
DEEP_OPERATIONS = 34_000
FIRST_SEED = int(os.environ.get("MEM_TEST_SEED", "1"))


@pytest.mark.parametrize("walls", [Walls.BOTH, Walls.PREDICATE_ALONE, Walls.POLICIES_ALONE])
def test_nothing_foreign_is_shown(
    walls: Walls, stage_for: Callable[[Walls], Stage], request: pytest.FixtureRequest
) -> None:
    operations = DEEP_OPERATIONS if request.config.getoption("--deep") else OPERATIONS
    stage = stage_for(walls)

    with standing(walls):
        play(stage, operations=operations, first_seed=FIRST_SEED)

    tally = stage.tally
    print(
        f"{walls.value}: {tally.operations} operations in {tally.runs} runs, {tally.probes} probes, "
        f"{tally.replayed} answers replayed alone, {tally.rows} rows looked at"
    )
    assert tally.operations >= operations
    assert tally.replayed > operations // 20
    assert public_verbs() <= tally.verbs
