"""A proof that never failed proves nothing: without walls, or with a defect, it must fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import structlog
from hypothesis import Phase
from hypothesis.errors import FlakyFailure
from proof.machine import Stage
from proof.play import Leak
from proof.runs import play
from proof.walls import Defect, Walls, standing

OPERATIONS_MAX = 3_000
SEEDS_MAX = 24
log = structlog.get_logger("isolation")


def leak_of(stage: Stage, defect: Defect | None = None, *, seed: int = 1) -> str:
    """What the machine finds first. Fails if it finds nothing."""
    # Of calls at once the order may differ when the run is repeated; then it is told as flaky.
    with standing(stage.walls, defect), pytest.raises((Leak, FlakyFailure)) as found:
        play(stage, operations=OPERATIONS_MAX, first_seed=seed, phases=(Phase.generate,))
    log.info("found", walls=stage.walls.value, defect=defect, after=stage.tally.operations)
    return "\n".join(leaks_in(found.value))


def leaks_in(fault: BaseException) -> list[str]:
    """The leaks of a failure, or of those that a flaky one was found with."""
    if isinstance(fault, FlakyFailure):
        return [leak for one in fault.exceptions for leak in leaks_in(one)]
    return [str(fault)] if isinstance(fault, Leak) else []


def test_without_any_wall_a_leak_is_found(stage_for: Callable[..., Stage]) -> None:
    stage = stage_for(Walls.NONE)

    found = leak_of(stage)

    assert found


@pytest.mark.parametrize("defect", list(Defect))
def test_a_planted_defect_is_found_behind_both_walls(
    defect: Defect, stage_for: Callable[..., Stage]
) -> None:
    stage = stage_for(Walls.BOTH)

    found = leak_of(stage, defect)

    assert found


def test_without_scopes_and_walls_another_tenants_memory_is_shown(
    stage_for: Callable[..., Stage],
) -> None:
    found = []
    for seed in range(1, SEEDS_MAX + 1):
        stage = stage_for(Walls.NONE, tenants_alone=True, is_maintained=False)
        found.append(leak_of(stage, Defect.SCOPES_IGNORED, seed=seed))
        if " shows {" in found[-1]:
            return

    pytest.fail(f"every run met another leak first: {found}")
