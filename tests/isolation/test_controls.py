"""A proof that has never failed proves nothing: without walls, or with a defect, the machine fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import Phase
from proof.machine import Stage
from proof.play import Leak
from proof.runs import play
from proof.walls import Defect, Walls, standing

OPERATIONS_MAX = 3_000


def leak_of(stage: Stage, defect: Defect | None = None) -> str:
    """What the machine finds first. Fails if it finds nothing."""
    with standing(stage.walls, defect), pytest.raises(Leak) as found:
        play(stage, operations=OPERATIONS_MAX, first_seed=1, phases=(Phase.generate,))
    return str(found.value)


def test_without_any_wall_a_leak_is_found(stage_for: Callable[..., Stage]) -> None:
    stage = stage_for(Walls.NONE)

    found = leak_of(stage)

    print(f"found after {stage.tally.operations} operations: {found[:500]}")
    assert found


@pytest.mark.parametrize("defect", list(Defect))
def test_a_planted_defect_is_found_behind_both_walls(
    defect: Defect, stage_for: Callable[..., Stage]
) -> None:
    stage = stage_for(Walls.BOTH)

    found = leak_of(stage, defect)

    print(f"{defect.value}: found after {stage.tally.operations} operations: {found[:500]}")
    assert found


def test_without_scopes_and_walls_another_tenants_memory_is_shown(
    stage_for: Callable[..., Stage],
) -> None:
    stage = stage_for(Walls.NONE, tenants_alone=True, is_maintained=False)

    found = leak_of(stage, Defect.SCOPES_IGNORED)

    print(f"found after {stage.tally.operations} operations: {found[:500]}")
    assert " shows {" in found
